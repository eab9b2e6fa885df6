/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "tests/support/layer_bench.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_model.h"
#include "trainer/train_random.h"

/* Inputs of relu and pool are far from where they bend, so the step of a difference may be large.
 */

static void convolution_equals_its_definition(void **state) {
  (void)state;
  bench b = bench_begin(conv_layer("c", (layer_shape){2, 5, 7}, 3), 1);
  bench_objective(&b);
  for (int channel = 0; channel < 3; channel++) {
    for (int image = 0; image < BATCH; image++) {
      for (int y = 0; y < 5; y++) {
        for (int x = 0; x < 7; x++) {
          double sum = (double)b.tested.bias[channel];
          for (int from = 0; from < 2; from++) {
            for (int tap = 0; tap < 9; tap++) {
              int sy = y + tap / 3 - 1, sx = x + tap % 3 - 1;
              if (sy < 0 || sy >= 5 || sx < 0 || sx >= 7) {
                continue;
              }
              sum += (double)b.tested.weight[(channel * 2 + from) * 9 + tap] *
                     (double)b.in[((from * BATCH + image) * 5 + sy) * 7 + sx];
            }
          }
          double got = (double)b.out[((channel * BATCH + image) * 5 + y) * 7 + x];
          assert_true(fabs(got - sum) < 1e-5);
        }
      }
    }
  }
  bench_end(&b);
}

static void convolution_gradients_equal_differences(void **state) {
  (void)state;
  static const layer_shape shapes[] = {{3, 6, 5}, {1, 4, 4}, {2, 1, 1}, {2, 1, 9}, {4, 14, 14}};
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    bench b = bench_begin(conv_layer("c", shapes[i], 4), 2 + i);
    assert_all_gradients(&b);
    bench_end(&b);
  }
}

static void convolution_without_input_gradient_gives_the_same_others(void **state) {
  (void)state;
  bench b = bench_begin(conv_layer("c", (layer_shape){3, 6, 5}, 4), 3);
  layer *at = &b.tested;
  float *kept = floats(at->weight_count);
  at->kind->backward(at, b.in, b.out, b.slope, b.in_delta, BATCH);
  memcpy(kept, at->weight_gradient, at->weight_count * sizeof *kept);
  memset(at->weight_gradient, 0, at->weight_count * sizeof *kept);
  at->kind->backward(at, b.in, b.out, b.slope, NULL, BATCH);
  assert_memory_equal(kept, at->weight_gradient, at->weight_count * sizeof *kept);
  test_free(kept);
  bench_end(&b);
}

static void dense_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(dense_layer("d", (layer_shape){3, 2, 5}, 7), 4);
  assert_all_gradients(&b);
  bench_end(&b);
}

/* Values a multiple of 4 steps apart, so no step changes which is largest,
 * and none is near zero. */
static void spread(bench *b) {
  random_stream random = random_begin(9, 0);
  for (size_t i = 0; i < b->in_count; i++) {
    b->in[i] = ((float)random_below(&random, 64) - 31.5f) * 4.0f * STEP;
  }
  for (size_t i = 1; i < b->in_count; i++) {
    b->in[i] += 0.01f * (float)(i % 3);
  }
}

static void pool_takes_the_largest_and_gives_it_the_gradient(void **state) {
  (void)state;
  static const layer_shape shapes[] = {{2, 4, 6}, {3, 7, 5}, {1, 2, 2}};
  for (size_t i = 0; i < 3; i++) {
    bench b = bench_begin(pool_layer(shapes[i]), 5);
    for (size_t k = 0; k < b.in_count; k++) { /* all different */
      b.in[k] = 4.0f * STEP * (float)((k * 7919) % 1009);
    }
    bench_objective(&b);
    assert_true(b.out[0] >= b.in[0]);
    assert_all_gradients(&b);
    bench_end(&b);
  }
}

static void pool_gives_the_gradient_of_equal_inputs_once(void **state) {
  (void)state;
  bench b = bench_begin(pool_layer((layer_shape){1, 2, 2}), 6);
  for (size_t i = 0; i < b.in_count; i++) {
    b.in[i] = 0.5f;
  }
  bench_objective(&b);
  b.tested.kind->backward(&b.tested, b.in, b.out, b.slope, b.in_delta, BATCH);
  for (int image = 0; image < BATCH; image++) {
    const float *delta = b.in_delta + 4 * image;
    assert_true(delta[0] + delta[1] + delta[2] + delta[3] == b.slope[image]);
  }
  bench_end(&b);
}

