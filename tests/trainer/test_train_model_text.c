/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/layer_bench.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_math.h"
#include "trainer/train_model.h"

#define SMALL_STEP 0.0078125f /* for layers that bend */

static const layer_shape sequence = {12, 5, 1}; /* 5 positions, 12 channels */

static void the_exponential_is_that_of_the_library(void **state) {
  (void)state;
  for (float x = -87.0f; x < 88.0f; x += 0.0137f) {
    double expected = exp((double)x);
    assert_true(fabs((double)math_exp(x) - expected) < 4e-7 * expected);
  }
  assert_true(math_exp(0.0f) == 1.0f);
  assert_true(isnan(math_exp(NAN)));
  assert_true(isfinite(math_exp(INFINITY)) && math_exp(-INFINITY) < 1e-37f);
}

static void linear_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(linear_layer("l", sequence, 7), 1);
  assert_all_gradients(&b);
  bench_end(&b);
}

static void a_linear_layer_treats_all_positions_alike(void **state) {
  (void)state;
  bench b = bench_begin(linear_layer("l", sequence, 7), 1);
  memcpy(b.in + 3 * 12, b.in, 12 * sizeof(float));
  bench_objective(&b);
  for (int i = 0; i < 7; i++) {
    assert_true(fabsf(b.out[3 * 7 + i] - b.out[i]) < 1e-5f);
  }
  bench_end(&b);
}

static void position_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(position_layer("p", sequence), 2);
  assert_all_gradients(&b);
  bench_end(&b);
}

static void norm_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(layer_norm_layer("n", sequence), 3);
  b.step = SMALL_STEP;
  assert_all_gradients(&b);
  bench_end(&b);
}

static void norm_gives_mean_0_and_variance_1(void **state) {
  (void)state;
  bench b = bench_begin(layer_norm_layer("n", sequence), 3);
  for (int i = 0; i < 12; i++) {
    b.tested.weight[i] = 1.0f;
    b.tested.bias[i] = 0.0f;
    b.in[i] = 100.0f + b.in[i]; /* one row far from 0 */
  }
  bench_objective(&b);
  for (int row = 0; row < 5 * BATCH; row++) {
    assert_true(fabsf(math_sum(b.out + row * 12, 12)) < 1e-3f);
    assert_true(fabs(math_dot(b.out + row * 12, b.out + row * 12, 12) / 12.0 - 1.0) < 1e-2);
  }
  bench_end(&b);
}

static void gelu_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(gelu_layer(sequence), 4);
  b.step = SMALL_STEP;
  for (size_t i = 0; i < b.in_count; i++) {
    b.in[i] *= 4.0f;
  }
  assert_all_gradients(&b);
  bench_end(&b);
}

/* The form of the paper: x / 2 * (1 + tanh(u)). */
static void gelu_equals_its_definition(void **state) {
  (void)state;
  bench b = bench_begin(gelu_layer(sequence), 4);
  bench_objective(&b);
  for (size_t i = 0; i < b.in_count; i++) {
    double x = (double)b.in[i];
    double u = sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x);
    assert_true(fabs((double)b.out[i] - 0.5 * x * (1.0 + tanh(u))) < 1e-6);
  }
  bench_end(&b);
}

static void attention_gradients_equal_differences(void **state) {
  (void)state;
  static const int heads[] = {1, 2, 4};
  for (int i = 0; i < 3; i++) {
    bench b = bench_begin(attention_layer((layer_shape){3 * 8, 6, 1}, heads[i]), 5);
    b.step = SMALL_STEP;
    assert_all_gradients(&b);
    bench_end(&b);
  }
}

/* One head of 4 channels, in double. */
static void attention_equals_its_definition(void **state) {
  (void)state;
  enum { T = 6, D = 4 };
  bench b = bench_begin(attention_layer((layer_shape){3 * D, T, 1}, 1), 6);
  bench_objective(&b);
  for (int at = 0; at < T; at++) {
    double weight[T], sum = 0.0;
    for (int from = 0; from <= at; from++) {
      double score = 0.0;
      for (int i = 0; i < D; i++) {
        score += (double)b.in[at * 3 * D + i] * (double)b.in[from * 3 * D + D + i];
      }
      weight[from] = exp(score / 2.0);
      sum += weight[from];
    }
    for (int i = 0; i < D; i++) {
      double expected = 0.0;
      for (int from = 0; from <= at; from++) {
        expected += weight[from] / sum * (double)b.in[from * 3 * D + 2 * D + i];
      }
      assert_true(fabs((double)b.out[at * D + i] - expected) < 1e-5);
    }
  }
  bench_end(&b);
}

