/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_GRAPH_LAUNCH_H
#define LCOMM_TESTS_ENGINE_GRAPH_LAUNCH_H

/* Graphs of emulated devices: their captures end, they are launched and freed. Included by one
 * program each. */

#include "tests/engine/on_emulated_device.h"

typedef struct launchable {
  void *graph, *executable;
} launchable;

static inline void end_capture(launchable *it, void *stream) {
  check(emulated_capture_end(stream, &it->graph));
  check(emulated_graph_instantiate(it->graph, &it->executable));
}

static inline void launch(const launchable *it, void *stream) {
  check(emulated_graph_launch(it->executable, stream));
}

static inline void launch_to_the_end(const launchable *it, void *stream) {
  launch(it, stream);
  check(device->stream.finish(stream));
}

static inline void free_graph(const launchable *it) {
  check(emulated_executable_destroy(it->executable));
  check(emulated_graph_destroy(it->graph));
}

/* Another thread frees memory: it waits for one graph of this rank, and the launch of another one
 * for that thread. */
static inline bool memory_comes_and_goes(void) {
  return getenv("EMULATED_CHURN");
}

/* So do graphs in streams that stand in one queue. Ranks have to launch in one order then. */
static inline bool need_one_order(void) {
  const char *queues = getenv("EMULATED_QUEUES");
  return memory_comes_and_goes() || (queues && strcmp(queues, "1") == 0);
}

#endif
