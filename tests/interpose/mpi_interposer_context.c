/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Constructors are MPI's own, and cost nothing more; what libcomm needs is made in the first sum
 * that is chosen, for many communicators of the same ranks at a time, in any order and from any
 * thread. */

#include <pthread.h>
#include <stdio.h>

#include "tests/interpose/interposer_sums.h"
#include "tests/support/process_counts.h"

enum { COUNT = 3000, COMMS = 5, TAG = 9, THREADS = 4 };

static void before(void) {
  set_default("LCOMM_POLICY", "net=none min=0");
}

/* ------------------------------------------------------------------- nothing */

static void without_a_sum_nothing_is_opened(void) {
  MPI_Comm comms[30];
  int files = count_files(), threads = count_threads();
  for (int i = 0; i < 30; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  int more_files = count_files();
  require(files == more_files, "%d files are open, not %d", more_files, files);
  require(threads_fall_to(threads), "%d threads run, not %d", count_threads(), threads);
  for (int i = 0; i < 30; i++) {
    MPI_Comm_free(&comms[i]);
  }
}

/* -------------------------------------------------------------- the first sum */

static void sum_on_all(const MPI_Comm *comms, int first) {
  MPI_Request requests[COMMS];
  sum_call calls[COMMS];
  for (int i = 0; i < COMMS; i++) {
    int k = (i + first) % COMMS;
    calls[k] = new_call(COUNT + k, k);
    start(&calls[k], comms[k], &requests[k]);
  }
  MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < COMMS; i++) {
    end(&calls[i], "a first sum");
  }
}

static void first_sums_begin_in_another_order_on_each_rank(void) {
  MPI_Comm comms[COMMS];
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[i]);
  }
  sum_on_all(comms, mpi_rank);
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_free(&comms[i]);
  }
}

/* The same ranks, each the first of one. */
static void each_rank_is_the_first_of_one(void) {
  MPI_Comm comms[COMMS];
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_split(MPI_COMM_WORLD, 0, (mpi_rank + i) % mpi_size, &comms[i]);
  }
  sum_on_all(comms, mpi_rank);
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_free(&comms[i]);
  }
}

static void a_first_sum_that_does_not_block_waits_for_nobody(void) {
  MPI_Comm comm;
  MPI_Request request;
  sum_call call = new_call(COUNT, 1);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  if (mpi_rank > 0) {
    MPI_Recv(NULL, 0, MPI_BYTE, mpi_rank - 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  start(&call, comm, &request);
  if (mpi_rank + 1 < mpi_size) {
    MPI_Send(NULL, 0, MPI_BYTE, mpi_rank + 1, TAG, MPI_COMM_WORLD);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&call, "one after the other");
  MPI_Comm_free(&comm);
}

/* One begins before the other is made, on half of the ranks the other way round. */
static void a_first_sum_may_wait_while_another_is_made(void) {
  MPI_Comm comms[2];
  MPI_Request request;
  sum_call slow = new_call(COUNT, 2), fast = new_call(COUNT, 3);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  if (mpi_rank % 2) {
    start(&slow, comms[0], &request);
  }
  MPI_Allreduce(fast.send, fast.receive, COUNT, MPI_FLOAT, MPI_SUM, comms[1]);
  if (mpi_rank % 2 == 0) {
    start(&slow, comms[0], &request);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  end(&slow, "the slow one");
  end(&fast, "the fast one");
  MPI_Comm_free(&comms[0]);
  MPI_Comm_free(&comms[1]);
}

/* ------------------------------------------------------------------- overlap */

static void parts_are_made_while_sums_are_in_flight(void) {
  MPI_Request requests[COMMS];
  sum_call calls[COMMS];
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm part = MPI_COMM_NULL;
    float one = 1, sum = 0;
    int size = 0;
    calls[i] = new_call(COUNT, i);
    start(&calls[i], MPI_COMM_WORLD, &requests[i]);
    MPI_Comm_split(MPI_COMM_WORLD, mpi_rank % 2, mpi_rank, &part);
    MPI_Comm_size(part, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_FLOAT, MPI_SUM, part);
    require(sum == (float)size, "the part's sum is %g of %d", (double)sum, size);
    MPI_Comm_free(&part);
  }
  MPI_Waitall(COMMS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < COMMS; i++) {
    end(&calls[i], "the whole's");
  }
}

/* They are complete in another order than begun, and summed on at once. */
static void copies_that_do_not_block_overlap(void) {
  MPI_Comm bases[COMMS], copies[COMMS];
  MPI_Request requests[COMMS];
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_dup(MPI_COMM_WORLD, &bases[i]);
  }
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_idup(bases[i], &copies[i], &requests[i]);
  }
  for (int i = COMMS - 1; i >= 0; i--) {
    MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    MPI_Comm_free(&bases[i]);
  }
  sum_on_all(copies, mpi_rank);
  for (int i = 0; i < COMMS; i++) {
    MPI_Comm_free(&copies[i]);
  }
}

/* ------------------------------------------------------------------- threads */

static MPI_Group everyone;
static int wrong[THREADS];

static void *group_and_sum(void *place) {
  int number = *(int *)place;
  for (int round = 0; round < 10; round++) {
    MPI_Comm comm = MPI_COMM_NULL;
    float one[COUNT], sum[COUNT];
    for (int i = 0; i < COUNT; i++) {
      one[i] = 1;
    }
    MPI_Comm_create_group(MPI_COMM_WORLD, everyone, number, &comm);
    MPI_Allreduce(one, sum, COUNT, MPI_FLOAT, MPI_SUM, comm);
    wrong[number] += sum[COUNT - 1] != (float)mpi_size;
    MPI_Comm_free(&comm);
  }
  return NULL;
}

static void threads_group_the_same_ranks(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  MPI_Comm_group(MPI_COMM_WORLD, &everyone);
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, group_and_sum, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    require(wrong[i] == 0, "%d sums of a thread are wrong", wrong[i]);
  }
  MPI_Group_free(&everyone);
}

static const mpi_property properties[] = {
    PROPERTY(without_a_sum_nothing_is_opened),
    PROPERTY(first_sums_begin_in_another_order_on_each_rank),
    PROPERTY(each_rank_is_the_first_of_one),
    PROPERTY(a_first_sum_that_does_not_block_waits_for_nobody),
    PROPERTY(a_first_sum_may_wait_while_another_is_made),
    PROPERTY(parts_are_made_while_sums_are_in_flight),
    PROPERTY(copies_that_do_not_block_overlap),
    PROPERTY(threads_group_the_same_ranks),
};
RUN_INTERPOSER_PROPERTIES_THREADS(before, MPI_THREAD_MULTIPLE, properties)
