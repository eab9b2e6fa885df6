/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A rank is killed, stopped or late, or a link breaks: every other rank ends with the
 * same sentence, which names the fault and nobody else. */

#include "tests/engine/faults.h"
#include "tests/support/unit_tests.h"

/* An eighth of it is for a rank to answer, which may be late on a busy machine. */
enum { PATIENCE_S = 6 };

/* ------------------------------------------------------------ one machine */

static void a_killed_rank_is_named(void **state) {
  (void)state;
  for (int seed = 0; seed < 6; seed++) {
    run_fault((fault_case){.ranks = 3 + seed,
                           .kind = FAULT_KILLED,
                           .culprit = seed % 3,
                           .transport = "shm",
                           .timeout_s = 30,
                           .seed = seed});
  }
}

/* Its pipes, sockets and shared memory stay open in the child. */
static void a_killed_rank_whose_child_lives_is_named(void **state) {
  (void)state;
  for (int seed = 0; seed < 3; seed++) {
    run_fault((fault_case){.ranks = 3 + seed,
                           .kind = FAULT_KILLED_PARENT,
                           .culprit = seed,
                           .transport = "shm",
                           .timeout_s = 30,
                           .seed = seed});
  }
}

static void a_stopped_rank_is_named(void **state) {
  (void)state;
  for (int seed = 0; seed < 6; seed += 2) {
    run_fault((fault_case){.ranks = 3 + seed,
                           .kind = FAULT_STOPPED,
                           .culprit = seed % 3,
                           .transport = "shm",
                           .timeout_s = PATIENCE_S,
                           .seed = 10 + seed});
  }
}

static void a_late_rank_is_named_and_learns_it(void **state) {
  (void)state;
  run_fault((fault_case){.ranks = 4,
                         .kind = FAULT_LATE,
                         .culprit = 1,
                         .transport = "shm",
                         .timeout_s = PATIENCE_S,
                         .seed = 20});
}

/* Its progress thread answers: the sentence says that the program is late. */
static void a_late_program_whose_thread_answers_is_named(void **state) {
  (void)state;
  run_fault((fault_case){.ranks = 4,
                         .kind = FAULT_LATE,
                         .culprit = 2,
                         .transport = "shm",
                         .timeout_s = PATIENCE_S,
                         .seed = 21,
                         .threaded = true,
                         .says = "answers, but its program"});
}

static void a_link_that_breaks_is_named_with_both_its_ends(void **state) {
  (void)state;
  for (int seed = 0; seed < 4; seed += 3) {
    run_fault((fault_case){.ranks = 3 + seed,
                           .kind = FAULT_LINK,
                           .culprit = seed % 3,
                           .other = 1 + seed % 2 + seed % 3,
                           .transport = "shm",
                           .timeout_s = PATIENCE_S,
                           .seed = 30 + seed,
                           .says = "do not hear each other"});
  }
}

/* ----------------------------------------------------------- between hosts */

static void a_killed_rank_of_another_host_is_named(void **state) {
  (void)state;
  for (int seed = 0; seed < 3; seed++) {
    run_fault((fault_case){.ranks = 4,
                           .per_host = 1 + seed % 2,
                           .kind = FAULT_KILLED,
                           .culprit = seed,
                           .transport = "auto",
                           .timeout_s = 30,
                           .seed = 40 + seed});
  }
}

/* Connections that the child inherits would stay open. */
static void a_killed_rank_of_another_host_whose_child_lives_is_named(void **state) {
  (void)state;
  for (int seed = 0; seed < 3; seed++) {
    run_fault((fault_case){.ranks = 3,
                           .per_host = 1,
                           .kind = FAULT_KILLED_PARENT,
                           .culprit = seed,
                           .transport = "ucx",
                           .timeout_s = 600,
                           .seed = 45 + seed});
  }
}

static void a_stopped_rank_of_another_host_is_named(void **state) {
  (void)state;
  for (int seed = 0; seed < 3; seed++) {
    run_fault((fault_case){.ranks = 4 + seed,
                           .per_host = 1 + seed % 2,
                           .kind = FAULT_STOPPED,
                           .culprit = 3,
                           .transport = "auto",
                           .timeout_s = PATIENCE_S,
                           .seed = 50 + seed});
  }
}

/* Both sides name it: the others do not hear it, and it hears nobody. */
static void a_host_that_is_cut_off_is_named_by_both_sides(void **state) {
  (void)state;
  run_fault((fault_case){.ranks = 6,
                         .per_host = 2,
                         .kind = FAULT_HOST,
                         .culprit = 2,
                         .transport = "auto",
                         .timeout_s = PATIENCE_S,
                         .seed = 60,
                         .says = "host host1"});
}

static void hosts_that_do_not_hear_each_other_are_both_named(void **state) {
  (void)state;
  run_fault((fault_case){.ranks = 4,
                         .per_host = 2,
                         .kind = FAULT_HOST,
                         .culprit = 2,
                         .transport = "auto",
                         .timeout_s = PATIENCE_S,
                         .seed = 61,
                         .says = "hosts host0 and host1 do not hear each other"});
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_killed_rank_is_named),
    cmocka_unit_test(a_killed_rank_whose_child_lives_is_named),
    cmocka_unit_test(a_stopped_rank_is_named),
    cmocka_unit_test(a_late_rank_is_named_and_learns_it),
    cmocka_unit_test(a_late_program_whose_thread_answers_is_named),
    cmocka_unit_test(a_link_that_breaks_is_named_with_both_its_ends),
    cmocka_unit_test(a_killed_rank_of_another_host_is_named),
    cmocka_unit_test(a_killed_rank_of_another_host_whose_child_lives_is_named),
    cmocka_unit_test(a_stopped_rank_of_another_host_is_named),
    cmocka_unit_test(a_host_that_is_cut_off_is_named_by_both_sides),
    cmocka_unit_test(hosts_that_do_not_hear_each_other_are_both_named),
};
RUN_TESTS(tests)
