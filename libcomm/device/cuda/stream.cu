/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/cuda/internal.cuh"

int lcomm_cuda_stream_create(void **stream) {
  *stream = NULL;
  return lcomm_cuda_result(
      cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}

int lcomm_cuda_stream_destroy(void *stream) {
  return stream ? lcomm_cuda_result(cudaStreamDestroy((cudaStream_t)stream)) : 0;
}

int lcomm_cuda_stream_finish(void *stream) {
  return lcomm_cuda_result(cudaStreamSynchronize((cudaStream_t)stream));
}

int lcomm_cuda_event_create(bool for_processes, void **event) {
  unsigned flags = cudaEventDisableTiming | (for_processes ? cudaEventInterprocess : 0);
  *event = NULL;
  return lcomm_cuda_result(cudaEventCreateWithFlags((cudaEvent_t *)event, flags));
}

int lcomm_cuda_event_destroy(void *event) {
  return event ? lcomm_cuda_result(cudaEventDestroy((cudaEvent_t)event)) : 0;
}

int lcomm_cuda_event_record(void *event, void *stream) {
  return lcomm_cuda_result(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

int lcomm_cuda_event_query(void *event, bool *over) {
  int error = lcomm_cuda_result(cudaEventQuery((cudaEvent_t)event));
  *over = error == (int)cudaSuccess;
  return error == (int)cudaErrorNotReady ? 0 : error;
}

int lcomm_cuda_stream_wait(void *stream, void *event) {
  return lcomm_cuda_result(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

int lcomm_cuda_wait_value(void *stream, const uint32_t *value, uint32_t least) {
  int error = lcomm_cuda_need_context();
  if (error != 0) {
    return error;
  }
  return (int)lcomm_cuda_driver.wait_value((CUstream)stream, (CUdeviceptr)(uintptr_t)value, least,
                                           CU_STREAM_WAIT_VALUE_GEQ);
}
