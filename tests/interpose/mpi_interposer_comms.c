/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Communicators with the interposer are the program's: what MPI promises of copies, parts
 * and their end holds, and calls on several of them may be mixed. */

#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_probe.h"

enum { MANY = 30000, COMMS = 4 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=int8 min=64K");
}

/* ------------------------------------------------------------ what MPI says */

static void copies_are_congruent(void) {
  MPI_Comm dup = MPI_COMM_NULL;
  int how = MPI_UNEQUAL, rank = -1;
  MPI_Comm_dup(MPI_COMM_WORLD, &dup);
  MPI_Comm_compare(dup, MPI_COMM_WORLD, &how);
  require(how == MPI_CONGRUENT, "a copy is congruent, not %d", how);
  MPI_Comm_rank(dup, &rank);
  require(rank == mpi_rank, "rank %d in the copy", rank);
  MPI_Comm_free(&dup);
  require(dup == MPI_COMM_NULL, "a freed communicator is null");
}

static void who_takes_no_part_gets_none(void) {
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Comm_split(MPI_COMM_WORLD, MPI_UNDEFINED, 0, &comm);
  require(comm == MPI_COMM_NULL, "MPI_UNDEFINED gives none");
  MPI_Comm_create(MPI_COMM_WORLD, MPI_GROUP_EMPTY, &comm);
  require(comm == MPI_COMM_NULL, "an empty group gives none");
}

static int copied, deleted;

static int count_copy(MPI_Comm comm, int keyval, void *extra, void *in, void *out, int *flag) {
  (void)comm;
  (void)keyval;
  (void)extra;
  *(void **)out = in;
  *flag = 1;
  copied++;
  return MPI_SUCCESS;
}

static int count_delete(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)value;
  (void)extra;
  deleted++;
  return MPI_SUCCESS;
}

static void attributes_of_the_program_go_with_it(void) {
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;
  int keyval, found = 0, mine = 42;
  void *value = NULL;
  copied = deleted = 0;
  MPI_Comm_create_keyval(count_copy, count_delete, &keyval, NULL);
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_set_attr(first, keyval, &mine);
  MPI_Comm_dup(first, &second);
  MPI_Comm_get_attr(second, keyval, &value, &found);
  require(found && value == &mine && copied == 1, "copied %d times", copied);
  require(sum_is_compressed(second, MANY) == compresses(second), "the copy sums");
  MPI_Comm_free(&first);
  require(deleted == 1, "deleted %d times with the first", deleted);
  MPI_Comm_free(&second);
  require(deleted == 2, "deleted %d times with both", deleted);
  MPI_Comm_free_keyval(&keyval);
}

static int errors;

static void count_error(MPI_Comm *comm, int *code, ...) {
  (void)comm;
  (void)code;
  errors++;
}

static void error_handlers_are_inherited(void) {
  MPI_Comm first = MPI_COMM_NULL, second = MPI_COMM_NULL;
  MPI_Errhandler handler;
  errors = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, &first);
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_set_errhandler(first, handler);
  MPI_Comm_dup(first, &second);
  MPI_Comm_call_errhandler(second, MPI_ERR_OTHER);
  require(errors == 1, "the handler was called %d times", errors);
  MPI_Errhandler_free(&handler);
  MPI_Comm_free(&first);
  MPI_Comm_free(&second);
}

/* -------------------------------------------------------------- their lives */

/* Also by a function that nobody saw. */
static void communicators_are_known_however_they_were_made(void) {
  MPI_Comm comm = MPI_COMM_NULL, copy = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  require(sum_is_compressed(comm, MANY) == compresses(comm), "a copy");
  MPI_Comm_dup(comm, &copy);
  require(sum_is_compressed(copy, MANY) == compresses(copy), "a copy of it");
  MPI_Comm_free(&comm);
  require(sum_is_compressed(copy, MANY) == compresses(copy), "also after it was freed");
  MPI_Comm_free(&copy);
}

