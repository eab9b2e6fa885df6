/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Call sites, and which calls flush the residuals that they carry. Functions of this file replace
 * those of libcomm that create and destroy residuals, and count them. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "libcomm/interpose/interpose_ef_by_pattern.h"
#include "libcomm/interpose/interpose_pattern.h"

/* ---------------------------------------------------------------- residuals */

enum { RESIDUALS_MAX = 512 };

struct lcomm_residual {
  uint64_t count;
  lcomm_op op;
  bool exists;
  bool holds; /* something that was not sent */
};

static lcomm_residual residuals[RESIDUALS_MAX];
static unsigned made, existing, made_at_most;

lcomm_status lcomm_residual_create(lcomm_comm *comm, uint64_t count, lcomm_op op,
                                   lcomm_residual **residual) {
  assert_ptr_equal(comm, residuals); /* as given to lcomm_interpose_ef_residual() */
  if (made >= made_at_most) {
    return LCOMM_ERR_MEMORY;
  }
  residuals[made] = (lcomm_residual){count, op, true, false};
  *residual = &residuals[made++];
  existing++;
  return LCOMM_OK;
}

/* Of even parts. */
lcomm_status lcomm_residual_create_scatter(lcomm_comm *comm, const char *name,
                                           const uint64_t *counts, lcomm_op op,
                                           lcomm_residual **made_one) {
  assert_null(name);
  return lcomm_residual_create(comm, counts[0], op, made_one);
}

int lcomm_size(const lcomm_comm *comm) {
  assert_ptr_equal(comm, residuals);
  return 1;
}

lcomm_status lcomm_residual_destroy(lcomm_residual *residual) {
  assert_true(residual->exists);
  residual->exists = false;
  existing--;
  return LCOMM_OK;
}

/* -------------------------------------------------------------------- calls */

static lcomm_interpose_ef *ef;
static lcomm_residual *residual; /* of the last call */

static void begin_step(uint32_t step_calls) {
  lcomm_interpose_ef_destroy(ef);
  memset(residuals, 0, sizeof(residuals));
  made = existing = 0;
  made_at_most = RESIDUALS_MAX;
  ef = lcomm_interpose_ef_create(step_calls);
  assert_non_null(ef);
}

static int begin(void **state) {
  (void)state;
  begin_step(0);
  return 0;
}

static int end(void **state) {
  (void)state;
  lcomm_interpose_ef_destroy(ef);
  ef = NULL;
  return existing == 0 ? 0 : -1;
}

static unsigned holding(void) {
  unsigned count = 0;
  for (unsigned i = 0; i < made; i++) {
    count += residuals[i].holds;
  }
  return count;
}

/* That of the last call, as the call looks it up when it begins. */
static lcomm_status find_residual(void) {
  return lcomm_interpose_ef_residual(ef, lcomm_interpose_ef_site(ef), (lcomm_comm *)residuals,
                                     &residual);
}

/* A call; what the answer says of residuals must fit what they hold. */
static lcomm_interpose_feedback call_with(uint64_t count, lcomm_op op) {
  lcomm_status status = LCOMM_ERR_INTERNAL;
  residual = NULL;
  lcomm_interpose_feedback feedback =
      lcomm_interpose_ef_next(ef, LCOMM_CALL_ALLREDUCE, count, op, &status);
  assert_int_equal(status, LCOMM_OK);
  if (feedback != LCOMM_INTERPOSE_PLAIN) {
    assert_int_equal(find_residual(), LCOMM_OK);
    assert_true(residual->exists);
    assert_true(residual->count == count && residual->op == op);
    assert_true(feedback == LCOMM_INTERPOSE_EF || residual->holds);
    residual->holds = feedback == LCOMM_INTERPOSE_EF;
  }
  assert_int_equal(lcomm_interpose_ef_carrying(ef), holding());
  assert_int_equal(lcomm_interpose_ef_sites(ef), made);
  return feedback;
}

/* Letters are counts. */
static lcomm_interpose_feedback call(char letter) {
  return call_with((uint64_t)letter, LCOMM_SUM);
}

/* Each call of `letters` has the answer below it: '.' plain, '+' error feedback, '-' flushes. */
static void expect(const char *letters, const char *answers) {
  assert_int_equal(strlen(letters), strlen(answers));
  for (; *letters; letters++, answers++) {
    assert_int_equal(".+-"[call(*letters)], *answers);
  }
}

