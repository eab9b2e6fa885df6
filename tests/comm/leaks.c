/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Programs of script_leaks.sh, which compiles this file.
 *
 *   leaks                under mpirun: properties of long runs
 *   leaks victim FOLDER RANK RANKS TRANSPORT MODE
 *                        without MPI: rank 1 kills itself between its operations, the
 *                        others print how their operations end. The ranks meet in FOLDER.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/engine/engine.h"
#include "tests/support/mpi_property.h"
#include "tests/support/process_counts.h"

/* ------------------------------------------------------- what a process has */

/* Files that are mapped; anonymous memory belongs to malloc. */
static int count_mappings(void) {
  return count_mappings_of("/memfd:") + count_mappings_of("/dev/shm/");
}

/* Of this process alone: others may run beside it. */
typedef struct holdings {
  int files, mappings; /* descriptors; mapped files */
  long resident_kib;
  uint64_t memory_bytes;
} holdings;

static holdings look(const lcomm_comm *comm) {
  lcomm_stats stats = {0};
  if (comm) {
    lcomm_stats_get(comm, &stats);
  }
  return (holdings){.files = count_files(),
                    .mappings = count_mappings(),
                    .resident_kib = resident_kib(),
                    .memory_bytes = stats.memory_bytes};
}

/* ---------------------------------------------------------------- long runs */

enum { PART_MAX = 20000, RANKS_MAX = 8 };

static float given[RANKS_MAX * PART_MAX], got[RANKS_MAX * PART_MAX];

static lcomm_status do_one(lcomm_comm *comm, int i) {
  static const uint64_t sizes[] = {1, 100, 5000, 0, PART_MAX, 333, 1024};
  uint64_t n = sizes[i % 7], parts[RANKS_MAX];
  for (int rank = 0; rank < mpi_size; rank++) {
    parts[rank] = n / (uint64_t)(rank + 1);
  }
  switch (i % 6) {
  case 0:
    return lcomm_allreduce(comm, given, got, n, LCOMM_FLOAT32, LCOMM_AVG);
  case 1:
    return lcomm_reduce_scatter(comm, given, got, n, LCOMM_FLOAT32, LCOMM_SUM);
  case 2:
    return lcomm_allgatherv(comm, given, got, parts, LCOMM_FLOAT32);
  case 3:
    return lcomm_alltoall(comm, given, got, n, LCOMM_FLOAT32);
  case 4:
    return lcomm_broadcast(comm, got, n, LCOMM_FLOAT32, i / 6 % mpi_size);
  default:
    return lcomm_barrier(comm);
  }
}

static void do_many(lcomm_comm *comm, int count) {
  for (int i = 0; i < count; i++) {
    lcomm_status status = do_one(comm, i);
    require(status == LCOMM_OK, "operation %d: %s", i, lcomm_last_error(comm));
    if (status != LCOMM_OK) {
      return;
    }
  }
}

