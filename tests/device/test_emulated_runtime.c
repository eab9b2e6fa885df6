/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* CUDA's runtime over emulated devices: what programs ask about devices, memory, functions and
 * graphs. */

#include <stdint.h>
#include <string.h>

#include "tests/support/emulated/emulated_device.h"
#include "tests/support/emulated/emulated_runtime.h"
#include "tests/support/unit_tests.h"

enum { SIZE = 4096 };

static int begin(void **state) {
  const emulated_setup setup = {.devices = 2, .seed = 3};
  (void)state;
  (void)emulated_begin(&setup);
  return 0;
}

static int end(void **state) {
  (void)state;
  return emulated_end();
}

#define FINE(call) assert_int_equal(call, 0)

static void a_device_tells_its_name_and_its_memory(void **state) {
  (void)state;
  cudaDeviceProp properties;
  size_t unused = 0, all = 0, left = 0;
  void *memory = NULL;
  FINE(cudaGetDeviceProperties(&properties, 1));
  assert_string_equal(properties.name, "emulated device 1");
  assert_int_equal(properties.major, 9);
  FINE(cudaSetDevice(1));
  FINE(cudaMemGetInfo(&unused, &all));
  assert_int_equal(all, properties.totalGlobalMem);
  FINE(cudaMalloc(&memory, SIZE));
  FINE(cudaMemGetInfo(&left, &all));
  assert_int_equal(unused - left, SIZE);
  FINE(cudaFree(memory));
  assert_int_equal(cudaGetDeviceProperties(&properties, 2), cudaErrorInvalidDevice);
  assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
}

static void pointers_tell_where_they_point(void **state) {
  (void)state;
  cudaPointerAttributes it;
  unsigned type = 0;
  int device = -1;
  char here = 0;
  char *there = NULL;
  void *pinned = NULL;
  FINE(cudaSetDevice(1));
  FINE(cudaMalloc((void **)&there, SIZE));
  FINE(cudaMallocHost(&pinned, SIZE));
  FINE(cudaPointerGetAttributes(&it, there + 10));
  assert_true(it.type == cudaMemoryTypeDevice && it.device == 1 && it.devicePointer == there + 10 &&
              !it.hostPointer);
  FINE(cudaPointerGetAttributes(&it, pinned));
  assert_true(it.type == cudaMemoryTypeHost && it.hostPointer == pinned);
  FINE(cudaPointerGetAttributes(&it, &here));
  assert_true(it.type == cudaMemoryTypeUnregistered && !it.devicePointer);
  FINE(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)there));
  assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
  FINE(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (uintptr_t)there));
  assert_int_equal(device, 1);
  assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&here),
                   cudaErrorInvalidValue);
  FINE(cudaFree(there));
  FINE(cudaFreeHost(pinned));
}

static void contexts_are_those_of_devices(void **state) {
  (void)state;
  void *first = NULL, *now = NULL;
  int device = -1;
  FINE(cuDevicePrimaryCtxRetain(&first, 0));
  FINE(cudaSetDevice(1));
  FINE(cuCtxGetDevice(&device));
  assert_int_equal(device, 1);
  FINE(cuCtxSetCurrent(first));
  FINE(cuCtxGetCurrent(&now));
  FINE(cudaGetDevice(&device));
  assert_true(now == first && device == 0);
  assert_int_equal(cuCtxSetCurrent(NULL), cudaErrorInvalidValue);
  FINE(cuDevicePrimaryCtxRelease_v2(0));
}

/* The stream writes it after the program has freed it. */
static void memory_is_freed_in_order_with_its_stream(void **state) {
  (void)state;
  cudaStream_t stream = NULL;
  size_t before = 0, after = 0, all = 0;
  char *memory = NULL, bytes[SIZE];
  FINE(cudaSetDevice(0));
  FINE(cudaMemGetInfo(&before, &all));
  FINE(cudaStreamCreate(&stream));
  FINE(cudaMallocAsync((void **)&memory, SIZE, stream));
  FINE(cudaMemsetAsync(memory, 7, SIZE, stream));
  FINE(cudaMemcpyAsync(bytes, memory, SIZE, cudaMemcpyDeviceToHost, stream));
  FINE(cudaMemsetAsync(memory, 8, SIZE, stream));
  FINE(cudaFreeAsync(memory, stream));
  FINE(cudaStreamSynchronize(stream));
  FINE(cudaMemGetInfo(&after, &all));
  assert_true(before == after && bytes[0] == 7 && bytes[SIZE - 1] == 7);
  FINE(cudaFreeAsync(NULL, stream));
  FINE(cudaStreamDestroy(stream));
}

static void a_captured_stream_is_replayed(void **state) {
  (void)state;
  cudaStream_t stream = NULL;
  cudaGraph_t graph = NULL;
  cudaGraphExec_t executable = NULL;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  char *memory = NULL, bytes[SIZE];
  FINE(cudaMalloc((void **)&memory, SIZE));
  FINE(cudaStreamCreate(&stream));
  FINE(cudaMemset(memory, 1, SIZE));
  FINE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  FINE(cudaMemsetAsync(memory, 9, SIZE, stream));
  FINE(cudaStreamIsCapturing(stream, &status));
  assert_int_equal(status, cudaStreamCaptureStatusActive);
  FINE(cudaStreamEndCapture(stream, &graph));
  FINE(cudaGraphInstantiate(&executable, graph, 0));
  FINE(cudaGraphDestroy(graph));
  FINE(cudaMemcpy(bytes, memory, SIZE, cudaMemcpyDeviceToHost));
  assert_int_equal(bytes[0], 1);
  FINE(cudaGraphLaunch(executable, stream));
  FINE(cudaStreamSynchronize(stream));
  FINE(cudaMemcpy(bytes, memory, SIZE, cudaMemcpyDeviceToHost));
  assert_int_equal(bytes[SIZE - 1], 9);
  FINE(cudaGraphExecDestroy(executable));
  FINE(cudaStreamDestroy(stream));
  FINE(cudaFree(memory));
}

static void what_is_asked_wrongly_is_refused(void **state) {
  (void)state;
  size_t size = 0;
  assert_int_equal(cudaGetDeviceProperties(NULL, 0), cudaErrorInvalidValue);
  assert_int_equal(cudaMemGetInfo(NULL, &size), cudaErrorInvalidValue);
  assert_int_equal(cudaPointerGetAttributes(NULL, &size), cudaErrorInvalidValue);
  assert_int_equal(cudaMallocAsync(NULL, SIZE, NULL), cudaErrorInvalidValue);
  assert_int_equal(cudaGetDriverEntryPoint("cuInit", NULL, 0, NULL), cudaErrorInvalidValue);
  assert_int_equal(cudaStreamIsCapturing(NULL, NULL), cudaErrorInvalidValue);
  (void)cudaGetLastError();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_device_tells_its_name_and_its_memory),
    cmocka_unit_test(pointers_tell_where_they_point),
    cmocka_unit_test(contexts_are_those_of_devices),
    cmocka_unit_test(memory_is_freed_in_order_with_its_stream),
    cmocka_unit_test(a_captured_stream_is_replayed),
    cmocka_unit_test(what_is_asked_wrongly_is_refused),
};

RUN_TESTS_WITHIN(tests, begin, end)
