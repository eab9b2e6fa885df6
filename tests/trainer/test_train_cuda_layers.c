/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Every layer gives on a device what it gives on the processor, within rounding: that of float32,
 * or of the 16 bits that the device stores. */

#include "tests/support/layer_bench.h"
#include "tests/support/unit_tests.h"
#include "tests/trainer/cuda_backend_pair.h"
#include "trainer/train_model.h"

/* By precision_kind: of a layer, whose inputs are the same, and of all layers of a model, of which
 * each adds its own. */
static const double layer_rounding[] = {4e-6, 0x1p-7, 0x1p-10};
static const double model_rounding[] = {1e-3, 0x1p-3, 0x1p-6};

static double rounding(void) {
  return layer_rounding[cuda->stored];
}

/* A layer's twin on the device, with the same values. */
typedef struct twin {
  layer tested;
  element *in, *out, *slope, *in_delta, *skip;
} twin;

/* What both begin with has the bits that the device stores. */
static void round_bench(const bench *b) {
  const layer *of = &b->tested;
  precision_round(cuda->stored, b->in, b->in_count);
  precision_round(cuda->stored, b->slope, b->out_count);
  precision_round(cuda->stored, b->skip, b->in_count);
  precision_round(cuda->stored, of->weight, of->weight_count);
  precision_round(cuda->stored, of->bias, of->bias_count);
}

static twin twin_begin(const bench *b) {
  round_bench(b);
  twin made = {.tested = b->tested};
  layer *at = &made.tested;
  const layer *of = &b->tested;
  at->on = cuda;
  made.in = elements(b->in, b->in_count);
  made.out = elements(b->out, b->out_count);
  made.slope = elements(b->slope, b->out_count);
  made.in_delta = elements(b->in_delta, b->in_count);
  made.skip = elements(b->skip, b->in_count);
  at->skip = made.skip;
  at->skip_delta = cuda->get(b->in_count * cuda->element_size);
  at->weight = elements(of->weight, of->weight_count);
  at->bias = elements(of->bias, of->bias_count);
  at->weight_gradient = there(of->weight_gradient, of->weight_count * sizeof(float));
  at->bias_gradient = there(of->bias_gradient, of->bias_count * sizeof(float));
  at->statistics = there(of->statistics, of->statistics_count * sizeof(float));
  at->scratch = cuda->get(at->scratch_count * cuda->element_size + 1);
  return made;
}

static void twin_end(twin *self) {
  layer *at = &self->tested;
  void *owned[] = {self->in,       self->out,      self->slope,         self->in_delta,
                   self->skip,     at->skip_delta, at->weight,          at->bias,
                   at->statistics, at->scratch,    at->weight_gradient, at->bias_gradient};
  for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++) {
    cuda->free(owned[i]);
  }
}

static void expect_parameters(const layer *on_cpu, const layer *on_cuda) {
  expect_close(on_cpu->weight_gradient, on_cuda->weight_gradient, on_cpu->weight_count, rounding(),
               "gradient of weights");
  expect_close(on_cpu->bias_gradient, on_cuda->bias_gradient, on_cpu->bias_count, rounding(),
               "gradient of biases");
  expect_close(on_cpu->statistics, on_cuda->statistics, on_cpu->statistics_count, rounding(),
               "statistics");
}

/* Backward without the gradient of the input writes those of the parameters all the same. */
static void compare_backward(bench *b, twin *t, bool with_input) {
  layer *at = &b->tested, *on_cuda = &t->tested;
  at->kind->backward(at, b->in, b->out, b->slope, with_input ? b->in_delta : NULL, BATCH);
  on_cuda->kind->backward(on_cuda, t->in, t->out, t->slope, with_input ? t->in_delta : NULL, BATCH);
  if (with_input) {
    expect_elements(b->in_delta, t->in_delta, b->in_count, rounding(), "gradient of the input");
  }
  expect_parameters(at, on_cuda);
}