/* ------------------------------------------------------------------ call sites */

static void calls_are_plain_until_a_pattern_is_known(void **state) {
  (void)state;
  expect("ABCABCAB", "........");
  assert_int_equal(lcomm_interpose_ef_period(ef), 0);
  assert_int_equal(lcomm_interpose_ef_sites(ef), 0);
  expect("CABCABC", "+++++++");
  assert_int_equal(lcomm_interpose_ef_period(ef), 3);
  assert_int_equal(lcomm_interpose_ef_sites(ef), 3);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 3);
}

static void a_position_keeps_its_residual(void **state) {
  (void)state;
  lcomm_residual *of[3] = {NULL};
  expect("AABAABAA", "........");
  for (int i = 2; i < 60; i++) {
    assert_int_equal(call("AAB"[i % 3]), LCOMM_INTERPOSE_EF);
    assert_true(i < 5 || residual == of[i % 3]);
    of[i % 3] = residual;
  }
  assert_true(of[0] != of[1] && of[1] != of[2] && of[0] != of[2]);
  assert_int_equal(made, 3);
}

static void operations_tell_calls_apart(void **state) {
  (void)state;
  for (int i = 0; i < 40; i++) {
    lcomm_op op = i % 2 ? LCOMM_AVG : LCOMM_SUM;
    assert_int_equal(call_with(7, op) == LCOMM_INTERPOSE_EF, i >= 7);
    assert_true(i < 7 || residual->op == op);
  }
  assert_int_equal(lcomm_interpose_ef_period(ef), 2);
}

static void a_fixed_step_is_used(void **state) {
  (void)state;
  begin_step(300);
  for (int i = 0; i < 1200; i++) {
    assert_int_equal(call('A') == LCOMM_INTERPOSE_EF, i >= 599);
  }
  assert_int_equal(made, 300);
}

/* -------------------------------------------------------------------- flushing */

static void equal_calls_flush_after_a_changed_pattern(void **state) {
  (void)state;
  expect("ABABABABAB", ".......+++");
  expect("CAABDB", ".-.-..");
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 0);
}

static void the_call_that_breaks_the_pattern_flushes_too(void **state) {
  (void)state;
  expect("ABABABABAB", ".......+++");
  expect("BA", "--");
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 0);
}

static void other_counts_and_operations_flush_nothing(void **state) {
  (void)state;
  expect("AAAAAAAA", ".......+");
  expect("BC", "..");
  assert_int_equal(call_with('A', LCOMM_AVG), LCOMM_INTERPOSE_PLAIN);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 1);
  expect("A", "-");
}

/* Learn AAAB, and let each A's residual be known. */
static void learn_three(lcomm_residual *of[3]) {
  expect("AAABAAABAAA", "...........");
  expect("BAAABAAA", "++++++++");
  for (int i = 0; i < 4; i++) {
    assert_int_equal(call("BAAA"[i]), LCOMM_INTERPOSE_EF);
    if (i > 0) {
      of[i - 1] = residual;
    }
  }
}

/* A call that is new between two steps, or in the middle of one, leaves the others in
 * their order; so do calls that are missing. */
static void residuals_are_flushed_in_the_order_of_the_pattern(void **state) {
  static const struct {
    const char *before, *breaking, *after;
    int flushed[3];
  } ways[] = {{"B", "x", "AAA", {0, 1, 2}},
              {"BAA", "x", "AAA", {2, 0, 1}},
              {"BA", "B", "AAA", {0, 1, 2}},
              {"BAAA", "x", "BAAA", {0, 1, 2}}};
  (void)state;
  for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
    lcomm_residual *of[3];
    int flushes = 0;
    begin_step(0);
    learn_three(of);
    for (const char *c = ways[way].before; *c; c++) {
      assert_int_equal(call(*c), LCOMM_INTERPOSE_EF);
    }
    assert_int_not_equal(call(*ways[way].breaking), LCOMM_INTERPOSE_EF);
    for (const char *c = ways[way].after; *c; c++) {
      assert_int_equal(call(*c), LCOMM_INTERPOSE_FLUSH);
      assert_true(*c == 'B' || residual == of[ways[way].flushed[flushes++]]);
    }
    assert_int_equal(flushes, 3);
  }
}

