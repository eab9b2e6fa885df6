/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_BOOTSTRAP_OBJECT_H
#define LCOMM_TRANSPORT_BOOTSTRAP_OBJECT_H

/* What a bootstrap (libcomm/bootstrap/) hands to the making of a communicator. */

#include <stdbool.h>

#include "libcomm/include/libcomm.h"

/* Where a rank is in MPI's world: rank -1 where MPI does not run. */
typedef struct lcomm_world_rank {
  int32_t rank, size;
} lcomm_world_rank;

/* How the ranks of a communicator came together, and what it needs of that
 * later. Owned by the communicator once made. */
typedef struct lcomm_bootstrap_object {
  lcomm_bootstrap base; /* its allgather spans all ranks; used while the communicator is made */
  void *mpi;            /* MPI_Comm * of these ranks that is ours alone, NULL without MPI */
  const int *mpi_ranks; /* of each rank there; NULL: they are the same. While it is made */

  /* The communicator that the caller is inside of while it is made, whose turn is given up in calls
   * of CUDA (device_turn.h); NULL: none. */
  lcomm_comm *inside;

  /* A rank may be lost, and the others go on (bootstrap/elastic/). The reunion is NULL until all
   * have agreed to it, and where another communicator has taken it over. */
  bool elastic;
  struct lcomm_reunion *reunion;

  /* How many newcomers wait here to join it; NULL: none can. */
  int (*look)(struct lcomm_bootstrap_object *bootstrap);

  /* While it is made: where this rank is in MPI's world, and what is done once all ranks have said
   * so and agree on what they make; collective, on all ranks with the same bytes. It fills in mpi,
   * or gives it back. NULL: mpi is as it is. */
  lcomm_world_rank world;
  lcomm_status (*join)(struct lcomm_bootstrap_object *bootstrap, const lcomm_world_rank *all);

  /* Let MPI move the messages that the program has in flight there; returns at once. Any
   * thread that has the communicator's turn: it does nothing in one that MPI does not allow.
   * NULL without MPI. See external_progress.h. */
  void (*progress)(struct lcomm_bootstrap_object *bootstrap);

  /* Frees what it holds; may be NULL. orderly: collective calls are allowed. */
  void (*release)(struct lcomm_bootstrap_object *bootstrap, bool orderly);
  void *context; /* for progress and release */
} lcomm_bootstrap_object;

#endif