static void communicators_end_in_any_order(void) {
  MPI_Comm comms[INTERPOSER_COMM_KINDS];
  for (int i = 0; i < INTERPOSER_COMM_KINDS; i++) {
    comms[i] = interposer_comm_kinds[i].make();
  }
  for (int round = 0; round < 2; round++) {
    for (int i = round; i < INTERPOSER_COMM_KINDS; i += 2) {
      if (comms[i] != MPI_COMM_NULL && !interposer_comm_is_inter(comms[i])) {
        require(sum_is_compressed(comms[i], MANY) == compresses(comms[i]), "%s",
                interposer_comm_kinds[i].name);
      }
      interposer_comm_free(&comms[i]);
    }
  }
  require(sum_is_compressed(MPI_COMM_WORLD, MANY) == compresses(MPI_COMM_WORLD), "the world");
}

static void start_sum(MPI_Comm comm, float *values, uint64_t seed, MPI_Request *request) {
  fill_probe(values, MANY, seed + (uint64_t)mpi_rank);
  MPI_Iallreduce(MPI_IN_PLACE, values, MANY, MPI_FLOAT, MPI_SUM, comm, request);
}

static void expect_sum(MPI_Comm comm, float *values, uint64_t seed) {
  fill_probe(values, MANY, seed + (uint64_t)mpi_rank);
  MPI_Allreduce(MPI_IN_PLACE, values, MANY, MPI_FLOAT, MPI_SUM, comm);
}

static void freed_with_a_sum_in_flight_it_still_ends(void) {
  static float values[MANY], expected[MANY];
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request;
  if (!compresses(MPI_COMM_WORLD)) {
    skip_property("Open MPI 4.1 itself does not survive it");
    return;
  }
  expect_sum(MPI_COMM_WORLD, expected, 5);
  for (int i = 0; i < 3; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    start_sum(comm, values, 5, &request);
    MPI_Comm_free(&comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    require(memcmp(values, expected, sizeof(values)) == 0, "sum %d is another one", i);
  }
}

static void disconnecting_ends_it(void) {
  static float values[MANY], expected[MANY];
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request request;
  expect_sum(MPI_COMM_WORLD, expected, 6);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  start_sum(comm, values, 6, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Comm_disconnect(&comm);
  require(comm == MPI_COMM_NULL, "it is null");
  require(memcmp(values, expected, sizeof(values)) == 0, "the sum is another one");
}

/* MPI allows that ranks start operations on different communicators in another order. */
static void sums_on_several_start_in_any_order(void) {
  static float values[COMMS][MANY], expected[MANY];
  MPI_Comm comms[COMMS];
  MPI_Request requests[COMMS];
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < COMMS; i++) {
      int at = (i * (mpi_rank % 2 ? 1 : COMMS - 1) + mpi_rank) % COMMS;
      start_sum(comms[at], values[at], (uint64_t)at, &requests[at]);
    }
    MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < COMMS; i++) {
      expect_sum(MPI_COMM_WORLD, expected, (uint64_t)i);
      require(memcmp(values[i], expected, sizeof(expected)) == 0, "sum %d is another one", i);
    }
  }
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_free(&comms[i]);
  }
}

/* Parts do not wait for each other. */
static void parts_make_as_many_sums_as_they_like(void) {
  static float values[MANY], whole[MANY];
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Request request;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank % 2, 0, &part);
  for (int i = 0; i < 1 + 2 * (mpi_rank % 2); i++) {
    expect_sum(part, values, 7);
    require(same_on(part, values, sizeof(values)), "the part's ranks differ");
  }
  start_sum(MPI_COMM_WORLD, whole, 8, &request);
  expect_sum(part, values, 7);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect_sum(MPI_COMM_WORLD, values, 8);
  require(memcmp(values, whole, sizeof(whole)) == 0, "the whole's sum is another one");
  MPI_Comm_free(&part);
}

static const mpi_property properties[] = {
    PROPERTY(copies_are_congruent),
    PROPERTY(who_takes_no_part_gets_none),
    PROPERTY(attributes_of_the_program_go_with_it),
    PROPERTY(error_handlers_are_inherited),
    PROPERTY(communicators_are_known_however_they_were_made),
    PROPERTY(communicators_end_in_any_order),
    PROPERTY(freed_with_a_sum_in_flight_it_still_ends),
    PROPERTY(disconnecting_ends_it),
    PROPERTY(sums_on_several_start_in_any_order),
    PROPERTY(parts_make_as_many_sums_as_they_like),
};
RUN_INTERPOSER_PROPERTIES(before, properties)
