/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_STAND_IN_NCCL_CALLS_H
#define LCOMM_TESTS_STAND_IN_NCCL_CALLS_H

/* The calls of a small NCCL. Ranks share a file of memory. Each call of a communicator has a
 * number: a rank puts its data there when all have taken those of the call before, and takes those
 * of all when all have put theirs. No step waits, so one thread may have several ranks in a group.
 * Included by one library. */

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "tests/interpose/nccl/stand_in_nccl_small.h"

enum { RANKS_MAX = 8, SLOT_BYTES = 1 << 20, OPS_MAX = 64 };

typedef struct shared {
  atomic_int joined, left;
  atomic_bool aborted;
  atomic_uint_fast64_t put[RANKS_MAX], taken[RANKS_MAX]; /* the number of the last call */
  char slots[RANKS_MAX][SLOT_BYTES];
} shared;

struct ncclComm {
  char name[96]; /* of the file */
  int rank, ranks;
  uint64_t calls, splits;
  bool waits_not;    /* blocking is 0 */
  ncclComm_t part;   /* that was made of it, and is told later */
  ncclComm_t *there; /* at this place */
  shared *all;
};

typedef struct call {
  void (*take)(const struct call *it);
  ncclComm_t comm;
  const void *send;
  void *receive;
  size_t count, sent; /* elements; of one rank */
  ncclDataType_t type;
  ncclRedOp_t op;
  int root;
  cudaStream_t stream;
  uint64_t number;
  bool is_put, is_over;
} call;

static _Thread_local struct {
  int depth, calls, comms;
  call call[OPS_MAX];
  ncclComm_t comm[OPS_MAX]; /* that wait for their ranks */
} group;

/* ------------------------------------------------------------------- data */

static inline size_t stand_in_size(ncclDataType_t type) {
  return type == ncclFloat64 || type == ncclInt64 ? 8 : type == ncclBfloat16 ? 2 : 4;
}

static inline double stand_in_get(const char *from, size_t i, ncclDataType_t type) {
  union {
    uint32_t bits;
    float number;
  } wide = {0};
  if (type == ncclBfloat16) {
    wide.bits = (uint32_t)((const uint16_t *)(const void *)from)[i] << 16;
    return (double)wide.number;
  }
  return type == ncclFloat64   ? ((const double *)(const void *)from)[i]
         : type == ncclFloat32 ? (double)((const float *)(const void *)from)[i]
                               : (double)((const int *)(const void *)from)[i];
}

static inline void stand_in_set(void *to, size_t i, ncclDataType_t type, double value) {
  union {
    uint32_t bits;
    float number;
  } wide = {.number = (float)value};
  if (type == ncclBfloat16) {
    ((uint16_t *)to)[i] = (uint16_t)(wide.bits >> 16);
  } else if (type == ncclFloat64) {
    ((double *)to)[i] = value;
  } else if (type == ncclFloat32) {
    ((float *)to)[i] = wide.number;
  } else {
    ((int *)to)[i] = (int)value;
  }
}

static double combined(const call *it, size_t i) {
  const shared *all = it->comm->all;
  double value = stand_in_get(all->slots[0], i, it->type);
  for (int rank = 1; rank < it->comm->ranks; rank++) {
    double other = stand_in_get(all->slots[rank], i, it->type);
    value = it->op == ncclMax ? (other > value ? other : value) : value + other;
  }
  return it->op == ncclAvg ? value / it->comm->ranks : value;
}

static void take_sum(const call *it) {
  for (size_t i = 0; i < it->count; i++) {
    stand_in_set(it->receive, i, it->type, combined(it, i));
  }
}

static void take_part(const call *it) {
  for (size_t i = 0; i < it->count; i++) {
    stand_in_set(it->receive, i, it->type, combined(it, i + it->count * (size_t)it->comm->rank));
  }
}

static void take_all(const call *it) {
  size_t size = it->count * stand_in_size(it->type);
  for (int rank = 0; rank < it->comm->ranks; rank++) {
    memcpy((char *)it->receive + size * (size_t)rank, it->comm->all->slots[rank], size);
  }
}

static void take_root(const call *it) {
  memcpy(it->receive, it->comm->all->slots[it->root], it->count * stand_in_size(it->type));
}

/* ------------------------------------------------------------------- calls */

static bool all_have(const ncclComm_t comm, const atomic_uint_fast64_t *numbers, uint64_t number) {
  for (int rank = 0; rank < comm->ranks; rank++) {
    if (atomic_load(&numbers[rank]) < number) {
      return false;
    }
  }
  return true;
}

static void step(call *it) {
  shared *all = it->comm->all;
  int rank = it->comm->rank;
  if (!it->is_put && all_have(it->comm, all->taken, it->number - 1)) {
    memcpy(all->slots[rank], it->send, it->sent * stand_in_size(it->type));
    atomic_store(&all->put[rank], it->number);
    it->is_put = true;
  }
  if (it->is_put && all_have(it->comm, all->put, it->number)) {
    it->take(it);
    atomic_store(&all->taken[rank], it->number);
    it->is_over = true;
  }
}

static ncclResult_t finish(call *calls, int count) {
  int over = 0;
  for (int i = 0; i < count; i++) {
    if (stand_in_small.device && stand_in_small.device->stream.finish(calls[i].stream) != 0) {
      return ncclUnhandledCudaError;
    }
  }
  while (over < count) {
    over = 0;
    for (int i = 0; i < count; i++) {
      if (atomic_load(&calls[i].comm->all->aborted)) {
        return ncclRemoteError;
      }
      if (!calls[i].is_over) {
        step(&calls[i]);
      }
      over += calls[i].is_over;
    }
    usleep(over < count ? 20 : 0);
  }
  return ncclSuccess;
}

static ncclResult_t submit(call it) {
  if (!it.comm || it.sent * stand_in_size(it.type) > SLOT_BYTES || group.calls == OPS_MAX) {
    return ncclInvalidArgument;
  }
  atomic_fetch_add(it.take == take_sum || it.take == take_part ? &stand_in_small.sums
                                                               : &stand_in_small.moves,
                   1);
  it.number = ++it.comm->calls;
  if (group.depth == 0) {
    return finish(&it, 1);
  }
  group.call[group.calls++] = it;
  return ncclSuccess;
}

#endif
