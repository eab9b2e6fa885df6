/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_regroup: ranks leave in order. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/bootstrap/elastic_flat.h"
#include "tests/support/unit_tests.h"

static int nodes_left;

/* It was made by a call that so many ranks have left in. */
static bool tells(const lcomm_comm *comm, int before, int left, report *mine) {
  lcomm_regrouped told = {0};
  bool good = lcomm_regrouped_get(comm, &told) == LCOMM_OK && told.ranks_before == before &&
              told.left == left && told.lost == 0 && told.joined == 0 && !told.is_newcomer;
  if (!good) {
    snprintf(mine->sentence, sizeof(mine->sentence), "%d of %d ranks left, %d were lost", told.left,
             told.ranks_before, told.lost);
  }
  return good;
}

/* Victims leave. */
static void leave_and_go_on(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up(comm, mine)) {
    return;
  }
  if (is_victim(rank)) {
    lcomm_leave(comm);
  }
  comm = regroup_to_next(comm, mine);
  if (is_victim(rank)) {
    mine->good = !comm;
    return;
  }
  bool told = comm && tells(comm, c->size, c->size - count_survivors(c), mine);
  expect_work(comm, count_survivors(c), nodes_left, mine);
  mine->good = mine->good && told;
}

static void leave(int size, unsigned those, int nodes) {
  crew c = new_crew(size, leave_and_go_on);
  victims = those;
  nodes_left = nodes;
  run_survivors(&c, 0);
}

static void the_others_go_on_when_a_rank_leaves(void **state) {
  (void)state;
  leave(4, 1 << 2, 2);
  leave(2, 1 << 1, 1);
}

static void rank_0_may_leave(void **state) {
  (void)state;
  leave(4, 1 << 0, 2);
  leave(2, 1 << 0, 1);
}

static void a_whole_node_may_leave(void **state) {
  (void)state;
  leave(4, 3 << 0, 1);
  leave(4, 3 << 2, 1);
}

static void all_but_one_may_leave(void **state) {
  (void)state;
  leave(4, 7 << 1, 1);
  leave(4, 7 << 0, 1);
}

static void all_may_leave_and_none(void **state) {
  (void)state;
  leave(3, 7, 0);
  leave(3, 0, 2);
}

/* Half of them, with the lowest, leave and keep what they had until the others are done. */
static void leave_and_look_on(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine), *next = NULL;
  if (!comm || !is_victim(rank)) {
    expect_work(comm ? regroup_to_next(comm, mine) : NULL, count_survivors(c), 1, mine);
    return;
  }
  lcomm_leave(comm);
  mine->status = lcomm_regroup(comm, &next);
  volatile int *others = &c->reports[c->size - 1].good;
  for (int i = 0; i < 4000 && !*others; i++) {
    sleep_ms(5);
  }
  mine->good = !next && lcomm_destroy(comm) == LCOMM_OK;
}

static void who_has_left_is_not_waited_for(void **state) {
  (void)state;
  crew c = new_crew(4, leave_and_look_on);
  c.timeout_s = 6;
  victims = 3;
  run_survivors(&c, 0);
}

/* ---------------------------------------------------------- who cannot regroup */

static void refuse_what_is_in_flight(const crew *c, int rank, report *mine) {
  static float data[1000];
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = create_elastic(c, rank, "", mine), *next = NULL;
  mine->good =
      comm &&
      lcomm_tensor_add(comm, "one", data, 1000, LCOMM_FLOAT32, LCOMM_SUM, &tensor) == LCOMM_OK &&
      lcomm_tensor_ready(comm, tensor) == LCOMM_OK &&
      lcomm_regroup(comm, &next) == LCOMM_ERR_STATE &&
      strstr(lcomm_last_error(comm), "between the steps") && lcomm_tensors_wait(comm) == LCOMM_OK &&
      lcomm_regroup(comm, &next) == LCOMM_OK && lcomm_rank(next) == rank;
  keep_sentence(mine, comm);
  if (mine->good) {
    mine->good = lcomm_barrier(comm) == LCOMM_ERR_STATE &&
                 strstr(lcomm_last_error(comm), "gone on as another one");
  }
  lcomm_destroy(comm);
  lcomm_destroy(next);
}

static void differ_in_regrouping(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine), *next = NULL;
  mine->status = rank == 1 ? lcomm_barrier(comm) : lcomm_regroup(comm, &next);
  keep_sentence(mine, comm);
  lcomm_destroy(comm);
}

