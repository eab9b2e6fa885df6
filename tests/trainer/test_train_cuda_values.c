/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>

/* Products, losses, values of 16 bits and optimisers give on a device what they give on the
 * processor: products and losses within rounding, the others to the bit. */

#include "tests/trainer/cuda_backend_pair.h"
#include "trainer/train_optimizer.h"

/* ------------------------------------------------------------------- products */

enum { COUNT = 3, STEP_MORE = 3 };

static matrix matrix_for(const float *values, int rows, int columns, bool transposed) {
  int stored = transposed ? columns : rows, step = (transposed ? rows : columns) + STEP_MORE;
  return (matrix){values, step, transposed, (size_t)stored * (size_t)step + 5};
}

static size_t size_of(matrix of) {
  return COUNT * of.next;
}

static void compare_product(int rows, int columns, int depth, int turns, float keep) {
  product of = {.rows = rows, .columns = columns, .depth = depth, .count = COUNT, .scale = 0.5f};
  of.keep = keep;
  of.a = matrix_for(NULL, rows, depth, turns & 1);
  of.b = matrix_for(NULL, depth, columns, turns & 2);
  of.step = columns + STEP_MORE;
  of.next = (size_t)rows * (size_t)of.step + 1;
  size_t sizes[] = {size_of(of.a), size_of(of.b), COUNT * of.next};
  float *a = random_values(1, sizes[0]), *b = random_values(2, sizes[1]);
  float *out = random_values(3, sizes[2]);
  product far = of;
  far.a.values = there(a, sizes[0] * sizeof(float));
  far.b.values = there(b, sizes[1] * sizeof(float));
  far.out = there(out, sizes[2] * sizeof(float));
  of.a.values = a;
  of.b.values = b;
  of.out = out;
  cpu->multiply(&of);
  cuda->multiply(&far);
  expect_close(out, far.out, sizes[2], 1e-6, "product");
  cuda->free((void *)far.a.values);
  cuda->free((void *)far.b.values);
  cuda->free(far.out);
  test_free(a);
  test_free(b);
  test_free(out);
}

/* What lies between rows and between matrices stays as it was. */
static void products_agree(void **state) {
  (void)state;
  for (int turns = 0; turns < 4; turns++) {
    compare_product(1, 1, 1, turns, 0.0f);
    compare_product(5, 7, 33, turns, 0.0f);
    compare_product(17, 3, 8, turns, 1.0f);
    compare_product(40, 31, 2, turns, 0.25f);
  }
}

/* -------------------------------------------------------------------- vectors */

static const size_t counts[] = {1, 31, 1000, 70001};
enum { COUNTS = sizeof counts / sizeof counts[0] };

static void vectors_have_the_same_bits(void **state) {
  (void)state;
  for (int k = 0; k < COUNTS; k++) {
    size_t count = counts[k], size = count * sizeof(float);
    float *a = random_values(5, count), *b = random_values(6, count);
    float *far = there(a, size), *other = there(b, size);
    cpu->accumulate(a, b, count);
    cuda->accumulate(far, other, count);
    expect_equal(a, far, size, "accumulate");
    cpu->mean(a, b, 1.0f / 3.0f, count);
    cuda->mean(far, other, 1.0f / 3.0f, count);
    expect_equal(a, far, size, "mean");
    cpu->scale(a, 0.3f, count);
    cuda->scale(far, 0.3f, count);
    expect_equal(a, far, size, "scale");
    cpu->clear(a, size);
    cuda->clear(far, size);
    cuda->copy(other, far, size);
    expect_equal(a, other, size, "clear and copy");
    cuda->free(far);
    cuda->free(other);
    test_free(a);
    test_free(b);
  }
}

