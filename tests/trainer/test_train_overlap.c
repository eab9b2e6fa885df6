/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How much of the communication hides, on a clock and a transport that are made up. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/unit_tests.h"
#include "trainer/train_overlap.h"

static void assert_near(double value, double wanted) {
  assert_true(value > wanted - 1e-9 && value < wanted + 1e-9);
}

/* Seconds of one step, from the moment at which its first gradients leave. */
typedef struct posed_step {
  double backward_s; /* that is left then */
  double waited_s;   /* after it, for averages */
  double wire_s;     /* a message is in flight so long */
} posed_step;

static double clock_s = 1000, carried_s = 70; /* since the run began */

/* Of two times a step leaves gradients, the first one counts. */
static void make_step(overlap *of, posed_step step) {
  overlap_begin(of, (overlap_moment){clock_s, carried_s});
  clock_s += 3; /* forward, and backward of the last layer */
  overlap_sent(of, clock_s);
  overlap_sent(of, clock_s + step.backward_s / 2);
  clock_s += step.backward_s;
  overlap_waits(of, clock_s);
  clock_s += step.waited_s;
  carried_s += step.wire_s;
  overlap_ends(of, (overlap_moment){clock_s, carried_s});
}

static void expect_step(posed_step step, double communication_s, double exposed_s) {
  overlap of = {0};
  make_step(&of, step);
  assert_near(of.communication_s, communication_s);
  assert_near(of.exposed_s, exposed_s);
}

static void what_nobody_waits_for_is_hidden(void **state) {
  (void)state;
  expect_step((posed_step){.backward_s = 2, .waited_s = 0, .wire_s = 1.5}, 1.5, 0);
  assert_near(overlap_hidden(1.5, 0), 1);
}

static void what_is_waited_for_is_not_hidden(void **state) {
  (void)state;
  expect_step((posed_step){.backward_s = 0, .waited_s = 4, .wire_s = 4}, 4, 4);
  assert_near(overlap_hidden(4, 4), 0);
}

static void a_part_is_hidden_by_the_part_that_is_not_waited_for(void **state) {
  (void)state;
  expect_step((posed_step){.backward_s = 3, .waited_s = 1, .wire_s = 4}, 4, 1);
  assert_near(overlap_hidden(4, 1), 0.75);
}

/* Waiting for a rank that is slower, with nothing in flight, hides nothing either. */
static void waiting_for_a_slower_rank_is_not_hidden(void **state) {
  (void)state;
  expect_step((posed_step){.backward_s = 3, .waited_s = 5, .wire_s = 1}, 5, 5);
}

/* Messages of something else, before the first gradients left, are no part of it. */
static void no_more_than_the_time_between_counts(void **state) {
  (void)state;
  expect_step((posed_step){.backward_s = 1, .waited_s = 1, .wire_s = 9}, 2, 1);
}

/* No gradients leave before backward is done: all is waited for. */
static void what_leaves_after_backward_is_exposed(void **state) {
  (void)state;
  overlap of = {0};
  overlap_begin(&of, (overlap_moment){10, 1});
  overlap_waits(&of, 14);
  overlap_ends(&of, (overlap_moment){16, 3});
  assert_near(of.communication_s, 2);
  assert_near(of.exposed_s, 2);
}

static void steps_add_up(void **state) {
  overlap of = {0};
  (void)state;
  make_step(&of, (posed_step){.backward_s = 3, .waited_s = 1, .wire_s = 4});
  make_step(&of, (posed_step){.backward_s = 2, .waited_s = 0, .wire_s = 2});
  assert_near(of.communication_s, 6);
  assert_near(of.exposed_s, 1);
}

static void without_communication_all_of_it_is_hidden(void **state) {
  (void)state;
  assert_near(overlap_hidden(0, 0), 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_nobody_waits_for_is_hidden),
    cmocka_unit_test(what_is_waited_for_is_not_hidden),
    cmocka_unit_test(a_part_is_hidden_by_the_part_that_is_not_waited_for),
    cmocka_unit_test(waiting_for_a_slower_rank_is_not_hidden),
    cmocka_unit_test(no_more_than_the_time_between_counts),
    cmocka_unit_test(what_leaves_after_backward_is_exposed),
    cmocka_unit_test(steps_add_up),
    cmocka_unit_test(without_communication_all_of_it_is_hidden),
};
RUN_TESTS(tests)
