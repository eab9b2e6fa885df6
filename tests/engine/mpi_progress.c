/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* The progress thread: operations and buckets move while the program does
 * something else, in any order of waiting. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "libcomm/tensor/bucket.h"
#include "tests/engine/progress_model.h"

/* ------------------------------------------------- while others are asleep */

/* Only rank 0 waits; the others make no call that moves anything. */
static void an_operation_ends_while_the_program_does_other_things(void) {
  enum { COUNT = 700001 }; /* several chunks */
  static float values[COUNT];
  for (int t = 0; t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=int8 node=bf16 min=1", transports[t], 20);
    lcomm_request request = {0};
    int done = 0;
    if (!comm) {
      continue;
    }
    fill_gradient(values, COUNT, (uint64_t)mpi_rank);
    require_fine(comm,
                 lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_AVG, &request));
    if (mpi_rank == 0) {
      require_fine(comm, lcomm_wait(comm, &request));
    }
    require(await_operations(comm, 1), "over %s: it does not end by itself", transports[t]);
    MPI_Barrier(MPI_COMM_WORLD);
    require_fine(comm, lcomm_test(comm, &request, &done));
    require(done == 1, "over %s: an operation that was over is not", transports[t]);
    require(same_everywhere(values, sizeof(values)), "over %s: the ranks differ", transports[t]);
    require_fine(NULL, lcomm_destroy(comm));
  }
}

static void report_ready(const model *m, int tensor) {
  require_fine(m->comm, lcomm_tensor_ready(m->comm, m->tensors[tensor]));
}

static void buckets_start_and_end_during_a_computation(void) {
  for (int t = 0; t < transport_count(); t++) {
    model m;
    if (!make_model(&m, "net=none min=1 bucket=64K", transports[t], LCOMM_PROGRESS_THREAD)) {
      continue;
    }
    for (int step = 0; step < 4; step++) {
      lcomm_stats before;
      fill_model(&m, step);
      lcomm_stats_get(m.comm, &before);
      for (int i = 0; i < TENSORS; i++) {
        report_ready(&m, i);
      }
      /* The first step starts in the wait, where the tensors are compared. */
      require(step == 0 ||
                  await_operations(m.comm, before.operations + m.comm->tensors->bucket_count),
              "over %s, step %d: the buckets do not end by themselves", transports[t], step);
      MPI_Barrier(MPI_COMM_WORLD);
      require_fine(m.comm, lcomm_tensors_wait(m.comm));
      check_model(&m);
    }
    free_model(&m);
  }
}

/* -------------------------------------------------------- many, in disorder */

static void many_mixed_operations_are_waited_for_in_another_order(void) {
  for (int t = 0; t < transport_count(); t++) {
    for (int mode = LCOMM_PROGRESS_CALLS; mode <= LCOMM_PROGRESS_THREAD; mode++) {
      flier f = {.rounds = 2};
      f.comm = make_mode("net=none", transports[t], (lcomm_progress_mode)mode, 20);
      if (f.comm) {
        fly(&f);
        require(!f.why[0], "over %s, mode %d: %s", transports[t], mode, f.why);
        require_fine(NULL, lcomm_destroy(f.comm));
      }
    }
  }
}

static void *report_half(void *argument) {
  const model *m = argument;
  for (int i = 1; i < TENSORS; i += 2) {
    lcomm_tensor_ready(m->comm, m->tensors[(i + 2 * (mpi_rank + m->step)) % TENSORS]);
    usleep((useconds_t)(50 * mpi_rank));
  }
  return NULL;
}

/* Two threads, and another order on every rank and in every step. */
static void report_from_threads(model *m) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, report_half, m) != 0) {
    report_half(m);
    return;
  }
  for (int i = TENSORS; i > 0; i -= 2) {
    report_ready(m, (i + 2 * (mpi_rank + m->step)) % TENSORS);
  }
  pthread_join(thread, NULL);
}

static uint64_t hash_model(const model *m) {
  uint64_t hash = 0;
  for (int i = 0; i < TENSORS; i++) {
    hash = XXH3_64bits_withSeed(m->data[i], tensor_sizes[i] * sizeof(float), hash);
  }
  return hash;
}

