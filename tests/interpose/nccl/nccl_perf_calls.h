/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_PERF_CALLS_H
#define LCOMM_TESTS_NCCL_PERF_CALLS_H

/* The calls of nccl_perf: how each is made, and what it has to give. Included by one program. */

#include "tests/interpose/nccl/nccl_client.h"

/* ------------------------------------------------------------------- values */

typedef struct element {
  const char *name;
  ncclDataType_t type;
  size_t size;
} element;

static const element elements[] = {{"float", ncclFloat32, 4},
                                   {"double", ncclFloat64, 8},
                                   {"bfloat16", ncclBfloat16, 2},
                                   {"int32", ncclInt32, 4}};

static inline void put(const element *as, double value, void *at) {
  float single = (float)value;
  int32_t whole = (int32_t)value;
  const void *from = as->type == ncclFloat64   ? (const void *)&value
                     : as->type == ncclInt32   ? (const void *)&whole
                     : as->type == ncclFloat32 ? (const void *)&single
                                               : (const char *)&single + 2; /* little-endian */
  memcpy(at, from, as->size);
}

static inline double get(const element *as, const void *at) {
  double value = 0;
  float single = 0;
  int32_t whole = 0;
  memcpy(as->type == ncclFloat64   ? (void *)&value
         : as->type == ncclInt32   ? (void *)&whole
         : as->type == ncclFloat32 ? (void *)&single
                                   : (char *)&single + 2,
         at, as->size);
  return as->type == ncclFloat64 ? value : as->type == ncclInt32 ? whole : (double)single;
}

/* Small whole numbers, whose sums are exact in any order and type. */
static inline double value_of(int rank, size_t i) {
  return (double)(rank + 1) * (double)(i % 5 + 1);
}

/* -------------------------------------------------------------------- calls */

typedef struct run {
  const element *as;
  size_t first_bytes, last_bytes, factor;
  const char *only, *path;
  double error; /* that is allowed */
  int times, rank, ranks;
  ncclComm_t comm;
  cudaStream_t stream;
  char *from, *to, *host; /* last_bytes each */
  size_t count, each;     /* elements, and those of one rank's part */
} run;

/* Which part of a buffer a call reads and writes, for calls in place. */
typedef enum manner { WHOLE, FROM_PART, TO_PART, NOT_IN_PLACE } manner;

typedef struct call {
  const char *name;
  manner in_place;
  ncclResult_t (*make)(const run *it, const void *send, void *receive);
  double (*wanted)(const run *it, size_t i);
  size_t (*results)(const run *it); /* elements that this rank gets */
  double (*moved)(double ranks);    /* share of the size that a link carries */
} call;

static inline size_t all(const run *it) {
  return it->count;
}

static inline size_t part(const run *it) {
  return it->each;
}

static inline size_t parts(const run *it) {
  return it->each * (size_t)it->ranks;
}

static inline size_t all_at_root(const run *it) {
  return it->rank == 0 ? it->count : 0;
}

static inline size_t parts_at_root(const run *it) {
  return it->rank == 0 ? parts(it) : 0;
}

static inline double sum(const run *it, size_t i) {
  return value_of(it->ranks * (it->ranks + 1) / 2 - 1, i);
}

static inline double part_of_sum(const run *it, size_t i) {
  return sum(it, (size_t)it->rank * it->each + i);
}

static inline double of_root(const run *it, size_t i) {
  (void)it;
  return value_of(0, i);
}

static inline double part_of_root(const run *it, size_t i) {
  return value_of(0, (size_t)it->rank * it->each + i);
}

static inline double of_each(const run *it, size_t i) {
  return value_of((int)(i / it->each), i % it->each);
}

static inline double part_of_each(const run *it, size_t i) {
  return value_of((int)(i / it->each), (size_t)it->rank * it->each + i % it->each);
}

static inline double of_left(const run *it, size_t i) {
  return value_of((it->rank + it->ranks - 1) % it->ranks, i);
}

static inline double once(double ranks) {
  (void)ranks;
  return 1;
}

static inline double others(double ranks) {
  return (ranks - 1) / ranks;
}

static inline double there_and_back(double ranks) {
  return 2 * (ranks - 1) / ranks;
}

static inline ncclResult_t all_reduce(const run *it, const void *send, void *receive) {
  return ncclAllReduce(send, receive, it->count, it->as->type, ncclSum, it->comm, it->stream);
}

static inline ncclResult_t reduce(const run *it, const void *send, void *receive) {
  return ncclReduce(send, receive, it->count, it->as->type, ncclSum, 0, it->comm, it->stream);
}

static inline ncclResult_t broadcast(const run *it, const void *send, void *receive) {
  return ncclBroadcast(send, receive, it->count, it->as->type, 0, it->comm, it->stream);
}

static inline ncclResult_t all_gather(const run *it, const void *send, void *receive) {
  return ncclAllGather(send, receive, it->each, it->as->type, it->comm, it->stream);
}

static inline ncclResult_t reduce_scatter(const run *it, const void *send, void *receive) {
  return ncclReduceScatter(send, receive, it->each, it->as->type, ncclSum, it->comm, it->stream);
}

static inline ncclResult_t all_to_all(const run *it, const void *send, void *receive) {
  return ncclAlltoAll(send, receive, it->each, it->as->type, it->comm, it->stream);
}

static inline ncclResult_t gather(const run *it, const void *send, void *receive) {
  return ncclGather(send, receive, it->each, it->as->type, 0, it->comm, it->stream);
}

static inline ncclResult_t scatter(const run *it, const void *send, void *receive) {
  return ncclScatter(send, receive, it->each, it->as->type, 0, it->comm, it->stream);
}

/* Around a ring. */
static inline ncclResult_t send_receive(const run *it, const void *send, void *receive) {
  int right = (it->rank + 1) % it->ranks, left = (it->rank + it->ranks - 1) % it->ranks;
  NCCL(ncclGroupStart());
  NCCL(ncclSend(send, it->count, it->as->type, right, it->comm, it->stream));
  NCCL(ncclRecv(receive, it->count, it->as->type, left, it->comm, it->stream));
  return ncclGroupEnd();
}

static const call calls[] = {{"all_reduce", WHOLE, all_reduce, sum, all, there_and_back},
                             {"reduce", WHOLE, reduce, sum, all_at_root, once},
                             {"broadcast", WHOLE, broadcast, of_root, all, once},
                             {"all_gather", FROM_PART, all_gather, of_each, parts, others},
                             {"reduce_scatter", TO_PART, reduce_scatter, part_of_sum, part, others},
                             {"alltoall", NOT_IN_PLACE, all_to_all, part_of_each, parts, others},
                             {"gather", FROM_PART, gather, of_each, parts_at_root, others},
                             {"scatter", TO_PART, scatter, part_of_root, part, others},
                             {"sendrecv", NOT_IN_PLACE, send_receive, of_left, all, once}};

#endif
