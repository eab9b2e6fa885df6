/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One verdict on all ranks: the first that failed, whatever the ranks give. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "libcomm/base/verdict.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 4 };

/* An allgather in which the others gave what is in `given`. */
typedef struct fake {
  int32_t given[RANKS];
  int rank, result;
} fake;

static int gather(void *context, const void *send, void *receive, size_t size) {
  fake *it = context;
  assert_int_equal(size, sizeof(int32_t));
  memcpy(&it->given[it->rank], send, size);
  memcpy(receive, it->given, sizeof(it->given));
  return it->result;
}

static void all_are_well(void **state) {
  (void)state;
  int32_t given[RANKS] = {0};
  lcomm_verdict verdict = lcomm_verdict_of(given, sizeof *given, RANKS);
  assert_int_equal(verdict.status, LCOMM_OK);
  assert_int_equal(verdict.rank, -1);
  assert_true(verdict.known);
}

static void the_first_that_failed_is_named(void **state) {
  (void)state;
  int32_t given[RANKS] = {0, 0, LCOMM_ERR_ARGUMENT, LCOMM_ERR_MEMORY};
  lcomm_verdict verdict = lcomm_verdict_of(given, sizeof *given, RANKS);
  assert_int_equal(verdict.status, LCOMM_ERR_ARGUMENT);
  assert_int_equal(verdict.rank, 2);
  assert_true(verdict.known);
  assert_string_equal(verdict.text, lcomm_status_string(LCOMM_ERR_ARGUMENT));
  verdict = lcomm_verdict_of(given, sizeof *given, 2); /* the last ones are not looked at */
  assert_int_equal(verdict.status, LCOMM_OK);
}

static void numbers_that_are_no_status_are_errors(void **state) {
  (void)state;
  static const int32_t numbers[] = {1, INT32_MAX, INT32_MIN, LCOMM_ERR_INTERNAL - 1};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
    int32_t given[RANKS] = {0, numbers[i], LCOMM_ERR_MEMORY, 0};
    lcomm_verdict verdict = lcomm_verdict_of(given, sizeof *given, RANKS);
    assert_int_equal(verdict.status, LCOMM_ERR_WIRE);
    assert_int_equal(verdict.rank, 1);
    assert_false(verdict.known);
    assert_non_null(strstr(verdict.text, "no status"));
  }
}

/* A peer that gives LCOMM_ERR_WIRE itself is believed. */
static void a_wire_error_is_a_status(void **state) {
  (void)state;
  int32_t given = LCOMM_ERR_WIRE;
  lcomm_verdict verdict = lcomm_verdict_of(&given, sizeof given, 1);
  assert_int_equal(verdict.status, LCOMM_ERR_WIRE);
  assert_true(verdict.known);
}

static void statuses_lie_in_larger_answers(void **state) {
  (void)state;
  struct answer {
    int32_t status;
    char words[9]; /* of any size */
  } all[RANKS] = {{.words = "nothing"}, {0}, {0}, {.status = LCOMM_ERR_SYSTEM}};
  lcomm_verdict verdict = lcomm_verdict_of(&all[0].status, sizeof *all, RANKS);
  assert_int_equal(verdict.rank, 3);
  assert_int_equal(verdict.status, LCOMM_ERR_SYSTEM);
}

static void all_ranks_come_to_the_same_verdict(void **state) {
  (void)state;
  for (int rank = 0; rank < RANKS; rank++) {
    static const int32_t statuses[RANKS] = {0, LCOMM_ERR_TRANSPORT, 0, LCOMM_ERR_MEMORY};
    fake it = {.rank = rank};
    lcomm_verdict verdict;
    lcomm_bootstrap boot = {.rank = rank, .world_size = RANKS, .context = &it, .allgather = gather};
    memcpy(it.given, statuses, sizeof(statuses));
    it.given[rank] = INT32_MAX; /* its own comes from the call */
    assert_int_equal(lcomm_verdict_gather(&boot, (lcomm_status)statuses[rank], &verdict), LCOMM_OK);
    assert_int_equal(verdict.status, LCOMM_ERR_TRANSPORT);
    assert_int_equal(verdict.rank, 1);
  }
}

static void an_allgather_that_fails_gives_no_verdict(void **state) {
  (void)state;
  fake it = {.result = 1};
  lcomm_verdict verdict;
  lcomm_bootstrap boot = {.world_size = RANKS, .context = &it, .allgather = gather};
  assert_int_equal(lcomm_verdict_gather(&boot, LCOMM_OK, &verdict), LCOMM_ERR_TRANSPORT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_are_well),
    cmocka_unit_test(the_first_that_failed_is_named),
    cmocka_unit_test(numbers_that_are_no_status_are_errors),
    cmocka_unit_test(a_wire_error_is_a_status),
    cmocka_unit_test(statuses_lie_in_larger_answers),
    cmocka_unit_test(all_ranks_come_to_the_same_verdict),
    cmocka_unit_test(an_allgather_that_fails_gives_no_verdict),
};
RUN_TESTS(tests)
