/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/interposer_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/interpose/interposer_init.h"
#include "tests/support/interposer_mpi.h"

enum { GUARD = 64, UNTOUCHED = 0xa5 };

const char *const interposer_function_names[INTERPOSER_FUNCTIONS] = {
    "MPI_Allreduce",
    "MPI_Iallreduce",
    "the persistent all-reduce",
    "MPI_Reduce_scatter",
    "MPI_Ireduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Ireduce_scatter_block",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Bcast",
};

const interposer_mpi interposer_mpi_called = {
    MPI_Allreduce,
    MPI_Iallreduce,
    ALLREDUCE_INIT,
    MPI_Reduce_scatter,
    MPI_Ireduce_scatter,
    MPI_Reduce_scatter_block,
    MPI_Ireduce_scatter_block,
    MPI_Allgather,
    MPI_Allgatherv,
    MPI_Bcast,
    MPI_Wait,
    MPI_Start,
    MPI_Request_free,
};

const interposer_mpi interposer_mpi_plain = {
    PMPI_Allreduce,
    PMPI_Iallreduce,
    PLAIN_ALLREDUCE_INIT,
    PMPI_Reduce_scatter,
    PMPI_Ireduce_scatter,
    PMPI_Reduce_scatter_block,
    PMPI_Ireduce_scatter_block,
    PMPI_Allgather,
    PMPI_Allgatherv,
    PMPI_Bcast,
    PMPI_Wait,
    PMPI_Start,
    PMPI_Request_free,
};

bool interposer_function_exists(interposer_function function) {
  return function != INTERPOSER_ALLREDUCE_INIT || interposer_mpi_plain.allreduce_init;
}

bool interposer_function_sums(interposer_function function) {
  return function < INTERPOSER_ALLGATHER;
}

/* -------------------------------------------------------------------- shapes */

static bool is_inter(MPI_Comm comm) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  return inter;
}

/* How many parts are gathered: those of the other group, between groups. */
static int gathered_parts(MPI_Comm comm) {
  int size = 0;
  if (is_inter(comm)) {
    PMPI_Comm_remote_size(comm, &size);
  } else {
    PMPI_Comm_size(comm, &size);
  }
  return size;
}

static size_t sum_of(const int *parts, int count) {
  size_t sum = 0;
  for (int i = 0; i < count; i++) {
    sum += (size_t)parts[i];
  }
  return sum;
}

static interposer_shape shape_of_parts(const interposer_call *call, int rank, int size) {
  size_t mine = (size_t)call->parts[rank];
  if (call->function == INTERPOSER_ALLGATHERV) {
    return (interposer_shape){mine, sum_of(call->parts, gathered_parts(call->comm)),
                              sum_of(call->parts, rank)};
  }
  return (interposer_shape){sum_of(call->parts, size), mine, 0};
}

interposer_shape interposer_shape_of(const interposer_call *call) {
  size_t count = (size_t)call->count;
  int rank, size;
  PMPI_Comm_rank(call->comm, &rank);
  PMPI_Comm_size(call->comm, &size);
  switch (call->function) {
  case INTERPOSER_REDUCE_SCATTER:
  case INTERPOSER_IREDUCE_SCATTER:
  case INTERPOSER_ALLGATHERV:
    return shape_of_parts(call, rank, size);
  case INTERPOSER_REDUCE_SCATTER_BLOCK:
  case INTERPOSER_IREDUCE_SCATTER_BLOCK:
    return (interposer_shape){count * (size_t)size, count, 0};
  case INTERPOSER_ALLGATHER:
    return (interposer_shape){count, count * (size_t)gathered_parts(call->comm),
                              count * (size_t)rank};
  default:
    return (interposer_shape){count, count, 0};
  }
}

/* ----------------------------------------------------------------- the calls */

static int gather_uneven(const interposer_mpi *mpi, const interposer_call *call, const void *send,
                         void *receive) {
  int places[INTERPOSER_RANKS_MAX] = {0}, rank;
  for (int i = 1; i < gathered_parts(call->comm); i++) {
    places[i] = places[i - 1] + call->parts[i - 1];
  }
  PMPI_Comm_rank(call->comm, &rank);
  return mpi->allgatherv(send, call->parts[rank], call->type, receive, call->parts, places,
                         call->type, call->comm);
}

static int start_and_wait(const interposer_mpi *mpi, MPI_Request *request) {
  int code = mpi->start(request);
  code = code == MPI_SUCCESS ? mpi->wait(request, MPI_STATUS_IGNORE) : code;
  int freed = mpi->request_free(request);
  return code == MPI_SUCCESS ? freed : code;
}

static int make_requested(const interposer_mpi *mpi, const interposer_call *call, const void *send,
                          void *receive) {
  MPI_Request request = MPI_REQUEST_NULL;
  int code;
  if (call->function == INTERPOSER_ALLREDUCE_INIT) {
    code = mpi->allreduce_init(send, receive, call->count, call->type, call->op, call->comm,
                               MPI_INFO_NULL, &request);
    return code == MPI_SUCCESS ? start_and_wait(mpi, &request) : code;
  }
  if (call->function == INTERPOSER_IREDUCE_SCATTER) {
    code = mpi->ireduce_scatter(send, receive, call->parts, call->type, call->op, call->comm,
                                &request);
  } else {
    start_function start =
        call->function == INTERPOSER_IALLREDUCE ? mpi->iallreduce : mpi->ireduce_scatter_block;
    code = start(send, receive, call->count, call->type, call->op, call->comm, &request);
  }
  return code == MPI_SUCCESS ? mpi->wait(&request, MPI_STATUS_IGNORE) : code;
}

