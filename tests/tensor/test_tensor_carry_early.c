/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Jobs that begin with one rank, and ranks that are lost before the first step is finished. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_model.h"
#include "tests/tensor/elastic_regroup.h"

enum { STEPS = 5 };

static const char *const policies[] = {"min=1K bucket=64K", "net=int8+ef min=1K bucket=64K",
                                       "net=topk:0.05+ef momentum=0.5 warmup=2 min=1K"};
static const char *policy;
static bool checks;

static void with_each_policy(void (*run)(void)) {
  for (int i = 0; i < 3; i++) {
    policy = policies[i];
    checks = i < 2;
    run();
  }
}

static bool train_to_the_end(training *t) {
  bool good = true;
  while (good && t->step < STEPS) {
    good = make_step(t, checks);
  }
  return good && is_equal_everywhere(t);
}

/* -------------------------------------------------------- before the first step */

/* Where in the first step victims die. */
typedef enum place { BEFORE_TENSORS, BEFORE_IT, WHEN_READY, IN_IT, PLACES } place;
static place when;

static void die_early(training *t) {
  if (when >= WHEN_READY) {
    make_gradients(t);
    (void)report_ready(t);
  }
  for (int done = 0; when == IN_IT && !done;) {
    if (lcomm_tensor_test(t->comm, t->tensors[0], &done) != LCOMM_OK) {
      break;
    }
  }
  raise(SIGKILL);
}

static void lose_in_the_first_step(const crew *c, int rank, report *mine) {
  training t = {.seat = rank, .mine = mine, .comm = create_elastic(c, rank, policy, mine)};
  if (when == BEFORE_TENSORS && is_victim(rank)) {
    raise(SIGKILL);
  }
  bool good = add_tensors(&t);
  if (good && is_victim(rank)) {
    die_early(&t);
  }
  mine->good = good && train_to_the_end(&t) && lcomm_size(t.comm) == count_survivors(c);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void lose(unsigned lost) {
  crew c = new_crew(4, lose_in_the_first_step);
  victims = lost;
  run_survivors(&c, lost);
}

static void lose_everywhere(void) {
  for (when = BEFORE_TENSORS; when < PLACES; when++) {
    lose(1 << 3);
    lose(1 << 0);
    lose(3 << 2);
    lose(7 << 0);
  }
}

static void ranks_may_be_lost_before_the_first_step(void **state) {
  (void)state;
  with_each_policy(lose_everywhere);
}

/* Nobody has tensors when a rank is lost. */
static void add_tensors_afterwards(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "net=int8+ef min=1K", mine);
  if (!comm || rank == 0) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  training t = {.seat = rank, .mine = mine, .comm = shrink_to_next(comm, mine)};
  checks = true;
  mine->good = add_tensors(&t) && train_to_the_end(&t);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void tensors_may_be_added_after_a_loss(void **state) {
  (void)state;
  crew c = new_crew(4, add_tensors_afterwards);
  run_survivors(&c, 1);
}

/* ------------------------------------------------------------------ one rank */

static int joined_before; /* steps that the founder makes before newcomers may come */

static bool work_until_they_come(training *t, int newcomers) {
  lcomm_changes changes = {0};
  bool good = true;
  while (good && (t->step < joined_before || changes.waiting < newcomers)) {
    good = make_step(t, checks) && lcomm_changes_get(t->comm, &changes) == LCOMM_OK;
  }
  return good;
}

/* Victims leave when all are together. */
static void begin_with_one(const crew *c, int rank, report *mine) {
  training t = {.mine = mine};
  crew first = *c;
  first.size = 1;
  bool good = rank == 0 ? begin_training(&t, &first, rank, policy, mine) &&
                              work_until_they_come(&t, c->size - 1) && regroup(&t)
                        : join_training(&t, c, rank, mine);
  int begun = t.step;
  good = good && share_weights(&t) && keep_residuals(&t);
  while (good && t.step < begun + STEPS) {
    good = make_step(&t, checks);
  }
  good = good && is_equal_everywhere(&t) && lcomm_size(t.comm) == c->size;
  if (good && is_victim(rank)) {
    lcomm_leave(t.comm);
  }
  bool goes_on = good && make_step(&t, checks) && regroup(&t);
  mine->good = is_victim(rank) ? good && !t.comm
                               : goes_on && keep_residuals(&t) && make_step(&t, checks) &&
                                     lcomm_size(t.comm) == count_survivors(c);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void grow(int size, unsigned those_leave) {
  crew c = new_crew(size, begin_with_one);
  victims = those_leave;
  run_survivors(&c, 0);
}

static void grow_from_one(void) {
  joined_before = 0;
  grow(2, 0);
  joined_before = 4;
  grow(3, 1 << 0);
  grow(4, 7 << 1);
}

static void newcomers_join_one_rank(void **state) {
  (void)state;
  with_each_policy(grow_from_one);
}

/* It lives on alone when the newcomer dies, and is found by another one that comes. */
static void lose_newcomers(const crew *c, int rank, report *mine) {
  training t = {.mine = mine};
  crew first = *c;
  first.size = 1;
  bool good = true;
  if (rank == 0) {
    good = begin_training(&t, &first, rank, policy, mine);
  }
  for (int turn = 1; good && turn < c->size; turn++) {
    good = rank != 0 || (work_until_they_come(&t, 1) && regroup(&t));
    if (rank == turn && (!join_training(&t, c, rank, mine) || raise(SIGKILL))) {
      return;
    }
    while (good && rank == 0 && lcomm_size(t.comm) > 1) {
      sum_until_lost(t.comm, 1000, mine);
      good = go_on_without(&t) && keep_residuals(&t);
    }
  }
  mine->good = good && make_step(&t, checks);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void one_rank_goes_on_when_newcomers_are_lost(void **state) {
  (void)state;
  policy = policies[1];
  checks = true;
  joined_before = 2;
  crew c = new_crew(3, lose_newcomers);
  c.delay_ms[2] = 300;
  run_survivors(&c, 6);
}

static void stay_alone(const crew *c, int rank, report *mine) {
  training t;
  policy = policies[1];
  checks = true;
  bool good = begin_training(&t, c, rank, policy, mine) && train_to_the_end(&t);
  good = good && regroup(&t) && keep_residuals(&t) && make_step(&t, true);
  good = good && lcomm_leave(t.comm) == LCOMM_OK && make_step(&t, true) && !regroup(&t);
  mine->good = good && !t.comm;
  mine->status = LCOMM_OK;
  end_training(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_may_be_lost_before_the_first_step),
    cmocka_unit_test(tensors_may_be_added_after_a_loss),
    cmocka_unit_test(newcomers_join_one_rank),
    cmocka_unit_test(one_rank_goes_on_when_newcomers_are_lost),
    CREW_TEST(stay_alone, 1),
};
RUN_TESTS(tests)
