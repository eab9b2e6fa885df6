/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_INTERRUPT_H
#define LCOMM_TOOLS_PERF_PERF_INTERRUPT_H

/* From now on the first SIGINT or SIGTERM is only noted; a second one ends the
 * process at once. What is ignored stays ignored. */
void lcomm_perf_interrupt_watch(void);

/* The signal that came to this process; 0: none. */
int lcomm_perf_interrupt_signal(void);

#endif