static void a_long_run_holds_no_more_than_a_short_one(void) {
  /* Whole rounds of shapes, so that the same runs are kept at the end of both. */
  enum { ROUND = 6 * 7, WARM_UP = 50 * ROUND, OPERATIONS = 240 * ROUND, SLACK_KIB = 4096 };
  static const char *const transports[] = {"auto", "mpi"};
  for (int t = 0; t < 2; t++) {
    lcomm_config config = LCOMM_CONFIG_INIT;
    config.policy = "net=int8 min=1K";
    config.transport = transports[t];
    config.nodes = mpi_size < 2 ? 1 : 2;
    lcomm_comm *comm = make_comm_if_possible(&config);
    do_many(comm, WARM_UP);
    MPI_Barrier(MPI_COMM_WORLD); /* whose descriptors and memory are no concern of ours */
    holdings before = look(comm);
    do_many(comm, OPERATIONS);
    MPI_Barrier(MPI_COMM_WORLD);
    holdings after = look(comm);
    require(after.files == before.files, "over %s: %d descriptors, then %d", transports[t],
            before.files, after.files);
    require(after.mappings == before.mappings, "over %s: %d mapped files, then %d", transports[t],
            before.mappings, after.mappings);
    require(after.memory_bytes == before.memory_bytes, "over %s: %llu bytes, then %llu",
            transports[t], (unsigned long long)before.memory_bytes,
            (unsigned long long)after.memory_bytes);
    require(after.resident_kib <= before.resident_kib + SLACK_KIB, "over %s: %ld KiB, then %ld",
            transports[t], before.resident_kib, after.resident_kib);
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

static void communicators_take_all_they_had_with_them(void) {
  enum { WARM_UP = 5, TIMES = 200 };
  static const char *const transports[] = {"auto", "mpi"};
  int files = 0, mappings = 0;
  for (int i = 0; i < WARM_UP + TIMES; i++) {
    lcomm_config config = LCOMM_CONFIG_INIT;
    config.transport = transports[i % 2];
    config.progress = i % 4 == 0 ? LCOMM_PROGRESS_THREAD : LCOMM_PROGRESS_CALLS;
    if (i == WARM_UP) {
      files = count_files();
      mappings = count_mappings();
    }
    lcomm_comm *comm = NULL;
    lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
    if (status == LCOMM_ERR_UNSUPPORTED) { /* auto is MPI here, and has no threads */
      continue;
    }
    require(status == LCOMM_OK, "%s", lcomm_last_error(NULL));
    do_many(comm, 12);
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
  require(count_files() == files, "%d descriptors, then %d", files, count_files());
  require(count_mappings() == mappings, "%d mappings, then %d", mappings, count_mappings());
}

/* ------------------------------------------------------------------ a victim */

typedef struct meeting {
  const char *folder;
  int rank, ranks, calls;
} meeting;

/* What every rank says is a file that has its name once it is whole. */
static int gather_in_folder(void *context, const void *send, void *receive, size_t size) {
  meeting *m = context;
  char path[4096], hidden[4096 + 8];
  snprintf(path, sizeof(path), "%s/%d.%d", m->folder, m->calls, m->rank);
  snprintf(hidden, sizeof(hidden), "%s.new", path);
  FILE *file = fopen(hidden, "w");
  if (!file || fwrite(send, 1, size, file) != size || fclose(file) != 0 ||
      rename(hidden, path) != 0) {
    return 1;
  }
  for (int rank = 0; rank < m->ranks; rank++) {
    snprintf(path, sizeof(path), "%s/%d.%d", m->folder, m->calls, rank);
    while (!(file = fopen(path, "r"))) {
      usleep(1000);
    }
    size_t read = fread((char *)receive + (size_t)rank * size, 1, size, file);
    fclose(file);
    if (read != size) {
      return 1;
    }
  }
  m->calls++;
  return 0;
}

static void die_in_the_middle(lcomm_comm *comm) {
  lcomm_request requests[3];
  for (int i = 0; i < 3; i++) {
    lcomm_iallreduce(comm, given, got, PART_MAX * 4, LCOMM_FLOAT32, LCOMM_SUM, &requests[i]);
  }
  kill(getpid(), SIGKILL);
}

/* 77: these transports are not there. */
static int run_victim(meeting *m, const char *transport, const char *mode) {
  enum { GOOD = 50, SKIPPED = 77 };
  lcomm_bootstrap boot = {m->rank, m->ranks, m, gather_in_folder};
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.transport = transport;
  config.progress = strcmp(mode, "thread") == 0 ? LCOMM_PROGRESS_THREAD : LCOMM_PROGRESS_CALLS;
  lcomm_status status = lcomm_create(&boot, &config, &comm);
  if (status != LCOMM_OK) {
    printf("%s\n", lcomm_last_error(NULL));
    return SKIPPED;
  }
  mpi_size = m->ranks;
  for (int i = 0; status == LCOMM_OK; i++) {
    if (m->rank == 1 && i == GOOD) {
      die_in_the_middle(comm);
    }
    status = i < GOOD ? do_one(comm, i)
                      : lcomm_allreduce(comm, given, got, PART_MAX * 4, LCOMM_FLOAT32, LCOMM_SUM);
    if (i < GOOD && status != LCOMM_OK) {
      printf("too early: %s\n", lcomm_last_error(comm));
    }
  }
  printf("%s: %s\n", lcomm_status_name(status), lcomm_last_error(comm));
  return lcomm_destroy(comm) == status ? 0 : 1;
}

static const mpi_property properties[] = {
    PROPERTY(a_long_run_holds_no_more_than_a_short_one),
    PROPERTY(communicators_take_all_they_had_with_them),
};

int main(int argc, char **argv) {
  if (argc == 7 && strcmp(argv[1], "victim") == 0) {
    meeting m = {.folder = argv[2], .rank = atoi(argv[3]), .ranks = atoi(argv[4])};
    return run_victim(&m, argv[5], argv[6]);
  }
  return mpi_property_main_threads(&argc, &argv, WITH_COUNT(properties));
}
