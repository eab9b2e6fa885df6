/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_LAYER_BENCH_H
#define LCOMM_TESTS_LAYER_BENCH_H

/* A layer of the trainer with inputs, weights and slopes drawn at random. Gradients are compared
 * with central differences of sum(out * slope), summed in double. Included after cmocka.h. */

#include <math.h>

#include "trainer/train_layer.h"
#include "trainer/train_random.h"

enum { BATCH = 11 }; /* more than one chunk of a convolution, and a rest */
/* The step of a difference. Layers that are linear in each value have no error but rounding with a
 * large one. */
#define STEP 0.0625f

static inline void fill(random_stream *random, float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    values[i] = random_between(random, -1.0f, 1.0f);
  }
}

/* What a layer must write and not add to. */
static inline void fill_nan(float *values, size_t count) {
  for (size_t i = 0; i < count; i++) {
    values[i] = NAN;
  }
}

typedef struct bench {
  layer tested;
  float step;
  size_t in_count, out_count;
  float *in, *out, *slope, *in_delta, *skip;
} bench;

static inline float *floats(size_t count) {
  return test_calloc(count ? count : 1, sizeof(float));
}

static inline bench bench_begin(layer tested, uint64_t seed) {
  bench b = {.tested = tested, .step = STEP};
  layer *at = &b.tested;
  at->on = backend_cpu();
  b.in_count = layer_shape_count(at->in) * BATCH;
  b.out_count = layer_shape_count(at->out) * BATCH;
  b.in = floats(b.in_count);
  b.out = floats(b.out_count);
  b.slope = floats(b.out_count);
  b.in_delta = floats(b.in_count);
  at->weight = floats(at->weight_count);
  at->bias = floats(at->bias_count);
  at->weight_gradient = floats(at->weight_count);
  at->bias_gradient = floats(at->bias_count);
  at->scratch = floats(at->scratch_count);
  b.skip = floats(b.in_count);
  at->skip = b.skip;
  at->skip_delta = floats(b.in_count);
  at->statistics = floats(at->statistics_count);
  random_stream random = random_begin(seed, 0);
  fill(&random, b.in, b.in_count);
  fill(&random, b.slope, b.out_count);
  fill(&random, b.skip, b.in_count);
  fill(&random, at->weight, at->weight_count);
  fill(&random, at->bias, at->bias_count);
  fill_nan(b.in_delta, b.in_count);
  fill_nan(at->weight_gradient, at->weight_count);
  fill_nan(at->bias_gradient, at->bias_count);
  return b;
}

static inline void bench_end(bench *b) {
  float *owned[] = {b->in,
                    b->out,
                    b->slope,
                    b->in_delta,
                    b->tested.weight,
                    b->tested.bias,
                    b->tested.weight_gradient,
                    b->tested.bias_gradient,
                    b->tested.scratch,
                    b->skip,
                    b->tested.skip_delta,
                    b->tested.statistics};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
    test_free(owned[i]);
  }
}

static inline double bench_objective(bench *b) {
  b->tested.kind->forward(&b->tested, b->in, b->out, BATCH);
  double sum = 0.0;
  for (size_t i = 0; i < b->out_count; i++) {
    sum += (double)b->out[i] * (double)b->slope[i];
  }
  return sum;
}

static inline void assert_gradient(bench *b, float *values, const float *gradient, size_t count) {
  size_t stride = count / 97 + 1; /* a sample is enough, and hits all rows */
  for (size_t i = 0; i < count; i += stride) {
    float kept = values[i];
    values[i] = kept + b->step;
    double above = bench_objective(b);
    values[i] = kept - b->step;
    double below = bench_objective(b);
    values[i] = kept;
    double expected = (above - below) / (2.0 * (double)b->step);
    if (!(fabs(expected - (double)gradient[i]) <= 1e-3 * (1.0 + fabs(expected)))) {
      fail_msg("gradient %zu of %zu is %g, differences give %g", i, count, (double)gradient[i],
               expected);
    }
  }
}

static inline void assert_all_gradients(bench *b) {
  layer *at = &b->tested;
  bench_objective(b);
  at->kind->backward(at, b->in, b->out, b->slope, b->in_delta, BATCH);
  assert_gradient(b, b->in, b->in_delta, b->in_count);
  assert_gradient(b, at->weight, at->weight_gradient, at->weight_count);
  assert_gradient(b, at->bias, at->bias_gradient, at->bias_count);
}

#endif
