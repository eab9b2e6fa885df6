/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Communicators: made by ids, and asked. How they are made: nccl_make.c; of others: nccl_part.c;
 * their end: nccl_end.c. */

#include "libcomm/interpose/nccl/nccl_alone_control.h"

#include <stdlib.h>
#include <string.h>

ncclResult_t lcomm_nccl_check(const char *function, const struct ncclComm *comm) {
  if (!comm) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: comm is NULL", function);
  }
  int state = atomic_load(&comm->state);
  if (state == LCOMM_NCCL_READY) {
    return ncclSuccess;
  }
  return state == LCOMM_NCCL_FAILED
             ? lcomm_nccl_fail(comm->failure, "%s: comm could not be made: %s", function,
                               comm->sentence)
             : lcomm_nccl_fail(ncclInvalidArgument,
                               "%s: comm is still being made; call ncclCommGetAsyncError until it "
                               "tells no more ncclInProgress",
                               function);
}

/* ------------------------------------------------------------------- making */

static ncclResult_t init(const char *name, ncclComm_t *comm, int ranks, const ncclUniqueId *id,
                         int rank, const ncclConfig_t *config) {
  lcomm_nccl_making it = {.receiver = comm};
  if (!comm) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: comm is NULL", name);
  }
  if (ranks < 1 || rank < 0 || rank >= ranks) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: there is no rank %d of %d", name, rank, ranks);
  }
  if (!lcomm_nccl_id_read(id, &it.place)) {
    return lcomm_nccl_fail(ncclInvalidArgument,
                           "%s: the id is none of libcomm's ncclGetUniqueId; all ranks preload "
                           "libcomm-nccl.so, and get the id from one of them",
                           name);
  }
  ncclResult_t result = lcomm_nccl_comm_new(name, NULL, config, &it.comm);
  if (result != ncclSuccess) {
    return result;
  }
  it.comm->rank = rank;
  it.comm->size = ranks;
  return lcomm_nccl_submit_making(&it);
}

static ncclResult_t init_rank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  return init("ncclCommInitRank", comm, ranks, &id, rank, NULL);
}

static ncclResult_t init_rank_config(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                     ncclConfig_t *config) {
  return init("ncclCommInitRankConfig", comm, ranks, &id, rank, config);
}

/* All ranks meet at the first of the places. */
static ncclResult_t init_scalable(ncclComm_t *comm, int ranks, int rank, int count,
                                  ncclUniqueId *ids, ncclConfig_t *config) {
  if (!ids || count < 1) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclCommInitRankScalable: there is no id");
  }
  return init("ncclCommInitRankScalable", comm, ranks, &ids[0], rank, config);
}

/* Each with another device in use; that of the thread is again what it was. */
static ncclResult_t init_each(ncclComm_t *comms, int count, const int *devices, ncclUniqueId id) {
  int before = -1;
  ncclResult_t result = lcomm_nccl_ended(NULL, lcomm_device_current(&before));
  for (int i = 0; i < count && result == ncclSuccess; i++) {
    result = lcomm_nccl_ended(NULL, lcomm_device_use(devices ? devices[i] : i));
    result =
        result == ncclSuccess ? init("ncclCommInitAll", &comms[i], count, &id, i, NULL) : result;
  }
  (void)lcomm_device_use(before < 0 ? 0 : before);
  return result;
}

static ncclResult_t init_all(ncclComm_t *comms, int count, const int *devices) {
  ncclUniqueId id;
  if (!comms || count < 1) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclCommInitAll: there is no communicator");
  }
  ncclResult_t result = lcomm_nccl_id_get(&id);
  if (result == ncclSuccess) {
    result = lcomm_nccl_group_start();
  }
  if (result != ncclSuccess) {
    return result;
  }
  ncclResult_t each = init_each(comms, count, devices, id);
  if (each != ncclSuccess) {
    lcomm_nccl_group_drop();
    return each;
  }
  return lcomm_nccl_group_end();
}

/* ------------------------------------------------------------------- asking */

static ncclResult_t ask(const char *name, ncclComm_t comm, int *receiver, int value) {
  if (!receiver) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: a pointer is NULL", name);
  }
  ncclResult_t result = lcomm_nccl_check(name, comm);
  if (result == ncclSuccess) {
    *receiver = value;
  }
  return result;
}

static ncclResult_t count(const ncclComm_t comm, int *ranks) {
  return ask("ncclCommCount", comm, ranks, comm ? comm->size : 0);
}

static ncclResult_t user_rank(const ncclComm_t comm, int *rank) {
  return ask("ncclCommUserRank", comm, rank, comm ? comm->rank : 0);
}

static ncclResult_t device_of(const ncclComm_t comm, int *device) {
  return ask("ncclCommCuDevice", comm, device, comm && comm->device > 0 ? comm->device : 0);
}

/* While another thread is in a call, that call finds out. */
static ncclResult_t ask_libcomm(ncclComm_t comm) {
  ncclResult_t error = ncclSuccess;
  if (pthread_mutex_trylock(&comm->lock) == 0) {
    const lcomm_comm *whose = comm->comm;
    lcomm_status status = lcomm_progress(comm->comm);
    status = status == LCOMM_OK ? lcomm_nccl_controlled_progress(comm->controlled, &whose) : status;
    error = lcomm_nccl_ended(whose, status);
    pthread_mutex_unlock(&comm->lock);
  }
  return error;
}

static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *error) {
  if (!comm || !error) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclCommGetAsyncError: a pointer is NULL");
  }
  int state = atomic_load(&comm->state);
  if (state == LCOMM_NCCL_MAKING) {
    *error = ncclInProgress;
  } else {
    *error = state == LCOMM_NCCL_READY ? ask_libcomm(comm)
                                       : lcomm_nccl_fail(comm->failure, "%s", comm->sentence);
  }
  return ncclSuccess;
}

void lcomm_nccl_take_comms(lcomm_nccl_calls *calls) {
  calls->GetUniqueId = lcomm_nccl_id_get;
  calls->CommInitRank = init_rank;
  calls->CommInitRankConfig = init_rank_config;
  calls->CommInitRankScalable = init_scalable;
  calls->CommInitAll = init_all;
  calls->CommGetAsyncError = async_error;
  calls->CommCount = count;
  calls->CommUserRank = user_rank;
  calls->CommCuDevice = device_of;
}
