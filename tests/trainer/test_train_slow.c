/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Ranks that are slow on purpose: what is read, and how long they sleep. */

#include "tests/support/unit_tests.h"
#include "trainer/train_slow.h"

static void words_are_read(void **state) {
  (void)state;
  slowness made = {0};
  assert_int_equal(slow_read("rank=3:x2.5", &made), 0);
  assert_int_equal(slow_read("pause=200ms:5%", &made), 0);
  assert_true(made.rank == 3 && made.factor >= 2.5 && made.factor <= 2.5);
  assert_true(made.pause_s >= 0.2 && made.pause_s <= 0.2 && made.share >= 0.05 &&
              made.share <= 0.05);
  static const char *const others[] = {"",           "x3",          "rank=3",        "rank=3:x0.5",
                                       "rank=3:x3 ", "rank=-1:x3",  "pause=200ms",   "pause=2s:5%",
                                       "pause=1ms:", "pause=1ms:5", "pause=1ms:101%"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    if (slow_read(others[i], &made) == 0) {
      fail_msg("'%s' was read", others[i]);
    }
  }
}

static void a_slow_rank_sleeps_as_long_as_it_lacks(void **state) {
  (void)state;
  slowness made = {0};
  assert_true(slow_sleep_s(&made, 0, 7, 1) <= 0);
  assert_int_equal(slow_read("rank=2:x3", &made), 0);
  assert_true(slow_sleep_s(&made, 2, 7, 0.5) >= 1 && slow_sleep_s(&made, 2, 7, 0.5) <= 1);
  assert_true(slow_sleep_s(&made, 1, 7, 0.5) <= 0);
}

static void ranks_pause_in_their_share_of_the_steps(void **state) {
  (void)state;
  enum { STEPS = 4000 };
  slowness made = {0};
  assert_int_equal(slow_read("pause=200ms:5%", &made), 0);
  for (int rank = 0; rank < 4; rank++) {
    double slept_s = 0;
    for (uint64_t step = 0; step < STEPS; step++) {
      slept_s += slow_sleep_s(&made, rank, step, 1);
    }
    assert_true(slept_s > 0.04 * STEPS * 0.2 && slept_s < 0.06 * STEPS * 0.2);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(words_are_read),
    cmocka_unit_test(a_slow_rank_sleeps_as_long_as_it_lacks),
    cmocka_unit_test(ranks_pause_in_their_share_of_the_steps),
};
RUN_TESTS(tests)
