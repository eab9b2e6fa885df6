/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How often the speed of a codec, and of low rank, is tried. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/comm/measure_codecs.h"
#include "libcomm/comm/measure_lowrank.h"
#include "libcomm/plan/policy.h"
#include "tests/support/unit_tests.h"

static int encoded;

static void count_and_encode(const float *source, size_t block, int8_t *code, float *scale,
                             size_t n) {
  encoded++;
  lcomm_kernels_best()->f32_to_int8(source, block, code, scale, n);
}

/* Of a short and of a long vector together. */
static int count_trials(double within_s) {
  lcomm_kernels counting = *lcomm_kernels_best();
  lcomm_format format = lcomm_format_of(&lcomm_codec_int8);
  counting.f32_to_int8 = count_and_encode;
  encoded = 0;
  lcomm_codec_cost cost = lcomm_codec_cost_measure(&counting, &format, within_s);
  assert_true(cost.encode_gb_s > 0 && cost.decode_gb_s > 0);
  return encoded;
}

static void a_codec_is_tried_three_times(void **state) {
  (void)state;
  assert_int_equal(count_trials(1e9), 2 * 3);
}

static void without_time_a_codec_is_tried_once(void **state) {
  (void)state;
  assert_int_equal(count_trials(0), 2);
  assert_int_equal(count_trials(-1), 2);
}

static void count_and_project(float *p, float *m, const float *gradient, const float *q,
                              size_t rows, size_t columns, size_t rank) {
  encoded++;
  lcomm_kernels_best()->lowrank.project(p, m, gradient, q, rows, columns, rank);
}

static void low_rank_is_tried_as_often(void **state) {
  (void)state;
  lcomm_kernels counting = *lcomm_kernels_best();
  counting.lowrank.project = count_and_project;
  for (int enough = 0; enough < 2; enough++) {
    encoded = 0;
    lcomm_codec_cost cost = lcomm_lowrank_cost_measure(&counting, 4, enough ? 1e9 : 0);
    assert_true(cost.encode_gb_s > 0 && cost.decode_gb_s > 0);
    assert_int_equal(encoded, enough ? 2 * 3 : 2);
  }
}

static void a_cost_is_a_line_through_two_times(void **state) {
  (void)state;
  double gb_s = 0, each_us = 0;
  lcomm_codec_cost_fit((lcomm_codec_trial){1000, 6}, (lcomm_codec_trial){11000, 46}, &gb_s,
                       &each_us);
  assert_true(gb_s > 0.999 && gb_s < 1.001 && each_us > 1.999 && each_us < 2.001);
  each_us = 0;
  lcomm_codec_cost_fit((lcomm_codec_trial){1000, 50}, (lcomm_codec_trial){10000, 40}, &gb_s,
                       &each_us);
  assert_true(gb_s > 0.999 && gb_s < 1.001 && !(each_us > 0));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_codec_is_tried_three_times),
    cmocka_unit_test(without_time_a_codec_is_tried_once),
    cmocka_unit_test(low_rank_is_tried_as_often),
    cmocka_unit_test(a_cost_is_a_line_through_two_times),
};
RUN_TESTS(tests)
