/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_create: callers bring a bootstrap of their own, and MPI is one transport among
 * others where it runs. */

#include <stdlib.h>

#include "libcomm/base/error.h"
#include "libcomm/comm/create.h"
#include "libcomm/comm/measure.h"
#include "libcomm/transport/mpi/mpi_table.h"

typedef lcomm_world_rank world_rank;

static world_rank my_world_rank(const lcomm_mpi_table *mpi) {
  int rank = -1, size = 0;
  if (mpi) {
    mpi->world(&rank, &size);
  }
  return (world_rank){.rank = rank, .size = size};
}

static int by_number(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}

/* Do the ranks have different ranks in one world? Processes that were started
 * apart all are rank 0 of worlds of their own. */
static bool share_world(const world_rank *ranks, int count, int *members) {
  for (int i = 0; i < count; i++) {
    if (ranks[i].rank < 0 || ranks[i].rank >= ranks[i].size || ranks[i].size != ranks[0].size) {
      return false;
    }
    members[i] = ranks[i].rank;
  }
  qsort(members, (size_t)count, sizeof *members, by_number);
  for (int i = 1; i < count; i++) {
    if (members[i] == members[i - 1]) {
      return false;
    }
  }
  for (int i = 0; i < count; i++) {
    members[i] = ranks[i].rank;
  }
  return true;
}

/* What nothing collective was done with. */
static void drop(lcomm_bootstrap_object *bootstrap) {
  if (bootstrap->release) {
    bootstrap->release(bootstrap, false);
  }
}

/* Give the bootstrap an MPI_Comm of its ranks, or none where they do
 * not share a world: then other transports must do. */
static lcomm_status join_world(lcomm_bootstrap_object *bootstrap, const world_rank *all) {
  int size = bootstrap->base.world_size;
  int *members = calloc((size_t)size, sizeof *members);
  bootstrap->join = NULL;
  if (!members) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "lcomm_create: out of memory");
  }
  lcomm_status status = LCOMM_OK;
  if (share_world(all, size, members)) {
    status = lcomm_mpi_registered()->part_of_world(members, size, bootstrap);
  } else {
    drop(bootstrap);
  }
  free(members);
  return status;
}

/* Nothing collective yet. */
static void find_mpi(lcomm_bootstrap_object *bootstrap) {
  const lcomm_mpi_table *mpi = lcomm_mpi_registered();
  world_rank mine = my_world_rank(mpi);
  if (mine.rank >= 0 && mpi->hold(bootstrap) != LCOMM_OK) {
    mine.rank = -1;
  }
  bootstrap->world = mine;
  bootstrap->join = join_world;
}

lcomm_status lcomm_create_over(lcomm_bootstrap_object *bootstrap, const lcomm_config *config,
                               lcomm_comm **comm) {
  lcomm_status status = lcomm_comm_create(bootstrap, config, comm);
  if (status != LCOMM_OK && bootstrap->release) {
    bootstrap->release(bootstrap, true); /* all ranks have come to the same verdict */
  }
  if (status == LCOMM_OK) {
    status = lcomm_costs_measure(*comm);
    if (status != LCOMM_OK) {
      lcomm_destroy(*comm); /* keeps its sentence as the thread's */
    }
  }
  return status;
}

lcomm_status lcomm_create(const lcomm_bootstrap *bootstrap, const lcomm_config *config,
                          lcomm_comm **comm) {
  LCOMM_TRY(lcomm_bootstrap_check(bootstrap, comm));
  lcomm_bootstrap_object object = {.base = *bootstrap};
  if (bootstrap->world_size > 1) {
    find_mpi(&object);
  }
  return lcomm_create_over(&object, config, comm);
}