static void compare(bench *b) {
  layer *at = &b->tested;
  twin t = twin_begin(b);
  layer *on_cuda = &t.tested;
  at->kind->forward(at, b->in, b->out, BATCH);
  on_cuda->kind->forward(on_cuda, t.in, t.out, BATCH);
  expect_elements(b->out, t.out, b->out_count, rounding(), "output");
  /* Which input is the largest, or whether an output is 0, is asked of the same bits. */
  precision_round(cuda->stored, b->out, b->out_count);
  cuda->store(t.out, b->out, b->out_count);
  compare_backward(b, &t, true);
  if (at->skip_back > 0) {
    expect_elements(at->skip_delta, on_cuda->skip_delta, b->in_count, 0.0, "gradient of the skip");
  }
  if (at->kind->infer) {
    at->kind->infer(at, b->in, b->out, BATCH);
    on_cuda->kind->infer(on_cuda, t.in, t.out, BATCH);
    expect_elements(b->out, t.out, b->out_count, rounding(), "output for what is not trained on");
  }
  twin_end(&t);
}

static void compare_layer(layer tested, uint64_t seed) {
  bench b = bench_begin(tested, seed);
  compare(&b);
  bench_end(&b);
}

static void layers_of_images_agree(void **state) {
  static const layer_shape shapes[] = {{3, 6, 5}, {1, 4, 4}, {2, 1, 9}, {4, 14, 14}, {2, 7, 3}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    layer bare = conv_layer("c", shapes[i], 5);
    bare.bias_count = 0;
    compare_layer(bare, 1 + i);
    compare_layer(conv_layer("c", shapes[i], 4), 11 + i);
    compare_layer(dense_layer("d", shapes[i], 7), 21 + i);
    compare_layer(average_layer(shapes[i]), 31 + i);
    compare_layer(relu_layer(shapes[i]), 41 + i);
    compare_layer(flatten_layer(shapes[i]), 51 + i);
    compare_layer(batch_norm_layer("n", shapes[i]), 61 + i);
    if (shapes[i].height > 1) {
      compare_layer(pool_layer(shapes[i]), 71 + i);
    }
  }
}

static void equal_inputs_of_a_pool_agree(void **state) {
  (void)state;
  bench b = bench_begin(pool_layer((layer_shape){2, 5, 4}), 6);
  for (size_t i = 0; i < b.in_count; i++) {
    b.in[i] = (float)(i / 2 % 2);
  }
  compare(&b);
  bench_end(&b);
}

static void a_first_layer_needs_no_gradient_of_its_input(void **state) {
  const layer_shape shape = {3, 6, 5};
  layer tested[] = {conv_layer("c", shape, 4), dense_layer("d", shape, 4),
                    batch_norm_layer("n", shape)};
  (void)state;
  for (size_t i = 0; i < sizeof tested / sizeof tested[0]; i++) {
    bench b = bench_begin(tested[i], 80 + i);
    twin t = twin_begin(&b);
    compare_backward(&b, &t, false);
    twin_end(&t);
    bench_end(&b);
  }
}

static void layers_of_text_agree(void **state) {
  static const layer_shape shapes[] = {{12, 5, 1}, {48, 33, 1}, {6, 1, 1}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
    layer_shape qkv = {3 * shapes[i].channels, shapes[i].height, 1};
    compare_layer(linear_layer("l", shapes[i], 7), 1 + i);
    compare_layer(position_layer("p", shapes[i]), 11 + i);
    compare_layer(layer_norm_layer("n", shapes[i]), 21 + i);
    compare_layer(gelu_layer(shapes[i]), 31 + i);
    compare_layer(add_layer(shapes[i], 1), 41 + i);
    compare_layer(attention_layer(qkv, 1), 51 + i);
    compare_layer(attention_layer(qkv, 3), 61 + i);
  }
}

/* One row far from 0: the processor sums squares, the device those of the differences. */
static void norms_of_values_far_from_0_agree(void **state) {
  (void)state;
  bench b = bench_begin(layer_norm_layer("n", (layer_shape){24, 3, 1}), 4);
  for (int i = 0; i < 24; i++) {
    b.in[i] += 10.0f;
  }
  twin t = twin_begin(&b);
  b.tested.kind->forward(&b.tested, b.in, b.out, BATCH);
  t.tested.kind->forward(&t.tested, t.in, t.out, BATCH);
  expect_elements(b.out, t.out, b.out_count, 1e-4 + rounding(), "output");
  twin_end(&t);
  bench_end(&b);
}

