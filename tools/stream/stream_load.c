/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_load.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* A matrix has SIDE x SIDE float32: some milliseconds. */
enum { SIDE = 4096, CUBLAS_NO_TRANSPOSE = 0 };

/* cuBLAS as its manual has it; its headers need not be there. */
typedef struct cublas {
  void *library, *handle;
  const lcomm_device_table *device;
  void *matrix[3];
  int (*create)(void **handle);
  int (*destroy)(void *handle);
  int (*set_stream)(void *handle, void *stream);
  int (*sgemm)(void *handle, int transpose_a, int transpose_b, int m, int n, int k,
               const float *alpha, const float *a, int lda, const float *b, int ldb,
               const float *beta, float *c, int ldc);
} cublas;

static bool find(cublas *it, const char *name, void *function) {
  void *symbol = dlsym(it->library, name);
  memcpy(function, &symbol, sizeof(symbol));
  return symbol;
}

static bool open_library(cublas *it) {
  static const char *const names[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11",
                                      "libcublas.so"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !it->library; i++) {
    it->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  }
  return it->library && find(it, "cublasCreate_v2", &it->create) &&
         find(it, "cublasDestroy_v2", &it->destroy) &&
         find(it, "cublasSetStream_v2", &it->set_stream) && find(it, "cublasSgemm_v2", &it->sgemm);
}

static void close_load(void *state) {
  cublas *it = state;
  if (it->handle) {
    (void)it->destroy(it->handle);
  }
  for (int i = 0; i < 3; i++) {
    (void)it->device->memory.free(it->matrix[i]);
  }
  free(it); /* the library stays: it has threads and handlers of its own */
}

static int put(void *state, void *stream) {
  static const float one = 1, zero = 0;
  cublas *it = state;
  int error = it->set_stream(it->handle, stream);
  return error ? error
               : it->sgemm(it->handle, CUBLAS_NO_TRANSPOSE, CUBLAS_NO_TRANSPOSE, SIDE, SIDE, SIDE,
                           &one, it->matrix[0], SIDE, it->matrix[1], SIDE, &zero, it->matrix[2],
                           SIDE);
}

static bool make_matrices(cublas *it) {
  size_t size = (size_t)SIDE * SIDE * sizeof(float);
  bool good = true;
  for (int i = 0; i < 3 && good; i++) {
    good = it->device->memory.get(size, &it->matrix[i]) == 0 &&
           it->device->set(it->matrix[i], 0, size, NULL) == 0;
  }
  return good && it->device->stream.finish(NULL) == 0;
}

bool stream_load_cublas(const lcomm_device_table *device, stream_load *load, lcomm_why *why) {
  cublas *it = calloc(1, sizeof *it);
  if (!it) {
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory") == LCOMM_OK;
  }
  it->device = device;
  bool opened = open_library(it);
  if (opened && make_matrices(it) && it->create(&it->handle) == 0) {
    *load = (stream_load){it, put, close_load};
    return true;
  }
  (void)lcomm_why_set(why, LCOMM_ERR_SYSTEM,
                      opened ? "cuBLAS does not begin on this device"
                             : "there is no libcublas.so where the loader looks; add the CUDA "
                               "toolkit's lib64 to LD_LIBRARY_PATH");
  close_load(it);
  return false;
}
