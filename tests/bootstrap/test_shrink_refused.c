/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_shrink: who may not go on, and what is left of the communicators before. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/engine/entry.h"
#include "libcomm/transport/transport.h"
#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/bootstrap/elastic_flat.h"
#include "tests/support/unit_tests.h"

/* ---------------------------------------------------------- who cannot go on */

/* Two ranks of four stand still; the other two cannot know whether these go on. */
static void half_of_them_stand_still(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (rank < 2) {
    raise(SIGSTOP);
    lcomm_destroy(comm);
    return;
  }
  sum_until_lost(comm, 1000, mine);
  lcomm_comm *next = shrink_to_next(comm, mine);
  mine->good = !next;
}

static void half_of_the_ranks_do_not_go_on_without_the_lowest(void **state) {
  (void)state;
  crew c = new_crew(4, half_of_them_stand_still);
  c.timeout_s = 3;
  start_crew(&c);
  for (int rank = 2; rank < 4; rank++) {
    assert_int_equal(waitpid(c.pids[rank], NULL, 0), c.pids[rank]);
    c.pids[rank] = 0;
  }
  kill(c.pids[0], SIGKILL);
  kill(c.pids[1], SIGKILL);
  end_crew(&c);
  for (int rank = 2; rank < 4; rank++) {
    assert_true(c.reports[rank].good);
    expect_failure(&c.reports[rank], LCOMM_ERR_TIMEOUT, "they could go on as well");
  }
  dismiss(&c);
}

static void fail_without_elastic(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL, *next = NULL;
  set_launcher(c, rank);
  unsetenv("LCOMM_ELASTIC");
  mine->status = lcomm_create_env(NULL, &comm);
  if (mine->status != LCOMM_OK) {
    keep_sentence(mine, NULL);
    return;
  }
  mine->good = lcomm_shrink(comm, &next) == LCOMM_ERR_UNSUPPORTED && !next &&
               strstr(lcomm_last_error(comm), "LCOMM_ELASTIC=on") && sums_up(comm, mine);
  keep_sentence(mine, comm);
  lcomm_destroy(comm);
}

static void only_a_lost_rank_is_a_reason(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = create_elastic(c, rank, "", mine), *next = NULL;
  mine->good = comm && lcomm_shrink(comm, &next) == LCOMM_ERR_STATE &&
               strstr(lcomm_last_error(comm), "no rank was lost");
  (void)sums_up(comm, mine); /* unless the other one has aborted already */
  lcomm_abort(comm, "of its own");
  mine->good = mine->good && lcomm_shrink(comm, &next) == LCOMM_ERR_STATE &&
               strstr(lcomm_last_error(comm), "of its own") && !next;
  keep_sentence(mine, comm);
  mine->status = LCOMM_OK;
  lcomm_destroy(comm);
}

static void differ_in_elastic(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL;
  set_launcher(c, rank);
  setenv("LCOMM_ELASTIC", rank == 1 ? "off" : "on", 1);
  mine->status = lcomm_create_env(NULL, &comm);
  keep_sentence(mine, NULL);
}

static void say_something_else(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL;
  set_launcher(c, rank);
  setenv("LCOMM_ELASTIC", rank == 1 ? "perhaps" : "on", 1);
  mine->status = lcomm_create_env(NULL, &comm);
  keep_sentence(mine, NULL);
}

static const char *unfit; /* a policy */

static void create_unfit(const crew *c, int rank, report *mine) {
  lcomm_destroy(create_elastic(c, rank, unfit, mine));
}

/* One rank alone is refused as well: others may join it. */
static void what_does_not_wait_for_all_ranks_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *policy, *word;
  } cases[] = {{"quorum=75%", "quorum= lets steps go on"},
               {"stale=2:drop", "stale= lets steps go on"},
               {"algo=servers servers=0", "algo=servers lets steps go on"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    for (int ranks = 1; ranks <= 3; ranks += 2) {
      crew c = new_crew(ranks, create_unfit);
      unfit = cases[i].policy;
      run_ill(&c, -1, LCOMM_ERR_UNSUPPORTED, cases[i].word);
    }
  }
}