static void attention_does_not_look_ahead(void **state) {
  (void)state;
  bench b = bench_begin(attention_layer((layer_shape){3 * 8, 6, 1}, 2), 7);
  float kept[4 * 8];
  bench_objective(&b);
  memcpy(kept, b.out, sizeof kept);
  for (int i = 0; i < 2 * 24; i++) { /* the last two positions of the first window */
    b.in[4 * 24 + i] = 1e3f * (float)i;
  }
  bench_objective(&b);
  assert_memory_equal(kept, b.out, sizeof kept);
  bench_end(&b);
}

static void add_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(add_layer(sequence, 1), 8);
  assert_all_gradients(&b);
  assert_gradient(&b, b.skip, b.tested.skip_delta, b.in_count);
  bench_end(&b);
}

/* Bytes have no gradient, and that of the weights is added to what the head left. */
static void embedding_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(embedding_layer("e", (layer_shape){1, 5, 1}, 6), 9);
  random_stream random = random_begin(9, 1);
  for (size_t i = 0; i < b.in_count; i++) {
    b.in[i] = (float)random_below(&random, 256);
  }
  layer *at = &b.tested;
  for (size_t i = 0; i < at->weight_count; i++) {
    at->weight_gradient[i] = 1.0f;
  }
  at->kind->backward(at, b.in, b.out, b.slope, NULL, BATCH);
  for (size_t i = 0; i < at->weight_count; i++) {
    at->weight_gradient[i] -= 1.0f;
  }
  assert_gradient(&b, at->weight, at->weight_gradient, at->weight_count);
  bench_end(&b);
}

static void head_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(tied_head_layer(sequence, 9), 10);
  layer *at = &b.tested;
  float *weight = floats(9 * 12), *gradient = floats(9 * 12);
  random_stream random = random_begin(10, 1);
  fill(&random, weight, 9 * 12);
  float *owned[] = {at->weight, at->weight_gradient};
  at->weight = weight;
  at->weight_gradient = gradient;
  assert_all_gradients(&b);
  assert_gradient(&b, weight, gradient, 9 * 12);
  at->weight = owned[0];
  at->weight_gradient = owned[1];
  test_free(weight);
  test_free(gradient);
  bench_end(&b);
}

/* -------------------------------------------------------------------- models */

enum { WINDOWS = 2 };

static void ignore(void *context, int first, int count) {
  (void)context;
  (void)first;
  (void)count;
}

static void count_ready(void *context, int first, int count) {
  int *next = context;
  assert_int_equal(first, *next);
  *next += count;
}

static void fill_bytes(float *bytes, uint8_t *next, int count) {
  random_stream random = random_begin(6, 0);
  for (int i = 0; i < count; i++) {
    bytes[i] = (float)random_below(&random, 256);
    next[i] = (uint8_t)random_below(&random, 256);
  }
}

static double loss_of(model *net, const uint8_t *labels, int rows) {
  const float *logits = model_forward(net, WINDOWS);
  return loss_cross_entropy(logits, labels, rows, 256, NULL) / rows;
}

/* Of each parameter along its own gradient. */
static void assert_slopes(model *net, const uint8_t *labels, int rows) {
  for (int p = 0; p < net->parameter_count; p++) {
    const model_parameter *at = &net->parameters[p];
    float *weights = net->weights + at->offset, *gradient = net->gradients + at->offset;
    double square = math_dot(gradient, gradient, at->count);
    assert_true(square > 0.0);
    float *kept = floats(at->count);
    memcpy(kept, weights, at->count * sizeof *kept);
    float step = (float)(4e-3 / sqrt(square));
    double slope = 0.0;
    for (int side = -1; side <= 1; side += 2) {
      for (size_t i = 0; i < at->count; i++) {
        weights[i] = kept[i] + (float)side * step * gradient[i];
      }
      slope += side * loss_of(net, labels, rows) / (2.0 * (double)step);
    }
    memcpy(weights, kept, at->count * sizeof *kept);
    test_free(kept);
    double scale = sqrt(square); /* rounding weighs more where the slope is small */
    if (fabs(slope - square) > (0.02 * scale + 1e-3) * scale) {
      fail_msg("%s: slope %g, gradient says %g", at->name, slope, square);
    }
  }
}

