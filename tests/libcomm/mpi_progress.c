/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* The progress thread: operations and buckets move while the program does
 * something else, in any order of waiting, and trouble ends as without it. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/libcomm/progress.h"

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
    require_fine(comm, lcomm_destroy(comm));
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
      require(step == 0 || await_operations(m.comm, before.operations + m.comm->bucket_count),
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
        require_fine(f.comm, lcomm_destroy(f.comm));
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

/* Ranks come to the plain call with different buckets under way. */
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
    require_fine(comm, lcomm_destroy(comm));
    before = i == 0 ? count_threads() : before; /* MPI may have some of its own */
  }
  require(count_threads() == before, "%d threads became %d", before, count_threads());
}

/* ------------------------------------------------------------------ trouble */

/* The operation failed with `wanted` on every rank, and the sentence has `word`. */
static void require_failure(lcomm_comm *comm, lcomm_status got, lcomm_status wanted,
                            const char *word) {
  require(got == wanted, "%s instead of %s (%s)", lcomm_status_name(got), lcomm_status_name(wanted),
          lcomm_last_error(comm));
  require(strstr(lcomm_last_error(comm), word) != NULL, "no '%s' in: %s", word,
          lcomm_last_error(comm));
  require(equal_everywhere(got), "the ranks end with different errors");
  require(lcomm_destroy(comm) == wanted, "destroy forgot");
}

static void *abort_it(void *comm) {
  lcomm_abort(comm, "the disk is full");
  return NULL;
}

/* Rank 0 is in no call: its progress thread tells the others. */
static void an_abort_by_another_thread_ends_the_waits_of_all(void) {
  for (int t = 0; t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=none", transports[t], 30);
    lcomm_status status = LCOMM_OK;
    pthread_t thread;
    if (!comm) {
      continue;
    }
    if (mpi_rank != 0) {
      status = lcomm_barrier(comm);
    } else if (pthread_create(&thread, NULL, abort_it, comm) == 0) {
      pthread_join(thread, NULL);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
    require_failure(comm, status, LCOMM_ERR_ABORTED, "the disk is full");
  }
}

static bool alone(void) {
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
  }
  return mpi_size < 2;
}

static lcomm_status sum_some(lcomm_comm *comm) {
  static float values[1000];
  return lcomm_allreduce(comm, values, values, 1000, LCOMM_FLOAT32, LCOMM_SUM);
}

static void a_rank_that_never_comes_is_named(void) {
  char name[32];
  snprintf(name, sizeof(name), "rank %d", mpi_size - 1);
  for (int t = 0; !alone() && t < transport_count(); t++) {
    /* On one node everybody waits for that very rank. */
    lcomm_comm *comm = make_nodes(1, "net=none", transports[t], LCOMM_PROGRESS_THREAD, 0.5);
    lcomm_status status = LCOMM_OK;
    if (!comm) {
      continue;
    }
    if (mpi_rank < mpi_size - 1) {
      status = sum_some(comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    status = status == LCOMM_OK ? sum_some(comm) : status;
    require_failure(comm, status, LCOMM_ERR_TIMEOUT, name);
  }
}

static void different_calls_are_named_on_every_rank(void) {
  static float values[5000];
  for (int t = 0; !alone() && t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=none", transports[t], 30);
    lcomm_request request = {0};
    if (!comm) {
      continue;
    }
    uint64_t count = mpi_rank == 1 ? 5000 : 4999;
    lcomm_status status =
        lcomm_iallreduce(comm, values, values, count, LCOMM_FLOAT32, LCOMM_SUM, &request);
    MPI_Barrier(MPI_COMM_WORLD); /* the threads may have found out by now */
    status = status == LCOMM_OK ? lcomm_wait(comm, &request) : status;
    status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
    require_failure(comm, status, LCOMM_ERR_MISMATCH, "the same");
  }
}

/* The last rank joins only when rank 0 has gone. */
static void to_destroy_with_operations_in_flight_is_an_abort(void) {
  static float values[100000];
  for (int t = 0; !alone() && t < transport_count(); t++) {
    lcomm_comm *comm = make_driven("net=none", transports[t], 30);
    lcomm_request request = {0};
    lcomm_status status = LCOMM_OK;
    bool last = mpi_rank == mpi_size - 1;
    if (!comm) {
      continue;
    }
    if (!last) {
      status = lcomm_iallreduce(comm, values, values, 100000, LCOMM_FLOAT32, LCOMM_SUM, &request);
    }
    if (mpi_rank == 0) { /* a rank that begins later may have heard of it */
      status = lcomm_destroy(comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (last) {
      status = lcomm_allreduce(comm, values, values, 100000, LCOMM_FLOAT32, LCOMM_SUM);
    } else if (mpi_rank != 0 && status == LCOMM_OK) {
      status = lcomm_wait(comm, &request);
    }
    require(status == LCOMM_ERR_ABORTED, "over %s: %s", transports[t], lcomm_status_name(status));
    if (mpi_rank != 0) {
      require(lcomm_destroy(comm) == LCOMM_ERR_ABORTED, "destroy forgot");
    }
  }
}

static void the_mode_can_be_set_from_outside(void) {
  lcomm_comm *comm = NULL;
  setenv("LCOMM_PROGRESS", "thread", 1);
  comm = make_mode("net=none", "auto", LCOMM_PROGRESS_DEFAULT, 20);
  require(!comm || comm->driver, "LCOMM_PROGRESS=thread starts no thread");
  lcomm_destroy(comm);
  comm = make_mode("net=none", "auto", LCOMM_PROGRESS_CALLS, 20);
  require(comm && !comm->driver, "the program's own wish is ignored");
  lcomm_destroy(comm);
  setenv("LCOMM_PROGRESS", "often", 1);
  comm = NULL;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, NULL, &comm);
  require(status == LCOMM_ERR_ARGUMENT && strstr(lcomm_last_error(NULL), "often"), "%s",
          lcomm_last_error(NULL));
  unsetenv("LCOMM_PROGRESS");
}

#define PROPERTY(name)                                                                             \
  { #name, name }

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      PROPERTY(an_operation_ends_while_the_program_does_other_things),
      PROPERTY(buckets_start_and_end_during_a_computation),
      PROPERTY(many_mixed_operations_are_waited_for_in_another_order),
      PROPERTY(tensors_that_are_ready_in_different_orders_give_the_same_bits),
      PROPERTY(plain_calls_during_a_step_do_not_meet_its_buckets),
      PROPERTY(two_threads_drive_two_communicators),
      PROPERTY(threads_end_with_their_communicators),
      PROPERTY(an_abort_by_another_thread_ends_the_waits_of_all),
      PROPERTY(a_rank_that_never_comes_is_named),
      PROPERTY(different_calls_are_named_on_every_rank),
      PROPERTY(to_destroy_with_operations_in_flight_is_an_abort),
      PROPERTY(the_mode_can_be_set_from_outside),
  };
  return mpi_property_main_threads(&argc, &argv, properties,
                                   sizeof(properties) / sizeof(properties[0]));
}
