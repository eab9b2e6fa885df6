/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_world.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm_mpi.h"

enum { EXIT_TROUBLE = 2, PIECE = 1 << 20 };

static void begin_mpi(lcomm_perf_world *world, const lcomm_perf_options *options) {
  int level = MPI_THREAD_SINGLE;
  int wanted = options->progress == LCOMM_PROGRESS_THREAD ? MPI_THREAD_MULTIPLE : level;
  MPI_Init_thread(NULL, NULL, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &world->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world->ranks);
}

static void begin_env(lcomm_perf_world *world, const lcomm_perf_options *options) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = "";
  config.transport = options->transport;
  if (lcomm_create_env(&config, &world->control) != LCOMM_OK) {
    fprintf(stderr, "%s: %s\n", world->tool, lcomm_last_error(NULL));
    exit(EXIT_TROUBLE);
  }
  world->rank = lcomm_rank(world->control);
  world->ranks = lcomm_size(world->control);
}

void lcomm_perf_world_begin(lcomm_perf_world *world, const lcomm_perf_options *options) {
  *world = (lcomm_perf_world){options->collective->tool, 0, 1, NULL};
  if (options->boot == LCOMM_PERF_BOOT_ENV) {
    begin_env(world, options);
  } else {
    begin_mpi(world, options);
  }
}

void lcomm_perf_world_end(lcomm_perf_world *world) {
  if (!world->control) {
    MPI_Finalize();
    return;
  }
  (void)lcomm_destroy(world->control);
  world->control = NULL;
}

/* Many sentences of the library begin with the rank. */
static void say(const lcomm_perf_world *world, const char *sentence) {
  char who[32] = "";
  if (strncmp(sentence, "rank ", 5) != 0) {
    snprintf(who, sizeof who, "rank %d: ", world->rank);
  }
  fflush(stdout);
  fprintf(stderr, "%s: %s%s\n", world->tool, who, sentence);
  fflush(stderr);
}

void lcomm_perf_world_stop(lcomm_perf_world *world, const char *sentence) {
  say(world, sentence);
  if (!world->control) {
    MPI_Abort(MPI_COMM_WORLD, EXIT_TROUBLE);
  } else {
    (void)lcomm_abort(world->control, sentence);
    (void)lcomm_progress(world->control); /* tells the others */
    (void)lcomm_destroy(world->control);
  }
  exit(EXIT_TROUBLE);
}

void lcomm_perf_world_stop_together(lcomm_perf_world *world, const char *sentence) {
  say(world, sentence);
  lcomm_perf_world_end(world);
  exit(EXIT_TROUBLE);
}

/* The others were told by the library, so they come here too. */
static void expect(const lcomm_perf_world *world, lcomm_status status) {
  if (status != LCOMM_OK) {
    say(world, lcomm_last_error(world->control));
    (void)lcomm_destroy(world->control);
    exit(EXIT_TROUBLE);
  }
}

void lcomm_perf_world_barrier(const lcomm_perf_world *world) {
  if (!world->control) {
    PMPI_Barrier(MPI_COMM_WORLD);
  } else {
    expect(world, lcomm_barrier(world->control));
  }
}

static void reduce(const lcomm_perf_world *world, double *values, size_t count, MPI_Op mpi_op,
                   lcomm_op op) {
  for (size_t at = 0; at < count; at += PIECE) {
    size_t piece = count - at < PIECE ? count - at : PIECE;
    if (!world->control) {
      PMPI_Allreduce(MPI_IN_PLACE, values + at, (int)piece, MPI_DOUBLE, mpi_op, MPI_COMM_WORLD);
    } else {
      expect(world,
             lcomm_allreduce(world->control, values + at, values + at, piece, LCOMM_FLOAT64, op));
    }
  }
}

void lcomm_perf_world_sum(const lcomm_perf_world *world, double *values, size_t count) {
  reduce(world, values, count, MPI_SUM, LCOMM_SUM);
}

void lcomm_perf_world_max(const lcomm_perf_world *world, double *values, size_t count) {
  reduce(world, values, count, MPI_MAX, LCOMM_MAX);
}

/* 52 bits of a name, so that a double carries them. */
static double name_hash(const char *name) {
  uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (; *name != '\0'; name++) {
    h = (h ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
  }
  return (double)(h >> 12);
}

int lcomm_perf_world_is_host_first(const lcomm_perf_world *world) {
  char name[256] = "";
  double *names = calloc((size_t)world->ranks, sizeof *names);
  if (!names) {
    return world->rank == 0; /* counts too little rather than twice */
  }
  gethostname(name, sizeof name - 1);
  names[world->rank] = name_hash(name);
  lcomm_perf_world_sum(world, names, (size_t)world->ranks);
  int first = 0;
  while (first < world->rank && names[first] != names[world->rank]) {
    first++;
  }
  free(names);
  return first == world->rank;
}

lcomm_status lcomm_perf_world_comm(const lcomm_perf_world *world, const lcomm_config *config,
                                   lcomm_comm **comm) {
  if (!world->control) {
    return lcomm_create_mpi(MPI_COMM_WORLD, config, comm);
  }
  return lcomm_split(world->control, 0, world->rank, config, comm);
}

const char *lcomm_perf_world_comm_error(const lcomm_perf_world *world) {
  const char *text = lcomm_last_error(NULL);
  return text[0] != '\0' || !world->control ? text : lcomm_last_error(world->control);
}

/* ----------------------------------------------------------------- signals */

static const int watched[] = {SIGINT, SIGTERM};
enum { WATCHED = sizeof watched / sizeof watched[0] };

static volatile sig_atomic_t noted;

static void note(int number) {
  noted = number;
  for (int i = 0; i < WATCHED; i++) {
    signal(watched[i], SIG_DFL);
  }
}

void lcomm_perf_interrupt_watch(void) {
  for (int i = 0; i < WATCHED; i++) {
    struct sigaction now, noting = {.sa_handler = note, .sa_flags = SA_RESTART};
    sigemptyset(&noting.sa_mask);
    if (sigaction(watched[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN) {
      sigaction(watched[i], &noting, NULL);
    }
  }
}

int lcomm_perf_interrupt_signal(void) {
  return noted;
}