static void gpt_gradients_equal_differences(void **state) {
  (void)state;
  model net;
  int context = model_context("gpt-nano"), rows = WINDOWS * context;
  assert_int_equal(model_create("gpt-nano", (layer_shape){1, context, 1}, 256, WINDOWS, &net), 0);
  model_draw_weights(&net, 5);
  uint8_t *labels = test_malloc((size_t)rows);
  fill_bytes(model_input(&net), labels, rows);
  const float *logits = model_forward(&net, WINDOWS);
  loss_cross_entropy(logits, labels, rows, 256, model_logits_delta(&net));
  int next = 0;
  model_backward(&net, WINDOWS, count_ready, &next);
  assert_int_equal(next, net.parameter_count);
  assert_slopes(&net, labels, rows);
  test_free(labels);
  model_destroy(&net);
}

static void a_new_gpt_knows_nothing(void **state) {
  (void)state;
  model net;
  uint8_t labels[WINDOWS * 64];
  assert_int_equal(model_create("gpt-nano", (layer_shape){1, 64, 1}, 256, WINDOWS, &net), 0);
  model_draw_weights(&net, 5);
  fill_bytes(model_input(&net), labels, WINDOWS * 64);
  assert_true(fabs(loss_of(&net, labels, WINDOWS * 64) - log(256.0)) < 0.1);
  model_destroy(&net);
}

static void gpt_learns_a_sequence_by_heart(void **state) {
  (void)state;
  enum { ROWS = WINDOWS * 64, STEPS = 60 };
  model net;
  uint8_t labels[ROWS];
  assert_int_equal(model_create("gpt-nano", (layer_shape){1, 64, 1}, 256, WINDOWS, &net), 0);
  model_draw_weights(&net, 5);
  fill_bytes(model_input(&net), labels, ROWS);
  double first = loss_of(&net, labels, ROWS);
  for (int step = 0; step < STEPS; step++) {
    const float *logits = model_forward(&net, WINDOWS);
    loss_cross_entropy(logits, labels, ROWS, 256, model_logits_delta(&net));
    model_backward(&net, WINDOWS, ignore, NULL);
    for (size_t i = 0; i < net.weight_count; i++) {
      net.weights[i] -= 0.5f * net.gradients[i];
    }
  }
  assert_true(loss_of(&net, labels, ROWS) < 0.7 * first);
  model_destroy(&net);
}

static void gpt_parameters_have_names_that_patterns_meet(void **state) {
  (void)state;
  model net;
  assert_int_equal(model_create("gpt-nano", (layer_shape){1, 64, 1}, 256, 1, &net), 0);
  assert_int_equal(net.parameter_count, 4 * 12 + 2 + 2);
  assert_string_equal(net.parameters[0].name, "norm.weight");
  assert_string_equal(net.parameters[2].name, "block3.mlp2.weight");
  assert_string_equal(net.parameters[net.parameter_count - 1].name, "embedding.weight");
  size_t offset = 0;
  for (int i = 0; i < net.parameter_count; i++) {
    assert_int_equal(net.parameters[i].offset, offset);
    offset += net.parameters[i].count;
  }
  assert_int_equal(offset, net.weight_count);
  model_destroy(&net);
  assert_int_equal(model_create("gpt-nano", (layer_shape){1, 28, 28}, 10, 1, &net), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_exponential_is_that_of_the_library),
    cmocka_unit_test(linear_gradients_equal_differences),
    cmocka_unit_test(a_linear_layer_treats_all_positions_alike),
    cmocka_unit_test(position_gradients_equal_differences),
    cmocka_unit_test(norm_gradients_equal_differences),
    cmocka_unit_test(norm_gives_mean_0_and_variance_1),
    cmocka_unit_test(gelu_gradients_equal_differences),
    cmocka_unit_test(gelu_equals_its_definition),
    cmocka_unit_test(attention_gradients_equal_differences),
    cmocka_unit_test(attention_equals_its_definition),
    cmocka_unit_test(attention_does_not_look_ahead),
    cmocka_unit_test(add_gradients_equal_differences),
    cmocka_unit_test(embedding_gradients_equal_differences),
    cmocka_unit_test(head_gradients_equal_differences),
    cmocka_unit_test(gpt_gradients_equal_differences),
    cmocka_unit_test(a_new_gpt_knows_nothing),
    cmocka_unit_test(gpt_learns_a_sequence_by_heart),
    cmocka_unit_test(gpt_parameters_have_names_that_patterns_meet),
};
RUN_TESTS(tests)
