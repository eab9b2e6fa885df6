/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_shrink: ranks die, and the others go on. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"

/* ------------------------------------------------------------ who is lost */

static int nodes_left;

static void lose_ranks_and_go_on(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (is_victim(rank)) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  expect_work(shrink_to_next(comm, mine), count_survivors(c), nodes_left, mine);
}

static void lose(int size, unsigned lost, int nodes) {
  crew c = new_crew(size, lose_ranks_and_go_on);
  victims = lost;
  nodes_left = nodes;
  run_survivors(&c, lost);
}

static void the_others_go_on_without_a_rank(void **state) {
  (void)state;
  lose(4, 1 << 2, 2);
  lose(4, 1 << 3, 2);
  lose(2, 1 << 1, 1);
}

static void the_others_go_on_without_rank_0(void **state) {
  (void)state;
  lose(4, 1 << 0, 2);
  lose(3, 1 << 0, 2);
  lose(2, 1 << 0, 1);
}

static void a_node_goes_on_without_the_other(void **state) {
  (void)state;
  lose(4, 3 << 0, 1);
  lose(4, 3 << 2, 1);
}

static void one_rank_may_be_left(void **state) {
  (void)state;
  lose(4, 7 << 0, 1);
  lose(5, 1 << 0 | 1 << 1 | 1 << 3 | 1 << 4, 1);
}

/* One after the other, the lowest first, down to one. */
static void ranks_are_lost_one_after_the_other(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  for (int lost = 0; comm && lost + 1 < c->size; lost++) {
    if (rank == lost) {
      raise(SIGKILL);
    }
    sum_until_lost(comm, 1000, mine);
    comm = shrink_to_next(comm, mine);
  }
  expect_work(comm, 1, 1, mine);
}

static void a_communicator_shrinks_again_and_again(void **state) {
  (void)state;
  crew c = new_crew(5, ranks_are_lost_one_after_the_other);
  run_survivors(&c, 15);
}

/* ---------------------------------------------------- deaths during a shrink */

static int second; /* who dies during the shrink, ... */
static lcomm_shrink_moment when;

static bool die_then(lcomm_shrink_moment moment) {
  if (moment == when) {
    raise(SIGKILL);
  }
  return true;
}

/* Rank 4 goes first. */
static void die_while_others_shrink(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (rank == 4) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  lcomm_shrink_watch = rank == second ? die_then : NULL;
  comm = shrink_to_next(comm, mine);
  while (comm && lcomm_size(comm) > 3) { /* it died when all had confirmed */
    sum_until_lost(comm, 1000, mine);
    comm = shrink_to_next(comm, mine);
  }
  expect_work(comm, 3, comm ? lcomm_nodes(comm) : 0, mine);
}

static void the_others_agree_when_one_dies_meanwhile(void **state) {
  (void)state;
  static const int who[] = {0, 1, 3}; /* the host of the meeting, and others */
  for (size_t i = 0; i < sizeof(who) / sizeof *who; i++) {
    for (when = LCOMM_SHRINK_BEGUN; when <= LCOMM_SHRINK_CONFIRMED; when++) {
      crew c = new_crew(5, die_while_others_shrink);
      second = who[i];
      run_survivors(&c, 1u << 4 | 1u << second);
    }
  }
}

/* All but rank 2 have heard that the communicator is confirmed when the host of the meeting dies.
 */
static bool hear_no_confirmation(lcomm_shrink_moment moment) {
  static int times;
  return moment != LCOMM_SHRINK_CONFIRMED || times++ > 0;
}

static void miss_the_confirmation(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (rank == 3) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  lcomm_shrink_watch = rank == 2 ? hear_no_confirmation : NULL;
  comm = shrink_to_next(comm, mine);
  if (rank == 0) {
    raise(SIGKILL);
  }
  if (rank == 1) {
    sum_until_lost(comm, 1000, mine);
    comm = shrink_to_next(comm, mine);
  }
  expect_work(comm, 2, 2, mine);
}

static void who_missed_the_confirmation_comes_along(void **state) {
  (void)state;
  crew c = new_crew(4, miss_the_confirmation);
  run_survivors(&c, 1 | 1 << 3);
}

/* The connection of one rank breaks, and nobody has died. */
static bool cut_once(lcomm_shrink_moment moment) {
  static int times;
  return moment != when || times++ > 0;
}

static void lose_a_connection_meanwhile(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (rank == 2) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  lcomm_shrink_watch = rank == second ? cut_once : NULL;
  expect_work(shrink_to_next(comm, mine), 3, 2, mine);
}

static void a_broken_connection_is_made_again(void **state) {
  (void)state;
  for (second = 0; second <= 1; second++) {
    for (when = LCOMM_SHRINK_MET; when <= LCOMM_SHRINK_PREPARED; when++) {
      crew c = new_crew(4, lose_a_connection_meanwhile);
      run_survivors(&c, 1 << 2);
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_others_go_on_without_a_rank),
    cmocka_unit_test(the_others_go_on_without_rank_0),
    cmocka_unit_test(a_node_goes_on_without_the_other),
    cmocka_unit_test(one_rank_may_be_left),
    cmocka_unit_test(a_communicator_shrinks_again_and_again),
    cmocka_unit_test(the_others_agree_when_one_dies_meanwhile),
    cmocka_unit_test(who_missed_the_confirmation_comes_along),
    cmocka_unit_test(a_broken_connection_is_made_again),
};
RUN_TESTS(tests)
