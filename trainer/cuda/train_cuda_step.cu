/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Optimisers, with the bits of the processor: single operations in its order. */

#include "trainer/cuda/train_cuda_internal.cuh"
#include "trainer/cuda/train_cuda_table.cuh"

#define ADAM_BETA1 0.9f
#define ADAM_BETA2 0.999f
#define ADAM_EPSILON 1e-8f

/* ---------------------------------------------------------------------- steps */

LCOMM_KERNEL(step_sgd, weight_span) {
  for (TRAIN_EACH(i, a.count)) {
    a.first[i] = a.momentum * a.first[i] + a.gradients[i];
    a.weights[i] -= a.rate * a.first[i];
  }
}

LCOMM_KERNEL(adam_moments, weight_span) {
  for (TRAIN_EACH(i, a.count)) {
    float gradient = a.gradients[i];
    a.first[i] = ADAM_BETA1 * a.first[i] + (1.0f - ADAM_BETA1) * gradient;
    a.second[i] = ADAM_BETA2 * a.second[i] + (1.0f - ADAM_BETA2) * gradient * gradient;
  }
}

/* Of adam decay is 0, so weights are kept whole. */
LCOMM_KERNEL(step_adam, weight_span) {
  float rate = a.rate * a.first_factor, keep = 1.0f - a.rate * a.decay;
  for (TRAIN_EACH(i, a.count)) {
    float deviation = sqrtf(a.second_factor * a.second[i]) + ADAM_EPSILON;
    a.weights[i] = a.weights[i] * keep - rate * a.first[i] / deviation;
  }
}

LCOMM_KERNEL(step_frozen, weight_span) {
  float keep = 1.0f - a.rate * a.decay;
  for (TRAIN_EACH(i, a.count)) {
    float deviation = sqrtf(a.second_factor * a.second[i]) + ADAM_EPSILON;
    float step = a.first_factor * a.gradients[i] / deviation;
    step = step < 1.0f ? step : 1.0f;
    step = step > -1.0f ? step : -1.0f;
    a.first[i] = a.gradients[i];
    a.weights[i] = a.weights[i] * keep - a.rate * step;
  }
}

LCOMM_KERNEL(step_lars, weight_span) {
  for (TRAIN_EACH(i, a.count)) {
    float step = a.trust * (a.gradients[i] + a.decay * a.weights[i]);
    a.first[i] = a.momentum * a.first[i] + step;
    a.weights[i] -= a.rate * a.first[i];
  }
}

LCOMM_DEVICE float lamb_direction(weight_span a, uint64_t i) {
  return a.first_factor * a.first[i] / (sqrtf(a.second_factor * a.second[i]) + ADAM_EPSILON) +
         a.decay * a.weights[i];
}

LCOMM_KERNEL(step_lamb, weight_span) {
  float trust = a.rate * a.trust;
  for (TRAIN_EACH(i, a.count)) {
    a.weights[i] -= trust * lamb_direction(a, i);
  }
}

void train_cuda_step_sgd(const weight_span *of) {
  TRAIN_LAUNCH(step_sgd, of->count, *of);
}

void train_cuda_lamb_moments(const weight_span *of) {
  TRAIN_LAUNCH(adam_moments, of->count, *of);
}

void train_cuda_step_adamw(const weight_span *of) {
  TRAIN_LAUNCH(adam_moments, of->count, *of);
  TRAIN_LAUNCH(step_adam, of->count, *of);
}

void train_cuda_step_adam(const weight_span *of) {
  weight_span whole = *of;
  whole.decay = 0.0f;
  train_cuda_step_adamw(&whole);
}

void train_cuda_step_frozen(const weight_span *of) {
  TRAIN_LAUNCH(step_frozen, of->count, *of);
}

void train_cuda_step_lars(const weight_span *of) {
  TRAIN_LAUNCH(step_lars, of->count, *of);
}

void train_cuda_step_lamb(const weight_span *of) {
  TRAIN_LAUNCH(step_lamb, of->count, *of);
}

/* ---------------------------------------------------------------------- norms */

enum { LANES = 8 }; /* of math_dot(), whose order this is */

typedef struct squares_args {
  const float *values;
  double *sums;
  uint64_t count, blocks;
} squares_args;

LCOMM_DEVICE double of_lane(double value, uint32_t lane) {
  uint64_t bits = lcomm_f64_bits(value);
  uint64_t upper = lcomm_shuffle((uint32_t)(bits >> 32), lane);
  uint64_t lower = lcomm_shuffle((uint32_t)bits, lane);
  return lcomm_f64_from_bits(upper << 32 | lower);
}

/* Eight threads for each block; those without one go along, because a warp exchanges values. */
LCOMM_KERNEL(square_blocks, squares_args) {
  const uint64_t size = OPTIMIZER_BLOCK;
  uint64_t groups = (uint64_t)lcomm_blocks() * (TRAIN_THREADS / LANES);
  uint64_t own = (uint64_t)lcomm_block() * (TRAIN_THREADS / LANES) + lcomm_thread() / LANES;
  uint32_t lane = lcomm_thread() % LANES, first_lane = lcomm_lane() - lane;
  for (uint64_t base = 0; base < a.blocks; base += groups) {
    uint64_t block = base + own, begin = block * size;
    uint64_t left = block < a.blocks ? a.count - begin : 0;
    uint64_t count = left < size ? left : size, whole = count - count % LANES;
    const float *values = a.values + begin;
    double part = 0.0, sum = 0.0;
    for (uint64_t i = lane; i < whole; i += LANES) {
      part += (double)values[i] * (double)values[i];
    }
    for (uint32_t other = 0; other < LANES; other++) {
      sum += of_lane(part, first_lane + other);
    }
    for (uint64_t i = whole; i < count; i++) {
      sum += (double)values[i] * (double)values[i];
    }
    if (count > 0 && lane == 0) {
      a.sums[block] = sum;
    }
  }
}

void train_cuda_squares(const float *values, size_t count, double *sums) {
  squares_args args = {values, sums, count, (count + OPTIMIZER_BLOCK - 1) / OPTIMIZER_BLOCK};
  TRAIN_LAUNCH(square_blocks, args.blocks * LANES, args);
}

typedef struct direction_args {
  weight_span of;
  float *out;
} direction_args;

LCOMM_KERNEL(lamb_directions, direction_args) {
  for (TRAIN_EACH(i, a.of.count)) {
    a.out[i] = lamb_direction(a.of, i);
  }
}

void train_cuda_lamb_squares(const weight_span *of, double *sums) {
  direction_args args = {*of, (float *)train_cuda_scratch(of->count * sizeof(float))};
  if (args.out) {
    TRAIN_LAUNCH(lamb_directions, of->count, args);
    train_cuda_squares(args.out, of->count, sums);
  }
}
