/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_INFO_INFO_MEASURE_DEVICE_H
#define LCOMM_TOOLS_INFO_INFO_MEASURE_DEVICE_H

/* How fast a rank's device reads the memory of a peer's, as operations do it. One
 * rank of a pair exports memory, the other reads it; failures are as in info_ping.h. That devices
 * cannot read each other is no failure. */

#include "tools/info/info_ping.h"

enum { INFO_WHY_MAX = 160 };

lcomm_status info_device_export(const info_room *room, int peer);

/* *taken_s: for INFO_LONG_SIZE bytes, the median; 0 when it cannot be measured, and
 * then `why` (INFO_WHY_MAX bytes) is the reason. */
lcomm_status info_device_read(const info_room *room, int peer, double *taken_s, char *why);

/* Text of a peer: ends with a zero and is visible on one line. */
void info_make_visible(char *text, size_t size);

#endif
