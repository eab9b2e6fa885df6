/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/cuda/device_cuda_internal.cuh"

#include <string.h>

int lcomm_cuda_stream_create(void **stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  *stream = NULL;
  return LCOMM_CUDA_ASIDE(cudaStreamCreateWithFlags((cudaStream_t *)stream, cudaStreamNonBlocking));
}

/* The driver puts streams into a few queues (CUDA_DEVICE_MAX_CONNECTIONS, 8, or 1 for
 * some programs) and knows nothing of a stream that waits for a value, so it may well
 * put work behind it that the value waits for. Queues have a priority, so streams of
 * the highest are in others than those of most programs. What a lane waits for is in
 * a queue before it, so a program whose streams share them loses time only. */
int lcomm_cuda_work_stream_create(void **stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  int priority = 0;
  *stream = NULL;
  int error = lcomm_cuda_result(cudaDeviceGetStreamPriorityRange(NULL, &priority));
  return error ? error
               : LCOMM_CUDA_ASIDE(cudaStreamCreateWithPriority((cudaStream_t *)stream,
                                                               cudaStreamNonBlocking, priority));
}

int lcomm_cuda_stream_destroy(void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return stream ? LCOMM_CUDA_ASIDE(cudaStreamDestroy((cudaStream_t)stream)) : 0;
}

int lcomm_cuda_stream_finish(void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return LCOMM_CUDA_ASIDE(cudaStreamSynchronize((cudaStream_t)stream));
}

static int capture_of(void *stream, CUstreamCaptureStatus *status, cuuint64_t *capture,
                      CUgraph *graph) {
  int error = lcomm_cuda_need_context();
  return error ? error
               : (int)lcomm_cuda_driver.capture_info((CUstream)stream, status, capture, graph, NULL,
                                                     NULL);
}

/* The legacy stream is never captured, but cannot be used while another stream that
 * waits for it is. */
int lcomm_cuda_stream_captured(void *stream, uint64_t *capture) {
  LCOMM_CUDA_NEED_NO_BAR();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t number = 0;
  *capture = 0;
  int error = capture_of(stream, &status, &number, NULL);
  if (error == (int)CUDA_ERROR_STREAM_CAPTURE_IMPLICIT) {
    *capture = LCOMM_DEVICE_CAPTURE_OTHER;
    return 0;
  }
  if (error == 0 && status != CU_STREAM_CAPTURE_STATUS_NONE) {
    *capture = number;
  }
  return error;
}

int lcomm_cuda_stream_retain(void *stream, void (*released)(void *data), void *data) {
  LCOMM_CUDA_NEED_NO_BAR();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t number = 0;
  CUgraph graph = NULL;
  cudaUserObject_t object = NULL;
  int error = capture_of(stream, &status, &number, &graph);
  if (error != 0 || status != CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    return error ? error : (int)cudaErrorIllegalState;
  }
  error = lcomm_cuda_result(
      cudaUserObjectCreate(&object, data, released, 1, cudaUserObjectNoDestructorSync));
  if (error != 0) {
    return error;
  }
  return lcomm_cuda_result(
      cudaGraphRetainUserObject((cudaGraph_t)graph, object, 1, cudaGraphUserObjectMove));
}

int lcomm_cuda_event_create(bool for_processes, void **event) {
  LCOMM_CUDA_NEED_NO_BAR();
  unsigned flags = cudaEventDisableTiming | (for_processes ? cudaEventInterprocess : 0);
  *event = NULL;
  return LCOMM_CUDA_ASIDE(cudaEventCreateWithFlags((cudaEvent_t *)event, flags));
}

int lcomm_cuda_event_destroy(void *event) {
  LCOMM_CUDA_NEED_NO_BAR();
  return event ? LCOMM_CUDA_ASIDE(cudaEventDestroy((cudaEvent_t)event)) : 0;
}

int lcomm_cuda_event_record(void *event, void *stream) {
  LCOMM_CUDA_NEED_NO_BAR();
  return lcomm_cuda_result(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream));
}

int lcomm_cuda_event_query(void *event, bool *over) {
  LCOMM_CUDA_NEED_NO_BAR();
  int error = LCOMM_CUDA_ASIDE(cudaEventQuery((cudaEvent_t)event));
  *over = error == (int)cudaSuccess;
  return error == (int)cudaErrorNotReady ? 0 : error;
}

int lcomm_cuda_stream_wait(void *stream, void *event) {
  LCOMM_CUDA_NEED_NO_BAR();
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

/* By kernels, where the device has no such tasks. */
static int launch_numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  lcomm_cuda_number tasks[LCOMM_CUDA_NUMBERS_MAX];
  int error = 0;
  for (uint32_t done = 0; done < count && error == 0;) {
    uint32_t here = 0;
    for (; here < LCOMM_CUDA_NUMBERS_MAX && done < count; here++, done++) {
      tasks[here].place = list[done].place;
      tasks[here].number = list[done].number;
      tasks[here].is_awaited = list[done].task == LCOMM_DEVICE_AWAIT;
    }
    error = lcomm_cuda_kernels_table.numbers(tasks, here, stream);
  }
  return error;
}

int lcomm_cuda_stream_numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  LCOMM_CUDA_NEED_NO_BAR();
  enum { AT_ONCE = 64 }; /* the driver takes up to 256 */
  CUstreamBatchMemOpParams tasks[AT_ONCE];
  CUdevice device = 0;
  LCOMM_DEVICE_TRY(lcomm_cuda_need_context());
  LCOMM_DEVICE_TRY((int)lcomm_cuda_driver.context_device(&device));
  if (!lcomm_cuda_waits_for_values((int)device)) {
    return launch_numbers(stream, list, count);
  }
  int error = 0;
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

int lcomm_cuda_stream_gates(void *stream, const lcomm_device_gate *list, uint32_t count) {
  LCOMM_CUDA_NEED_NO_BAR();
  lcomm_cuda_gate tasks[LCOMM_CUDA_NUMBERS_MAX];
  int error = 0;
  for (uint32_t done = 0; done < count && error == 0;) {
    uint32_t here = 0;
    for (; here < LCOMM_CUDA_NUMBERS_MAX && done < count; here++, done++) {
      tasks[here].place = list[done].place;
      tasks[here].number = list[done].number;
      tasks[here].passed = list[done].passed;
      tasks[here].is_awaited = list[done].task == LCOMM_DEVICE_AWAIT;
    }
    error = lcomm_cuda_kernels_table.gates(tasks, here, stream);
  }
  return error;
}