static void one_that_is_not_finite_is_found(void **state) {
  static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
  (void)state;
  for (int k = 0; k < COUNTS; k++) {
    size_t count = counts[k], last = (count - 1) * sizeof(float);
    float *a = random_values(5, count), *far = there(a, count * sizeof *a);
    a[0] = FLT_MAX;
    cuda->write(far, a, sizeof *a);
    assert_true(cpu->finite(a, count));
    assert_true(cuda->finite(far, count));
    for (int i = 0; i < 4; i++) {
      a[count - 1] = bad[i];
      cuda->write((char *)far + last, &bad[i], sizeof bad[i]);
      assert_false(cpu->finite(a, count));
      assert_false(cuda->finite(far, count));
    }
    cuda->free(far);
    test_free(a);
  }
}

static void sums_of_many_rows_agree(void **state) {
  static const int rows[] = {1, 15, 16, 64, 700, 3000};
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    enum { COLUMNS = 37 };
    float sum[COLUMNS], *in = random_values(7, (size_t)rows[i] * COLUMNS);
    float *far = there(in, (size_t)rows[i] * sizeof sum), *far_sum = there(sum, sizeof sum);
    cpu->sum_rows(in, sum, rows[i], COLUMNS);
    cuda->sum_rows(far, far_sum, rows[i], COLUMNS);
    expect_close(sum, far_sum, COLUMNS, 1e-5, "sum of rows");
    cuda->free(far);
    cuda->free(far_sum);
    test_free(in);
  }
}

/* Of all sizes that the types have, and some that they have not. */
static float *odd_values(size_t count) {
  float *made = random_values(8, count);
  for (size_t i = 0; i < count; i++) {
    made[i] = ldexpf(made[i], (int)(i % 70) - 40);
  }
  made[0] = INFINITY;
  made[1] = -0.0f;
  made[2] = 65520.0f;
  made[3] = 1e-45f;
  return made;
}

static void values_of_16_bits_are_equal(void **state) {
  (void)state;
  enum { N = 5000 };
  for (precision_kind kind = PRECISION_BF16; kind <= PRECISION_FP16; kind++) {
    float *values = odd_values(N);
    static uint16_t codes[N];
    float *far = there(values, N * sizeof *values);
    uint16_t *far_codes = there(codes, sizeof codes);
    cpu->encode(kind, values, 1.5f, codes, N);
    cuda->encode(kind, far, 1.5f, far_codes, N);
    expect_equal(codes, far_codes, sizeof codes, "codes");
    cpu->round(kind, values, N);
    cuda->round(kind, far, N);
    expect_equal(values, far, N * sizeof *values, "rounded");
    cpu->decode(kind, codes, 0.25f, values, N);
    cuda->decode(kind, far_codes, 0.25f, far, N);
    expect_equal(values, far, N * sizeof *values, "values of codes");
    cuda->free(far);
    cuda->free(far_codes);
    test_free(values);
  }
}

/* ----------------------------------------------------------------------- loss */

static void compare_loss(int rows, int classes) {
  size_t count = (size_t)rows * (size_t)classes;
  float *logits = random_values(9, count), *delta = random_values(10, count);
  uint8_t *labels = test_malloc((size_t)rows);
  for (int i = 0; i < rows; i++) {
    labels[i] = (uint8_t)((i * 7) % classes);
    logits[i * classes] *= 30.0f;
  }
  float *far = there(logits, count * sizeof *logits),
        *far_delta = there(delta, count * sizeof *delta);
  double here = cpu->loss(logits, labels, rows, classes, 8.0f, delta);
  double there_too = cuda->loss(far, labels, rows, classes, 8.0f, far_delta);
  assert_true(fabs(there_too - here) < 1e-6 * (1.0 + here));
  expect_close(delta, far_delta, count, 1e-5, "gradient of the logits");
  there_too = cuda->loss(far, labels, rows, classes, 1.0f, NULL);
  assert_true(fabs(there_too - here) < 1e-6 * (1.0 + here));
  assert_int_equal(cuda->correct(far, labels, rows, classes),
                   cpu->correct(logits, labels, rows, classes));
  logits[count / 2] = NAN;
  cuda->write(far, logits, count * sizeof *logits);
  assert_false(isfinite(cuda->loss(far, labels, rows, classes, 1.0f, NULL)));
  cuda->free(far);
  cuda->free(far_delta);
  test_free(logits);
  test_free(delta);
  test_free(labels);
}

