/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The repeating pattern of calls: what is found, when, and what is not. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/interpose_pattern.h"

static lcomm_interpose_pattern pattern;

static int begin(void **state) {
  (void)state;
  return lcomm_interpose_pattern_init(&pattern, 0) ? 0 : -1;
}

static void begin_fixed(uint32_t fixed) {
  lcomm_interpose_pattern_free(&pattern);
  assert_true(lcomm_interpose_pattern_init(&pattern, fixed));
}

static int end(void **state) {
  (void)state;
  lcomm_interpose_pattern_free(&pattern);
  return 0;
}

/* Letters are signatures. */
static int next(char letter) {
  return lcomm_interpose_pattern_next(&pattern, (uint64_t)letter);
}

static void expect_unknown(const char *letters) {
  for (; *letters; letters++) {
    assert_int_equal(next(*letters), -1);
  }
}

/* Rounds of `letters`, of which the first `unknown` calls, counted from the beginning, are -1
 * and all others have the position of their letter; the period is one round. */
static void expect_rounds(const char *letters, int rounds, int unknown) {
  int made = 0;
  for (int round = 0; round < rounds; round++) {
    for (int i = 0; letters[i]; i++, made++) {
      assert_int_equal(next(letters[i]), made < unknown ? -1 : i);
    }
  }
  assert_int_equal(pattern.period, strlen(letters));
}