static void all_ranks_must_regroup(void **state) {
  (void)state;
  crew c = new_crew(3, differ_in_regrouping);
  run_ill(&c, -1, LCOMM_ERR_MISMATCH, "lcomm_regroup");
}

static void refuse_without_elastic(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL, *next = NULL;
  set_launcher(c, rank);
  unsetenv("LCOMM_ELASTIC");
  mine->status = lcomm_create_env(NULL, &comm);
  keep_sentence(mine, NULL);
  mine->good = comm && lcomm_regroup(comm, &next) == LCOMM_ERR_UNSUPPORTED &&
               lcomm_leave(comm) == LCOMM_ERR_UNSUPPORTED &&
               strstr(lcomm_last_error(comm), "LCOMM_ELASTIC=on") && sums_up(comm, mine);
  lcomm_destroy(comm);
}

/* ------------------------------------------------------------- deaths meanwhile */

static int second;
static lcomm_shrink_moment when;

static bool die_then(lcomm_shrink_moment moment) {
  if (moment == when) {
    raise(SIGKILL);
  }
  return true;
}

/* Rank 0 leaves, and another one dies while the others make the next communicator. */
static void die_while_others_regroup(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up(comm, mine)) {
    return;
  }
  if (is_victim(rank)) {
    lcomm_leave(comm);
  }
  lcomm_shrink_watch = rank == second ? die_then : NULL;
  comm = regroup_to_next(comm, mine);
  if (is_victim(rank)) {
    mine->good = !comm;
    return;
  }
  while (comm && lcomm_size(comm) > 3) { /* it died when all had confirmed */
    sum_until_lost(comm, 1000, mine);
    comm = shrink_to_next(comm, mine);
  }
  expect_work(comm, 3, comm ? lcomm_nodes(comm) : 0, mine);
}

static void the_others_agree_when_one_dies_meanwhile(void **state) {
  (void)state;
  static const int leavers[] = {0, 2, 4};
  static const int who[] = {1, 3}; /* the host of the meeting, and another one */
  for (size_t i = 0; i < 2; i++) {
    for (when = LCOMM_SHRINK_BEGUN; when <= LCOMM_SHRINK_CONFIRMED; when++) {
      crew c = new_crew(5, die_while_others_regroup);
      victims = 1u << leavers[when % 3];
      second = who[i];
      run_survivors(&c, 1u << second);
    }
  }
}

/* One is dead before the ranks have agreed: who wanted to leave is still there. */
static void die_before_others_regroup(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine), *next = NULL;
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (is_victim(rank)) {
    lcomm_leave(comm);
  }
  if (rank == second) {
    raise(SIGKILL);
  }
  mine->status = lcomm_regroup(comm, &next);
  keep_sentence(mine, comm);
  if (mine->status != LCOMM_ERR_TRANSPORT || next) {
    mine->status = LCOMM_ERR_INTERNAL;
    return;
  }
  comm = shrink_to_next(comm, mine);
  bool all_are_there = comm && lcomm_size(comm) == c->size - 1;
  comm = comm ? regroup_to_next(comm, mine) : NULL;
  if (is_victim(rank)) {
    mine->good = all_are_there && !comm;
    return;
  }
  expect_work(comm, c->size - 2, comm ? lcomm_nodes(comm) : 0, mine);
  mine->good = mine->good && all_are_there;
}

static void a_loss_before_all_agree_is_a_loss(void **state) {
  (void)state;
  for (second = 0; second < 4; second += 3) {
    crew c = new_crew(4, die_before_others_regroup);
    victims = 1u << (second == 0 ? 1 : 0);
    run_survivors(&c, 1u << second);
  }
}

/* ------------------------------------------------------------------ what stays */

static void nothing_is_left_of_those_before(const crew *c, int rank, report *mine) {
  stay_flat(create_elastic(c, rank, "", mine), regroup_to_next, c->size, mine);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_others_go_on_when_a_rank_leaves),
    cmocka_unit_test(rank_0_may_leave),
    cmocka_unit_test(a_whole_node_may_leave),
    cmocka_unit_test(all_but_one_may_leave),
    cmocka_unit_test(all_may_leave_and_none),
    cmocka_unit_test(who_has_left_is_not_waited_for),
    CREW_TEST(refuse_what_is_in_flight, 3),
    cmocka_unit_test(all_ranks_must_regroup),
    CREW_TEST(refuse_without_elastic, 2),
    cmocka_unit_test(the_others_agree_when_one_dies_meanwhile),
    cmocka_unit_test(a_loss_before_all_agree_is_a_loss),
    CREW_TEST(nothing_is_left_of_those_before, 3),
};
RUN_TESTS(tests)
