/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How far two clocks are apart, from questions and answers. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "libcomm/observe/trace.h"
#include "tests/support/unit_tests.h"

/* A question at `sent` by a clock that is `offset` behind, on its way there and
 * back for so long. */
static lcomm_clock_sample ask(double sent_s, double there_s, double back_s, double offset_s) {
  lcomm_clock_sample sample = {sent_s, sent_s + there_s + offset_s, sent_s + there_s + back_s};
  return sample;
}

static void the_offset_is_within_its_error(void **state) {
  (void)state;
  static const double offsets[] = {0, 1e-6, -3.25, 4e6, -7e7};
  static const double ways[][2] = {{1e-5, 1e-5}, {1e-6, 9e-5}, {9e-5, 1e-6}, {0, 2e-5}, {0, 0}};
  for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
    for (size_t j = 0; j < sizeof(ways) / sizeof(ways[0]); j++) {
      lcomm_clock_sample sample = ask(1e5, ways[j][0], ways[j][1], offsets[i]);
      double offset_s = NAN, error_s = NAN;
      assert_true(lcomm_trace_offset(&sample, 1, &offset_s, &error_s));
      assert_true(fabs(offset_s - offsets[i]) <= error_s + 1e-7);
      assert_true(fabs(error_s - 0.5 * (ways[j][0] + ways[j][1])) < 1e-9);
    }
  }
}

static void the_shortest_round_trip_counts(void **state) {
  (void)state;
  lcomm_clock_sample samples[] = {ask(1, 5e-3, 1e-6, 2), ask(2, 1e-5, 1e-5, 2),
                                  ask(3, 1e-6, 9e-3, 2)};
  double offset_s = 0, error_s = 0;
  assert_true(lcomm_trace_offset(samples, 3, &offset_s, &error_s));
  assert_true(fabs(offset_s - 2) < 1e-9);
  assert_true(fabs(error_s - 1e-5) < 1e-9);
}

static void samples_without_sense_are_passed_over(void **state) {
  (void)state;
  lcomm_clock_sample samples[] = {{NAN, 1, 1}, {1, NAN, 1},      {1, 1, NAN},
                                  {2, 1, 1},   {1, INFINITY, 1}, {1, 5, INFINITY}};
  double offset_s = 77, error_s = 77;
  assert_false(lcomm_trace_offset(NULL, 0, &offset_s, &error_s));
  assert_false(lcomm_trace_offset(samples, 6, &offset_s, &error_s));
  assert_true(offset_s == 77 && error_s == 77);
  samples[3] = ask(4, 1e-6, 1e-6, -1);
  assert_true(lcomm_trace_offset(samples, 6, &offset_s, &error_s));
  assert_true(fabs(offset_s + 1) < 1e-9);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_offset_is_within_its_error),
    cmocka_unit_test(the_shortest_round_trip_counts),
    cmocka_unit_test(samples_without_sense_are_passed_over),
};
RUN_TESTS(tests)
