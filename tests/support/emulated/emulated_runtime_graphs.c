/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Graphs of CUDA's driver over emulated devices, by the names that the driver exports. */

#include "tests/support/emulated/emulated_runtime_internal.h"

int cuStreamBeginCapture_v2(void *stream, int mode) {
  (void)mode; /* what comes from other threads spoils no capture of ours */
  return emulated_capture_begin(stream);
}

int cuStreamEndCapture(void *stream, void **graph) {
  return emulated_capture_end(stream, graph);
}

int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  return flags ? cudaErrorInvalidValue : emulated_graph_instantiate(graph, executable);
}

int cuGraphLaunch(void *executable, void *stream) {
  return emulated_graph_launch(executable, stream);
}

int cuGraphExecDestroy(void *executable) {
  return emulated_executable_destroy(executable);
}

int cuGraphDestroy(void *graph) {
  return emulated_graph_destroy(graph);
}
