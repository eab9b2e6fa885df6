/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Graphs over emulated devices, by the names of CUDA's driver and of its runtime. */

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

/* ------------------------------------------------------------------- runtime */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return emulated_runtime_ended(cuStreamBeginCapture_v2(stream, (int)mode));
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph) {
  void *made = NULL;
  int error = graph ? emulated_capture_end(stream, &made) : cudaErrorInvalidValue;
  if (graph) {
    *graph = made;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status) {
  uint64_t capture = 0;
  int error = status ? emulated_table()->stream.captured(stream, &capture) : cudaErrorInvalidValue;
  if (error == 0) {
    *status = capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *executable, cudaGraph_t graph,
                                 unsigned long long flags) {
  void *made = NULL;
  int error = executable ? cuGraphInstantiateWithFlags(&made, graph, flags) : cudaErrorInvalidValue;
  if (error == 0) {
    *executable = made;
  }
  return emulated_runtime_ended(error);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return emulated_runtime_ended(emulated_graph_launch(executable, stream));
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  return emulated_runtime_ended(emulated_executable_destroy(executable));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return emulated_runtime_ended(emulated_graph_destroy(graph));
}
