/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Tensors when more ranks are lost while the others shrink, when connections break meanwhile, when
 * tensors are frozen, and what is left of the communicators before. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/engine/entry.h"
#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"
#include "tests/tensor/elastic_model.h"

enum { LOST_AT = 4, STEPS = LOST_AT + 8 };

static const char policy[] = "net=int8+ef min=1K bucket=64K";
static int second; /* who dies, or is cut off, during the shrink, ... */
static lcomm_shrink_moment when;

/* The last rank dies in step LOST_AT, when one of its sums is over. */
static bool train(training *t, int last) {
  bool good = true;
  while (good && t->step < STEPS) {
    if (t->step == LOST_AT && t->seat == last) {
      int done = 0;
      make_gradients(t);
      (void)report_ready(t);
      while (!done && lcomm_tensor_test(t->comm, t->tensors[0], &done) == LCOMM_OK) {
      }
      raise(SIGKILL);
    }
    good = make_step(t, true);
  }
  return good && is_equal_everywhere(t);
}

static bool die_then(lcomm_shrink_moment moment) {
  if (moment == when) {
    raise(SIGKILL);
  }
  return true;
}

static void lose_another_one_meanwhile(const crew *c, int rank, report *mine) {
  training t;
  lcomm_shrink_watch = rank == second ? die_then : NULL;
  mine->good = begin_training(&t, c, rank, policy, mine) && train(&t, 4) && t.lost == 2;
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void the_others_carry_on_when_one_dies_meanwhile(void **state) {
  (void)state;
  for (second = 0; second <= 1; second++) {
    for (when = LCOMM_SHRINK_BEGUN; when <= LCOMM_SHRINK_CONFIRMED; when++) {
      crew c = new_crew(5, lose_another_one_meanwhile);
      run_survivors(&c, 1u << 4 | 1u << second);
    }
  }
}

static bool cut_once(lcomm_shrink_moment moment) {
  static int times;
  return moment != when || times++ > 0;
}

static void lose_a_connection_meanwhile(const crew *c, int rank, report *mine) {
  training t;
  lcomm_shrink_watch = rank == second ? cut_once : NULL;
  mine->good = begin_training(&t, c, rank, policy, mine) && train(&t, 3) && t.lost == 1;
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void what_was_carried_goes_back_and_over_again(void **state) {
  (void)state;
  for (second = 0; second <= 1; second++) {
    for (when = LCOMM_SHRINK_MET; when <= LCOMM_SHRINK_PREPARED; when++) {
      crew c = new_crew(4, lose_a_connection_meanwhile);
      run_survivors(&c, 1 << 3);
    }
  }
}

/* What all ranks but number `without` keep of the tensor that is summed. */
static bool sum_residuals(training *t, int without, double *sums) {
  for (uint64_t i = 0; i < LONGEST; i++) {
    sums[i] = t->seat == without ? 0 : (double)t->kept[2][i];
  }
  return lcomm_allreduce(t->comm, sums, sums, LONGEST, LCOMM_FLOAT64, LCOMM_SUM) == LCOMM_OK;
}

/* Each element of a residual was kept by one rank after the first shrink, which lives or does not.
 */
static bool is_there_once_or_not_at_all(training *t, const double *before) {
  static double now[LONGEST];
  double largest = 0;
  bool good = keep_residuals(t) && sum_residuals(t, -1, now);
  for (int i = 0; i < LONGEST; i++) {
    largest = fmax(largest, fabs(before[i]));
  }
  for (int i = 0; good && i < LONGEST; i++) {
    good = fabs(now[i] - before[i]) <= 1e-5 * largest || fabs(now[i]) <= 1e-5 * largest;
  }
  return good || wrong(t, "a residual is there twice, or in part");
}

/* Rank 2 does not hear that the communicator is confirmed, and rank 0, which hosts the meeting,
 * dies when it is. */
static void miss_the_confirmation(const crew *c, int rank, report *mine) {
  training t;
  when = LCOMM_SHRINK_CONFIRMED;
  lcomm_shrink_watch = rank == 2 ? cut_once : NULL;
  bool good = begin_training(&t, c, rank, policy, mine);
  while (good && t.step < LOST_AT) {
    good = make_step(&t, true);
  }
  static double before[LONGEST];
  good = good && sum_residuals(&t, 3, before);
  (void)lcomm_barrier(t.comm); /* all have the sums */
  if (rank == 3) {
    raise(SIGKILL);
  }
  sum_until_lost(t.comm, 1000, mine);
  good = good && go_on_without(&t);
  if (rank == 0) {
    raise(SIGKILL);
  }
  if (rank == 1) {
    sum_until_lost(t.comm, 1000, mine);
    good = good && go_on_without(&t);
  }
  good = good && is_there_once_or_not_at_all(&t, before);
  while (good && t.step < STEPS) {
    good = make_step(&t, true);
  }
  mine->good = good && lcomm_size(t.comm) == 2 && is_equal_everywhere(&t);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void who_missed_the_confirmation_has_all(void **state) {
  (void)state;
  crew c = new_crew(4, miss_the_confirmation);
  run_survivors(&c, 1 | 1 << 3);
}

/* ------------------------------------------------------------------ freezing */

static const char *frozen_by;

static void freeze_one(const crew *c, int rank, report *mine) {
  training t;
  bool good = begin_training(&t, c, rank, frozen_by, mine);
  while (good && t.step < STEPS) {
    if (t.step == LOST_AT - 1 && !is_frozen(&t, 2)) {
      good = lcomm_tensor_freeze(t.comm, t.tensors[2]) == LCOMM_OK;
    }
    if (t.step == STEPS - 2 && is_frozen(&t, 2)) {
      good = lcomm_tensor_unfreeze(t.comm, t.tensors[2]) == LCOMM_OK;
    }
    if (t.step == LOST_AT && rank == 3) {
      raise(SIGKILL);
    }
    good = good && make_step(&t, true);
  }
  mine->good = good && t.lost == 1 && is_equal_everywhere(&t);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static void frozen_tensors_stay_frozen_and_lose_nothing(void **state) {
  (void)state;
  static const char *const policies[] = {policy, "net=lowrank:2 min=1K bucket=64K"};
  for (int i = 0; i < 2; i++) {
    crew c = new_crew(4, freeze_one);
    frozen_by = policies[i];
    run_survivors(&c, 1 << 3);
  }
}

/* ------------------------------------------------------------------ what stays */

/* Nobody has died: one rank says that another one has. */
static bool shrink_to_the_same(training *t) {
  if (lcomm_rank(t->comm) == 0 && lcomm_enter(t->comm) == LCOMM_OK) {
    lcomm_fail_peer(t->comm, LCOMM_ERR_TRANSPORT, 1, "a test says that rank 1 is lost");
    lcomm_exit(t->comm);
  }
  sum_until_lost(t->comm, 1000, t->mine);
  return go_on_without(t) && keep_residuals(t);
}

static void nothing_is_left_of_those_before(const crew *c, int rank, report *mine) {
  training t;
  int files = 0;
  long kib = 0;
  bool good = begin_training(&t, c, rank, policy, mine);
  for (int i = 0; good && i < 30; i++) {
    good = t.step > i || make_step(&t, true);
    if (i == 10) {
      files = count_files();
      kib = resident_kib();
    }
    good = good && shrink_to_the_same(&t);
  }
  good = good && make_step(&t, true);
  if (good && (count_files() != files || !is_memory_flat(kib))) {
    print_error("%d files, then %d; %ld KiB, then %ld\n", files, count_files(), kib,
                resident_kib());
    good = wrong(&t, "something is left of the communicators before");
  }
  mine->good = good && t.lost == 0 && is_equal_everywhere(&t);
  mine->status = LCOMM_OK;
  end_training(&t);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_others_carry_on_when_one_dies_meanwhile),
    cmocka_unit_test(what_was_carried_goes_back_and_over_again),
    cmocka_unit_test(who_missed_the_confirmation_has_all),
    cmocka_unit_test(frozen_tensors_stay_frozen_and_lose_nothing),
    CREW_TEST(nothing_is_left_of_those_before, 3),
};
RUN_TESTS(tests)
