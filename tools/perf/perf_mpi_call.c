/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_mpi_call.h"

#include <mpi.h>
#include <stddef.h>

/* The calls that are measured. */
typedef struct calls {
  int (*allreduce)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*reduce)(const void *, void *, int, MPI_Datatype, MPI_Op, int, MPI_Comm);
  int (*reduce_scatter)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
  int (*allgather)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
  int (*alltoall)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
  int (*broadcast)(void *, int, MPI_Datatype, int, MPI_Comm);
} calls;

static const calls calls_of[] = {
    [LCOMM_PERF_MPI] = {MPI_Allreduce, MPI_Reduce, MPI_Reduce_scatter_block, MPI_Allgather,
                        MPI_Alltoall, MPI_Bcast},
    [LCOMM_PERF_PMPI] = {PMPI_Allreduce, PMPI_Reduce, PMPI_Reduce_scatter_block, PMPI_Allgather,
                         PMPI_Alltoall, PMPI_Bcast},
};

/* The type that MPI sums in, or moves in. */
static MPI_Datatype mpi_type(lcomm_dtype dtype) {
  switch (dtype) {
  case LCOMM_FLOAT32:
    return MPI_FLOAT;
  case LCOMM_FLOAT64:
    return MPI_DOUBLE;
  case LCOMM_INT32:
    return MPI_INT32_T;
  case LCOMM_INT64:
    return MPI_INT64_T;
  case LCOMM_INT8:
    return MPI_INT8_T;
  case LCOMM_UINT8:
    return MPI_UINT8_T;
  default: /* 16 bits, only moved */
    return MPI_UINT16_T;
  }
}

static MPI_Op mpi_op(lcomm_op op) {
  return op == LCOMM_MIN ? MPI_MIN : op == LCOMM_MAX ? MPI_MAX : MPI_SUM;
}

int lcomm_perf_mpi_can(const lcomm_perf_call *call) {
  return !call->collective->reduces || lcomm_dtype_size(call->dtype) > 2;
}

/* `count` elements as a count and a type that MPI can take. A type that was
 * made belongs to the caller. */
typedef struct vector {
  int count;
  MPI_Datatype type;
  int is_made;
} vector;

static vector make_vector(uint64_t count, lcomm_dtype dtype, uint64_t part) {
  vector v = {(int)count, mpi_type(dtype), 0};
  if (count <= part) {
    return v;
  }
  MPI_Datatype one, all, types[2];
  int lengths[2] = {1, (int)(count % part)};
  MPI_Aint starts[2] = {0, (MPI_Aint)(count / part * part * lcomm_dtype_size(dtype))};
  MPI_Type_contiguous((int)part, v.type, &one);
  MPI_Type_contiguous((int)(count / part), one, &all);
  types[0] = all;
  types[1] = v.type;
  v = (vector){1, MPI_DATATYPE_NULL, 1};
  MPI_Type_create_struct(2, lengths, starts, types, &v.type);
  MPI_Type_commit(&v.type);
  MPI_Type_free(&one);
  MPI_Type_free(&all);
  return v;
}

static void move(const calls *mpi, const lcomm_perf_call *call, lcomm_perf_place place,
                 uint64_t part) {
  const void *send = call->in_place ? MPI_IN_PLACE : place.send;
  vector v = make_vector(call->count, call->dtype, part);
  switch (call->collective->kind) {
  case LCOMM_PERF_ALLGATHER:
    mpi->allgather(send, v.count, v.type, place.receive, v.count, v.type, MPI_COMM_WORLD);
    break;
  case LCOMM_PERF_ALLTOALL:
    mpi->alltoall(send, v.count, v.type, place.receive, v.count, v.type, MPI_COMM_WORLD);
    break;
  default:
    mpi->broadcast(place.receive, v.count, v.type, call->root, MPI_COMM_WORLD);
    break;
  }
  if (v.is_made) {
    MPI_Type_free(&v.type);
  }
}

