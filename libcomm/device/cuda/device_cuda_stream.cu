/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/cuda/device_cuda_internal.cuh"

#include <string.h>

int lcomm_cuda_stream_create(void **stream) {
  *stream = NULL;
  return LCOMM_CUDA_ASIDE(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}

/* The driver puts streams into a few queues (CUDA_DEVICE_MAX_CONNECTIONS, 8, or 1 for
 * some programs) and knows nothing of a stream that waits for a value, so it may well
 * put work behind it that the value waits for. Queues have a priority, so streams of
 * the highest are in others than those of a program, which are of the lowest, or one
 * above. A program's of the highest are not held: see lcomm_cuda_wait_value. */
static int highest_priority(int *priority) {
  return lcomm_cuda_result(cudaDeviceGetStreamPriorityRange(NULL, priority));
}

int lcomm_cuda_work_stream_create(void **stream) {
  int priority = 0;
  *stream = NULL;
  int error = highest_priority(&priority);
  return error ? error
               : LCOMM_CUDA_ASIDE(cudaStreamCreateWithPriority((cudaStream_t *)stream,
                                                               cudaStreamNonBlocking, priority));
}

int lcomm_cuda_stream_destroy(void *stream) {
  return stream ? LCOMM_CUDA_ASIDE(cudaStreamDestroy((cudaStream_t)stream)) : 0;
}

int lcomm_cuda_stream_finish(void *stream) {
  return LCOMM_CUDA_ASIDE(cudaStreamSynchronize((cudaStream_t)stream));
}

/* The legacy stream is never captured, but cannot be used while another stream that
 * waits for it is. */
int lcomm_cuda_stream_captured(void *stream, bool *captured) {
  enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  int error = lcomm_cuda_result(cudaStreamIsCapturing((cudaStream_t)stream, &status));
  *captured = status != cudaStreamCaptureStatusNone || error == (int)cudaErrorStreamCaptureImplicit;
  return *captured ? 0 : error;
}

int lcomm_cuda_event_create(bool for_processes, void **event) {
  unsigned flags = cudaEventDisableTiming | (for_processes ? cudaEventInterprocess : 0);
  *event = NULL;
  return LCOMM_CUDA_ASIDE(cudaEventCreateWithFlags((cudaEvent_t *)event, flags));
}

int lcomm_cuda_event_destroy(void *event) {
  return event ? LCOMM_CUDA_ASIDE(cudaEventDestroy((cudaEvent_t)event)) : 0;
}

int lcomm_cuda_event_record(void *event, void *stream) {
  return lcomm_cuda_result(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

int lcomm_cuda_event_query(void *event, bool *over) {
  int error = LCOMM_CUDA_ASIDE(cudaEventQuery((cudaEvent_t)event));
  *over = error == (int)cudaSuccess;
  return error == (int)cudaErrorNotReady ? 0 : error;
}

int lcomm_cuda_stream_wait(void *stream, void *event) {
  return lcomm_cuda_result(cudaStreamWaitEvent((cudaStream_t)stream, (cudaEvent_t)event, 0));
}

static CUstreamBatchMemOpParams number_task(const lcomm_device_number *it) {
  CUstreamBatchMemOpParams task;
  memset(&task, 0, sizeof(task));
  if (it->task == LCOMM_DEVICE_AWAIT) {
    task.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    task.waitValue.address = (CUdeviceptr)(uintptr_t)it->place;
    task.waitValue.value = it->number;
    task.waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
  } else { /* by default with a barrier before the write */
    task.writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    task.writeValue.address = (CUdeviceptr)(uintptr_t)it->place;
    task.writeValue.value = it->number;
    task.writeValue.flags = CU_STREAM_WRITE_VALUE_DEFAULT;
  }
  return task;
}

int lcomm_cuda_stream_numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  enum { AT_ONCE = 64 }; /* the driver takes up to 256 */
  CUstreamBatchMemOpParams tasks[AT_ONCE];
  int error = lcomm_cuda_need_context();
  for (uint32_t done = 0; done < count && error == 0;) {
    uint32_t here = count - done < AT_ONCE ? count - done : AT_ONCE;
    for (uint32_t i = 0; i < here; i++) {
      tasks[i] = number_task(&list[done + i]);
    }
    error = (int)lcomm_cuda_driver.numbers((CUstream)stream, here, tasks, 0);
    done += here;
  }
  return error;
}

int lcomm_cuda_wait_value(void *stream, const uint32_t *value, uint32_t least) {
  int ours = 0, its = 0;
  int error = lcomm_cuda_need_context();
  error = error ? error : highest_priority(&ours);
  error = error ? error : lcomm_cuda_result(cudaStreamGetPriority((cudaStream_t)stream, &its));
  if (error == 0 && its == ours) {
    return (int)cudaErrorNotSupported; /* it might stop what it waits for */
  }
  if (error != 0) {
    return error;
  }
  return (int)lcomm_cuda_driver.wait_value((CUstream)stream, (CUdeviceptr)(uintptr_t)value, least,
                                           CU_STREAM_WAIT_VALUE_GEQ);
}