static void average_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(average_layer((layer_shape){3, 4, 5}), 5);
  assert_all_gradients(&b);
  float sum = 0.0f;
  for (int i = 0; i < 20; i++) { /* channel 1 of image 2 */
    sum += b.in[(1 * BATCH + 2) * 20 + i];
  }
  bench_objective(&b);
  assert_true(fabsf(b.out[2 * 3 + 1] - sum / 20.0f) < 1e-5f);
  bench_end(&b);
}

static void relu_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(relu_layer((layer_shape){2, 3, 5}), 7);
  spread(&b);
  assert_all_gradients(&b);
  bench_end(&b);
}

static void relu_does_not_hide_a_nan(void **state) {
  (void)state;
  bench b = bench_begin(relu_layer((layer_shape){1, 1, 1}), 7);
  b.in[3] = NAN;
  bench_objective(&b);
  assert_true(isnan(b.out[3]));
  bench_end(&b);
}

static void flatten_puts_the_features_of_an_image_together(void **state) {
  (void)state;
  bench b = bench_begin(flatten_layer((layer_shape){3, 2, 2}), 8);
  bench_objective(&b);
  for (int image = 0; image < BATCH; image++) {
    for (int channel = 0; channel < 3; channel++) {
      for (int pixel = 0; pixel < 4; pixel++) {
        assert_true(b.out[image * 12 + channel * 4 + pixel] ==
                    b.in[(channel * BATCH + image) * 4 + pixel]);
      }
    }
  }
  assert_all_gradients(&b);
  bench_end(&b);
}

/* ----------------------------------------------------------------- loss */

static void loss_of_equal_logits_is_the_logarithm_of_the_classes(void **state) {
  (void)state;
  float logits[2 * 10] = {0};
  const uint8_t labels[] = {3, 9};
  double loss = loss_cross_entropy(logits, labels, 2, 10, NULL);
  assert_true(fabs(loss - 2.0 * log(10.0)) < 1e-5);
}

static void loss_gradient_equals_differences_and_sums_to_zero(void **state) {
  (void)state;
  float logits[4 * 5], delta[4 * 5];
  const uint8_t labels[] = {0, 4, 2, 2};
  random_stream random = random_begin(1, 1);
  fill(&random, logits, 20);
  loss_cross_entropy(logits, labels, 4, 5, delta);
  for (int i = 0; i < 20; i++) {
    float kept = logits[i];
    logits[i] = kept + 0.01f;
    double above = loss_cross_entropy(logits, labels, 4, 5, NULL);
    logits[i] = kept - 0.01f;
    double below = loss_cross_entropy(logits, labels, 4, 5, NULL);
    logits[i] = kept;
    assert_true(fabs((above - below) / 0.02 / 4.0 - (double)delta[i]) < 1e-4);
  }
  for (int image = 0; image < 4; image++) {
    float sum = 0.0f;
    for (int i = 0; i < 5; i++) {
      sum += delta[image * 5 + i];
    }
    assert_true(fabsf(sum) < 1e-6f);
  }
}

static void loss_survives_huge_logits_and_shows_a_nan(void **state) {
  (void)state;
  float logits[] = {3e38f, -3e38f, 0.0f};
  const uint8_t right[] = {0}, wrong[] = {2};
  assert_true(fabs(loss_cross_entropy(logits, right, 1, 3, NULL)) < 1e-6);
  assert_true(isfinite(loss_cross_entropy(logits, wrong, 1, 3, NULL)));
  logits[1] = NAN;
  assert_false(isfinite(loss_cross_entropy(logits, right, 1, 3, NULL)));
}

static void correct_images_are_counted(void **state) {
  (void)state;
  const float logits[] = {1, 2, 3, 3, 2, 1, 0, 9, 0};
  const uint8_t labels[] = {2, 1, 1};
  assert_int_equal(loss_count_correct(logits, labels, 3, 3), 2);
}

/* --------------------------------------------------------------- models */

typedef struct readiness {
  const model *of;
  int next;
} readiness;

static void note_ready(void *context, int first, int count) {
  readiness *seen = context;
  assert_int_equal(first, seen->next);
  seen->next += count;
}

static double model_loss(model *net, const uint8_t *labels) {
  const float *logits = model_forward(net, BATCH);
  return loss_cross_entropy(logits, labels, BATCH, 10, NULL) / BATCH;
}

/* Along the gradient itself all weights are tested at once, and the slope is
 * large against rounding. */
