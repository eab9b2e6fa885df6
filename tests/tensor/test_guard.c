/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The guard without ranks: where samples lie, figures, decisions. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/tensor/guard.h"
#include "tests/support/unit_tests.h"

/* --------------------------------------------------------------- samples */

static const uint64_t counts[] = {1, 15, 16, 17, 1000, 16384, 99999, 1 << 20, 25 << 20};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static lcomm_guard_share share_of(uint64_t count, uint64_t sample, uint32_t number) {
  return (lcomm_guard_share){.number = number, .sample = lcomm_guard_sample_of(count, sample)};
}

static uint64_t begin_of(lcomm_guard_share *share, uint64_t step, uint64_t index) {
  lcomm_guard_sample_draw(share, step);
  return lcomm_sample_begin(&share->sample, index);
}

/* A block of each tensor is always looked at; beyond that all lanes are at most 1 %. */
static void samples_are_at_most_one_percent(void **state) {
  (void)state;
  uint64_t all = 0;
  for (size_t i = 0; i < COUNTS; i++) {
    all += counts[i];
  }
  for (unsigned lanes = 1; lanes <= 2; lanes++) {
    uint64_t taken = 0;
    for (size_t i = 0; i < COUNTS; i++) {
      uint64_t sample = lcomm_guard_sample_count(counts[i], lanes, all, COUNTS);
      lcomm_guard_share share = share_of(counts[i], sample, 0);
      taken += lanes * lcomm_sample_elements(&share.sample);
      assert_in_range(lcomm_sample_elements(&share.sample), 1, counts[i]);
      assert_true(sample <= LCOMM_GUARD_SAMPLE_MAX);
    }
    assert_true(taken * 100 <= all);
    assert_int_equal(lcomm_guard_sample_count(1000000, lanes, 1000000, 1), 10000 / lanes);
    /* (1 % of all - 1024 for each of four) * 16384 / all */
    assert_int_equal(lcomm_guard_sample_count(16384, lanes, 25 << 20, 4),
                     1024 + (lanes == 1 ? 161 : 79));
  }
}

static void blocks_lie_in_order_inside_the_tensor(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNTS; i++) {
    lcomm_guard_share share = share_of(counts[i], counts[i] / 100, (uint32_t)i);
    for (uint64_t step = 0; step < 5; step++) {
      uint64_t end = 0;
      for (uint64_t index = 0; index < share.sample.blocks; index++) {
        uint64_t begin = begin_of(&share, 100 * step, index);
        assert_true(begin >= end);
        end = begin + share.sample.block;
      }
      assert_true(end <= counts[i]);
    }
  }
}

/* Over many checks every element of a tensor has its turn, about equally often. */
static void every_element_has_its_turn(void **state) {
  (void)state;
  enum { COUNT = 1000, CHECKS = 20000 };
  static uint32_t seen[COUNT];
  lcomm_guard_share share = share_of(COUNT, 32, 3);
  assert_int_equal(share.sample.blocks, 2);
  for (uint64_t check = 0; check < CHECKS; check++) {
    for (uint64_t index = 0; index < share.sample.blocks; index++) {
      uint64_t begin = begin_of(&share, 50 * check + 49, index);
      for (uint64_t i = begin; i < begin + share.sample.block; i++) {
        seen[i]++;
      }
    }
  }
  for (uint64_t i = 0; i < COUNT; i++) {
    assert_true(seen[i] > 0);
    if (i % 500 >= 15 && i % 500 < 485) {
      assert_in_range(seen[i], CHECKS * 16 / 485 * 8 / 10, CHECKS * 16 / 485 * 12 / 10);
    }
  }
}

/* --------------------------------------------------------------- figures */

static void figures_are_those_of_the_definition(void **state) {
  (void)state;
  const float sums[3] = {3, 0, 4}, results[3] = {3, 0, 0}, residuals[3] = {0, 5, 1};
  lcomm_guard_figures figures = {.error = -1};
  assert_true(lcomm_guard_compare(sums, NULL, results, 3, &figures));
  assert_float_equal(figures.error, 0.8, 1e-12);
  assert_float_equal(figures.cosine, 0.6, 1e-12);
  assert_float_equal(figures.residual, 0, 0);
  assert_true(lcomm_guard_compare(sums, residuals, results, 3, &figures));
  assert_float_equal(figures.error, 0.8, 1e-12);
  assert_float_equal(figures.residual, sqrt(2), 1e-12);
  assert_int_equal(figures.samples, 3);
}

