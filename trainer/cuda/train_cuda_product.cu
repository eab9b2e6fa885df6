/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A plain matrix product: a thread for each element of the result. It stands in where there is no
 * cuBLASLt, and on the emulated grid. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

LCOMM_KERNEL(multiply_elements, product) {
  uint64_t size = (uint64_t)a.rows * (uint64_t)a.columns;
  for (TRAIN_EACH(i, size * (uint64_t)a.count)) {
    uint64_t which = i / size, row = i % size / (uint64_t)a.columns;
    uint64_t column = i % (uint64_t)a.columns;
    uint64_t left_step = a.a.transposed ? (uint64_t)a.a.step : 1;
    uint64_t right_step = a.b.transposed ? 1 : (uint64_t)a.b.step;
    const float *left = a.a.values + which * a.a.next;
    const float *right = a.b.values + which * a.b.next;
    left += a.a.transposed ? row : row * (uint64_t)a.a.step;
    right += a.b.transposed ? column * (uint64_t)a.b.step : column;
    float sum = 0.0f;
    for (uint64_t k = 0; k < (uint64_t)a.depth; k++) {
      sum += left[k * left_step] * right[k * right_step];
    }
    float *out = a.out + which * a.next + row * (uint64_t)a.step + column;
    *out = a.keep == 0.0f ? a.scale * sum : a.scale * sum + a.keep * *out;
  }
}

void train_cuda_multiply(const product *of) {
  if (train_cuda.calls->multiply) {
    train_cuda_note(train_cuda.calls->multiply(of, train_cuda.stream));
    return;
  }
  TRAIN_LAUNCH(multiply_elements, (uint64_t)of->rows * (uint64_t)of->columns * (uint64_t)of->count,
               *of);
}