static void losses_agree(void **state) {
  (void)state;
  compare_loss(1, 2);
  compare_loss(33, 10);
  compare_loss(70, 256);
}

/* ----------------------------------------------------------------- optimisers */

typedef struct trained {
  optimizer with;
  float *weights, *gradients;
} trained;

static void begin_on(const backend *on, optimizer_kind kind, const optimizer_part *parts, int count,
                     size_t size, trained *made) {
  assert_int_equal(optimizer_create_on(on, kind, size, 0.9f, &made->with), 0);
  assert_int_equal(optimizer_divide(&made->with, parts, count, 0.05f), 0);
  made->weights = on->get(size * sizeof(float));
  made->gradients = on->get(size * sizeof(float));
}

static void step_on(const backend *on, trained *of, const float *gradients, size_t size) {
  on->write(of->gradients, gradients, size * sizeof *gradients);
  double norm = optimizer_clip(&of->with, of->gradients, 3.0f);
  assert_true(norm > 3.0);
  optimizer_step(&of->with, of->weights, of->gradients, 0.05f);
  if (of->with.kind == OPTIMIZER_ONEBIT_ADAM) {
    optimizer_step_frozen(&of->with, of->weights, of->gradients, 0.05f);
  }
}

static void end_on(const backend *on, trained *of) {
  on->free(of->weights);
  on->free(of->gradients);
  optimizer_destroy(&of->with);
}

/* Parts of odd sizes, so that blocks of norms end within them. */
static void steps_have_the_same_bits(void **state) {
  static const optimizer_part parts[] = {
      {0, 5000, true}, {5000, 13, false}, {5013, 1, true}, {5014, 2051, true}};
  enum { SIZE = 5014 + 2051, STEPS = 4 };
  (void)state;
  for (optimizer_kind kind = OPTIMIZER_SGD; kind < OPTIMIZER_COUNT; kind++) {
    trained here, far;
    begin_on(cpu, kind, parts, 4, SIZE, &here);
    begin_on(cuda, kind, parts, 4, SIZE, &far);
    float *first = random_values(11, SIZE);
    cpu->write(here.weights, first, SIZE * sizeof *first);
    cuda->write(far.weights, first, SIZE * sizeof *first);
    for (uint64_t step = 0; step < STEPS; step++) {
      float *gradients = random_values(20 + step, SIZE);
      step_on(cpu, &here, gradients, SIZE);
      step_on(cuda, &far, gradients, SIZE);
      test_free(gradients);
    }
    expect_equal(here.weights, far.weights, SIZE * sizeof *first, optimizer_name(kind));
    expect_equal(here.with.first, far.with.first, SIZE * sizeof *first, optimizer_name(kind));
    if (here.with.second) {
      expect_equal(here.with.second, far.with.second, SIZE * sizeof *first, optimizer_name(kind));
    }
    test_free(first);
    end_on(cpu, &here);
    end_on(cuda, &far);
  }
}

/* ------------------------------------------------------------------- failures */

static void a_machine_without_devices_says_so(void **state) {
  const char *why = NULL;
  (void)state;
  emulated_trainer_close();
  emulated_end();
  emulated_begin(&(emulated_setup){.devices = 0});
  assert_null(emulated_trainer_open(0, PRECISION_FP32, &why));
  assert_non_null(strstr(why, "no CUDA device"));
  emulated_end();
  open_both(state);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(products_agree),
    cmocka_unit_test(vectors_have_the_same_bits),
    cmocka_unit_test(one_that_is_not_finite_is_found),
    cmocka_unit_test(sums_of_many_rows_agree),
    cmocka_unit_test(values_of_16_bits_are_equal),
    cmocka_unit_test(losses_agree),
    cmocka_unit_test(steps_have_the_same_bits),
    cmocka_unit_test(a_machine_without_devices_says_so),
};

int main(void) {
  return cmocka_run_group_tests(tests, open_both, close_both);
}