static void all_ranks_must_want_to_go_on(void **state) {
  (void)state;
  crew c = new_crew(3, differ_in_elastic);
  run_ill(&c, -1, LCOMM_ERR_MISMATCH, "rank 0 is to go on when a rank is lost");
  crew d = new_crew(3, say_something_else);
  run_ill(&d, -1, LCOMM_ERR_ARGUMENT, "LCOMM_ELASTIC=perhaps is neither on nor off");
}

/* ------------------------------------------------------------------ what stays */

/* Nobody has died: one rank says that another one has. */
static void fail_as_if_lost(lcomm_comm *comm, report *mine) {
  if (lcomm_rank(comm) == 0 && lcomm_enter(comm) == LCOMM_OK) {
    lcomm_fail_peer(comm, LCOMM_ERR_TRANSPORT, 1, "a test says that rank 1 is lost");
    lcomm_exit(comm);
  }
  sum_until_lost(comm, 1000, mine);
}

static lcomm_comm *shrink_to_the_same(lcomm_comm *comm, report *mine) {
  fail_as_if_lost(comm, mine);
  return shrink_to_next(comm, mine);
}

static void nothing_is_left_of_those_before(const crew *c, int rank, report *mine) {
  stay_flat(create_elastic(c, rank, "", mine), shrink_to_the_same, c->size, mine);
}

/* Half of the ranks are in the middle of a sum whose slots are as large as those of gradients. */
static void nothing_is_left_of_large_sums(void **state) {
  (void)state;
  for (int i = 0; lcomm_transport_list[i]; i++) {
    if (strcmp(lcomm_transport_list[i]->name, "mpi") == 0) {
      continue; /* elastic communicators have none */
    }
    crew c = new_crew(3, nothing_is_left_of_those_before);
    crew_transport = lcomm_transport_list[i]->name;
    crew_count = CREW_COUNT_MAX;
    run_survivors(&c, 0);
    crew_transport = "shm";
    crew_count = 3000;
  }
}

enum { CHANNEL_COUNT = 4096 };

/* From rank 0 to the other node. */
static lcomm_channel *use_channel(lcomm_comm *comm, float *values, report *mine) {
  lcomm_channel *channel = NULL;
  for (int i = 0; i < CHANNEL_COUNT; i++) {
    values[i] = 0.01f * (float)(i % 97);
  }
  if (lcomm_rank(comm) == 2) {
    mine->status = lcomm_recv(comm, values, CHANNEL_COUNT, LCOMM_FLOAT32, 0);
  } else if (lcomm_rank(comm) == 0 &&
             lcomm_channel_create(comm, 2, CHANNEL_COUNT, &channel) == LCOMM_OK) {
    mine->status = lcomm_channel_send(channel, values);
  }
  keep_sentence(mine, comm);
  return channel;
}

static void a_channel_keeps_what_waits_in_it(const crew *c, int rank, report *mine) {
  static float values[CHANNEL_COUNT], before[CHANNEL_COUNT], after[CHANNEL_COUNT];
  lcomm_comm *comm = create_elastic(c, rank, "pipe=int4+ef min=4K", mine), *next = NULL;
  lcomm_channel *channel = comm ? use_channel(comm, values, mine) : NULL;
  if (!comm || mine->status != LCOMM_OK) {
    return;
  }
  bool waits = !channel || lcomm_channel_get(channel, before) == LCOMM_OK;
  (void)lcomm_barrier(comm); /* the receiver has all, and may learn of the failure */
  fail_as_if_lost(comm, mine);
  mine->status = lcomm_shrink(comm, &next);
  keep_sentence(mine, comm);
  waits = waits && (!channel || (lcomm_channel_get(channel, after) == LCOMM_OK &&
                                 memcmp(before, after, sizeof(before)) == 0 && after[1] != 0));
  lcomm_destroy(comm);
  expect_work(next, c->size, 2, mine);
  mine->good = mine->good && waits;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(half_of_the_ranks_do_not_go_on_without_the_lowest),
    CREW_TEST(fail_without_elastic, 2),
    CREW_TEST(only_a_lost_rank_is_a_reason, 2),
    cmocka_unit_test(all_ranks_must_want_to_go_on),
    cmocka_unit_test(what_does_not_wait_for_all_ranks_is_refused),
    CREW_TEST(nothing_is_left_of_those_before, 3),
    cmocka_unit_test(nothing_is_left_of_large_sums),
    CREW_TEST(a_channel_keeps_what_waits_in_it, 3),
};
RUN_TESTS(tests)
