/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_VALUES_H
#define LCOMM_TESTS_NCCL_VALUES_H

/* Whole numbers as elements of each of NCCL's types, on a device and back, by CUDA's runtime. Small
 * ones, whose sums are exact in any order; whole types wrap around. */

#include "tests/interpose/nccl/nccl_world.h"
#include "tests/support/emulated/emulated_runtime.h"

enum { TYPES = 12, VALUES_MAX = 1 << 21 };

static const struct value_type {
  ncclDataType_t type;
  size_t size;
  bool is_float;
} value_types[TYPES] = {
    {ncclInt8, 1, false},    {ncclUint8, 1, false},     {ncclInt32, 4, false},
    {ncclUint32, 4, false},  {ncclInt64, 8, false},     {ncclUint64, 8, false},
    {ncclFloat16, 2, true},  {ncclFloat32, 4, true},    {ncclFloat64, 8, true},
    {ncclBfloat16, 2, true}, {ncclFloat8e4m3, 1, true}, {ncclFloat8e5m2, 1, true}};

/* The bits of a number of 1 to 2048 with one of IEEE's 16-bit floats. */
static inline uint16_t half_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  uint32_t sign = bits >> 31 << 15, size = bits & 0x7fffffff;
  return (uint16_t)(size == 0 ? sign : sign | ((size >> 13) - (112 << 10)));
}

/* One element. 8-bit floats are moved only, so any byte will do. */
static inline void put_value(const struct value_type *type, double value, unsigned char *at) {
  float single = (float)value;
  uint32_t bits;
  uint16_t half = half_of(single);
  int64_t whole = (int64_t)value;
  memcpy(&bits, &single, sizeof(bits));
  if (type->type == ncclBfloat16) {
    half = (uint16_t)(bits >> 16);
  }
  const void *from = !type->is_float || type->size == 1 ? (const void *)&whole
                     : type->size == 2                  ? (const void *)&half
                     : type->size == 4                  ? (const void *)&single
                                                        : (const void *)&value;
  memcpy(at, from, type->size); /* little-endian */
}

static inline void cuda(cudaError_t error) {
  require(error == cudaSuccess, "CUDA: %s", cudaGetErrorString(error));
}

/* The element at a place, of a rank: what a test's numbers are made of. */
typedef double (*value_at)(int rank, size_t place);

static inline unsigned char *value_bytes(void) {
  static unsigned char bytes[VALUES_MAX];
  return bytes;
}

/* Elements first, first + 1, ... of `rank`. */
static inline void fill_values(void *there, const struct value_type *type, value_at value, int rank,
                               size_t first, size_t count) {
  unsigned char *bytes = value_bytes();
  require(count * type->size <= VALUES_MAX, "too many values");
  for (size_t i = 0; i < count; i++) {
    put_value(type, value(rank, first + i), bytes + i * type->size);
  }
  cuda(cudaMemcpy(there, bytes, count * type->size, cudaMemcpyHostToDevice));
}

/* When the stream has come so far, they are there, bit for bit. */
static inline void holds_values(const char *what, const void *there, const struct value_type *type,
                                value_at value, int rank, size_t first, size_t count,
                                cudaStream_t stream) {
  unsigned char *bytes = value_bytes(), wanted[8];
  cuda(cudaStreamSynchronize(stream));
  cuda(cudaMemcpy(bytes, there, count * type->size, cudaMemcpyDeviceToHost));
  for (size_t i = 0; i < count; i++) {
    put_value(type, value(rank, first + i), wanted);
    require(memcmp(bytes + i * type->size, wanted, type->size) == 0,
            "%s, type %d, rank %d: element %zu is not %g, but of bytes %d and %d", what,
            (int)type->type, rank, i, value(rank, first + i), bytes[i * type->size],
            bytes[i * type->size + type->size - 1]);
  }
}

/* ------------------------------------------------------------------ a program */

typedef struct program {
  ncclComm_t comm;
  cudaStream_t stream;
  unsigned char *from, *to; /* VALUES_MAX bytes each */
} program;

static inline program begin_program(const char *policy, cudaStream_t stream) {
  program it = {.comm = make(policy), .stream = stream};
  cuda(cudaMalloc((void **)&it.from, VALUES_MAX));
  cuda(cudaMalloc((void **)&it.to, VALUES_MAX));
  return it;
}

static inline program begin_with_stream(void) {
  cudaStream_t stream = NULL;
  cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return begin_program("net=none", stream);
}

static inline void end_program(program *it) {
  fine(ncclCommDestroy(it->comm));
  if (it->stream && it->stream != cudaStreamPerThread) {
    cuda(cudaStreamDestroy(it->stream));
  }
  cuda(cudaFree(it->from));
  cuda(cudaFree(it->to));
}

#endif