static void assert_model_slope(const char *name) {
  model net;
  uint8_t labels[BATCH];
  assert_int_equal(model_create(name, (layer_shape){1, 13, 10}, 10, BATCH, &net), 0);
  model_draw_weights(&net, 5);
  random_stream random = random_begin(6, 0);
  fill(&random, model_input(&net), BATCH * 130);
  for (int i = 0; i < BATCH; i++) {
    labels[i] = (uint8_t)random_below(&random, 10);
  }
  const float *logits = model_forward(&net, BATCH);
  loss_cross_entropy(logits, labels, BATCH, 10, model_logits_delta(&net));
  readiness seen = {&net, 0};
  model_backward(&net, BATCH, note_ready, &seen);
  assert_int_equal(seen.next, net.parameter_count);
  for (int p = 0; p < net.parameter_count; p++) {
    const model_parameter *at = &net.parameters[p];
    double square = 0.0;
    for (size_t i = 0; i < at->count; i++) {
      square += (double)net.gradients[at->offset + i] * (double)net.gradients[at->offset + i];
    }
    assert_true(square > 0.0);
    float step = (float)(2e-3 / sqrt(square));
    for (size_t i = 0; i < at->count; i++) {
      net.weights[at->offset + i] += step * net.gradients[at->offset + i];
    }
    double above = model_loss(&net, labels);
    for (size_t i = 0; i < at->count; i++) {
      net.weights[at->offset + i] -= 2.0f * step * net.gradients[at->offset + i];
    }
    double below = model_loss(&net, labels);
    for (size_t i = 0; i < at->count; i++) {
      net.weights[at->offset + i] += step * net.gradients[at->offset + i];
    }
    double slope = (above - below) / (2.0 * (double)step);
    if (fabs(slope - square) > 0.02 * square) {
      fail_msg("%s: slope %g, gradient says %g", at->name, slope, square);
    }
  }
  model_destroy(&net);
}

static void cnn_gradients_equal_differences(void **state) {
  (void)state;
  assert_model_slope("cnn");
}

static void mlp_gradients_equal_differences(void **state) {
  (void)state;
  assert_model_slope("mlp");
}

/* Differences are of the mini-batch's own means, as backward is. */
static void batch_norm_gradients_equal_differences(void **state) {
  (void)state;
  bench b = bench_begin(batch_norm_layer("n", (layer_shape){3, 4, 5}), 9);
  b.step = 0.0078125f;
  assert_all_gradients(&b);
  bench_end(&b);
}

static void batch_norm_gives_mean_0_and_variance_1_of_each_channel(void **state) {
  (void)state;
  enum { PIXELS = BATCH * 20 };
  bench b = bench_begin(batch_norm_layer("n", (layer_shape){3, 4, 5}), 9);
  for (int channel = 0; channel < 3; channel++) {
    b.tested.weight[channel] = 1.0f;
    b.tested.bias[channel] = 0.0f;
  }
  for (int i = 0; i < PIXELS; i++) {
    b.in[i] = 50.0f + 3.0f * b.in[i];
  }
  bench_objective(&b);
  for (int channel = 0; channel < 3; channel++) {
    double sum = 0.0, square = 0.0;
    for (int i = 0; i < PIXELS; i++) {
      double value = (double)b.out[channel * PIXELS + i];
      sum += value;
      square += value * value;
    }
    assert_true(fabs(sum / PIXELS) < 1e-3 && fabs(square / PIXELS - 1.0) < 1e-2);
  }
  bench_end(&b);
}

/* After many equal mini-batches the statistics are theirs, so both ways give the same. */
static void batch_norm_remembers_what_it_saw(void **state) {
  (void)state;
  bench b = bench_begin(batch_norm_layer("n", (layer_shape){3, 4, 5}), 9);
  for (int i = 0; i < 200; i++) {
    bench_objective(&b);
  }
  float *seen = floats(b.out_count);
  memcpy(seen, b.out, b.out_count * sizeof *seen);
  float before = b.tested.statistics[1];
  b.tested.kind->infer(&b.tested, b.in, b.out, BATCH);
  for (size_t i = 0; i < b.out_count; i++) {
    assert_true(fabsf(seen[i] - b.out[i]) < 1e-4f);
  }
  assert_true(b.tested.statistics[1] == before);
  test_free(seen);
  bench_end(&b);
}

static void resnet_gradients_equal_differences(void **state) {
  (void)state;
  assert_model_slope("resnet");
}

static void inference_of_a_model_without_memory_is_forward(void **state) {
  (void)state;
  model net;
  float kept[10];
  assert_int_equal(model_create("cnn", (layer_shape){1, 12, 12}, 10, 1, &net), 0);
  model_draw_weights(&net, 5);
  random_stream random = random_begin(6, 0);
  fill(&random, model_input(&net), 144);
  memcpy(kept, model_forward(&net, 1), sizeof kept);
  assert_memory_equal(kept, model_infer(&net, 1), sizeof kept);
  assert_int_equal(net.statistics_count, 0);
  model_destroy(&net);
}

