/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_LEFT_MEMORY_H
#define LCOMM_ENGINE_LEFT_MEMORY_H

/* Memory that a graph refers to whose communicator is gone: the graph may still be launched, and
 * passes through it. Of the process; freed by a later call, of any communicator, that makes a run
 * on a device, once the graph is gone, too. */

#include "libcomm/engine/recording.h"

/* Take all that lanes use from the run of a recording; the rest is its owner's to free. */
void lcomm_left_memory_take(lcomm_run *run);

/* The same of pinned memory of a device, `pinned`; `graph` is owned from here on. */
void lcomm_left_memory_take_pinned(lcomm_graph_life *graph, int ordinal, void *pinned);

/* Free what no graph refers to any more. No turn is held: it waits for the device. */
void lcomm_left_memory_free(void);

/* The same of a run that was given up: what its sends may still read in pinned memory, and in
 * memory of the device that peers have opened, stays to the end of the process. The rest of the run
 * can be freed. */
void lcomm_left_memory_keep(lcomm_run *run);

#endif
