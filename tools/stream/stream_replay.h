/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_REPLAY_H
#define LCOMM_TOOLS_STREAM_STREAM_REPLAY_H

/* Sums that a graph has captured, and replays. */

#include "tools/stream/stream_work.h"

/* Cases: from the launch of a sum until it is over, and until the launch returns. */
void stream_replay_latency(stream_world *world, stream_result *result);
void stream_replay_launch(stream_world *world, stream_result *result);

/* Capture what `put` puts into the stream; collective. stream_replay_end() frees the graph, also
 * one that was not made. */
typedef bool stream_put(const stream_work *w);
bool stream_replay_begin(stream_work *w, stream_put *put);
void stream_replay_end(stream_work *w);

stream_put stream_replay_put; /* launch it */

#endif