static void allreduce(const calls *mpi, const lcomm_perf_call *call, lcomm_perf_place place,
                      uint64_t part) {
  size_t element = lcomm_dtype_size(call->dtype);
  for (uint64_t at = 0; at < call->count; at += part) {
    uint64_t rest = call->count - at;
    char *receive = (char *)place.receive + at * element;
    const void *send = call->in_place ? MPI_IN_PLACE : (const char *)place.send + at * element;
    mpi->allreduce(send, receive, (int)(rest < part ? rest : part), mpi_type(call->dtype),
                   mpi_op(call->op), MPI_COMM_WORLD);
  }
}

/* Parts of all blocks do not lie together, so beyond `part` each block is
 * reduced to its rank by itself. */
static void reduce_blocks(const calls *mpi, const lcomm_perf_call *call, lcomm_perf_place place,
                          uint64_t part, int rank, int ranks) {
  size_t element = lcomm_dtype_size(call->dtype);
  for (int root = 0; root < ranks; root++) {
    for (uint64_t at = 0; at < call->count; at += part) {
      uint64_t rest = call->count - at;
      char *send = (char *)place.send + ((uint64_t)root * call->count + at) * element;
      char *receive = (char *)place.receive + at * element;
      const void *from = rank == root && call->in_place ? MPI_IN_PLACE : send;
      mpi->reduce(from, receive, (int)(rest < part ? rest : part), mpi_type(call->dtype),
                  mpi_op(call->op), root, MPI_COMM_WORLD);
    }
  }
}

static void reduce_scatter(const calls *mpi, const lcomm_perf_call *call, lcomm_perf_place place,
                           uint64_t part) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (call->count > part) {
    reduce_blocks(mpi, call, place, part, rank, ranks);
    return;
  }
  mpi->reduce_scatter(call->in_place ? MPI_IN_PLACE : place.send,
                      call->in_place ? place.send : place.receive, (int)call->count,
                      mpi_type(call->dtype), mpi_op(call->op), MPI_COMM_WORLD);
}

/* MPI has no average. */
static void divide(const lcomm_perf_call *call, void *result) {
  int ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (uint64_t i = 0; i < call->count; i++) {
    switch (call->dtype) {
    case LCOMM_FLOAT32:
      ((float *)result)[i] /= (float)ranks;
      break;
    case LCOMM_FLOAT64:
      ((double *)result)[i] /= ranks;
      break;
    case LCOMM_INT32:
      ((int32_t *)result)[i] /= ranks;
      break;
    case LCOMM_INT8:
      ((int8_t *)result)[i] = (int8_t)(((int8_t *)result)[i] / ranks);
      break;
    case LCOMM_UINT8:
      ((uint8_t *)result)[i] = (uint8_t)(((uint8_t *)result)[i] / ranks);
      break;
    default:
      ((int64_t *)result)[i] /= ranks;
      break;
    }
  }
}

void *lcomm_perf_mpi_result(const lcomm_perf_call *call, lcomm_perf_place place, uint64_t part) {
  int is_at_begin =
      call->collective->kind == LCOMM_PERF_REDUCE_SCATTER && call->in_place && call->count <= part;
  return is_at_begin ? place.send : place.receive;
}

void lcomm_perf_mpi_call(lcomm_perf_mpi mpi, const lcomm_perf_call *call, lcomm_perf_place place,
                         uint64_t part) {
  if (!call->collective->reduces) {
    move(&calls_of[mpi], call, place, part);
    return;
  }
  if (call->collective->kind == LCOMM_PERF_ALLREDUCE) {
    allreduce(&calls_of[mpi], call, place, part);
  } else {
    reduce_scatter(&calls_of[mpi], call, place, part);
  }
  if (call->op == LCOMM_AVG) {
    divide(call, lcomm_perf_mpi_result(call, place, part));
  }
}
