/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/unit_tests.h"
#include "trainer/train_deal.h"
#include "trainer/train_random.h"

enum { SAMPLES = 5000 };

/* Take the samples of the next step as the ranks do; each for the first time, side by side. */
static void take_step(deal *it, uint8_t *taken) {
  uint64_t end = it->used + (uint64_t)deal_samples(it);
  for (int rank = 0; rank < it->ranks; rank++) {
    for (int number = 0; number < it->accumulate; number++) {
      uint64_t first = deal_place(it, rank, number);
      for (int i = 0; i < it->batch; i++) {
        assert_true(first + (uint64_t)i < end && end <= it->count);
        assert_int_equal(taken[first + (uint64_t)i]++, 0);
      }
    }
  }
  deal_use(it);
}

static void no_sample_is_used_twice_in_an_epoch_whatever_becomes_of_the_ranks(void **state) {
  (void)state;
  for (uint64_t seed = 0; seed < 200; seed++) {
    random_stream random = random_begin(seed, 0);
    uint8_t taken[SAMPLES] = {0};
    deal it;
    deal_begin(&it, SAMPLES, 1 + (int)random_below(&random, 8), 1 + (int)random_below(&random, 60),
               1 + (int)random_below(&random, 32));
    while (deal_steps_left(&it) > 0) {
      take_step(&it, taken);
      if (random_below(&random, 4) == 0) {
        deal_among(&it, 1 + (int)random_below(&random, 8));
      }
      assert_true(it.batch <= it.room);
    }
    assert_true(it.count - it.used < (uint64_t)deal_samples(&it));
    for (uint64_t i = 0; i < SAMPLES; i++) {
      assert_int_equal(taken[i], i < it.used);
    }
  }
}

static void a_step_has_its_samples_as_before_where_they_can_be_spread(void **state) {
  (void)state;
  deal it;
  deal_begin(&it, SAMPLES, 4, 32, 32);
  for (int ranks = 1; ranks <= 8; ranks *= 2) {
    deal_among(&it, ranks);
    assert_int_equal(deal_samples(&it), 128);
    assert_true(deal_rate(&it) == 1.0f);
  }
  deal_among(&it, 2);
  assert_int_equal(it.batch, 32);
  assert_int_equal(it.accumulate, 2);
}

static void else_the_rate_follows_the_samples(void **state) {
  (void)state;
  deal it;
  deal_begin(&it, SAMPLES, 4, 64, 32);
  assert_true(it.batch == 32 && it.accumulate == 2);
  deal_among(&it, 3);
  assert_int_equal(deal_samples(&it), 192);
  assert_true(deal_rate(&it) == 0.75f);
  deal_among(&it, 4);
  assert_int_equal(deal_samples(&it), 256);
  assert_true(deal_rate(&it) == 1.0f);
}

static void an_undone_step_is_made_again_of_the_same_samples(void **state) {
  (void)state;
  uint8_t before[SAMPLES] = {0}, again[SAMPLES] = {0};
  deal it;
  deal_begin(&it, SAMPLES, 4, 32, 32);
  deal_use(&it);
  deal undone = it;
  take_step(&undone, before);
  deal_among(&it, 2);
  take_step(&it, again);
  assert_memory_equal(before, again, SAMPLES);
}

static void batches_of_a_share_are_equal_and_as_few_as_possible(void **state) {
  (void)state;
  deal it;
  deal_begin(&it, SAMPLES, 3, 40, 32);
  assert_true(it.batch == 20 && it.accumulate == 2 && it.room == 20);
  deal_begin(&it, SAMPLES, 3, 7, 4);
  assert_true(it.batch == 1 && it.accumulate == 7);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_sample_is_used_twice_in_an_epoch_whatever_becomes_of_the_ranks),
    cmocka_unit_test(a_step_has_its_samples_as_before_where_they_can_be_spread),
    cmocka_unit_test(else_the_rate_follows_the_samples),
    cmocka_unit_test(an_undone_step_is_made_again_of_the_same_samples),
    cmocka_unit_test(batches_of_a_share_are_equal_and_as_few_as_possible),
};
RUN_TESTS(tests)