static void parameters_are_listed_in_backward_order_side_by_side(void **state) {
  (void)state;
  model net;
  assert_int_equal(model_create("cnn", (layer_shape){1, 28, 28}, 10, 2, &net), 0);
  size_t offset = 0;
  for (int i = 0; i < net.parameter_count; i++) {
    assert_int_equal(net.parameters[i].offset, offset);
    offset += net.parameters[i].count;
  }
  assert_int_equal(offset, net.weight_count);
  assert_string_equal(net.parameters[0].name, "dense2.weight");
  assert_string_equal(net.parameters[net.parameter_count - 1].name, "conv1.bias");
  model_destroy(&net);
  assert_int_equal(model_create("none", (layer_shape){1, 28, 28}, 10, 2, &net), -1);
}

static void matrices_have_rows_and_gains_and_biases_none(void **state) {
  (void)state;
  static const struct {
    const char *name;
    size_t rows, columns;
  } expected[] = {{"dense2.weight", 10, 128},
                  {"dense1.weight", 128, 1568},
                  {"conv2.weight", 32, 144},
                  {"conv1.weight", 16, 9}};
  model net;
  assert_int_equal(model_create("cnn", (layer_shape){1, 28, 28}, 10, 2, &net), 0);
  size_t matrices = 0;
  for (int i = 0; i < net.parameter_count; i++) {
    const model_parameter *at = &net.parameters[i];
    assert_int_equal(at->rows == 0, strstr(at->name, ".bias") != NULL);
    if (at->rows > 0) {
      assert_string_equal(at->name, expected[matrices].name);
      assert_int_equal(at->rows, expected[matrices].rows);
      assert_int_equal(at->count, expected[matrices].rows * expected[matrices].columns);
      matrices++;
    }
  }
  assert_int_equal(matrices, 4);
  model_destroy(&net);
}

static void a_small_batch_gives_the_logits_of_a_large_one(void **state) {
  (void)state;
  model net;
  float kept[10];
  assert_int_equal(model_create("cnn", (layer_shape){1, 12, 12}, 10, BATCH, &net), 0);
  model_draw_weights(&net, 5);
  random_stream random = random_begin(6, 0);
  fill(&random, model_input(&net), BATCH * 144);
  memcpy(kept, model_forward(&net, 1), sizeof kept);
  const float *logits = model_forward(&net, BATCH);
  for (int i = 0; i < 10; i++) {
    assert_true(fabsf(kept[i] - logits[i]) < 1e-4f);
  }
  model_destroy(&net);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(convolution_equals_its_definition),
    cmocka_unit_test(convolution_gradients_equal_differences),
    cmocka_unit_test(convolution_without_input_gradient_gives_the_same_others),
    cmocka_unit_test(dense_gradients_equal_differences),
    cmocka_unit_test(pool_takes_the_largest_and_gives_it_the_gradient),
    cmocka_unit_test(pool_gives_the_gradient_of_equal_inputs_once),
    cmocka_unit_test(average_gradients_equal_differences),
    cmocka_unit_test(relu_gradients_equal_differences),
    cmocka_unit_test(relu_does_not_hide_a_nan),
    cmocka_unit_test(flatten_puts_the_features_of_an_image_together),
    cmocka_unit_test(loss_of_equal_logits_is_the_logarithm_of_the_classes),
    cmocka_unit_test(loss_gradient_equals_differences_and_sums_to_zero),
    cmocka_unit_test(loss_survives_huge_logits_and_shows_a_nan),
    cmocka_unit_test(correct_images_are_counted),
    cmocka_unit_test(cnn_gradients_equal_differences),
    cmocka_unit_test(mlp_gradients_equal_differences),
    cmocka_unit_test(batch_norm_gradients_equal_differences),
    cmocka_unit_test(batch_norm_gives_mean_0_and_variance_1_of_each_channel),
    cmocka_unit_test(batch_norm_remembers_what_it_saw),
    cmocka_unit_test(resnet_gradients_equal_differences),
    cmocka_unit_test(inference_of_a_model_without_memory_is_forward),
    cmocka_unit_test(matrices_have_rows_and_gains_and_biases_none),
    cmocka_unit_test(parameters_are_listed_in_backward_order_side_by_side),
    cmocka_unit_test(a_small_batch_gives_the_logits_of_a_large_one),
};
RUN_TESTS(tests)
