/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A small NCCL: communicators and functions. */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_functions.h"
#include "tests/interpose/nccl/stand_in_nccl_calls.h"

#define API __attribute__((visibility("default")))

#define DECLARE(name, kind, n, ...)                                                                \
  LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);
LCOMM_NCCL_LIST(DECLARE)

enum { ID_BYTES = 8, VERSION = 23007 };

API stand_in_small_data stand_in_small;

/* ------------------------------------------------------------------- calls */

API ncclResult_t ncclAllReduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return submit((call){take_sum, comm, send, receive, count, count, type, op, .stream = stream});
}

API ncclResult_t ncclReduceScatter(const void *send, void *receive, size_t count,
                                   ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                   cudaStream_t stream) {
  size_t sent = comm ? count * (size_t)comm->ranks : 0;
  return submit((call){take_part, comm, send, receive, count, sent, type, op, .stream = stream});
}

API ncclResult_t ncclAllGather(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclComm_t comm, cudaStream_t stream) {
  return submit((call){take_all, comm, send, receive, count, count, type, .stream = stream});
}

API ncclResult_t ncclBroadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                               int root, ncclComm_t comm, cudaStream_t stream) {
  size_t sent = comm && comm->rank == root ? count : 0;
  return submit(
      (call){take_root, comm, send, receive, count, sent, type, .root = root, .stream = stream});
}

/* ------------------------------------------------------------ communicators */

static ncclComm_t join(const char *name, int ranks, int rank) {
  ncclComm_t comm = ranks <= RANKS_MAX ? calloc(1, sizeof *comm) : NULL;
  int file = comm ? shm_open(name, O_RDWR | O_CREAT, 0600) : -1;
  void *memory = MAP_FAILED;
  if (file >= 0 && ftruncate(file, sizeof(shared)) == 0) {
    memory = mmap(NULL, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (file >= 0) {
    close(file);
  }
  if (memory == MAP_FAILED) {
    free(comm);
    return NULL;
  }
  snprintf(comm->name, sizeof(comm->name), "%s", name);
  comm->rank = rank;
  comm->ranks = ranks;
  comm->all = memory;
  atomic_fetch_add(&comm->all->joined, 1);
  atomic_fetch_add(&stand_in_small.made, 1);
  return comm;
}

static bool is_ready(ncclComm_t comm) {
  return atomic_load(&comm->all->joined) >= comm->ranks;
}

static ncclResult_t wait_for(ncclComm_t comm) {
  while (!is_ready(comm)) {
    usleep(20);
  }
  return ncclSuccess;
}

/* An id with anything behind its own bytes is not one that this library has made. */
static bool read_id(const ncclUniqueId *id, char *name, size_t size) {
  int used = snprintf(name, size, "/stand-in-nccl-");
  for (size_t i = 0; i < sizeof(id->internal); i++) {
    if (i < ID_BYTES) {
      used += snprintf(name + used, size - (size_t)used, "%02x", (unsigned char)id->internal[i]);
    } else if (id->internal[i]) {
      return false;
    }
  }
  return true;
}

API ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                        ncclConfig_t *config) {
  char name[96];
  if (!read_id(&id, name, sizeof(name)) || !(*comm = join(name, ranks, rank))) {
    return ncclInvalidArgument;
  }
  if (config && config->blocking == 0) {
    (*comm)->waits_not = true;
    return ncclInProgress;
  }
  if (group.depth == 0) {
    return wait_for(*comm);
  }
  group.comm[group.comms++] = *comm;
  return ncclSuccess;
}

API ncclResult_t ncclCommInitRank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return ncclCommInitRankConfig(comm, ranks, id, rank, NULL);
}

API ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  memset(id, 0, sizeof *id);
  return getrandom(id->internal, ID_BYTES, 0) == ID_BYTES ? ncclSuccess : ncclSystemError;
}

API ncclResult_t ncclCommInitAll(ncclComm_t *comms, int count, const int *devices) {
  ncclUniqueId id;
  char name[96];
  (void)devices;
  ncclGetUniqueId(&id);
  read_id(&id, name, sizeof(name));
  for (int i = 0; i < count; i++) {
    comms[i] = join(name, count, i);
  }
  return ncclSuccess;
}

