/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* A rank that is late in sum after sum is named by one rank, once. It waits until the others have
 * made their steps, and not for a time. */

#include "tests/shards/accounts.h"

enum { AHEAD = 10, NAMED = 50, LATE = 1 };

static char logged[1024];
static int warnings;

static void keep_sentence(void *context, lcomm_log_level level, const char *sentence) {
  (void)context;
  (void)level;
  snprintf(logged, sizeof(logged), "%s", sentence);
  warnings++;
}

static void make_steps(model *m, int count) {
  for (int i = 0; i < count; i++) {
    make_gradients(m, i, false);
    require_fine(m, step_model(m));
  }
}

static void make_steps_apart(model *m) {
  int token = 0;
  for (int i = 0; mpi_rank == LATE && i < mpi_size - 1; i++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  make_steps(m, AHEAD);
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static uint64_t late_sums(const model *m) {
  lcomm_lateness known;
  require_fine(m, lcomm_lateness_get(m->comm, LATE, &known));
  return known.late_sums;
}

/* All but one are waited for, and the last one for so long; warnings are counted. */
static void make_watched(model *m, unsigned late_ms) {
  char policy[64];
  snprintf(policy, sizeof policy, "net=none quorum=%d late=%u", mpi_size - 1, late_ms);
  make_model(m, policy, two_nodes(), LCOMM_SUM);
  warnings = 0;
  lcomm_log_set(LCOMM_LOG_WARN, keep_sentence, NULL);
}

static void who_is_late_in_fifty_sums_in_a_row_is_named_once(void) {
  model m;
  make_watched(&m, 0);
  make_steps(&m, 1); /* in which all compare their tensors */
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t before = late_sums(&m);
  for (int i = 1; i <= NAMED / AHEAD + 2; i++) {
    make_steps_apart(&m);
    uint64_t late = late_sums(&m) - before; /* each bucket of a step is a sum */
    require(late >= (uint64_t)(i * AHEAD), "%d late sums of %d steps", (int)late, i * AHEAD);
    require(warnings == (mpi_rank == 0 && late >= NAMED), "%d warnings after %d late sums: %s",
            warnings, (int)late, logged);
  }
  lcomm_log_set(LCOMM_LOG_WARN, NULL, NULL);
  require(mpi_rank != 0 || strstr(logged, "was late in the last 50 sums"), "%s", logged);
  require(mpi_rank != 0 || strstr(logged, "rank 1 (host "), "%s", logged);
  free_model(&m);
}

static void who_is_waited_for_is_not_named(void) {
  model m;
  make_watched(&m, 3600000);
  make_steps(&m, NAMED + AHEAD);
  lcomm_log_set(LCOMM_LOG_WARN, NULL, NULL);
  require(late_sums(&m) == 0 && warnings == 0, "%d late sums, %d warnings", (int)late_sums(&m),
          warnings);
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(who_is_late_in_fifty_sums_in_a_row_is_named_once),
    PROPERTY(who_is_waited_for_is_not_named),
};
RUN_PROPERTIES(mpi_property_main, properties)
