/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_STREAM_STREAM_GRAPHS_H
#define LCOMM_TOOLS_STREAM_STREAM_GRAPHS_H

/* Graphs of a device, as programs make them of what they put into a stream. */

#include <stdbool.h>

#include "libcomm/base/error.h"

/* Each returns 0, or an error that the device's table explains. */
typedef struct stream_graphs {
  int (*capture_begin)(void *stream);
  int (*capture_end)(void *stream, void **graph); /* NULL: the capture was spoilt */
  int (*instantiate)(void *graph, void **executable);
  int (*launch)(void *executable, void *stream);
  int (*executable_destroy)(void *executable);
  int (*graph_destroy)(void *graph);
} stream_graphs;

/* Those of CUDA's driver, which is opened now; false with a sentence where it is missing or too
 * old. */
bool stream_graphs_driver(stream_graphs *graphs, lcomm_why *why);

#endif