/* The first call of the step is skipped once, so the residual of the third is the next. */
static void a_skipped_call_moves_the_order_on(void **state) {
  lcomm_residual *third = NULL;
  (void)state;
  for (int i = 0; i < 40; i++) {
    call("ABAC"[i % 4]);
    third = i % 4 == 2 ? residual : third;
  }
  expect("BA", "--");
  assert_ptr_equal(residual, third);
}

/* -------------------------------------------------------------- learned again */

static void the_same_pattern_has_the_same_call_sites_again(void **state) {
  (void)state;
  for (int round = 0; round < 6; round++) {
    int lossy = 0;
    for (int i = 0; i < 3 * 1024; i++) {
      lossy += call("ABB"[i % 3]) == LCOMM_INTERPOSE_EF;
    }
    assert_true(lossy > 1000);
    assert_int_equal(made, 3);
    call('A'); /* in between: the next A does not fit */
    call('x');
  }
}

/* At another place of the step as well: a flushed call site is reused. */
static void patterns_that_change_do_not_pile_up_residuals(void **state) {
  static const char *const steps[] = {"ABCD", "BADC", "DDCA", "CABD", "CCBB", "ACDB"};
  (void)state;
  for (int round = 0; round < 24; round++) {
    const char *step = steps[round % 6];
    for (int i = 0; i < 4 * 400; i++) {
      call(step[i % 4]);
    }
    assert_int_equal(lcomm_interpose_ef_period(ef), 4);
    call('x');
  }
  assert_true(made <= 4 * 2);
}

/* Twenty call sites carry residuals, and a pattern is learned that has one call like theirs: the
 * call site of that position continues, the others are flushed from the second round on, one a
 * step. */
static void carried_residuals_continue_or_are_flushed(void **state) {
  (void)state;
  for (int i = 0; i < 20 * 20; i++) {
    call("AAAAAAAAAAAAAAAAAAAB"[i % 20]);
  }
  assert_int_equal(lcomm_interpose_ef_period(ef), 20);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 20);
  int i = 0;
  do {
    call("CCCCCCCCA"[i++ % 9]);
  } while (lcomm_interpose_ef_period(ef) == 0);
  unsigned still = lcomm_interpose_ef_carrying(ef) - 1; /* the last call was with C or A */
  assert_in_range(still, 8, 18);
  for (; i % 9 != 8; i++) {
    assert_int_equal(call('C'), LCOMM_INTERPOSE_EF);
  }
  unsigned before = made, carrying = lcomm_interpose_ef_carrying(ef), flushed = 0;
  assert_int_equal(call('A'), LCOMM_INTERPOSE_EF);
  assert_int_equal(made, before);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), carrying); /* as before */
  for (i = 0; i < 9 * 40; i++) {
    flushed += call("CCCCCCCCA"[i % 9]) == LCOMM_INTERPOSE_FLUSH;
  }
  assert_in_range(flushed, still - 2, still);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 9 + 1); /* and B's, which no call flushes */
}

/* A new position does not reuse a call site that carries a residual. */
static void only_flushed_call_sites_are_reused(void **state) {
  (void)state;
  for (int i = 0; i < 20 * 20 + 5; i++) {
    call("AAAAAAAAAAAAAAAAAAAB"[i % 20]);
  }
  int i = 0;
  do {
    call(i++ % 25 == 23 ? 'A' : 'C');
  } while (lcomm_interpose_ef_period(ef) != 25);
  for (; i % 25 != 23; i++) {
    call('C');
  }
  unsigned carrying = lcomm_interpose_ef_carrying(ef), before = made;
  assert_int_equal(call('A'), LCOMM_INTERPOSE_EF);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), carrying + 1);
  assert_int_equal(made, before);
}

/* ------------------------------------------------------------------- suspending */

static void suspended_calls_are_plain_or_flush(void **state) {
  (void)state;
  expect("ABABABABAB", ".......+++");
  lcomm_interpose_ef_suspend(ef);
  assert_int_equal(lcomm_interpose_ef_period(ef), 0);
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 2);
  expect("ABABABABABABABABABABABABABABABABABABAB", "--....................................");
  assert_int_equal(lcomm_interpose_ef_carrying(ef), 0);
  lcomm_interpose_ef_suspend(ef);
  expect("A", ".");
}