int interposer_make(const interposer_mpi *mpi, const interposer_call *call, const void *send,
                    void *receive) {
  const void *from = call->in_place ? MPI_IN_PLACE : send;
  switch (call->function) {
  case INTERPOSER_ALLREDUCE:
    return mpi->allreduce(from, receive, call->count, call->type, call->op, call->comm);
  case INTERPOSER_REDUCE_SCATTER:
    return mpi->reduce_scatter(from, receive, call->parts, call->type, call->op, call->comm);
  case INTERPOSER_REDUCE_SCATTER_BLOCK:
    return mpi->reduce_scatter_block(from, receive, call->count, call->type, call->op, call->comm);
  case INTERPOSER_ALLGATHER:
    return mpi->allgather(from, call->count, call->type, receive, call->count, call->type,
                          call->comm);
  case INTERPOSER_ALLGATHERV:
    return gather_uneven(mpi, call, from, receive);
  case INTERPOSER_BCAST:
    return mpi->bcast(receive, call->count, call->type, call->root, call->comm);
  default:
    return make_requested(mpi, call, from, receive);
  }
}

/* ------------------------------------------------------------------- buffers */

static size_t extent_of(MPI_Datatype type) {
  MPI_Aint low, extent;
  PMPI_Type_get_extent(type, &low, &extent);
  return (size_t)extent;
}

static unsigned char *guarded(size_t size) {
  unsigned char *bytes = malloc(size + 2 * GUARD);
  if (!bytes) {
    fprintf(stderr, "no memory for %zu bytes\n", size);
    PMPI_Abort(MPI_COMM_WORLD, 1);
    return NULL;
  }
  memset(bytes, UNTOUCHED, size + 2 * GUARD);
  return bytes + GUARD;
}

static void free_guarded(unsigned char *bytes) {
  free(bytes - GUARD);
}

interposer_buffers interposer_buffers_for(const interposer_call *call) {
  interposer_shape shape = interposer_shape_of(call);
  size_t extent = extent_of(call->type);
  size_t receive = shape.gives > shape.receives ? shape.gives : shape.receives;
  interposer_buffers b = {.send_bytes = shape.gives * extent, .receive_bytes = receive * extent};
  b.send = guarded(b.send_bytes);
  b.kept = guarded(b.send_bytes);
  b.called = guarded(b.receive_bytes);
  b.plain = guarded(b.receive_bytes);
  return b;
}

void interposer_buffers_free(interposer_buffers *buffers) {
  free_guarded(buffers->send);
  free_guarded(buffers->kept);
  free_guarded(buffers->called);
  free_guarded(buffers->plain);
}

/* Where a call that is in place finds what is given. */
static void put_in_place(const interposer_call *call, const interposer_buffers *b,
                         unsigned char *receive) {
  size_t offset = interposer_shape_of(call).begins * extent_of(call->type);
  memset(receive, UNTOUCHED, b->receive_bytes);
  if (call->in_place || call->function == INTERPOSER_BCAST) {
    memcpy(receive + offset, b->send, b->send_bytes);
  }
}

/* TEST_LARGE_COUNTS: through the functions of MPI-4 whose counts are MPI_Count. */
static const interposer_mpi *tested(void) {
  return interposer_mpi_large && getenv("TEST_LARGE_COUNTS") ? interposer_mpi_large
                                                             : &interposer_mpi_called;
}

interposer_codes interposer_make_both(const interposer_call *call, interposer_buffers *b) {
  interposer_codes codes;
  memcpy(b->kept, b->send, b->send_bytes);
  put_in_place(call, b, b->called);
  put_in_place(call, b, b->plain);
  codes.called = interposer_make(tested(), call, b->send, b->called);
  codes.plain = interposer_make(&interposer_mpi_plain, call, b->send, b->plain);
  return codes;
}

interposer_result interposer_result_of(const interposer_call *call, const interposer_buffers *b) {
  size_t size = interposer_shape_of(call).receives * extent_of(call->type);
  bool rest_is_open = call->in_place && interposer_function_sums(call->function);
  return (interposer_result){0, rest_is_open ? size : b->receive_bytes};
}

static bool guards_hold(const unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < GUARD; i++) {
    if (bytes[size + i] != UNTOUCHED || (bytes - GUARD)[i] != UNTOUCHED) {
      return false;
    }
  }
  return true;
}

const char *interposer_trouble(const interposer_call *call, const interposer_buffers *b) {
  if (!guards_hold(b->called, b->receive_bytes)) {
    return "something outside the receive buffer was written";
  }
  if (!guards_hold(b->send, b->send_bytes)) {
    return "something outside the send buffer was written";
  }
  if (call->function != INTERPOSER_BCAST && memcmp(b->send, b->kept, b->send_bytes) != 0) {
    return "the send buffer was changed";
  }
  return NULL;
}
