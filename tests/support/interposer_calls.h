/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_INTERPOSER_CALLS_H
#define LCOMM_TESTS_INTERPOSER_CALLS_H

/* The calls that the MPI interposer takes over, each as data, to be made through the
 * interposer (MPI_X) and past it (PMPI_X) with equal arguments. */

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum interposer_function {
  INTERPOSER_ALLREDUCE,
  INTERPOSER_IALLREDUCE,
  INTERPOSER_ALLREDUCE_INIT, /* started once and waited for */
  INTERPOSER_REDUCE_SCATTER,
  INTERPOSER_IREDUCE_SCATTER,
  INTERPOSER_REDUCE_SCATTER_BLOCK,
  INTERPOSER_IREDUCE_SCATTER_BLOCK,
  INTERPOSER_ALLGATHER,
  INTERPOSER_ALLGATHERV,
  INTERPOSER_BCAST,
  INTERPOSER_FUNCTIONS
} interposer_function;

extern const char *const interposer_function_names[INTERPOSER_FUNCTIONS];

/* MPI's functions, or those past the interposer. */
typedef struct interposer_mpi interposer_mpi;
extern const interposer_mpi interposer_mpi_called, interposer_mpi_plain;

/* Has this MPI got it? MPIX_Allreduce_init is not everywhere. */
bool interposer_function_exists(interposer_function function);

/* Is the operation used, or is data only moved? */
bool interposer_function_sums(interposer_function function);

enum { INTERPOSER_RANKS_MAX = 64 };

typedef struct interposer_call {
  interposer_function function;
  MPI_Comm comm;
  MPI_Datatype type;
  MPI_Op op;
  int count; /* of an all-reduce and a broadcast; of each part in _block and gather */
  int parts[INTERPOSER_RANKS_MAX]; /* of reduce_scatter and allgatherv */
  int root;                        /* of a broadcast */
  bool in_place;
} interposer_call;

/* What this rank gives and receives, in elements, and where its part begins in
 * the whole that is gathered. */
typedef struct interposer_shape {
  size_t gives, receives, begins;
} interposer_shape;

interposer_shape interposer_shape_of(const interposer_call *call);

/* Make the call. in place: receive holds what is given, as MPI wants it. Returns
 * MPI's error code. */
int interposer_make(const interposer_mpi *mpi, const interposer_call *call, const void *send,
                    void *receive);

/* Buffers of the same call made twice: given, and received through the interposer and
 * past it, with guards around them. */
typedef struct interposer_buffers {
  unsigned char *send, *kept, *called, *plain; /* kept: what send held */
  size_t send_bytes, receive_bytes;            /* with room for what is in place */
} interposer_buffers;

/* Ends the test run when memory is short. Fill send then. */
interposer_buffers interposer_buffers_for(const interposer_call *call);
void interposer_buffers_free(interposer_buffers *buffers);

/* Make the call twice on the same input. The codes that both returned. */
typedef struct interposer_codes {
  int called, plain;
} interposer_codes;
interposer_codes interposer_make_both(const interposer_call *call, interposer_buffers *buffers);

/* Where the result lies in the receive buffers, in bytes; its size. */
typedef struct interposer_result {
  size_t offset, size;
} interposer_result;
interposer_result interposer_result_of(const interposer_call *call,
                                       const interposer_buffers *buffers);

/* NULL when nothing outside the result was written and what was sent is as it was,
 * else what is wrong. */
const char *interposer_trouble(const interposer_call *call, const interposer_buffers *buffers);

#endif
