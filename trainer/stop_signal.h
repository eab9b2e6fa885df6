/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_STOP_SIGNAL_H
#define TRAINER_STOP_SIGNAL_H

#include <libcomm.h>

/* SIGINT and SIGTERM: the first one, to one rank or to all, ends the run in order after
 * the step that it comes in, a second one ends the process at once. */

/* From now on the first signal is only noted. What is ignored stays ignored. */
void stop_signal_watch(void);

/* Has a signal come to this rank? For work that nobody will need then. */
int stop_signal_noted(void);

/* Do the ranks agree to stop? Begun before the gradients leave and finished after them,
 * the exchange costs a step no waiting. One at a time. */
typedef struct stop_signal {
  int32_t mine;
  int32_t agreed; /* the signal that came to any rank; 0: none. Valid after the wait. */
  lcomm_request request;
} stop_signal;

lcomm_status stop_signal_ask(lcomm_comm *comm, stop_signal *asked);
lcomm_status stop_signal_wait(lcomm_comm *comm, stop_signal *asked);

#endif
