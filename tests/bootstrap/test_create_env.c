/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_create_env and lcomm_create among processes that know nothing of MPI. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libcomm/base/env.h"
#include "libcomm/include/libcomm.h"
#include "tests/bootstrap/crew.h"
#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"

static void set_number(const char *name, int number) {
  char text[16];
  snprintf(text, sizeof(text), "%d", number);
  setenv(name, text, 1);
}

/* What torchrun sets. */
static void set_launcher(const crew *c, int rank) {
  for (int i = 0; i < LCOMM_LAUNCHER_COUNT; i++) {
    unsetenv(lcomm_launcher_table[i].variable);
  }
  set_number("RANK", rank);
  set_number("WORLD_SIZE", c->size);
  set_number("LOCAL_WORLD_SIZE", c->size);
  set_number("MASTER_PORT", c->place.port);
  setenv("LCOMM_TRANSPORT", "shm", 1);
}

static void keep_sentence(report *mine, const lcomm_comm *comm) {
  snprintf(mine->sentence, sizeof(mine->sentence), "%s", lcomm_last_error(comm));
}

/* The sum of all ranks' numbers is what it should be. */
static bool sums_up(lcomm_comm *comm) {
  float values[1000], expected = 0;
  int size = lcomm_size(comm), rank = lcomm_rank(comm);
  for (int i = 0; i < 1000; i++) {
    values[i] = (float)(rank + 1);
  }
  for (int i = 1; i <= size; i++) {
    expected += (float)i;
  }
  if (lcomm_allreduce(comm, values, values, 1000, LCOMM_FLOAT32, LCOMM_SUM) != LCOMM_OK) {
    return false;
  }
  for (int i = 0; i < 1000; i++) {
    if (values[i] != expected) {
      return false;
    }
  }
  return true;
}

static void create_and_sum(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = c->timeout_s;
  set_launcher(c, rank);
  mine->status = lcomm_create_env(&config, &comm);
  if (mine->status != LCOMM_OK) {
    keep_sentence(mine, NULL);
    return;
  }
  mine->good = lcomm_rank(comm) == rank && lcomm_size(comm) == c->size && lcomm_nodes(comm) == 1 &&
               sums_up(comm) && call_in(c) < 0;
  keep_sentence(mine, comm);
  mine->status = lcomm_destroy(comm);
}

static void ranks_without_mpi_become_a_communicator(void **state) {
  (void)state;
  static const int sizes[] = {1, 2, 4};
  for (size_t i = 0; i < 3; i++) {
    crew c = new_crew(sizes[i], create_and_sum);
    run_well(&c);
  }
}

/* Two communicators at one port, the second while the first is in use. */
static void communicators_are_made_one_after_the_other(const crew *c, int rank, report *mine) {
  lcomm_comm *first = NULL, *second = NULL;
  set_launcher(c, rank);
  mine->status = lcomm_create_env(NULL, &first);
  mine->status = mine->status == LCOMM_OK ? lcomm_create_env(NULL, &second) : mine->status;
  keep_sentence(mine, NULL);
  mine->good = mine->status == LCOMM_OK && sums_up(second) && sums_up(first);
  lcomm_destroy(first);
  mine->good = mine->good && sums_up(second);
  lcomm_destroy(second);
}

static void process_without_a_launcher_is_a_world_of_one(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL;
  set_launcher(c, rank);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  mine->status = lcomm_create_env(NULL, &comm);
  keep_sentence(mine, NULL);
  mine->good = mine->status == LCOMM_OK && lcomm_size(comm) == 1 && sums_up(comm);
  lcomm_destroy(comm);
}

/* ---------------------------------------------------------------- failures */

static void differ_in_policy(const crew *c, int rank, report *mine) {
  setenv("LCOMM_POLICY", rank == 1 ? "net=bf16" : "net=int8", 1);
  create_and_sum(c, rank, mine);
}

static void what_differs_is_said_on_all_ranks(void **state) {
  (void)state;
  crew c = new_crew(3, differ_in_policy);
  run_ill(&c, -1, LCOMM_ERR_MISMATCH, "that of rank 1");
}

static void set_a_bad_time(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL;
  set_launcher(c, rank);
  setenv("LCOMM_TIMEOUT_S", rank == 1 ? "soon" : "30", 1);
  mine->status = lcomm_create_env(NULL, &comm);
  keep_sentence(mine, NULL);
  lcomm_destroy(comm);
}