static void resuming_learns_a_pattern_anew(void **state) {
  (void)state;
  expect("ABABABABAB", ".......+++");
  lcomm_interpose_ef_suspend(ef);
  lcomm_interpose_ef_resume(ef);
  expect("ABABABABABABABAB", "--.............+"); /* sixteen are needed after a break */
  expect("ABABABABABABABAB", "++++++++++++++++");
  assert_int_equal(made, 2);
}

static void without_memory_the_status_says_so(void **state) {
  lcomm_status status = LCOMM_ERR_INTERNAL;
  (void)state;
  expect("ABABABA", ".......");
  made_at_most = 0;
  residual = residuals;
  assert_int_equal(lcomm_interpose_ef_next(ef, LCOMM_CALL_ALLREDUCE, 'B', LCOMM_SUM, &status),
                   LCOMM_INTERPOSE_EF);
  assert_int_equal(status, LCOMM_OK);
  assert_int_equal(find_residual(), LCOMM_ERR_MEMORY);
  assert_null(residual);
  made_at_most = RESIDUALS_MAX;
  assert_int_equal(find_residual(), LCOMM_OK);
  residual->holds = true;
  expect("ABAB", "++++");
}

static void nothing_can_be_destroyed(void **state) {
  (void)state;
  lcomm_interpose_ef_destroy(NULL);
}

/* --------------------------------------------------------------- alias detector */

/* Calls of one position with buffers in turn. Returns the call that was found aliased; 0: none. */
static int aliased_at(const char *buffers, int calls) {
  int length = (int)strlen(buffers), at = 0;
  for (int i = 0; i < 7; i++) {
    call('A');
  }
  for (int i = 0; i < calls; i++) {
    assert_int_equal(call('A'), LCOMM_INTERPOSE_EF);
    if (lcomm_interpose_ef_aliased(ef, (const void *)(4096 * (uintptr_t)buffers[i % length]))) {
      assert_int_equal(at, 0); /* once */
      at = i + 1;
    }
  }
  return at;
}

static void buffers_in_turn_are_found_once(void **state) {
  static const char *const turns[] = {"xy", "xyz", "xxy", "xxxxxxxxxxy", "xyzxy", "xyxyxyz"};
  (void)state;
  for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
    int length = (int)strlen(turns[i]);
    begin_step(0);
    assert_int_equal(aliased_at(turns[i], 1000), 4 * length > 16 ? 4 * length : 16);
  }
}

static void one_buffer_is_not_found(void **state) {
  (void)state;
  assert_int_equal(aliased_at("x", 1000), 0);
}

static void a_buffer_that_moved_is_not_found(void **state) {
  char buffers[1001] = "";
  (void)state;
  memset(buffers, 'x', 500);
  memset(buffers + 500, 'y', 500);
  assert_int_equal(aliased_at(buffers, 1000), 0);
}

static void new_buffers_every_time_are_not_found(void **state) {
  char buffers[101] = "";
  (void)state;
  for (int i = 0; i < 100; i++) {
    buffers[i] = (char)(i + 1);
  }
  assert_int_equal(aliased_at(buffers, 1000), 0); /* a hundred in turn are too many */
}

static void turns_up_to_64_are_seen(void **state) {
  for (int length = 2; length <= 66; length++) {
    lcomm_interpose_alias alias = {0};
    int at = 0;
    (void)state;
    for (int i = 0; i < 500 && at == 0; i++) {
      at = lcomm_interpose_alias_see(&alias, (const void *)(64 * (uintptr_t)(i % length))) ? i + 1
                                                                                           : 0;
    }
    assert_int_equal(at, length > 64 ? 0 : 4 * length > 16 ? 4 * length : 16);
  }
}

static void after_a_break_looking_begins_again(void **state) {
  (void)state;
  assert_int_equal(aliased_at("xy", 15), 0);
  call('B'); /* sixteen calls are needed to know the pattern again */
  for (int i = 0; i < 9; i++) {
    call('A');
  }
  assert_int_equal(aliased_at("yx", 15), 0);
}

