/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_BITS_H
#define LCOMM_TOOLS_STREAM_STREAM_BITS_H

/* Do sums of devices have the bits of sums of the host, under any policy? Of drawn values, several
 * shapes, each the sum of the results before it; the case's figure is the time of all shapes. */

#include "tools/stream/stream_case.h"

/* By calls in the stream, and by a graph of these calls. */
void stream_bits_of_calls(stream_world *world, stream_result *result);
void stream_bits_of_replays(stream_world *world, stream_result *result);

#endif
