/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls with residuals when more ranks are lost while the others shrink, and when connections break
 * meanwhile. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_calls.h"

enum { LOST_AT = 5, STEPS = LOST_AT + 6 };

static const char policy[] = "net=int8+ef min=0";

static int second; /* who dies, or is cut off, during the shrink, ... */
static lcomm_shrink_moment moment_of_second;

static bool die_then(lcomm_shrink_moment moment) {
  if (moment == moment_of_second) {
    raise(SIGKILL);
  }
  return true;
}

static bool cut_once(lcomm_shrink_moment moment) {
  static int times;
  return moment != moment_of_second || times++ > 0;
}

static void shrink_twice(const crew *all, int rank, report *mine, bool dies) {
  calls c;
  bool good = begin_calls(&c, all, rank, policy, mine) && call_until(&c, LOST_AT, true);
  if (rank == 3) {
    raise(SIGKILL);
  }
  lcomm_shrink_watch = rank != second ? NULL : dies ? die_then : cut_once;
  good = good && make_calls_until_lost(&c) && c.lost == 1 + dies && call_until(&c, STEPS, true);
  mine->status = LCOMM_OK;
  mine->good = good && is_equal_everywhere(&c);
  end_calls(&c);
}

static void lose_another_one_meanwhile(const crew *all, int rank, report *mine) {
  shrink_twice(all, rank, mine, true);
}

static void lose_a_connection_meanwhile(const crew *all, int rank, report *mine) {
  shrink_twice(all, rank, mine, false);
}

static void residuals_go_back_and_over_again(void **state) {
  (void)state;
  for (second = 0; second <= 1; second++) {
    for (moment_of_second = LCOMM_SHRINK_MET; moment_of_second <= LCOMM_SHRINK_PREPARED;
         moment_of_second++) {
      crew c = new_crew(4, lose_a_connection_meanwhile);
      run_survivors(&c, 1 << 3);
    }
  }
}

static void the_others_carry_on_when_one_dies_meanwhile(void **state) {
  (void)state;
  second = 0;
  for (moment_of_second = LCOMM_SHRINK_BEGUN; moment_of_second <= LCOMM_SHRINK_PREPARED;
       moment_of_second++) {
    crew c = new_crew(4, lose_another_one_meanwhile);
    run_survivors(&c, 1 | 1 << 3);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(residuals_go_back_and_over_again),
    cmocka_unit_test(the_others_carry_on_when_one_dies_meanwhile),
};
RUN_TESTS(tests)