/* Of a communicator that does not block it is told when that is asked next. */
static ncclResult_t tell_part(ncclComm_t comm, ncclComm_t made, ncclComm_t *part) {
  if (!comm->waits_not) {
    *part = made;
    return made ? wait_for(made) : ncclSuccess;
  }
  *part = NULL;
  comm->part = made;
  comm->there = part;
  return ncclInProgress;
}

/* Of ranks with the same color, by key, then by rank. */
API ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *part,
                               ncclConfig_t *config) {
  int mine[2] = {color, key}, all[RANKS_MAX][2] = {{0}}, ranks = 0, rank = 0;
  char name[128];
  (void)config;
  call it = {take_all, comm, mine, all, 2, 2, ncclInt32, .number = ++comm->calls};
  ncclResult_t result = group.depth > 0 ? ncclInvalidUsage : finish(&it, 1);
  if (result != ncclSuccess) {
    *part = NULL;
    return result;
  }
  for (int i = 0; i < comm->ranks; i++) {
    bool before = all[i][1] < key || (all[i][1] == key && i < comm->rank);
    ranks += all[i][0] == color;
    rank += all[i][0] == color && before;
  }
  snprintf(name, sizeof(name), "%.60s-%d-%d", comm->name, (int)comm->splits++, color);
  return tell_part(comm, color >= 0 ? join(name, ranks, rank) : NULL, part);
}

static bool is_without(int rank, const int *without, int count) {
  for (int i = 0; i < count; i++) {
    if (without[i] == rank) {
      return true;
    }
  }
  return false;
}

API ncclResult_t ncclCommShrink(ncclComm_t comm, int *without, int count, ncclComm_t *part,
                                ncclConfig_t *config, int flags) {
  int ranks = 0, rank = 0;
  char name[128];
  (void)config;
  (void)flags;
  for (int i = 0; i < comm->ranks; i++) {
    bool stays = !is_without(i, without, count);
    ranks += stays;
    rank += stays && i < comm->rank;
  }
  snprintf(name, sizeof(name), "%.60s-%d-less", comm->name, (int)comm->splits++);
  return tell_part(comm, join(name, ranks, rank), part);
}

API ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (!comm) {
    return ncclSuccess;
  }
  if (atomic_fetch_add(&comm->all->left, 1) + 1 == comm->ranks) {
    shm_unlink(comm->name);
  }
  munmap(comm->all, sizeof *comm->all);
  free(comm);
  atomic_fetch_add(&stand_in_small.ended, 1);
  return ncclSuccess;
}

API ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm) {
    atomic_store(&comm->all->aborted, true);
  }
  return ncclCommDestroy(comm);
}

API ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  return comm ? ncclSuccess : ncclInvalidArgument;
}

API ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error) {
  bool ready = comm && is_ready(comm) && (!comm->part || is_ready(comm->part));
  if (ready && comm->part) {
    *comm->there = comm->part;
    comm->part = NULL;
  }
  *error = ready ? ncclSuccess : ncclInProgress;
  return comm ? ncclSuccess : ncclInvalidArgument;
}

API ncclResult_t ncclCommCount(const ncclComm_t comm, int *count) {
  *count = comm ? comm->ranks : 0;
  return comm ? ncclSuccess : ncclInvalidArgument;
}

API ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
  *rank = comm->rank;
  return ncclSuccess;
}

/* ------------------------------------------------------------------ the rest */

API ncclResult_t ncclGroupStart(void) {
  group.depth++;
  return ncclSuccess;
}

API ncclResult_t ncclGroupEnd(void) {
  ncclResult_t result = group.depth > 0 ? ncclSuccess : ncclInvalidUsage;
  group.depth -= result == ncclSuccess;
  if (result != ncclSuccess || group.depth > 0) {
    return result;
  }
  for (int i = 0; i < group.comms; i++) {
    wait_for(group.comm[i]);
  }
  result = finish(group.call, group.calls);
  group.calls = group.comms = 0;
  return result;
}

API ncclResult_t ncclGetVersion(int *version) {
  *version = VERSION;
  return ncclSuccess;
}

API const char *ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess ? "no error" : "an error of the small one";
}

API const char *ncclGetLastError(ncclComm_t comm) {
  (void)comm;
  return "";
}

API ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *simulation) {
  simulation->estimatedTime = 1;
  group.depth--;
  group.calls = group.comms = 0;
  return ncclSuccess;
}
