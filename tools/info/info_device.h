/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_DEVICE_H
#define LCOMM_TOOLS_INFO_INFO_DEVICE_H

/* The section on the devices of this process, or why there are none. */
void info_print_device(void);

#endif
