/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A plain matrix product: a thread for each element of the result. It stands in where there is no
 * cuBLASLt, and on the emulated grid. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

typedef struct product_args {
  product of;
  train_values left, right, out;
} product_args;

LCOMM_KERNEL(multiply_elements, product_args) {
  const product *by = &a.of;
  uint64_t size = (uint64_t)by->rows * (uint64_t)by->columns;
  for (TRAIN_EACH(i, size * (uint64_t)by->count)) {
    uint64_t which = i / size, row = i % size / (uint64_t)by->columns;
    uint64_t column = i % (uint64_t)by->columns;
    uint64_t left_step = by->a.transposed ? (uint64_t)by->a.step : 1;
    uint64_t right_step = by->b.transposed ? 1 : (uint64_t)by->b.step;
    uint64_t left = which * by->a.next, right = which * by->b.next;
    left += by->a.transposed ? row : row * (uint64_t)by->a.step;
    right += by->b.transposed ? column * (uint64_t)by->b.step : column;
    float sum = 0.0f;
    for (uint64_t k = 0; k < (uint64_t)by->depth; k++) {
      sum += train_get(a.left, left + k * left_step) * train_get(a.right, right + k * right_step);
    }
    uint64_t place = which * by->next + row * (uint64_t)by->step + column;
    float kept = by->keep == 0.0f ? 0.0f : by->keep * train_get(a.out, place);
    train_put(a.out, place, by->scale * sum + kept);
  }
}

void train_cuda_multiply(const product *of) {
  if (train_cuda.calls->multiply) {
    train_cuda_note(train_cuda.calls->multiply(of, train_cuda.stored, train_cuda.stream));
    return;
  }
  product_args args = {*of, train_elements(of->a.values), train_elements(of->b.values),
                       of->wide ? train_floats(of->out) : train_elements(of->out)};
  TRAIN_LAUNCH(multiply_elements, (uint64_t)of->rows * (uint64_t)of->columns * (uint64_t)of->count,
               args);
}
