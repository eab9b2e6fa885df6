/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_TAPE_GRAPHS_H
#define LCOMM_TESTS_ENGINE_TAPE_GRAPHS_H

/* Graphs of calls, on emulated devices. Included by one program each. */

#include <time.h>

#include "tests/engine/tape_calls.h"

typedef struct launchable {
  void *graph, *executable;
} launchable;

static inline void end_capture(launchable *it, void *stream) {
  check(emulated_capture_end(stream, &it->graph));
  check(emulated_graph_instantiate(it->graph, &it->executable));
}

static inline launchable capture_sums(lcomm_comm *comm, const held *it, int first, int end,
                                      int stride) {
  launchable made;
  check(emulated_capture_begin(it->stream));
  for (int i = first; i < end; i += stride) {
    sum_in_stream(comm, it, i);
  }
  end_capture(&made, it->stream);
  return made;
}

static inline void sleep_ms(int ms) {
  nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

static inline void launch(const launchable *it, void *stream) {
  check(emulated_graph_launch(it->executable, stream));
}

static inline void free_graph(const launchable *it) {
  check(emulated_executable_destroy(it->executable));
  check(emulated_graph_destroy(it->graph));
}

#endif
