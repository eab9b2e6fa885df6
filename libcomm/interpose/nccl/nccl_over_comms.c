/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: communicators, which NCCL makes and ends, and their backings with them. */

#include <stdio.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_over.h"

/* ---------------------------------------------------------------- backings */

/* With LCOMM_INTERPOSE=require NCCL's communicator goes, too. */
static ncclResult_t refuse(ncclComm_t *comm, const char *failure) {
  ncclResult_t result = lcomm_nccl_fail(
      ncclInvalidUsage, "LCOMM_INTERPOSE=require, and NCCL would make its sums, uncompressed: %s",
      failure);
  (void)lcomm_nccl_now()->calls.CommAbort(*comm);
  *comm = NULL;
  return result;
}

ncclResult_t lcomm_nccl_over_wait(ncclComm_t *comm) {
  lcomm_nccl_backing *backing = *comm ? lcomm_nccl_backing_find(*comm) : NULL;
  if (!backing) {
    return ncclSuccess;
  }
  lcomm_nccl_backing_enter(backing);
  const char *failure = backing->failure;
  lcomm_nccl_backing_leave(backing);
  return failure && lcomm_interpose_is_required() ? refuse(comm, failure) : ncclSuccess;
}

ncclResult_t lcomm_nccl_over_made(ncclResult_t result, ncclComm_t *comm,
                                  const lcomm_nccl_origin *origin) {
  bool is_alone = !origin->is_split && origin->ranks < 2;
  if ((result != ncclSuccess && result != ncclInProgress) || is_alone) {
    return result;
  }
  if (lcomm_nccl_over_in_group()) {
    ncclResult_t deferred = lcomm_nccl_over_defer_comm(comm, origin);
    return deferred == ncclSuccess ? result : deferred;
  }
  if (result == ncclInProgress && origin->whole) {
    lcomm_nccl_over_await_part(comm, origin);
    return result;
  }
  lcomm_nccl_backing_begin(*comm, origin);
  return result == ncclSuccess ? lcomm_nccl_over_wait(comm) : result;
}

/* ------------------------------------------------------------------- making */

static lcomm_nccl_origin meeting(ncclUniqueId *id, int ranks, int rank,
                                 const ncclConfig_t *config) {
  lcomm_nccl_origin origin = {.ranks = ranks, .rank = rank, .device = lcomm_device_noted()};
  origin.meets = id && lcomm_nccl_place_take(id, &origin.place);
  lcomm_nccl_config_name(config, origin.name);
  return origin;
}

/* NCCL may call itself through the loader while it makes communicators. */
static _Thread_local bool inside;

static ncclResult_t get_id(ncclUniqueId *id) {
  ncclResult_t result = lcomm_nccl_below()->GetUniqueId(id);
  if (result == ncclSuccess && id && !inside) {
    lcomm_nccl_place_add(id);
    lcomm_device_free_deferred();
  }
  return result;
}

static ncclResult_t init_rank(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank) {
  if (inside) {
    return lcomm_nccl_below()->CommInitRank(comm, ranks, id, rank);
  }
  lcomm_nccl_origin origin = meeting(&id, ranks, rank, NULL);
  inside = true;
  ncclResult_t result = lcomm_nccl_below()->CommInitRank(comm, ranks, id, rank);
  inside = false;
  return lcomm_nccl_over_made(result, comm, &origin);
}

static ncclResult_t init_rank_config(ncclComm_t *comm, int ranks, ncclUniqueId id, int rank,
                                     ncclConfig_t *config) {
  if (inside) {
    return lcomm_nccl_below()->CommInitRankConfig(comm, ranks, id, rank, config);
  }
  lcomm_nccl_origin origin = meeting(&id, ranks, rank, config);
  inside = true;
  ncclResult_t result = lcomm_nccl_below()->CommInitRankConfig(comm, ranks, id, rank, config);
  inside = false;
  return lcomm_nccl_over_made(result, comm, &origin);
}

/* All ranks meet at the place of the first id; the others' are taken out, in a copy. */
static ncclResult_t init_scalable(ncclComm_t *comm, int ranks, int rank, int count,
                                  ncclUniqueId *ids, ncclConfig_t *config) {
  enum { IDS_MAX = 1024 };
  lcomm_nccl_place place;
  if (!ids || count < 1 || count > IDS_MAX) {
    return lcomm_nccl_below()->CommInitRankScalable(comm, ranks, rank, count, ids, config);
  }
  ncclUniqueId bare[IDS_MAX];
  memcpy(bare, ids, (size_t)count * sizeof *ids);
  lcomm_nccl_origin origin = meeting(&bare[0], ranks, rank, config);
  for (int i = 1; i < count; i++) {
    (void)lcomm_nccl_place_take(&bare[i], &place);
  }
  ncclResult_t result =
      lcomm_nccl_below()->CommInitRankScalable(comm, ranks, rank, count, bare, config);
  return lcomm_nccl_over_made(result, comm, &origin);
}