static void bad_time_out_of_one_rank_is_said_on_all(void **state) {
  (void)state;
  crew c = new_crew(2, set_a_bad_time);
  run_ill(&c, -1, LCOMM_ERR_ARGUMENT, "LCOMM_TIMEOUT_S=soon");
}

static void missing_rank_is_named(void **state) {
  (void)state;
  crew c = new_crew(3, create_and_sum);
  c.timeout_s = 4;
  run_pair(&c, 0, 1);
  expect_failure(&c.reports[0], LCOMM_ERR_TIMEOUT, "within 4 s: 2.");
  expect_failure(&c.reports[1], LCOMM_ERR_TIMEOUT, "within 4 s: 2.");
  dismiss(&c);
}

/* A rank that dies between the meeting and the communicator: it meets by
 * itself and goes. */
static void die_in_between(const crew *c, int rank, report *mine) {
  if (rank != 2) {
    create_and_sum(c, rank, mine);
    return;
  }
  crew other = *c;
  memset(other.place.token, 0, sizeof(other.place.token));
  lcomm_store *store = meet(&other, rank, mine);
  (void)store;
  raise(SIGKILL);
}

static void rank_that_dies_meanwhile_is_named(void **state) {
  (void)state;
  crew c = new_crew(3, die_in_between);
  run_ill(&c, 2, LCOMM_ERR_TRANSPORT, "rank 2 (host ");
}

/* ------------------------------------------------------- file descriptors */

/* Two more than its soft limit allows. */
static void soft_limit_of_open_files_is_raised(const crew *c, int rank, report *mine) {
  struct rlimit limit;
  bool low = leave_files(2, false);
  create_and_sum(c, rank, mine);
  getrlimit(RLIMIT_NOFILE, &limit);
  mine->good = mine->good && low && limit.rlim_cur == limit.rlim_max;
}

static int files_left;

static void create_with_few_files(const crew *c, int rank, report *mine) {
  if (rank != 1 || leave_files(files_left, true)) {
    create_and_sum(c, rank, mine);
  }
}

/* Enough for rank 1 to meet the others, not for its links to them. */
static void too_few_files_are_said_on_all_ranks(void **state) {
  (void)state;
  for (files_left = 6; files_left < 16; files_left += 3) {
    crew c = new_crew(4, create_with_few_files);
    run_crew(&c);
    for (int rank = 0; rank < c.size; rank++) {
      expect_failure(&c.reports[rank], LCOMM_ERR_SYSTEM, "rank 1 (host ");
      expect_failure(&c.reports[rank], LCOMM_ERR_SYSTEM, "too few file descriptors");
      expect_failure(&c.reports[rank], LCOMM_ERR_SYSTEM, "`ulimit -n ");
    }
    dismiss(&c);
  }
}

static void bad_arguments_are_refused(void **state) {
  (void)state;
  lcomm_comm *comm = NULL;
  lcomm_bootstrap boot = {.rank = 0, .world_size = 2};
  assert_int_equal(lcomm_create_env(NULL, NULL), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_create(NULL, NULL, &comm), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_create(&boot, NULL, NULL), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_create(&boot, NULL, &comm), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_split(NULL, 0, 0, NULL, &comm), LCOMM_ERR_ARGUMENT);
  setenv("RANK", "one", 1);
  setenv("WORLD_SIZE", "2", 1);
  assert_int_equal(lcomm_create_env(NULL, &comm), LCOMM_ERR_ARGUMENT);
  assert_non_null(strstr(lcomm_last_error(NULL), "RANK=one"));
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  assert_null(comm);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_without_mpi_become_a_communicator),
    CREW_TEST(communicators_are_made_one_after_the_other, 3),
    CREW_TEST(process_without_a_launcher_is_a_world_of_one, 1),
    cmocka_unit_test(what_differs_is_said_on_all_ranks),
    cmocka_unit_test(bad_time_out_of_one_rank_is_said_on_all),
    cmocka_unit_test(missing_rank_is_named),
    cmocka_unit_test(rank_that_dies_meanwhile_is_named),
    CREW_TEST(soft_limit_of_open_files_is_raised, 4),
    cmocka_unit_test(too_few_files_are_said_on_all_ranks),
    cmocka_unit_test(bad_arguments_are_refused),
};
RUN_TESTS(tests)