static void tensors_that_are_ready_in_different_orders_give_the_same_bits(void) {
  uint64_t first = 0;
  for (int t = 0; t < transport_count(); t++) {
    for (int mode = LCOMM_PROGRESS_CALLS; mode <= LCOMM_PROGRESS_THREAD; mode++) {
      model m;
      if (!make_model(&m, "net=topk:0.05+ef min=1 bucket=64K", transports[t],
                      (lcomm_progress_mode)mode)) {
        continue;
      }
      for (int step = 0; step < 6; step++) {
        fill_model(&m, step);
        report_from_threads(&m);
        require_fine(m.comm, lcomm_tensors_wait(m.comm));
      }
      first = first ? first : hash_model(&m);
      require(hash_model(&m) == first, "over %s, mode %d: other bits", transports[t], mode);
      require(equal_everywhere((int64_t)first), "over %s: the ranks differ", transports[t]);
      free_model(&m);
    }
  }
}

/* Ranks come to the plain call with different buckets in flight. */
static void plain_calls_during_a_step_do_not_meet_its_buckets(void) {
  for (int t = 0; t < transport_count(); t++) {
    model m;
    if (!make_model(&m, "net=none min=1 bucket=64K", transports[t], LCOMM_PROGRESS_THREAD)) {
      continue;
    }
    for (int step = 0; step < 10; step++) {
      float loss = (float)mpi_rank, wanted = (float)(mpi_size * (mpi_size - 1)) / 2;
      fill_model(&m, step);
      for (int i = 0; i < TENSORS; i++) {
        report_ready(&m, i);
        usleep((useconds_t)(200 * ((mpi_rank + step) % 3)));
      }
      require_fine(m.comm, lcomm_allreduce(m.comm, &loss, &loss, 1, LCOMM_FLOAT32, LCOMM_SUM));
      require(loss == wanted, "over %s: %g, not %g", transports[t], loss, wanted);
      require_fine(m.comm, lcomm_tensors_wait(m.comm));
      check_model(&m);
    }
    free_model(&m);
  }
}

/* ---------------------------------------------------- several communicators */

static void fly_two(const char *transport, lcomm_progress_mode mode) {
  flier fliers[2] = {{.rounds = 2}, {.rounds = 2}};
  pthread_t thread;
  for (int i = 0; i < 2; i++) {
    fliers[i].comm = make_mode(i == 0 ? "net=none" : "net=none algo=direct", transport, mode, 20);
    if (!fliers[i].comm) {
      lcomm_destroy(fliers[0].comm);
      return;
    }
  }
  if (pthread_create(&thread, NULL, fly, &fliers[1]) == 0) {
    fly(&fliers[0]);
    pthread_join(thread, NULL);
  }
  for (int i = 0; i < 2; i++) {
    require(!fliers[i].why[0], "over %s, mode %d: %s", transport, (int)mode, fliers[i].why);
    lcomm_destroy(fliers[i].comm);
  }
}

static void two_threads_drive_two_communicators(void) {
  if (mpi_threads < MPI_THREAD_MULTIPLE) {
    skip_property("this MPI gives no MPI_THREAD_MULTIPLE");
    return;
  }
  for (int t = 0; t < transport_count(); t++) {
    fly_two(transports[t], LCOMM_PROGRESS_CALLS);
    fly_two(transports[t], LCOMM_PROGRESS_THREAD);
  }
}

static void threads_end_with_their_communicators(void) {
  enum { TIMES = 50 };
  int before = 0;
  for (int i = 0; i < TIMES; i++) {
    float value = (float)i;
    lcomm_comm *comm = make_driven("net=none", "auto", 20);
    if (!comm) {
      return;
    }
    require_fine(comm, lcomm_allreduce(comm, &value, &value, 1, LCOMM_FLOAT32, LCOMM_SUM));
    require(value == (float)(i * mpi_size), "%g", value);
    require_fine(NULL, lcomm_destroy(comm));
    before = i == 0 ? count_threads() : before; /* MPI may have some of its own */
  }
  require(threads_fall_to(before), "%d threads became %d", before, count_threads());
}

static const mpi_property properties[] = {
    PROPERTY(an_operation_ends_while_the_program_does_other_things),
    PROPERTY(buckets_start_and_end_during_a_computation),
    PROPERTY(many_mixed_operations_are_waited_for_in_another_order),
    PROPERTY(tensors_that_are_ready_in_different_orders_give_the_same_bits),
    PROPERTY(plain_calls_during_a_step_do_not_meet_its_buckets),
    PROPERTY(two_threads_drive_two_communicators),
    PROPERTY(threads_end_with_their_communicators),
};
RUN_PROPERTIES(mpi_property_main_threads, properties)
