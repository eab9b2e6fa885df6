/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_join and lcomm_regroup: newcomers join a job that is under way. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"

static int founders; /* members from 0 on; the others join */
static int last;     /* ranks at the end */
static unsigned leavers, victims_at_work;

static lcomm_comm *found_or_join(const crew *c, int member, report *mine) {
  crew first = *c;
  first.size = founders;
  return member < founders ? create_elastic(&first, member, "", mine) : join_elastic(c, mine);
}

/* Until it has so many ranks, or this one has left. */
static lcomm_comm *regroup_until(lcomm_comm *comm, int ranks, report *mine) {
  while (comm && lcomm_size(comm) != ranks) {
    sleep_ms(10);
    comm = regroup_to_next(comm, mine);
  }
  return comm;
}

static void go_on_with_newcomers(const crew *c, int member, report *mine) {
  lcomm_comm *comm = found_or_join(c, member, mine);
  if (!comm) {
    return;
  }
  if (leavers >> member & 1) {
    lcomm_leave(comm);
  }
  int joined = 0, is_newcomer = member >= founders;
  while (comm && lcomm_size(comm) != last) {
    lcomm_regrouped told = {0};
    sleep_ms(10);
    comm = regroup_to_next(comm, mine);
    if (comm && lcomm_regrouped_get(comm, &told) == LCOMM_OK) {
      joined += told.joined;
    }
  }
  if (leavers >> member & 1) {
    mine->good = !comm && mine->status == LCOMM_OK;
    return;
  }
  expect_work(comm, last, comm ? lcomm_nodes(comm) : 0, mine);
  mine->good = mine->good && (is_newcomer || joined == c->size - founders);
}

static void grow(int first, int newcomers, unsigned those_leave) {
  crew c = new_crew(first + newcomers, go_on_with_newcomers);
  founders = first;
  leavers = those_leave;
  last = first + newcomers;
  for (int rank = 0; rank < first; rank++) {
    last -= those_leave >> rank & 1;
  }
  run_survivors(&c, 0);
}

static void a_newcomer_joins(void **state) {
  (void)state;
  grow(2, 1, 0);
  grow(3, 1, 0);
}

static void two_newcomers_join(void **state) {
  (void)state;
  grow(4, 2, 0);
}

/* So many leave that ranks are as many as before only when all have changed. */
static void some_leave_when_others_join(void **state) {
  (void)state;
  grow(4, 1, 3 << 2);
  grow(4, 1, 3 << 0);
  grow(3, 2, 1 << 0);
  grow(2, 2, 1 << 1);
}

/* ------------------------------------------------------------- who is refused */

static void come_with_another_token(const crew *c, int member, report *mine) {
  if (member == founders) {
    setenv("LCOMM_TOKEN", "another secret", 1);
  } else {
    setenv("LCOMM_TOKEN", "the secret", 1);
  }
  lcomm_comm *comm = found_or_join(c, member, mine);
  if (member == founders) {
    mine->good = !comm && mine->status == LCOMM_ERR_MISMATCH &&
                 strstr(mine->sentence, "the token is not that of rank 0");
    mine->status = LCOMM_OK;
    return;
  }
  comm = regroup_until(comm, founders + 1, mine);
  expect_work(comm, founders + 1, comm ? lcomm_nodes(comm) : 0, mine);
}

static void another_token_is_refused(void **state) {
  (void)state;
  crew c = new_crew(4, come_with_another_token); /* the last one has the right one */
  founders = 2;
  c.delay_ms[3] = 3000;
  c.timeout_s = 12;
  run_survivors(&c, 0);
  unsetenv("LCOMM_TOKEN");
}

static void wait_in_vain(const crew *c, int member, report *mine) {
  (void)member;
  lcomm_comm *comm = join_elastic(c, mine);
  mine->good = !comm;
}

static void a_newcomer_without_a_job_gives_up_in_time(void **state) {
  (void)state;
  crew c = new_crew(1, wait_in_vain);
  c.timeout_s = 1;
  run_ill(&c, -1, LCOMM_ERR_TIMEOUT, "cannot join the job");
}

/* The others go on without it. */
static void come_with_what_does_not_fit(const crew *c, int member, report *mine) {
  lcomm_comm *comm = NULL;
  if (member < founders) {
    comm = found_or_join(c, member, mine);
  } else {
    setenv("LCOMM_TOPO_FILE", "/nowhere", 1);
    comm = join_elastic(c, mine);
    mine->good = !comm && strstr(mine->sentence, "LCOMM_TOPO_FILE");
    mine->status = LCOMM_OK;
    return;
  }
  for (int i = 0; comm && i < 30; i++) {
    sleep_ms(10);
    comm = regroup_to_next(comm, mine);
  }
  expect_work(comm, founders, comm ? lcomm_nodes(comm) : 0, mine);
}

static void who_does_not_fit_hurts_nobody(void **state) {
  (void)state;
  crew c = new_crew(3, come_with_what_does_not_fit);
  founders = 2;
  run_survivors(&c, 0);
}

/* ------------------------------------------------------------- deaths meanwhile */

static lcomm_shrink_moment when;

