/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Fair timing of codec_bench, and the quickselect it measures against. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/unit_tests.h"
#include "tools/codec/codec_quickselect.h"
#include "tools/common/tool_timing.h"

/* -------------------------------------------------------------------- timing */

enum { VARIANTS = 3, REPETITIONS = 4, TURNS = 2, RUNS = VARIANTS * (REPETITIONS + 1) * TURNS };

typedef struct worker {
  size_t runs;
  size_t variant[RUNS];
} worker;

static void note(void *argument, size_t variant) {
  worker *own = argument;
  if (own->runs < RUNS) {
    own->variant[own->runs] = variant;
  }
  own->runs++;
}

static void variants_take_turns_after_a_warm_up(void **state) {
  (void)state;
  worker workers[2] = {{0}};
  void *pointers[] = {&workers[0], &workers[1]};
  double seconds[VARIANTS * REPETITIONS];
  tool_timing timing = {.threads = 2,
                        .variants = VARIANTS,
                        .repetitions = REPETITIONS,
                        .turns = TURNS,
                        .workers = pointers,
                        .run = note};
  assert_int_equal(tool_timing_run(&timing, seconds), LCOMM_OK);
  for (size_t t = 0; t < 2; t++) {
    assert_int_equal(workers[t].runs, RUNS);
    for (size_t i = 0; i < RUNS; i++) {
      assert_int_equal(workers[t].variant[i], i / TURNS % VARIANTS);
    }
  }
  for (size_t i = 0; i < VARIANTS * REPETITIONS; i++) {
    assert_true(seconds[i] > 0.0);
  }
}

/* All runs but the first of each variant take 2 ms at least. */
static void linger(void *argument, size_t variant) {
  worker *own = argument;
  note(own, variant);
  if (own->runs > VARIANTS) {
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
  }
}

static void the_warm_up_is_not_counted(void **state) {
  (void)state;
  worker own = {0};
  void *pointers[] = {&own};
  double seconds[VARIANTS * REPETITIONS];
  tool_timing timing = {.threads = 1,
                        .variants = VARIANTS,
                        .repetitions = REPETITIONS,
                        .turns = 1,
                        .workers = pointers,
                        .run = linger};
  assert_int_equal(tool_timing_run(&timing, seconds), LCOMM_OK);
  for (size_t i = 0; i < VARIANTS * REPETITIONS; i++) {
    assert_true(seconds[i] >= 0.0019);
  }
}

static void a_spread_knows_its_median(void **state) {
  (void)state;
  double odd[] = {5.0, 1.0, 3.0}, even[] = {4.0, 1.0, 3.0, 2.0};
  tool_spread spread = tool_spread_of(odd, 3);
  assert_true(fabs(spread.min - 1.0) + fabs(spread.median - 3.0) + fabs(spread.max - 5.0) < 1e-12);
  spread = tool_spread_of(even, 4);
  assert_true(fabs(spread.min - 1.0) + fabs(spread.median - 2.5) + fabs(spread.max - 4.0) < 1e-12);
}

static void ratios_are_taken_of_neighbours(void **state) {
  (void)state;
  /* the machine got twice as slow in the middle: no ratio sees it */
  const double seconds[] = {1.0, 2.0, 2.0, 4.0, 1.0, 2.0};
  tool_timing timing = {.threads = 1, .variants = 2, .repetitions = 3, .turns = 1};
  tool_spread ratio = tool_timing_ratio(&timing, seconds, 0, 1);
  assert_true(fabs(ratio.min - 2.0) + fabs(ratio.median - 2.0) + fabs(ratio.max - 2.0) < 1e-12);
  tool_spread rate = tool_timing_rate(&timing, seconds, 1, 8.0);
  assert_true(fabs(rate.min - 2.0) + fabs(rate.median - 4.0) + fabs(rate.max - 4.0) < 1e-12);
}

/* ------------------------------------------------------------- quickselect */

enum { N = 3000 };

static uint32_t next_random(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static uint32_t magnitude(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits & 0x7fffffff;
}

/* Larger magnitudes first, then lower positions. */
static const float *sorted_values;
static int compare(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  uint32_t p = magnitude(sorted_values[x]), q = magnitude(sorted_values[y]);
  return p != q ? (p < q ? 1 : -1) : (x > y) - (x < y);
}

static int ascending(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static void check(const float *values, size_t n, size_t kept) {
  static uint32_t scratch[N], position[N], order[N];
  static float value[N];
  for (size_t i = 0; i < n; i++) {
    order[i] = (uint32_t)i;
  }
  sorted_values = values;
  qsort(order, n, sizeof *order, compare);
  qsort(order, kept, sizeof *order, ascending);
  assert_int_equal(lcomm_fastpathselect(values, n, kept, scratch, position, value), kept);
  for (size_t i = 0; i < kept; i++) {
    assert_int_equal(position[i], order[i]);
    assert_memory_equal(&value[i], &values[order[i]], sizeof *value);
  }
}

static void quickselect_keeps_the_largest_in_order(void **state) {
  (void)state;
  static float values[N];
  static const size_t kept[] = {0, 1, 2, 30, N / 2, N - 1, N};
  uint32_t seed = 1;
  for (int kind = 0; kind < 6; kind++) {
    for (int i = 0; i < N; i++) {
      float random = (float)next_random(&seed) - 8e6f;
      const float kinds[] = {random,
                             (float)i,
                             (float)(N - i),
                             1.0f,
                             (float)(i % 7) - 3.0f,
                             i % 100 == 0  ? NAN
                             : i % 90 == 0 ? -INFINITY
                                           : random};
      values[i] = kinds[kind];
    }
    for (size_t k = 0; k < sizeof kept / sizeof *kept; k++) {
      check(values, N, kept[k]);
    }
  }
}

static void quickselect_takes_few_values(void **state) {
  (void)state;
  static const float values[] = {3.0f, -3.0f, 1.0f, 3.0f, 0.0f};
  for (size_t n = 0; n <= 5; n++) {
    for (size_t kept = 0; kept <= n; kept++) {
      check(values, n, kept);
    }
  }
}

static void quickselect_keeps_any_number(void **state) {
  (void)state;
  enum { FEW = 40 };
  float values[FEW];
  uint32_t seed = 5;
  for (int trial = 0; trial < 50; trial++) {
    for (int i = 0; i < FEW; i++) {
      values[i] = (float)(next_random(&seed) % (trial % 2 == 0 ? 1000000 : 8)) - 4.0f;
    }
    for (size_t kept = 0; kept <= FEW; kept++) {
      check(values, FEW, kept);
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(variants_take_turns_after_a_warm_up),
    cmocka_unit_test(the_warm_up_is_not_counted),
    cmocka_unit_test(a_spread_knows_its_median),
    cmocka_unit_test(ratios_are_taken_of_neighbours),
    cmocka_unit_test(quickselect_keeps_the_largest_in_order),
    cmocka_unit_test(quickselect_takes_few_values),
    cmocka_unit_test(quickselect_keeps_any_number),
};
RUN_TESTS(tests)
