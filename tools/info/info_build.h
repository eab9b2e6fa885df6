/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_BUILD_H
#define LCOMM_TOOLS_INFO_INFO_BUILD_H

/* What this build can do on this machine. */
void info_print_build(void);

#endif
