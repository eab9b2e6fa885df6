/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Communicators are freed by each rank when it likes: in any order, by any thread, long before
 * the others, with sums in flight, in callbacks of attributes, at the end of MPI, or never. */

#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/interpose/interposer_sums.h"

enum { COUNT = 3000, THREE = 3, ORDERS = 6, TAG = 7, THREADS = 3 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

static MPI_Comm copy_of_world(void) {
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  return comm;
}

static void sum_on(MPI_Comm comm, int seed) {
  sum_call call = new_call(COUNT, seed);
  MPI_Allreduce(call.send, call.receive, COUNT, MPI_FLOAT, MPI_SUM, comm);
  end(&call, "a sum");
}

/* Of the communicator's own ranks. */
static void sum_of_ones(MPI_Comm comm) {
  static float ones[COUNT], sum[COUNT];
  int size = 0;
  MPI_Comm_size(comm, &size);
  for (int i = 0; i < COUNT; i++) {
    ones[i] = 1;
  }
  MPI_Allreduce(ones, sum, COUNT, MPI_FLOAT, MPI_SUM, comm);
  require(sum[0] == (float)size && sum[COUNT - 1] == (float)size, "a sum is %g of %d ranks",
          (double)sum[0], size);
}

/* Every rank after the one before it. */
static void pass_on(void) {
  if (mpi_rank + 1 < mpi_size) {
    MPI_Send(NULL, 0, MPI_BYTE, mpi_rank + 1, TAG, MPI_COMM_WORLD);
  }
}

static void await_turn(void) {
  if (mpi_rank > 0) {
    MPI_Recv(NULL, 0, MPI_BYTE, mpi_rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* ------------------------------------------------------------------- orders */

static void one_frees_before_a_barrier_and_the_others_after(void) {
  for (int with_sum = 0; with_sum < 2; with_sum++) {
    MPI_Comm comm = copy_of_world();
    if (with_sum) {
      sum_on(comm, 1);
    }
    if (mpi_rank == 0) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Comm_free(&comm);
    } else {
      MPI_Comm_free(&comm);
      MPI_Barrier(MPI_COMM_WORLD);
    }
  }
}

static void each_frees_long_before_the_next(void) {
  MPI_Comm comm = copy_of_world();
  sum_on(comm, 2);
  await_turn();
  MPI_Comm_free(&comm);
  pass_on();
  sum_on(MPI_COMM_WORLD, 3);
}

static void pairs_free_in_a_circle(void) {
  MPI_Comm own = MPI_COMM_NULL, previous = MPI_COMM_NULL;
  for (int i = 0; i < mpi_size; i++) {
    MPI_Comm part = MPI_COMM_NULL;
    bool inside = mpi_rank == i || mpi_rank == (i + 1) % mpi_size;
    MPI_Comm_split(MPI_COMM_WORLD, inside ? 0 : MPI_UNDEFINED, 0, &part);
    if (part != MPI_COMM_NULL) {
      sum_of_ones(part);
      *(mpi_rank == i ? &own : &previous) = part;
    }
  }
  MPI_Comm_free(&own);
  if (previous != MPI_COMM_NULL) {
    MPI_Comm_free(&previous);
  }
  sum_on(MPI_COMM_WORLD, 4);
}

static const int orders[ORDERS][THREE] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

static void each_rank_frees_in_an_order_of_its_own(void) {
  for (int round = 0; round < ORDERS; round++) {
    MPI_Comm comms[THREE];
    for (int i = 0; i < THREE; i++) {
      comms[i] = copy_of_world();
      sum_on(comms[i], i);
    }
    for (int i = 0; i < THREE; i++) {
      MPI_Comm_free(&comms[orders[(round * (mpi_rank + 1) + mpi_rank) % ORDERS][i]]);
    }
  }
  sum_on(MPI_COMM_WORLD, 5);
}

/* ------------------------------------------------------------ sums in flight */

static bool takes_sums(void) {
  if (interposer_is_on() && mpi_size > 1) {
    return true;
  }
  skip_property("Open MPI 4.1 itself does not survive it");
  return false;
}

static void freed_with_sums_in_flight_they_end(void) {
  enum { SUMS = 3 };
  for (int summed_before = 0; summed_before < 2; summed_before++) {
    MPI_Comm comm = copy_of_world();
    MPI_Request requests[SUMS];
    sum_call calls[SUMS];
    if (summed_before) {
      sum_on(comm, 6);
    }
    for (int i = 0; i < SUMS; i++) {
      calls[i] = new_call(COUNT, i);
      start(&calls[i], comm, &requests[i]);
    }
    MPI_Comm_free(&comm);
    MPI_Waitall(SUMS, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < SUMS; i++) {
      end(&calls[i], "freed meanwhile");
    }
  }
}

static void disconnecting_waits_for_sums_in_flight(void) {
  MPI_Comm comm = copy_of_world();
  MPI_Request request;
  sum_call call = new_call(COUNT, 13);
  start(&call, comm, &request);
  MPI_Comm_disconnect(&comm);
  require(comm == MPI_COMM_NULL, "it is not null");
  check(&call, "disconnected");
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&call, "disconnected and waited for");
}

/* Nobody else has begun the sum when rank 0 has freed the communicator. */
static void freed_before_the_others_begin_a_sum_it_ends(void) {
  MPI_Comm comm = copy_of_world();
  MPI_Request request;
  sum_call call = new_call(COUNT, 7);
  sum_on(comm, 8);
  await_turn();
  start(&call, comm, &request);
  MPI_Comm_free(&comm);
  pass_on();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&call, "freed early");
}

/* ---------------------------------------------------------------- attributes */

static int free_another(MPI_Comm comm, int keyval, void *value, void *extra) {
  (void)comm;
  (void)keyval;
  (void)extra;
  MPI_Comm_free(value);
  return MPI_SUCCESS;
}

static void attach(MPI_Comm comm, MPI_Comm *other) {
  int keyval = MPI_KEYVAL_INVALID;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_another, &keyval, NULL);
  MPI_Comm_set_attr(comm, keyval, other);
  MPI_Comm_free_keyval(&keyval);
}

