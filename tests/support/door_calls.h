/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DOOR_CALLS_H
#define LCOMM_TESTS_DOOR_CALLS_H

/* The calls that the MPI door takes over, each as data, to be made through the
 * door (MPI_X) and past it (PMPI_X) with equal arguments. */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum door_function {
  DOOR_ALLREDUCE,
  DOOR_IALLREDUCE,
  DOOR_ALLREDUCE_INIT, /* started once and waited for */
  DOOR_REDUCE_SCATTER,
  DOOR_IREDUCE_SCATTER,
  DOOR_REDUCE_SCATTER_BLOCK,
  DOOR_IREDUCE_SCATTER_BLOCK,
  DOOR_ALLGATHER,
  DOOR_ALLGATHERV,
  DOOR_BCAST,
  DOOR_FUNCTIONS
} door_function;

extern const char *const door_function_names[DOOR_FUNCTIONS];

/* MPI's functions, or those past the door. */
typedef struct door_mpi door_mpi;
extern const door_mpi door_mpi_called, door_mpi_plain;

/* Has this MPI got it? MPIX_Allreduce_init is not everywhere. */
bool door_function_exists(door_function function);

/* Is the operation used, or is data only moved? */
bool door_function_sums(door_function function);

enum { DOOR_RANKS_MAX = 64 };

typedef struct door_call {
  door_function function;
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Op op;
  int count; /* of an all-reduce and a broadcast; of each part in _block and gather */
  int parts[DOOR_RANKS_MAX]; /* of reduce_scatter and allgatherv */
  int root;                  /* of a broadcast */
  bool in_place;
} door_call;

/* What this rank gives and receives, in elements, and where its part begins in
 * the whole that is gathered. */
typedef struct door_shape {
  size_t gives, receives, begins;
} door_shape;

door_shape door_shape_of(const door_call *call);

/* Make the call. in place: receive holds what is given, as MPI wants it. Returns
 * MPI's error code. */
int door_make(const door_mpi *mpi, const door_call *call, const void *send, void *receive);

/* Buffers of the same call made twice: given, and received through the door and
 * past it, with guards around them. */
typedef struct door_buffers {
  unsigned char *send, *kept, *called, *plain; /* kept: what send held */
  size_t send_bytes, receive_bytes;            /* with room for what is in place */
} door_buffers;

/* Ends the test run when memory is short. Fill send then. */
door_buffers door_buffers_for(const door_call *call);
void door_buffers_free(door_buffers *buffers);

/* Make the call twice on the same input. The codes that both returned. */
typedef struct door_codes {
  int called, plain;
} door_codes;
door_codes door_make_both(const door_call *call, door_buffers *buffers);

/* Where the result lies in the receive buffers, in bytes; its size. */
typedef struct door_result {
  size_t offset, size;
} door_result;
door_result door_result_of(const door_call *call, const door_buffers *buffers);

/* NULL when nothing outside the result was written and what was sent is as it was,
 * else what is wrong. */
const char *door_trouble(const door_call *call, const door_buffers *buffers);

#endif
