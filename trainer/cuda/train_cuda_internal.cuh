/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_CUDA_TRAIN_CUDA_INTERNAL_CUH
#define TRAINER_CUDA_TRAIN_CUDA_INTERNAL_CUH

/* What the files of the back end share: the device in use, launches, and what threads do together.
 * Kernels are written as those of kernels/cuda, in plain float32; they add in another order than
 * the processor, so results agree within rounding. Those of optimisers have its bits. */

#include <math.h>

#include "kernels/cuda/cuda_grid.cuh"
#include "kernels/cuda/cuda_hardware.cuh"
#include "trainer/cuda/train_cuda.h"

typedef struct train_cuda_state {
  const train_cuda_calls *calls;
  void *stream;
  precision_kind stored; /* what elements are */
  void *beside;          /* another stream, once it was asked for */
  void *asked;           /* event: the work so far */
  void *marks[BACKEND_MARKS];
  int error; /* the first one; 0: none */
  void *scratch;
  size_t scratch_size;
} train_cuda_state;

extern train_cuda_state train_cuda;

/* The first error is kept. */
static inline void train_cuda_note(int error) {
  train_cuda.error = train_cuda.error ? train_cuda.error : error;
}

/* Memory that a function uses until it returns; what the next one puts there comes after it in the
 * stream. NULL without memory, which is noted. */
void *train_cuda_scratch(size_t size);

/* Columns are summed up in so many slices of the rows, side by side. */
uint32_t train_cuda_slices(int rows);
/* sum[columns] of partial[slices][columns] */
void train_cuda_sum_slices(const float *partial, float *sum, uint32_t slices, int columns);

/* ------------------------------------------------------------------- launches */

enum { TRAIN_THREADS = 256, TRAIN_WARPS = TRAIN_THREADS / LCOMM_WARP };

static inline uint32_t train_cuda_blocks(uint64_t count, uint64_t of_block) {
  const uint64_t most = 4096;
  uint64_t blocks = (count + of_block - 1) / of_block;
  return (uint32_t)(blocks < most ? blocks : most);
}

/* A thread for each of `count`, or a warp; where these are too many, they take turns. */
#define TRAIN_LAUNCH(name, count, args)                                                            \
  train_cuda_note(LCOMM_LAUNCH(name, train_cuda_blocks(count, TRAIN_THREADS), TRAIN_THREADS,       \
                               train_cuda.stream, args))
#define TRAIN_LAUNCH_WARPS(name, count, args)                                                      \
  train_cuda_note(LCOMM_LAUNCH(name, train_cuda_blocks(count, TRAIN_WARPS), TRAIN_THREADS,         \
                               train_cuda.stream, args))

/* for (TRAIN_EACH(i, count)): the numbers of this thread, or of this warp. */
#define TRAIN_EACH(i, count)                                                                       \
  uint64_t i = (uint64_t)lcomm_block() * TRAIN_THREADS + lcomm_thread();                           \
  i < (count);                                                                                     \
  i += (uint64_t)lcomm_blocks() * TRAIN_THREADS
#define TRAIN_EACH_OF_WARP(i, count)                                                               \
  uint64_t i = (uint64_t)lcomm_block() * TRAIN_WARPS + lcomm_warp();                               \
  i < (count);                                                                                     \
  i += (uint64_t)lcomm_blocks() * TRAIN_WARPS

/* --------------------------------------------------------------------- values */

/* Of a type: elements, which may have 16 bits, or float32. Kernels compute in float32. */
typedef struct train_values {
  void *at;
  precision_kind kind;
} train_values;

static inline train_values train_elements(const element *at) {
  train_values made = {(void *)at, train_cuda.stored};
  return made;
}

static inline train_values train_floats(const float *at) {
  train_values made = {(void *)at, PRECISION_FP32};
  return made;
}

static inline size_t train_cuda_element_size(void) {
  return train_cuda.stored == PRECISION_FP32 ? sizeof(float) : sizeof(uint16_t);
}

LCOMM_DEVICE float train_get(train_values of, uint64_t i) {
  if (of.kind == PRECISION_FP32) {
    return ((const float *)of.at)[i];
  }
  uint16_t code = ((const uint16_t *)of.at)[i];
  return of.kind == PRECISION_BF16 ? lcomm_bf16_to_f32(code) : lcomm_f16_to_f32(code);
}

LCOMM_DEVICE void train_put(train_values of, uint64_t i, float value) {
  if (of.kind == PRECISION_FP32) {
    ((float *)of.at)[i] = value;
  } else {
    ((uint16_t *)of.at)[i] =
        of.kind == PRECISION_BF16 ? lcomm_f32_to_bf16(value) : lcomm_f32_to_f16(value);
  }
}

/* Those from the first one on. */
LCOMM_DEVICE train_values train_from(train_values of, uint64_t first) {
  train_values made = {(char *)of.at + first * (of.kind == PRECISION_FP32 ? 4 : 2), of.kind};
  return made;
}

/* ---------------------------------------------------------------------- warps */

/* All lanes get the result, and the same bits. */
LCOMM_DEVICE float train_warp_sum(float value) {
  for (uint32_t mask = LCOMM_WARP / 2; mask; mask /= 2) {
    value += lcomm_f32_from_bits(lcomm_shuffle_xor(lcomm_f32_bits(value), mask));
  }
  return value;
}

LCOMM_DEVICE float train_warp_max(float value) {
  for (uint32_t mask = LCOMM_WARP / 2; mask; mask /= 2) {
    float other = lcomm_f32_from_bits(lcomm_shuffle_xor(lcomm_f32_bits(value), mask));
    value = other > value ? other : value;
  }
  return value;
}

/* Mean and variance of values[count], of a whole warp. */
typedef struct train_moments {
  float mean, variance;
} train_moments;

LCOMM_DEVICE train_moments train_warp_moments(train_values values, uint64_t count) {
  float sum = 0.0f, square = 0.0f;
  for (uint64_t i = lcomm_lane(); i < count; i += LCOMM_WARP) {
    sum += train_get(values, i);
  }
  float mean = train_warp_sum(sum) / (float)count;
  for (uint64_t i = lcomm_lane(); i < count; i += LCOMM_WARP) {
    float apart = train_get(values, i) - mean;
    square += apart * apart;
  }
  train_moments made = {mean, train_warp_sum(square) / (float)count};
  return made;
}

#endif
