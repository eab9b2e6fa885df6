/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The end of communicators. lcomm_destroy() waits for all ranks, and a thread may have several of
 * them: so the ranks of one process end together, with the last of them that the program destroys.
 * Those before are parked. */

#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_choice.h"

static struct {
  pthread_mutex_t lock;
  ncclComm_t first; /* all of this process that are ready, also the parked ones */
} living = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lcomm_nccl_list(ncclComm_t comm) {
  pthread_mutex_lock(&living.lock);
  comm->next = living.first;
  living.first = comm;
  pthread_mutex_unlock(&living.lock);
}

/* With the lock. */
static void take_off(const struct ncclComm *comm) {
  ncclComm_t *it = &living.first;
  while (*it && *it != comm) {
    it = &(*it)->next;
  }
  if (*it) {
    *it = comm->next;
  }
}

/* Those of a family, as a list, if all of them are parked; else NULL. With the lock. */
static ncclComm_t take_parked(uint64_t family) {
  ncclComm_t taken = NULL;
  for (ncclComm_t it = living.first; it; it = it->next) {
    if (it->family == family && !it->is_parked) {
      return NULL;
    }
  }
  for (ncclComm_t it = living.first, next = NULL; it; it = next) {
    next = it->next;
    if (it->family == family) {
      take_off(it);
      it->next = taken;
      taken = it;
    }
  }
  return taken;
}

/* ---------------------------------------------------------------- together */

static lcomm_status finish(ncclComm_t comm) {
  lcomm_nccl_choices_free(comm);
  lcomm_status status = lcomm_destroy(comm->comm);
  status = lcomm_nccl_controlled_end(comm->controlled, status);
  comm->controlled = NULL;
  return status;
}

static void end_one(ncclComm_t comm) {
  comm->failure = lcomm_nccl_ended(NULL, finish(comm));
}

/* What it has on devices the program's thread frees. */
static void *end_by_thread(void *argument) {
  ncclComm_t comm = argument;
  lcomm_device_defer_thread(comm->device);
  end_one(comm);
  return NULL;
}

/* Of all that is in flight, and is begun later. Any thread. */
void lcomm_nccl_give_up(ncclComm_t comm, const char *reason) {
  lcomm_abort(comm->comm, reason);
  lcomm_nccl_controlled_abort(comm->controlled, reason);
}

/* The first ones by threads, the last one by this. */
static ncclResult_t end_list(ncclComm_t all) {
  ncclResult_t result = ncclSuccess;
  if (!all) {
    return result;
  }
  pthread_t thread;
  bool has_thread = all->next && pthread_create(&thread, NULL, end_by_thread, all) == 0;
  if (all->next && !has_thread) { /* others could wait for it for ever */
    lcomm_nccl_give_up(all, "a rank cannot start a thread that ends its communicator");
    end_one(all);
  }
  if (all->next) {
    result = end_list(all->next);
  } else {
    end_one(all);
  }
  if (has_thread) {
    pthread_join(thread, NULL);
    lcomm_device_free_deferred();
  }
  result = result == ncclSuccess ? all->failure : result;
  lcomm_nccl_comm_free(all);
  return result;
}

/* A call of another thread ends before. */
static void wait_for_calls(ncclComm_t comm) {
  pthread_mutex_lock(&comm->lock);
  pthread_mutex_unlock(&comm->lock);
}

void lcomm_nccl_drop(ncclComm_t comm) {
  if (comm->comm) {
    lcomm_nccl_give_up(comm, "ncclCommAbort was called");
    pthread_mutex_lock(&living.lock);
    take_off(comm);
    ncclComm_t others = take_parked(comm->family);
    pthread_mutex_unlock(&living.lock);
    wait_for_calls(comm);
    (void)finish(comm);
    (void)end_list(others);
  }
  lcomm_nccl_comm_free(comm);
}

/* One that is made goes with the thread that makes it. */
static bool abandon(ncclComm_t comm) {
  int expected = LCOMM_NCCL_MAKING;
  return atomic_compare_exchange_strong(&comm->state, &expected, LCOMM_NCCL_ABANDONED);
}

/* --------------------------------------------------------- NCCL's functions */

static ncclResult_t destroy(ncclComm_t comm) {
  if (!comm || abandon(comm)) {
    return ncclSuccess;
  }
  if (atomic_load(&comm->state) != LCOMM_NCCL_READY) {
    lcomm_nccl_drop(comm);
    return ncclSuccess;
  }
  wait_for_calls(comm);
  pthread_mutex_lock(&living.lock);
  comm->is_parked = true;
  ncclComm_t all = take_parked(comm->family);
  pthread_mutex_unlock(&living.lock);
  return end_list(all);
}

/* Unblocks all ranks; what this one has in flight ends with an error that nobody waits for. */
static ncclResult_t abort_all(ncclComm_t comm) {
  if (comm && !abandon(comm)) {
    lcomm_nccl_drop(comm);
  }
  return ncclSuccess;
}

/* What is in flight ends with an error, on all ranks; the communicator can be shrunk, or ended. */
static ncclResult_t revoke(ncclComm_t comm, int flags) {
  ncclResult_t result = lcomm_nccl_check("ncclCommRevoke", comm);
  if (result == ncclSuccess && flags != 0) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclCommRevoke: flags are %d, not 0", flags);
  }
  if (result == ncclSuccess) {
    lcomm_nccl_give_up(comm, "ncclCommRevoke was called");
  }
  return result;
}

/* All that is in flight is over when streams are; ncclCommDestroy waits for the other ranks. */
static ncclResult_t finalize(ncclComm_t comm) {
  return lcomm_nccl_check("ncclCommFinalize", comm);
}

void lcomm_nccl_take_ends(lcomm_nccl_calls *calls) {
  calls->CommFinalize = finalize;
  calls->CommDestroy = destroy;
  calls->CommAbort = abort_all;
  calls->CommRevoke = revoke;
}
