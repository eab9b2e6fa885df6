/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSER_COMMS_H
#define LCOMM_TESTS_INTERPOSER_COMMS_H

/* Communicators of all kinds, each made by the function of MPI that its name says. */

#include <mpi.h>
#include <stdbool.h>

typedef struct interposer_comm_kind {
  const char *name;
  MPI_Comm (*make)(void); /* collective over the world; MPI_COMM_NULL where it has no part */
} interposer_comm_kind;

enum { INTERPOSER_COMM_KINDS = 24 };
extern const interposer_comm_kind interposer_comm_kinds[INTERPOSER_COMM_KINDS];

/* Between two groups, which need two ranks. */
bool interposer_comm_is_inter(MPI_Comm comm);

/* Ranks of the communicator, and how many of the posed nodes they are on (of an
 * inter-communicator: of the local group). */
int interposer_comm_size(MPI_Comm comm);
int interposer_comm_nodes(MPI_Comm comm);

/* Free it, unless it is the world, self or null. */
void interposer_comm_free(MPI_Comm *comm);

#endif
