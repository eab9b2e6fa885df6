/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_MPI_MPI_TABLE_H
#define LCOMM_TRANSPORT_MPI_MPI_TABLE_H

/* What libcomm.so asks of MPI. It is linked with no MPI itself: the table is that of
 * libcomm-with-mpi.so, which registers it when it is loaded. Between these two libraries,
 * which come from one build; no part of the public interface. */

#include "libcomm/transport/bootstrap_object.h"
#include "libcomm/transport/transport.h"

typedef struct lcomm_mpi_table {
  int version; /* lcomm_version() of the build */
  const lcomm_transport_table *transport;

  /* The MPI of this process in its own words, such as "Open MPI v4.1.4"; may be asked
   * before MPI_Init. Lives as long as the process. */
  const char *(*name)(void);

  bool (*allows_threads)(void); /* as lcomm_mpi_allows_threads() */

  /* This rank's number in MPI's world and the size of that; -1 where MPI does not run. */
  void (*world)(int *rank, int *size);

  /* Room for an MPI_Comm in the bootstrap, filled in before anything collective is done
   * with it. Its release frees it. MEMORY, with the sentence. */
  lcomm_status (*hold)(lcomm_bootstrap_object *bootstrap);

  /* Put an MPI_Comm of these ranks of the world, or of the parent, into that room;
   * collective over them. On failure the room is given back. TRANSPORT, with the
   * sentence. */
  lcomm_status (*part_of_world)(const int *members, int count, lcomm_bootstrap_object *bootstrap);
  lcomm_status (*part)(void *parent_mpi, const int *members, int count, int tag,
                       lcomm_bootstrap_object *bootstrap);
} lcomm_mpi_table;

/* Before any communicator is made; once in a process. The table must live as long as it.
 * UNSUPPORTED, with the sentence: the table is that of another version. */
LCOMM_API lcomm_status lcomm_mpi_register(const lcomm_mpi_table *table);

/* NULL: libcomm-with-mpi.so is not loaded. */
const lcomm_mpi_table *lcomm_mpi_registered(void);

/* An MPI_Comm of the ranks `members` (count of them, numbers in `parent_mpi`, in
 * the order of their new ranks). Collective over them only; communicators that
 * are made at the same time from one parent have different tags. Fills in mpi,
 * progress, release and context of the object. TRANSPORT, MEMORY, with the sentence. */
lcomm_status lcomm_bootstrap_mpi_part(void *parent_mpi, const int *members, int count, int tag,
                                      lcomm_bootstrap_object *bootstrap);

/* May several threads be inside MPI at once? False when MPI is not running.
 * Without it a progress thread cannot move messages over MPI. */
bool lcomm_mpi_allows_threads(void);

#endif