static bool die_then(lcomm_shrink_moment moment) {
  if (moment == when) {
    raise(SIGKILL);
  }
  return true;
}

/* Killed from outside, some time after it has come. */
static void be_killed_soon(void) {
  pid_t self = getpid();
  if (fork() == 0) {
    sleep_ms(200);
    kill(self, SIGKILL);
    _exit(0);
  }
}

static void die_while_waiting(const crew *c, int member, report *mine) {
  if (member == founders) {
    be_killed_soon();
  }
  lcomm_comm *comm = found_or_join(c, member, mine);
  sleep_ms(member < founders ? 500 : 0); /* it is dead by then, and the other newcomer waits */
  comm = regroup_until(comm, founders + 1, mine);
  expect_work(comm, founders + 1, comm ? lcomm_nodes(comm) : 0, mine);
}

static void who_dies_while_it_waits_is_forgotten(void **state) {
  (void)state;
  crew c = new_crew(4, die_while_waiting);
  founders = 2;
  run_survivors(&c, 1 << 2);
}

/* The last newcomer dies while it is admitted; the other one joins. */
static void die_when_admitted(const crew *c, int member, report *mine) {
  lcomm_shrink_watch = member == founders ? die_then : NULL;
  lcomm_comm *comm = found_or_join(c, member, mine);
  comm = regroup_until(comm, founders + 1, mine);
  expect_work(comm, founders + 1, comm ? lcomm_nodes(comm) : 0, mine);
}

static void who_dies_when_it_is_admitted_hurts_nobody(void **state) {
  (void)state;
  for (when = LCOMM_SHRINK_MET; when <= LCOMM_SHRINK_PREPARED; when++) {
    crew c = new_crew(4, die_when_admitted);
    founders = 2;
    run_survivors(&c, 1 << 2);
  }
}

/* A founder dies while a newcomer is admitted, who is admitted later then. */

static void lose_a_founder(const crew *c, int member, report *mine) {
  lcomm_comm *comm = found_or_join(c, member, mine);
  sleep_ms(member < founders ? 300 : 0);
  lcomm_shrink_watch = victims_at_work >> member & 1 ? die_then : NULL;
  if (comm && member < founders) {
    comm = regroup_to_next(comm, mine);
  }
  comm = regroup_until(comm, founders, mine);
  expect_work(comm, founders, comm ? lcomm_nodes(comm) : 0, mine);
}

static void the_others_admit_it_when_a_founder_dies(void **state) {
  (void)state;
  for (int victim = 0; victim <= 2; victim += 2) {
    for (when = LCOMM_SHRINK_BEGUN; when <= LCOMM_SHRINK_PREPARED; when++) {
      crew c = new_crew(4, lose_a_founder); /* 3 founders, one dies, one joins */
      founders = 3;
      victims_at_work = 1u << victim;
      run_survivors(&c, victims_at_work);
    }
  }
}

/* ------------------------------------------------------------------ what stays */

/* It may come again before the others have gone on without it. */
static lcomm_comm *regroup_until_one_joins(lcomm_comm *comm, report *mine) {
  lcomm_regrouped told = {0};
  while (comm && told.joined == 0) {
    sleep_ms(10);
    comm = regroup_to_next(comm, mine);
    (void)lcomm_regrouped_get(comm, &told);
  }
  return comm;
}

/* One leaves and comes again, many times. */
static void leave_and_come_again(const crew *c, int member, report *mine) {
  enum { TIMES = 16, WARM = 6 };
  int files = 0;
  long kib = 0;
  lcomm_comm *comm = found_or_join(c, member, mine);
  for (int i = 0; comm && i < TIMES; i++) {
    if (i == WARM) {
      files = count_files();
      kib = resident_kib();
    }
    if (member == founders - 1) {
      lcomm_leave(comm);
      comm = regroup_to_next(comm, mine);
      comm = join_elastic(c, mine);
    } else {
      comm = regroup_until_one_joins(comm, mine);
    }
    (void)(comm && sums_up(comm, mine));
  }
  bool flat = comm && count_files() <= files && is_memory_flat(kib);
  if (comm && !flat) {
    print_error("%d files, then %d; %ld KiB, then %ld\n", files, count_files(), kib,
                resident_kib());
  }
  expect_work(comm, founders, comm ? lcomm_nodes(comm) : 0, mine);
  mine->good = mine->good && flat;
}

static void nothing_is_left_of_those_before(void **state) {
  (void)state;
  crew c = new_crew(3, leave_and_come_again);
  founders = 3;
  run_survivors(&c, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_newcomer_joins),
    cmocka_unit_test(two_newcomers_join),
    cmocka_unit_test(some_leave_when_others_join),
    cmocka_unit_test(another_token_is_refused),
    cmocka_unit_test(a_newcomer_without_a_job_gives_up_in_time),
    cmocka_unit_test(who_does_not_fit_hurts_nobody),
    cmocka_unit_test(who_dies_while_it_waits_is_forgotten),
    cmocka_unit_test(who_dies_when_it_is_admitted_hurts_nobody),
    cmocka_unit_test(the_others_admit_it_when_a_founder_dies),
    cmocka_unit_test(nothing_is_left_of_those_before),
};
RUN_TESTS(tests)