static void calls_that_flush_are_not_looked_at(void **state) {
  (void)state;
  assert_int_equal(aliased_at("xy", 15), 0);
  expect("AB", "+.");
  assert_false(lcomm_interpose_ef_aliased(ef, (const void *)(4096 * (uintptr_t)'y')));
  expect("A", "-");
  assert_false(lcomm_interpose_ef_aliased(ef, (const void *)(4096 * (uintptr_t)'y')));
}

static void calls_without_a_position_are_not_looked_at(void **state) {
  (void)state;
  for (int i = 0; i < 100; i++) {
    assert_int_equal(call_with((uint64_t)(i * i), LCOMM_SUM), LCOMM_INTERPOSE_PLAIN);
    assert_false(lcomm_interpose_ef_aliased(ef, (const void *)(uintptr_t)(i % 2)));
  }
}

static void residuals_are_made_when_calls_begin(void **state) {
  lcomm_status status = LCOMM_ERR_INTERNAL;
  lcomm_residual *first = NULL, *again = NULL;
  (void)state;
  lcomm_interpose_ef *later = lcomm_interpose_ef_create(2);
  while (lcomm_interpose_ef_next(later, LCOMM_CALL_ALLREDUCE, 5, LCOMM_SUM, &status) !=
         LCOMM_INTERPOSE_EF) {
    assert_int_equal(status, LCOMM_OK);
  }
  uint32_t site = lcomm_interpose_ef_site(later);
  assert_null(first);
  assert_int_equal(made, 0);
  lcomm_comm *comm = (lcomm_comm *)residuals;
  assert_int_equal(lcomm_interpose_ef_residual(later, site, comm, &first), LCOMM_OK);
  assert_int_equal(lcomm_interpose_ef_residual(later, site, comm, &again), LCOMM_OK);
  assert_ptr_equal(first, again);
  assert_true(made == 1 && first->count == 5);
  lcomm_interpose_ef_next(later, LCOMM_CALL_ALLREDUCE, 5, LCOMM_SUM,
                          &status); /* another position */
  assert_true(lcomm_interpose_ef_site(later) != site);
  made_at_most = made;
  site = lcomm_interpose_ef_site(later);
  assert_int_equal(lcomm_interpose_ef_residual(later, site, comm, &first), LCOMM_ERR_MEMORY);
  lcomm_interpose_ef_destroy(later);
  assert_int_equal(existing, 0);
}

int main(void) {
#define PROPERTY(name) cmocka_unit_test_setup_teardown(name, begin, end)
  const struct CMUnitTest tests[] = {
      PROPERTY(calls_are_plain_until_a_pattern_is_known),
      PROPERTY(a_position_keeps_its_residual),
      PROPERTY(operations_tell_calls_apart),
      PROPERTY(a_fixed_step_is_used),
      PROPERTY(equal_calls_flush_after_a_changed_pattern),
      PROPERTY(the_call_that_breaks_the_pattern_flushes_too),
      PROPERTY(other_counts_and_operations_flush_nothing),
      PROPERTY(residuals_are_flushed_in_the_order_of_the_pattern),
      PROPERTY(a_skipped_call_moves_the_order_on),
      PROPERTY(the_same_pattern_has_the_same_call_sites_again),
      PROPERTY(patterns_that_change_do_not_pile_up_residuals),
      PROPERTY(carried_residuals_continue_or_are_flushed),
      PROPERTY(only_flushed_call_sites_are_reused),
      PROPERTY(suspended_calls_are_plain_or_flush),
      PROPERTY(resuming_learns_a_pattern_anew),
      PROPERTY(without_memory_the_status_says_so),
      PROPERTY(nothing_can_be_destroyed),
      PROPERTY(residuals_are_made_when_calls_begin),
      PROPERTY(buffers_in_turn_are_found_once),
      PROPERTY(one_buffer_is_not_found),
      PROPERTY(a_buffer_that_moved_is_not_found),
      PROPERTY(new_buffers_every_time_are_not_found),
      PROPERTY(turns_up_to_64_are_seen),
      PROPERTY(after_a_break_looking_begins_again),
      PROPERTY(calls_that_flush_are_not_looked_at),
      PROPERTY(calls_without_a_position_are_not_looked_at),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
