/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_NCCL_WORLD_H
#define LCOMM_TESTS_NCCL_WORLD_H

/* Programs that call NCCL where libcomm makes the calls, on emulated devices whose streams take
 * their time. MPI carries ids only. Included by one program each. */

#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_backing.h"
#include "libcomm/interpose/nccl/nccl_functions.h"
#include "libcomm/transport/mpi/mpi_table.h"
#include "tests/engine/on_emulated_device.h"

#define DECLARE(name, kind, n, ...)                                                                \
  LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
LCOMM_NCCL_LIST(DECLARE)

enum { LONGEST = 6000, ROOM = 4 * LONGEST };

/* What a rank works with in most properties. */
typedef struct world {
  ncclComm_t comm;
  cudaStream_t stream;
  int *from, *to; /* ROOM elements each, on the device */
} world;

static inline void fine(ncclResult_t result) {
  require(result == ncclSuccess, "%d: %s", (int)result, ncclGetLastError(NULL));
}

static inline void refused(ncclResult_t result, ncclResult_t wanted, const char *word) {
  const char *sentence = ncclGetLastError(NULL);
  require(result == wanted && strstr(sentence, word), "%d, and no '%s' in: %s", (int)result, word,
          sentence);
}

static inline ncclUniqueId share_id(void) {
  ncclUniqueId id;
  if (mpi_rank == 0) {
    fine(ncclGetUniqueId(&id));
  }
  MPI_Bcast(&id, sizeof(id), MPI_BYTE, 0, MPI_COMM_WORLD);
  return id;
}

/* Of communicators that are made from here on. */
static inline void pose_as_nodes(int count) {
  char nodes[16];
  snprintf(nodes, sizeof(nodes), "%d", count);
  setenv("LCOMM_NODES", nodes, 1);
}

static inline ncclComm_t make_on(int nodes, const char *policy) {
  ncclComm_t comm = NULL;
  pose_as_nodes(nodes);
  setenv("LCOMM_POLICY", policy, 1);
  fine(ncclCommInitRank(&comm, mpi_size, share_id(), mpi_rank));
  return comm;
}

/* Every rank poses as a node. */
static inline ncclComm_t make(const char *policy) {
  return make_on(mpi_size, policy);
}

static inline world begin_on(int nodes, const char *policy) {
  world it = {.comm = make_on(nodes, policy)};
  check(device->stream.work_create((void **)&it.stream));
  it.from = on_device(ROOM * sizeof(int));
  it.to = on_device(ROOM * sizeof(int));
  return it;
}

static inline world begin(const char *policy) {
  return begin_on(mpi_size, policy);
}

static inline void end(world *it) {
  fine(ncclCommDestroy(it->comm));
  check(device->stream.destroy(it->stream));
  check(device->memory.free(it->from));
  check(device->memory.free(it->to));
}

static inline void put(int *there, int first, int step, int count) {
  static int values[ROOM];
  for (int i = 0; i < count; i++) {
    values[i] = first + step * i;
  }
  to_device(there, values, (size_t)count * sizeof(int));
}

/* `there` holds first, first + step, ..., when the stream has come so far. */
static inline void holds(const world *it, const int *there, int first, int step, int count) {
  static int values[ROOM];
  check(device->stream.finish(it->stream));
  from_device(values, there, (size_t)count * sizeof(int));
  for (int i = 0; i < count; i++) {
    require(values[i] == first + step * i, "element %d is %d, not %d", i, values[i],
            first + step * i);
  }
}

/* ---------------------------------------------------------------- aborting */

/* Rank 0 makes no call, and aborts; the others see that, and their streams go on. */
static inline void abort_while_others_wait(world *it, ncclDataType_t type, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank > 0) {
    ncclResult_t error =
        ncclAllReduce(it->from, it->to, (size_t)count, type, ncclSum, it->comm, it->stream);
    while (error == ncclSuccess) {
      fine(ncclCommGetAsyncError(it->comm, &error));
      usleep(1000);
    }
    require(error == ncclRemoteError, "the error is %d", (int)error);
    check(device->stream.finish(it->stream));
  }
  fine(ncclCommAbort(it->comm));
  check(device->stream.destroy(it->stream));
  check(device->memory.free(it->from));
  check(device->memory.free(it->to));
}

/* ------------------------------------------------------------- last properties */

static inline void wait_for_threads(void) {
  while (!lcomm_nccl_threads_wait()) {
  }
}

/* What threads have left on the device a call of the program frees. */
static inline void nothing_of_threads_is_left_on_the_device(void) {
  ncclUniqueId id;
  wait_for_threads();
  fine(ncclGetUniqueId(&id));
  require_nothing_left_on_device();
}

/* Where communicators were given up: they keep what they have, and nothing of it is at work. */
static inline void the_device_comes_to_an_end(void) {
  wait_for_threads();
  (void)emulated_end();
}

/* ------------------------------------------------------------------------ main */

static inline void no_world(int *rank, int *size) {
  *rank = -1;
  *size = 0;
}

/* Nothing else is tried where a system has an NCCL. libcomm takes no part in MPI, as in programs
 * that are not linked with libcomm-with-mpi.so: MPI makes communicators in one order only. */
static inline void be_alone(void) {
  static lcomm_mpi_table without;
  without = *lcomm_mpi_registered();
  without.world = no_world;
  (void)lcomm_mpi_register(&without);
  setenv("LCOMM_NCCL", "alone", 1);
}

static inline int alone_main(int *argc, char ***argv, const mpi_property *all, int count) {
  be_alone();
  return pausing_device_main(argc, argv, all, count);
}

#endif