/* Of a device that is not in use by this thread. */
static int note(int device) {
  int before = -1, noted = -1;
  (void)lcomm_device_current(&before);
  if (lcomm_device_use(device) == LCOMM_OK) {
    noted = lcomm_device_noted();
  }
  (void)lcomm_device_use(before);
  return noted;
}

/* One thread has all ranks: their backings are made at the same time. */
static ncclResult_t make_all(ncclComm_t *comms, const int *devices, lcomm_nccl_origin *origin) {
  ncclResult_t result = ncclSuccess;
  bool waits = !lcomm_nccl_over_in_group();
  for (origin->rank = 0; origin->rank < origin->ranks && result == ncclSuccess; origin->rank++) {
    origin->device = note(devices ? devices[origin->rank] : origin->rank);
    if (waits) {
      lcomm_nccl_backing_begin(comms[origin->rank], origin);
    } else {
      result = lcomm_nccl_over_defer_comm(&comms[origin->rank], origin);
    }
  }
  for (int i = 0; waits && i < origin->ranks && result == ncclSuccess; i++) {
    result = lcomm_nccl_over_wait(&comms[i]);
  }
  return result;
}

static ncclResult_t init_all(ncclComm_t *comms, int count, const int *devices) {
  lcomm_nccl_origin origin = {.ranks = count};
  inside = true;
  ncclResult_t result = lcomm_nccl_below()->CommInitAll(comms, count, devices);
  inside = false;
  if (result != ncclSuccess || !comms || count < 2) {
    return result;
  }
  origin.meets = lcomm_nccl_place_guess(&origin.place) == ncclSuccess;
  return make_all(comms, devices, &origin);
}

/* ------------------------------------------------------------------- ending */

static ncclResult_t finalize(ncclComm_t comm) {
  lcomm_nccl_over_end_whole(comm);
  lcomm_nccl_backing_end(comm, NULL);
  return lcomm_nccl_below()->CommFinalize(comm);
}

/* What threads have left on devices until now is freed, which may wait for the device. So that is
 * not done in calls that are to unblock: another communicator may still be stuck there. */
static ncclResult_t destroy(ncclComm_t comm) {
  lcomm_nccl_over_end_whole(comm);
  lcomm_nccl_backing_end(comm, NULL);
  ncclResult_t result = lcomm_nccl_below()->CommDestroy(comm);
  lcomm_device_free_deferred();
  return result;
}

static ncclResult_t abort_all(ncclComm_t comm) {
  lcomm_nccl_over_end_whole(comm);
  lcomm_nccl_backing_end(comm, "ncclCommAbort was called");
  return lcomm_nccl_below()->CommAbort(comm);
}

static ncclResult_t revoke(ncclComm_t comm, int flags) {
  lcomm_nccl_backing_end(comm, "ncclCommRevoke was called");
  return lcomm_nccl_below()->CommRevoke(comm, flags);
}

/* While another thread is in a call of libcomm, that call finds out. */
static ncclResult_t look(lcomm_nccl_backing *backing) {
  ncclResult_t result = ncclSuccess;
  if (pthread_mutex_trylock(&backing->lock) != 0) {
    return result;
  }
  if (backing->is_making) {
    result = ncclInProgress;
  } else if (backing->failure && lcomm_interpose_is_required()) {
    result = lcomm_nccl_fail(
        ncclInvalidUsage, "LCOMM_INTERPOSE=require, and NCCL would make its sums, uncompressed: %s",
        backing->failure);
  } else if (backing->now.comm) {
    result = lcomm_nccl_ended(backing->now.comm, lcomm_progress(backing->now.comm));
  }
  pthread_mutex_unlock(&backing->lock);
  return result;
}

/* A communicator is ready when its backing is, and those of the parts that it was asked for. */
static ncclResult_t async_error(ncclComm_t comm, ncclResult_t *error) {
  ncclResult_t result = lcomm_nccl_below()->CommGetAsyncError(comm, error);
  if (result != ncclSuccess || *error != ncclSuccess) {
    return result;
  }
  lcomm_nccl_backing *backing = lcomm_nccl_backing_find(comm);
  if (!lcomm_nccl_over_take_parts_of(comm)) {
    *error = ncclInProgress;
  } else if (backing) {
    *error = look(backing);
  }
  return result;
}

void lcomm_nccl_over_take_comms(lcomm_nccl_calls *calls) {
  calls->GetUniqueId = get_id;
  calls->CommInitRank = init_rank;
  calls->CommInitRankConfig = init_rank_config;
  calls->CommInitRankScalable = init_scalable;
  calls->CommInitAll = init_all;
  calls->CommFinalize = finalize;
  calls->CommDestroy = destroy;
  calls->CommAbort = abort_all;
  calls->CommRevoke = revoke;
  calls->CommGetAsyncError = async_error;
}