/* splitmix64 */
static uint64_t random_next(uint64_t *seed) {
  uint64_t z = *seed += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

/* ---------------------------------------------------------------- found */

static void one_call_a_step_is_known_at_the_eighth(void **state) {
  (void)state;
  expect_rounds("A", 100, 7);
}

static void a_step_is_known_when_it_was_seen_three_times(void **state) {
  (void)state;
  expect_rounds("ABC", 50, 8);
}

static void equal_calls_of_a_step_have_positions_of_their_own(void **state) {
  (void)state;
  expect_rounds("AAB", 50, 8);
}

static void two_calls_a_step_take_as_many_as_one(void **state) {
  (void)state;
  expect_unknown("ABABABA");
  assert_int_equal(next('B'), 1);
  assert_int_equal(next('A'), 0);
}

static void the_first_call_that_repeats_is_at_position_0(void **state) {
  (void)state;
  expect_unknown("xyzx");
  expect_rounds("ABCD", 20, 11);
}

static void the_longest_step_is_found_and_no_longer_one(void **state) {
  (void)state;
  for (int length = LCOMM_INTERPOSE_PERIOD_MAX; length <= LCOMM_INTERPOSE_PERIOD_MAX + 1;
       length++) {
    begin_fixed(0);
    for (int call = 0; call < 5 * length; call++) {
      bool known = length == LCOMM_INTERPOSE_PERIOD_MAX && call >= 3 * length - 1;
      assert_int_equal(lcomm_interpose_pattern_next(&pattern, (uint64_t)(call % length)),
                       known ? call % length : -1);
    }
  }
}

static void every_length_is_found_after_three_rounds(void **state) {
  (void)state;
  for (int length = 3; length <= LCOMM_INTERPOSE_PERIOD_MAX; length++) {
    begin_fixed(0);
    for (int call = 0; call < 4 * length; call++) {
      assert_int_equal(lcomm_interpose_pattern_next(&pattern, (uint64_t)(call % length) << 40),
                       call >= 3 * length - 1 ? call % length : -1);
    }
    assert_int_equal(pattern.period, length);
  }
}

/* ---------------------------------------------------------------- broken */

/* Equal calls inside a step look like a step at first. */
static void a_run_inside_a_step_is_not_taken_for_a_step_for_long(void **state) {
  (void)state;
  static const char step[] = "AAAAAAAAAAB";
  for (int call = 0; call < 11 * 100; call++) {
    int position = next(step[call % 11]);
    bool mistaken = call >= 7 && call < 10;
    bool known = call >= 10 + 32; /* three rounds after the B that broke it */
    assert_int_equal(position >= 0, mistaken || known);
    assert_int_equal(position, known ? (call - 10) % 11 : mistaken ? 0 : -1);
  }
  assert_int_equal(pattern.period, 11);
}

static void a_call_that_does_not_fit_breaks_the_pattern(void **state) {
  (void)state;
  expect_rounds("AB", 10, 7);
  assert_int_equal(next('B'), -1);
  assert_int_equal(pattern.period, 0);
  assert_int_equal(pattern.since, 1);
}

static void the_same_pattern_is_learned_again_after_a_break(void **state) {
  (void)state;
  expect_rounds("AB", 10, 7);
  expect_unknown("C");
  expect_rounds("AB", 20, 15); /* twice as many are needed now */
}

static void the_call_that_breaks_a_pattern_may_begin_the_next(void **state) {
  (void)state;
  expect_rounds("A", 10, 7);
  expect_unknown("BCDEBCDEBCDEBCD"); /* 16 are needed now */
  assert_int_equal(next('E'), 3);
  assert_int_equal(next('B'), 0);
}

static void each_break_doubles_what_is_needed_up_to_a_bound(void **state) {
  (void)state;
  uint32_t needed = 8;
  for (int round = 0; round < 12; round++) {
    char letter = round % 2 ? 'A' : 'B';
    expect_unknown(letter == 'A' ? "A" : "B");
    for (uint32_t call = 1; call < needed - 1; call++) {
      assert_int_equal(next(letter), -1);
    }
    assert_int_equal(next(letter), 0);
    needed =
        2 * needed < 4 * LCOMM_INTERPOSE_PERIOD_MAX ? 2 * needed : 4 * LCOMM_INTERPOSE_PERIOD_MAX;
  }
  assert_int_equal(needed, 1024);
}

static void a_pattern_can_be_broken_by_word(void **state) {
  (void)state;
  expect_rounds("AB", 10, 7);
  lcomm_interpose_pattern_break(&pattern);
  assert_int_equal(pattern.period, 0);
  expect_rounds("AB", 20, 15);
}

/* ------------------------------------------------------------- never found */

static void streams_without_a_period_are_never_believed(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (uint64_t call = 0; call < 20000; call++) {
    assert_int_equal(lcomm_interpose_pattern_next(&pattern, random_next(&seed)), -1);
  }
  begin_fixed(0);
  for (uint64_t call = 0; call < 20000; call++) {
    assert_int_equal(lcomm_interpose_pattern_next(&pattern, call), -1);
  }
}

/* In the sequence of Thue and Morse no word ever comes three times in a row, though many
 * come twice. */
static void twice_is_not_enough(void **state) {
  (void)state;
  for (unsigned call = 0; call < 1 << 16; call++) {
    assert_int_equal(lcomm_interpose_pattern_next(&pattern, (uint64_t)__builtin_parity(call)), -1);
  }
}

/* ------------------------------------------------------------------ fixed */

static void a_fixed_step_is_known_when_it_was_seen_twice(void **state) {
  (void)state;
  begin_fixed(4);
  expect_rounds("AAAA", 20, 7);
  expect_unknown("B");
  expect_rounds("AAAA", 20, 7);
  begin_fixed(1);
  expect_rounds("A", 20, 1);
}

static void a_fixed_step_is_no_other(void **state) {
  (void)state;
  begin_fixed(4);
  expect_unknown("ABCABCABCABCABCABCABCABC");
  begin_fixed(6);
  expect_rounds("ABCABC", 20, 11);
}

static void a_fixed_step_may_be_longer_than_any_that_is_found(void **state) {
  (void)state;
  begin_fixed(4096);
  for (int call = 0; call < 5 * 4096; call++) {
    int position = lcomm_interpose_pattern_next(&pattern, (uint64_t)(call % 4096));
    assert_int_equal(position, call < 2 * 4096 - 1 ? -1 : call % 4096);
  }
}

/* ------------------------------------------------------------------ ranks */

/* Signatures with runs, repetitions and breaks. */
static uint64_t trained(uint64_t *seed, int call) {
  static uint64_t length = 1, kinds = 1;
  if (call % 4096 == 0) {
    length = 1 + random_next(seed) % 40;
    kinds = 1 + random_next(seed) % 4;
  }
  uint64_t place = (uint64_t)call % length;
  return random_next(seed) % 2000 == 0 ? 99 : place * place % kinds;
}

static void ranks_with_the_same_calls_agree_at_every_call(void **state) {
  (void)state;
  lcomm_interpose_pattern other;
  uint64_t seed = 7;
  int known = 0;
  assert_true(lcomm_interpose_pattern_init(&other, 0));
  for (int call = 0; call < 100000; call++) {
    uint64_t signature = trained(&seed, call);
    int mine = lcomm_interpose_pattern_next(&pattern, signature);
    assert_int_equal(mine, lcomm_interpose_pattern_next(&other, signature));
    assert_in_range(mine + 1, 0, LCOMM_INTERPOSE_PERIOD_MAX);
    known += mine >= 0;
  }
  lcomm_interpose_pattern_free(&other);
  assert_true(known > 1000 && known < 99000);
}

/* What the header promises, computed from all calls. */
static uint32_t believed(const uint64_t *calls, uint64_t since, uint32_t needed) {
  for (uint64_t period = 1; period <= LCOMM_INTERPOSE_PERIOD_MAX; period++) {
    uint64_t length = 3 * period > needed ? 3 * period : needed;
    if (since < length) {
      continue;
    }
    uint64_t i = since - length + period;
    while (i < since && calls[i] == calls[i - period]) {
      i++;
    }
    if (i == since) {
      return (uint32_t)period;
    }
  }
  return 0;
}

static void what_is_believed_is_what_is_promised(void **state) {
  (void)state;
  enum { CALLS = 30000 };
  uint64_t *calls = malloc(CALLS * sizeof *calls), seed = 11;
  uint64_t broke = 0, begun = 0;
  uint32_t needed = 8, period = 0;
  assert_non_null(calls);
  for (uint64_t call = 0; call < CALLS; call++) {
    calls[call] = trained(&seed, (int)call);
    int position = lcomm_interpose_pattern_next(&pattern, calls[call]);
    if (period > 0 && calls[call] != calls[call - period]) {
      broke = call;
      period = 0;
      needed = needed < 1024 ? 2 * needed : 1024;
      assert_int_equal(position, -1);
      continue;
    }
    if (period == 0) {
      period = believed(calls + broke, call + 1 - broke, needed);
      begun = call + 1 - (3 * period > needed ? 3 * period : needed);
    }
    assert_int_equal(pattern.period, period);
    assert_int_equal(position, period > 0 ? (int)((call - begun) % period) : -1);
  }
  free(calls);
}

int main(void) {
#define PROPERTY(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      PROPERTY(one_call_a_step_is_known_at_the_eighth),
      PROPERTY(a_step_is_known_when_it_was_seen_three_times),
      PROPERTY(equal_calls_of_a_step_have_positions_of_their_own),
      PROPERTY(two_calls_a_step_take_as_many_as_one),
      PROPERTY(the_first_call_that_repeats_is_at_position_0),
      PROPERTY(the_longest_step_is_found_and_no_longer_one),
      PROPERTY(every_length_is_found_after_three_rounds),
      PROPERTY(a_run_inside_a_step_is_not_taken_for_a_step_for_long),
      PROPERTY(a_call_that_does_not_fit_breaks_the_pattern),
      PROPERTY(the_same_pattern_is_learned_again_after_a_break),
      PROPERTY(the_call_that_breaks_a_pattern_may_begin_the_next),
      PROPERTY(each_break_doubles_what_is_needed_up_to_a_bound),
      PROPERTY(a_pattern_can_be_broken_by_word),
      PROPERTY(streams_without_a_period_are_never_believed),
      PROPERTY(twice_is_not_enough),
      PROPERTY(a_fixed_step_is_known_when_it_was_seen_twice),
      PROPERTY(a_fixed_step_is_no_other),
      PROPERTY(a_fixed_step_may_be_longer_than_any_that_is_found),
      PROPERTY(ranks_with_the_same_calls_agree_at_every_call),
      PROPERTY(what_is_believed_is_what_is_promised),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
