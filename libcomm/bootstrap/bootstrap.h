/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_BOOTSTRAP_H
#define LCOMM_BOOTSTRAP_BOOTSTRAP_H

/* Between the ways in which ranks meet (this folder, split.c) and the making
 * of a communicator (handshake.c). */

#include <stdbool.h>

#include "libcomm/include/libcomm.h"

/* How the ranks of a communicator came together, and what it needs of that
 * later. Owned by the communicator once made. */
typedef struct lcomm_bootstrap_object {
  lcomm_bootstrap boot; /* its allgather spans all ranks; used while the communicator is made */
  void *mpi;            /* MPI_Comm * of these ranks that is ours alone, NULL without MPI */
  const int *mpi_ranks; /* of each rank there; NULL: they are the same. While it is made */

  /* Let MPI move the messages that the program has in flight there; returns at once. Any
   * thread that has the communicator's turn: it does nothing in one that MPI does not allow.
   * NULL without MPI. See external.h. */
  void (*progress)(struct lcomm_bootstrap_object *bootstrap);

  /* Frees what it holds; may be NULL. orderly: collective calls are allowed. */
  void (*release)(struct lcomm_bootstrap_object *bootstrap, bool orderly);
  void *context; /* for progress and release */
} lcomm_bootstrap_object;

/* Make a communicator of the ranks of origin->boot; collective. Takes the
 * origin over on success; on failure the caller releases it. */
lcomm_status lcomm_comm_create(lcomm_bootstrap_object *bootstrap, const lcomm_config *config,
                               lcomm_comm **comm);

/* The same, and on failure the origin is released. For libcomm-with-mpi.so, too. */
LCOMM_API lcomm_status lcomm_create_over(lcomm_bootstrap_object *bootstrap,
                                         const lcomm_config *config, lcomm_comm **comm);

/* An MPI_Comm of the ranks `members` (count of them, numbers in `parent_mpi`, in
 * the order of their new ranks). Collective over them only; communicators that
 * are made at the same time from one parent have different tags. Fills in mpi,
 * progress, release and context of the origin. TRANSPORT, MEMORY, with the sentence. */
lcomm_status lcomm_bootstrap_mpi_part(void *parent_mpi, const int *members, int count, int tag,
                                      lcomm_bootstrap_object *bootstrap);

/* May several threads be inside MPI at once? False when MPI is not running.
 * Without it a progress thread cannot move messages over MPI. */
bool lcomm_mpi_allows_threads(void);

#endif
