/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Elastic communicators of ranks that know their place by what srun sets. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 4 };

static bool has_token; /* LCOMM_TOKEN is set */

/* What a process of a job step finds. Others of the job are in other steps. */
static void set_srun(const crew *c, int rank, int size, const char *step) {
  set_launcher(c, rank);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  unsetenv("LOCAL_WORLD_SIZE");
  unsetenv("LCOMM_NODES");
  set_number("SLURM_PROCID", rank);
  set_number("SLURM_NTASKS", size);
  set_number("SLURM_STEP_NUM_NODES", 1);
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_STEP_ID", step, 1);
  if (has_token) {
    setenv("LCOMM_TOKEN", "of the job", 1);
  }
}

static lcomm_comm *create_by_srun(const crew *c, report *mine) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = c->timeout_s;
  mine->status = lcomm_create_env(&config, &comm);
  keep_sentence(mine, NULL);
  return comm;
}

static void go_on_under_srun(const crew *c, int rank, report *mine) {
  set_srun(c, rank, c->size, "0");
  lcomm_comm *comm = create_by_srun(c, mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return;
  }
  if (is_victim(rank)) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  expect_work(shrink_to_next(comm, mine), count_survivors(c), 1, mine);
}

static void the_others_go_on(void **state) {
  static const unsigned lost[] = {1 << 1, 1 << 0, 3 << 2};
  (void)state;
  for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++) {
    crew c = new_crew(RANKS, go_on_under_srun);
    victims = lost[i];
    run_survivors(&c, victims);
  }
}

/* ----------------------------------------------------------------- newcomers */

static atomic_int *is_lost; /* a rank */

static lcomm_comm *lose_and_admit(const crew *c, int rank, report *mine) {
  set_srun(c, rank, RANKS, "0");
  lcomm_comm *comm = create_by_srun(c, mine);
  if (!comm || !sums_up_or_fails(comm, mine)) {
    return NULL;
  }
  if (is_victim(rank)) {
    raise(SIGKILL);
  }
  sum_until_lost(comm, 1000, mine);
  comm = shrink_to_next(comm, mine);
  atomic_store(is_lost, 1);
  while (comm && lcomm_size(comm) < RANKS) {
    comm = regroup_to_next(comm, mine);
    sleep_ms(10);
  }
  return comm;
}

/* In a step of its own: `srun --overlap -n 1 program`. */
static lcomm_comm *come_by_srun(const crew *c, report *mine) {
  while (atomic_load(is_lost) == 0) {
    sleep_ms(5);
  }
  set_srun(c, 0, 1, "1");
  setenv("LCOMM_JOIN", "on", 1);
  lcomm_comm *comm = create_by_srun(c, mine);
  unsetenv("LCOMM_JOIN");
  return comm;
}

static void lose_a_rank_and_get_another(const crew *c, int member, report *mine) {
  lcomm_comm *comm = member < RANKS ? lose_and_admit(c, member, mine) : come_by_srun(c, mine);
  expect_work(comm, RANKS, 1, mine);
}

static void another_job_step_joins_with_the_token(void **state) {
  (void)state;
  is_lost = mmap(NULL, sizeof *is_lost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(is_lost != MAP_FAILED);
  crew c = new_crew(RANKS + 1, lose_a_rank_and_get_another);
  victims = 1 << 2;
  has_token = true;
  run_survivors(&c, victims);
  has_token = false;
  munmap(is_lost, sizeof *is_lost);
}

/* -------------------------------------------------------------------- no token */

/* Its job step is another one, so it is of another job, for all that is known. */
static void come_without_a_token(const crew *c, int member, report *mine) {
  if (member > 0) {
    atomic_store(is_lost, 1);
    mine->good = !come_by_srun(c, mine);
    atomic_store(is_lost, 2);
    return;
  }
  set_srun(c, 0, 1, "0");
  lcomm_comm *comm = create_by_srun(c, mine);
  while (comm && atomic_load(is_lost) < 2) {
    lcomm_changes changes = {0};
    (void)lcomm_changes_get(comm, &changes);
    (void)lcomm_barrier(comm);
    sleep_ms(5);
  }
  expect_work(comm, 1, 1, mine);
}

static void without_a_token_it_is_told_what_to_set(void **state) {
  (void)state;
  is_lost = mmap(NULL, sizeof *is_lost, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(is_lost != MAP_FAILED);
  has_token = false;
  crew c = new_crew(2, come_without_a_token);
  run_crew(&c);
  assert_true(c.reports[0].good && c.reports[1].good);
  assert_int_equal(c.reports[1].status, LCOMM_ERR_MISMATCH);
  assert_non_null(strstr(c.reports[1].sentence, "rank 0, which has it from SLURM_JOB_ID"));
  assert_non_null(strstr(c.reports[1].sentence, "LCOMM_TOKEN has to be the same on all ranks"));
  dismiss(&c);
  munmap(is_lost, sizeof *is_lost);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_others_go_on),
    cmocka_unit_test(another_job_step_joins_with_the_token),
    cmocka_unit_test(without_a_token_it_is_told_what_to_set),
};
RUN_TESTS(tests)
