/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/temp_folder.h"
#include "tests/support/unit_tests.h"
#include "trainer/train_task.h"

enum { CONTEXT = 8 };

static task load_builtin(int context) {
  task made;
  failure why = {0};
  assert_int_equal(task_load(context, "builtin", 1, &made, &why), 0);
  return made;
}

static void text_comes_as_windows_with_a_label_at_each_position(void **state) {
  (void)state;
  task made = load_builtin(CONTEXT);
  assert_true(task_is_text(&made));
  assert_int_equal(made.labels, CONTEXT);
  assert_int_equal(made.classes, 256);
  uint32_t *order = test_malloc(made.train_count * sizeof *order);
  float input[2 * CONTEXT];
  uint8_t labels[2 * CONTEXT];
  task_begin_epoch(&made, 1, 3, order);
  task_train_batch(&made, order, 2, input, labels);
  for (int window = 0; window < 2; window++) {
    const uint8_t *from = made.text.train.bytes + made.shift + order[window] * (size_t)CONTEXT;
    for (int i = 0; i < CONTEXT; i++) {
      assert_true(input[window * CONTEXT + i] == (float)from[i]);
      assert_int_equal(labels[window * CONTEXT + i], from[i + 1]);
    }
  }
  test_free(order);
  task_free(&made);
}

static void the_last_window_ends_within_the_text_at_any_shift(void **state) {
  (void)state;
  task made = load_builtin(CONTEXT);
  size_t end = (CONTEXT - 1) + (size_t)made.train_count * CONTEXT;
  assert_true(end < made.text.train.size);
  assert_true((size_t)made.test_count * CONTEXT < made.text.test.size);
  task_free(&made);
}

static void the_order_depends_on_seed_and_epoch_alone(void **state) {
  (void)state;
  task made = load_builtin(CONTEXT);
  size_t size = made.train_count * sizeof(uint32_t);
  uint32_t *one = test_malloc(size), *two = test_malloc(size);
  task_begin_epoch(&made, 1, 2, one);
  uint32_t shift = made.shift;
  task_begin_epoch(&made, 1, 3, two);
  assert_true(memcmp(one, two, size) != 0);
  task_begin_epoch(&made, 1, 2, two);
  assert_memory_equal(one, two, size);
  assert_int_equal(made.shift, shift);
  test_free(one);
  test_free(two);
  task_free(&made);
}

static void images_come_with_one_label(void **state) {
  (void)state;
  task made = load_builtin(0);
  assert_false(task_is_text(&made));
  assert_int_equal(made.labels, 1);
  float *one = test_malloc(3 * 784 * sizeof *one);
  uint8_t labels[3];
  task_test_batch(&made, 5, 3, one, labels);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(labels[i], made.images.test.labels[5 + i]);
    assert_true(one[i * 784 + 400] ==
                made.images.level[made.images.test.pixels[(5 + i) * 784 + 400]]);
  }
  task_limit(&made, 100);
  assert_int_equal(made.train_count, 100);
  test_free(one);
  task_free(&made);
}

static void a_text_shorter_than_two_windows_is_refused(void **state) {
  const folder *in = *state;
  char path[512];
  task made;
  failure why = {0};
  snprintf(path, sizeof path, "%s/short", in->path);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("ten bytes.", file);
  fclose(file);
  assert_int_equal(task_load(CONTEXT, path, 1, &made, &why), -1);
  assert_non_null(strstr(why.text, "/short has 9 bytes to train on"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(text_comes_as_windows_with_a_label_at_each_position),
    cmocka_unit_test(the_last_window_ends_within_the_text_at_any_shift),
    cmocka_unit_test(the_order_depends_on_seed_and_epoch_alone),
    cmocka_unit_test(images_come_with_one_label),
    IN_FOLDER(a_text_shorter_than_two_windows_is_refused),
};
RUN_TESTS(tests)