/* Bytes have no gradient, and that of the weights is added to what the head left. */
static void embeddings_agree(void **state) {
  (void)state;
  bench b = bench_begin(embedding_layer("e", (layer_shape){1, 9, 1}, 6), 9);
  random_stream random = random_begin(9, 1);
  for (size_t i = 0; i < b.in_count; i++) {
    b.in[i] = (float)random_below(&random, 40);
  }
  fill(&random, b.tested.weight_gradient, b.tested.weight_count);
  twin t = twin_begin(&b);
  b.tested.kind->forward(&b.tested, b.in, b.out, BATCH);
  t.tested.kind->forward(&t.tested, t.in, t.out, BATCH);
  expect_elements(b.out, t.out, b.out_count, 0.0, "output");
  compare_backward(&b, &t, false);
  twin_end(&t);
  bench_end(&b);
}

static void tied_heads_agree(void **state) {
  (void)state;
  layer head = tied_head_layer((layer_shape){12, 5, 1}, 9);
  head.weight_count = 9 * 12; /* its own, for the test */
  compare_layer(head, 10);
}

static void ignore_parameters(void *context, int first, int count) {
  (void)context;
  (void)first;
  (void)count;
}

/* A whole model, forward and backward. */
static void compare_model(const char *name, layer_shape input, int classes, int batch) {
  model here, far;
  assert_int_equal(model_create(name, input, classes, batch, &here), 0);
  assert_int_equal(model_create_on(cuda, name, input, classes, batch, &far), 0);
  int labels_of = input.width == 1 ? input.height : 1, rows = batch * labels_of;
  uint8_t *labels = test_malloc((size_t)rows);
  random_stream random = random_begin(3, 3);
  for (int i = 0; i < rows; i++) {
    labels[i] = (uint8_t)random_below(&random, (uint32_t)classes);
  }
  model_draw_weights(&here, 5);
  model_draw_weights(&far, 5);
  model_rehearse(&far);
  here.precision = far.precision = cuda->stored;
  cpu->round(cuda->stored, here.weights, here.weight_count);
  size_t count = layer_shape_count(input) * (size_t)batch;
  for (size_t i = 0; i < count; i++) {
    float value = labels_of > 1 ? (float)random_below(&random, 256) : random_unit(&random);
    model_input(&here)[i] = model_input(&far)[i] = value;
  }
  double loss = cpu->loss(model_forward(&here, batch), labels, rows, classes, 1.0f,
                          model_logits_delta(&here));
  double other =
      cuda->loss(model_forward(&far, batch), labels, rows, classes, 1.0f, model_logits_delta(&far));
  if (!(fabs(loss - other) < (1e-5 + 0.1 * rounding()) * loss)) {
    fail_msg("%s: the loss is %.9g on the processor, %.9g on the device", name, loss, other);
  }
  model_backward(&here, batch, ignore_parameters, NULL);
  model_backward(&far, batch, ignore_parameters, NULL);
  for (int i = 0; i < here.parameter_count; i++) {
    const model_parameter *at = &here.parameters[i];
    expect_close(here.gradients + at->offset, far.gradients + at->offset, at->count,
                 model_rounding[cuda->stored], at->name);
  }
  test_free(labels);
  model_destroy(&here);
  model_destroy(&far);
}

static void models_agree(void **state) {
  (void)state;
  compare_model("mlp", (layer_shape){1, 13, 10}, 10, 3);
  compare_model("cnn", (layer_shape){1, 13, 10}, 10, 9);
  compare_model("resnet", (layer_shape){1, 9, 10}, 10, 3);
  compare_model("gpt-nano", (layer_shape){1, 64, 1}, 256, 2);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(layers_of_images_agree),
    cmocka_unit_test(equal_inputs_of_a_pool_agree),
    cmocka_unit_test(a_first_layer_needs_no_gradient_of_its_input),
    cmocka_unit_test(layers_of_text_agree),
    cmocka_unit_test(norms_of_values_far_from_0_agree),
    cmocka_unit_test(embeddings_agree),
    cmocka_unit_test(tied_heads_agree),
    cmocka_unit_test(models_agree),
};

static int open_bf16(void **state) {
  (void)state;
  return open_stored(PRECISION_BF16);
}

static int open_fp16(void **state) {
  (void)state;
  return open_stored(PRECISION_FP16);
}

int main(void) {
  int failed = cmocka_run_group_tests_name("float32", tests, open_both, close_both);
  failed += cmocka_run_group_tests_name("bf16", tests, open_bf16, close_both);
  failed += cmocka_run_group_tests_name("fp16", tests, open_fp16, close_both);
  return failed;
}