static void freed_by_the_attribute_of_another(void) {
  MPI_Comm first = copy_of_world(), second = copy_of_world();
  attach(first, &second);
  sum_on(first, 9);
  sum_on(second, 10);
  MPI_Comm_free(&first);
  require(second == MPI_COMM_NULL, "the second is not freed");
  sum_on(MPI_COMM_WORLD, 11);
}

/* ------------------------------------------------------------------- threads */

static MPI_Comm bases[THREADS];
static int wrong[THREADS];

static void *dup_sum_and_free(void *place) {
  int number = *(int *)place;
  float ones[COUNT], sum[COUNT];
  for (int i = 0; i < COUNT; i++) {
    ones[i] = 1;
  }
  for (int round = 0; round < 12; round++) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(bases[number], &comm);
    MPI_Allreduce(ones, sum, COUNT, MPI_FLOAT, MPI_SUM, comm);
    wrong[number] += sum[0] != (float)mpi_size || sum[COUNT - 1] != (float)mpi_size;
    if (round % 4) { /* the others are left to the end of MPI */
      MPI_Comm_free(&comm);
    }
  }
  return NULL;
}

static void threads_make_and_free_their_own(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    bases[i] = copy_of_world();
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_create(&threads[i], NULL, dup_sum_and_free, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    require(wrong[i] == 0, "%d sums of a thread are wrong", wrong[i]);
    MPI_Comm_free(&bases[i]);
  }
}

/* ------------------------------------------------------------ the end of MPI */

/* These are the last: the program ends well, or it hangs. */
static void never_freed_or_freed_at_the_end(void) {
  static MPI_Comm at_the_end;
  at_the_end = copy_of_world();
  attach(MPI_COMM_SELF, &at_the_end);
  sum_on(at_the_end, 12);
  for (int i = 0; i < THREE; i++) {
    MPI_Comm never = copy_of_world();
    sum_on(never, i);
  }
}

static const mpi_property properties[] = {
    PROPERTY(one_frees_before_a_barrier_and_the_others_after),
    PROPERTY(each_frees_long_before_the_next),
    PROPERTY(pairs_free_in_a_circle),
    PROPERTY(each_rank_frees_in_an_order_of_its_own),
    PROPERTY_WHERE(takes_sums, freed_with_sums_in_flight_they_end),
    PROPERTY_WHERE(takes_sums, freed_before_the_others_begin_a_sum_it_ends),
    PROPERTY_WHERE(takes_sums, disconnecting_waits_for_sums_in_flight),
    PROPERTY(freed_by_the_attribute_of_another),
    PROPERTY(threads_make_and_free_their_own),
    PROPERTY(never_freed_or_freed_at_the_end),
};
RUN_INTERPOSER_PROPERTIES_THREADS(before, MPI_THREAD_MULTIPLE, properties)