static void what_cannot_be_compared_writes_nothing(void **state) {
  (void)state;
  const float good[2] = {1, 2}, zero[2] = {0, 0};
  const float bad[3][2] = {{NAN, 1}, {1, INFINITY}, {-INFINITY, 0}};
  lcomm_guard_figures figures = {.error = -1, .samples = 7};
  assert_false(lcomm_guard_compare(zero, NULL, good, 2, &figures));
  assert_false(lcomm_guard_compare(good, NULL, good, 0, &figures));
  for (int i = 0; i < 3; i++) {
    assert_false(lcomm_guard_compare(bad[i], NULL, good, 2, &figures));
    assert_false(lcomm_guard_compare(good, bad[i], good, 2, &figures));
    assert_false(lcomm_guard_compare(good, NULL, bad[i], 2, &figures));
  }
  assert_true(figures.error < 0 && figures.samples == 7);
  assert_true(lcomm_guard_compare(good, NULL, zero, 2, &figures));
  assert_float_equal(figures.error, 1, 1e-12);
  assert_float_equal(figures.cosine, 0, 0);
}

/* ------------------------------------------------------------- decisions */

static const lcomm_guard_policy limits = {.steps = 1, .limit = 0.5, .residual = 10};

static lcomm_guard_verdict evaluate(lcomm_guarded *guarded, double error, bool has_milder) {
  guarded->figures.error = error;
  return lcomm_guard_evaluate(&limits, false, has_milder, guarded);
}

static void the_limit_of_the_error_counts_without_feedback_that_of_the_residual_with(void **state) {
  (void)state;
  lcomm_guarded it = {.patience = LCOMM_GUARD_PATIENCE};
  it.figures = (lcomm_guard_figures){.error = 0.6, .residual = 9};
  assert_int_equal(lcomm_guard_evaluate(&limits, true, true, &it), LCOMM_GUARD_STAY);
  assert_false(it.figures.beyond);
  assert_int_equal(lcomm_guard_evaluate(&limits, false, true, &it), LCOMM_GUARD_FALL);
  assert_true(it.figures.beyond);
  it.figures = (lcomm_guard_figures){.error = 0.1, .residual = 11};
  assert_int_equal(lcomm_guard_evaluate(&limits, true, true, &it), LCOMM_GUARD_FALL);
  assert_int_equal(it.rungs, 2);
}

static void a_report_changes_nothing(void **state) {
  (void)state;
  lcomm_guard_policy report = limits;
  report.report = true;
  lcomm_guarded it = {.patience = 1, .figures = {.error = 0.6}};
  assert_int_equal(lcomm_guard_evaluate(&report, false, true, &it), LCOMM_GUARD_STAY);
  assert_true(it.figures.beyond && it.rungs == 0);
}

static void without_a_milder_codec_it_stays(void **state) {
  (void)state;
  lcomm_guarded it = {.patience = 10, .rungs = 4, .good = 9};
  assert_int_equal(evaluate(&it, 0.6, false), LCOMM_GUARD_STAY);
  assert_true(it.rungs == 4 && it.good == 0);
}

/* Good checks in a row until it comes back, or 1000. */
static int good_checks(lcomm_guarded *it) {
  int checks = 1;
  while (evaluate(it, 0.1, true) != LCOMM_GUARD_RETURN && checks < 1000) {
    checks++;
  }
  return checks;
}

static void a_return_that_was_too_early_takes_twice_as_long(void **state) {
  (void)state;
  lcomm_guarded it = {.patience = LCOMM_GUARD_PATIENCE};
  for (int expected = LCOMM_GUARD_PATIENCE; expected <= 160; expected *= 2) {
    assert_int_equal(evaluate(&it, 0.6, true), LCOMM_GUARD_FALL);
    assert_int_equal(it.rungs, 1);
    assert_int_equal(good_checks(&it), expected);
    assert_int_equal(it.rungs, 0);
  }
  for (int i = 0; i < 1000; i++) { /* at its own codec there is nowhere to return to */
    assert_int_equal(evaluate(&it, 0.1, true), LCOMM_GUARD_STAY);
  }
}

/* One bad check between good ones begins the count anew. */
static void only_good_checks_in_a_row_count(void **state) {
  (void)state;
  lcomm_guarded it = {.patience = 10, .rungs = 1};
  for (int i = 0; i < 9; i++) {
    assert_int_equal(evaluate(&it, 0.1, true), LCOMM_GUARD_STAY);
  }
  assert_int_equal(evaluate(&it, 0.6, false), LCOMM_GUARD_STAY);
  assert_int_equal(good_checks(&it), 10);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(samples_are_at_most_one_percent),
    cmocka_unit_test(blocks_lie_in_order_inside_the_tensor),
    cmocka_unit_test(every_element_has_its_turn),
    cmocka_unit_test(figures_are_those_of_the_definition),
    cmocka_unit_test(what_cannot_be_compared_writes_nothing),
    cmocka_unit_test(the_limit_of_the_error_counts_without_feedback_that_of_the_residual_with),
    cmocka_unit_test(a_report_changes_nothing),
    cmocka_unit_test(without_a_milder_codec_it_stays),
    cmocka_unit_test(a_return_that_was_too_early_takes_twice_as_long),
    cmocka_unit_test(only_good_checks_in_a_row_count),
};
RUN_TESTS(tests)
