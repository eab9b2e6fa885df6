/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 8 */

/* What two servers and six workers send, and how long their steps take beside an all-reduce of the
 * workers, for tools/bench/async. Nothing is asserted of times. */

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "libcomm/base/clock.h"
#include "tests/tensor/tensor_model.h"

static const uint64_t sizes[TENSORS] = {30000, 30000, 30000, 30000};
static const char *const names[TENSORS] = {"a", "b", "c", "d"};

enum { SERVERS = 2, INT8_BLOCK = 128 };
static const char *const codec = "net=int8+ef min=1";

static int number_of(const char *variable, int standard) {
  const char *given = getenv(variable);
  return given ? atoi(given) : standard;
}

static int step_count(void) {
  return number_of("SERVERS_STEPS", 4);
}

/* Hosts are there, or posed. */
static int nodes_of(int ranks) {
  return getenv("CLUSTER_RATE") ? 0 : ranks;
}

/* `copies` of each tensor of the table. */
typedef struct many {
  lcomm_comm *comm;
  lcomm_tensor **tensors;
  float *data;
  int count;
} many;

static many make_many(MPI_Comm ranks, int size, const char *policy) {
  int copies = number_of("SERVERS_COPIES", 1);
  many m = {.comm = make_comm_over(ranks, policy, nodes_of(size)), .count = copies * TENSORS};
  m.tensors = calloc((size_t)m.count, sizeof(lcomm_tensor *));
  m.data = calloc((size_t)m.count * sizes[0], sizeof *m.data);
  for (int i = 0; i < m.count; i++) {
    char name[32];
    float *data = m.data + (size_t)i * sizes[0];
    snprintf(name, sizeof name, "%s%d", names[i % TENSORS], i / TENSORS);
    fill_gradient(data, sizes[0], (uint64_t)(1 + i + 1000 * mpi_rank));
    require(lcomm_tensor_add(m.comm, name, data, sizes[0], LCOMM_FLOAT32, LCOMM_AVG,
                             &m.tensors[i]) == LCOMM_OK,
            "%s", lcomm_last_error(m.comm));
  }
  return m;
}

static void free_many(many *m) {
  lcomm_destroy(m->comm);
  free(m->tensors);
  free(m->data);
}

static void step(const many *m) {
  for (int i = 0; i < m->count; i++) {
    require(lcomm_tensor_ready(m->comm, m->tensors[i]) == LCOMM_OK, "%s",
            lcomm_last_error(m->comm));
  }
  require(lcomm_tensors_wait(m->comm) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

/* The first step, which makes everything, is not timed. */
static double time_steps(const many *m, int steps) {
  double begun_s = 0;
  for (int i = 0; i <= steps; i++) {
    step(m);
    begun_s = i == 0 ? lcomm_clock_s() : begun_s;
  }
  return (lcomm_clock_s() - begun_s) / steps;
}

static bool serves(void) {
  return mpi_rank >= mpi_size - SERVERS;
}

static void say_time(const char *title, double s) {
  if (mpi_rank == 0) {
    printf("TIME %s: %.2f ms\n", title, 1e3 * s);
    fflush(stdout);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void time_sums_of_workers(void) {
  MPI_Comm workers;
  double s = 0;
  MPI_Comm_split(MPI_COMM_WORLD, serves(), mpi_rank, &workers);
  if (!serves()) {
    many m = make_many(workers, mpi_size - SERVERS, codec);
    s = time_steps(&m, step_count());
    free_many(&m);
  }
  MPI_Comm_free(&workers);
  say_time("all-reduce of the workers", s);
}

/* Of a step: from and to each worker the codes and scales of half of all elements. */
static double formula_of(const many *m) {
  double elements = (double)m->count * (double)sizes[0];
  double encoded = elements + 4 * ceil(elements / INT8_BLOCK);
  return (mpi_size - SERVERS) * 2 * encoded / SERVERS;
}

/* What was sent last may be counted a moment later. */
static void say_bytes(const many *m) {
  lcomm_stats stats;
  double mine[SERVERS] = {0};
  struct timespec moment = {.tv_nsec = 50 * 1000 * 1000};
  nanosleep(&moment, NULL);
  require(lcomm_stats_get(m->comm, &stats) == LCOMM_OK, "counters");
  if (serves()) {
    mine[mpi_rank - (mpi_size - SERVERS)] =
        (double)(stats.sent_bytes[LCOMM_LINK_NET] + stats.received_bytes[LCOMM_LINK_NET]);
  }
  MPI_Allreduce(MPI_IN_PLACE, mine, SERVERS, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < SERVERS && mpi_rank == 0; i++) {
    printf("BYTES server %d: %.0f of a step, formula %.0f\n", i, mine[i] / (step_count() + 1),
           formula_of(m));
  }
}

static void time_servers(void) {
  char policy[128];
  double s = 0;
  snprintf(policy, sizeof policy, "%s algo=servers servers=%d,%d", codec, mpi_size - 2,
           mpi_size - 1);
  many m = make_many(MPI_COMM_WORLD, mpi_size, policy);
  if (serves()) {
    require(lcomm_server_run(m.comm, NULL, NULL) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  } else {
    s = time_steps(&m, step_count());
    require(lcomm_server_end(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  }
  say_bytes(&m);
  free_many(&m);
  say_time("servers", s);
}

static const mpi_property properties[] = {PROPERTY(time_sums_of_workers), PROPERTY(time_servers)};
RUN_PROPERTIES(mpi_property_main, properties)
