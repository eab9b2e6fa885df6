/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The communicators of a group are made at a time. */

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_comm.h"

/* What one thread makes, one after the other: a communicator of a place, or all parts of a parent,
 * whose ranks make them in that order. */
typedef struct batch {
  lcomm_nccl_making *all; /* of the group, or, for a thread that nobody waits for, its own */
  size_t count, first;
  pthread_t thread;
  bool has_thread;
} batch;

static bool is_of_batch(const lcomm_nccl_making *it, const lcomm_nccl_making *first) {
  return it == first ||
         (it->parent && it->parent == first->parent && it->comm->blocks == first->comm->blocks);
}

/* Its sentence goes with it, wherever the program asks. */
static void make_one(lcomm_nccl_making *it) {
  it->result = lcomm_nccl_make(it);
  if (it->result != ncclSuccess) {
    const char *sentence = lcomm_nccl_last_failure();
    it->comm->sentence = strdup(sentence ? sentence : "");
    it->comm->failure = it->result;
  }
}

static void make_batch(const batch *mine) {
  for (size_t i = mine->first; i < mine->count; i++) {
    if (is_of_batch(&mine->all[i], &mine->all[mine->first])) {
      make_one(&mine->all[i]);
    }
  }
}

/* A thread that is none of the program's calls no CUDA. */
static void stand_for(const batch *mine) {
  lcomm_device_defer_thread(mine->all[mine->first].comm->device);
}

/* Signals of the program are handled by its own threads. */
int lcomm_nccl_thread_create(pthread_t *thread, void *(*run)(void *), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(thread, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static ncclResult_t no_thread(int error) {
  return lcomm_nccl_fail(ncclSystemError, "a thread that makes communicators cannot be started: %s",
                         strerror(error));
}

/* --------------------------------------------------- the program waits for it */

static void *run_batch(void *argument) {
  stand_for(argument);
  make_batch(argument);
  return NULL;
}

/* Give the program what was made; nothing of what failed stays. */
static ncclResult_t hand_over(lcomm_nccl_making *it) {
  ncclComm_t comm = it->comm;
  ncclResult_t result = it->result;
  if (result == ncclSuccess && comm->comm) {
    atomic_store(&comm->state, LCOMM_NCCL_READY);
    lcomm_nccl_list(comm);
    *it->receiver = comm;
    return result;
  }
  if (result == ncclSuccess) {
    *it->receiver = NULL; /* no color */
  } else {
    lcomm_nccl_fail(result, "%s", comm->sentence ? comm->sentence : "");
  }
  lcomm_nccl_comm_free(comm);
  return result;
}

static bool begins_batch(const lcomm_nccl_making *all, size_t i) {
  bool begins = true;
  for (size_t k = 0; k < i && begins; k++) {
    begins = !is_of_batch(&all[i], &all[k]);
  }
  return begins;
}

/* The last one in this thread. */
static ncclResult_t run_all(batch *batches, size_t count) {
  int error = 0;
  for (size_t i = 0; i + 1 < count && error == 0; i++) {
    error = lcomm_nccl_thread_create(&batches[i].thread, run_batch, &batches[i]);
    batches[i].has_thread = error == 0;
  }
  if (error == 0 && count > 0) {
    make_batch(&batches[count - 1]);
  }
  for (size_t i = 0; i < count; i++) {
    if (batches[i].has_thread) {
      pthread_join(batches[i].thread, NULL);
    }
  }
  lcomm_device_free_deferred();
  return error == 0 ? ncclSuccess : no_thread(error);
}

static ncclResult_t make_waiting(lcomm_nccl_making *all, size_t count) {
  batch *batches = calloc(count, sizeof *batches);
  size_t used = 0;
  int device = -1;
  for (size_t i = 0; i < count && batches; i++) {
    all[i].result = ncclSystemError;
    if (all[i].comm->blocks && begins_batch(all, i)) {
      batches[used++] = (batch){.all = all, .count = count, .first = i};
    }
  }
  (void)lcomm_device_current(&device);
  ncclResult_t first =
      batches ? run_all(batches, used) : lcomm_nccl_fail(ncclSystemError, "no memory for a group");
  if (device >= 0) {
    (void)lcomm_device_use(device);
  }
  free(batches);
  for (size_t i = 0; i < count; i++) {
    ncclResult_t result = all[i].comm->blocks ? hand_over(&all[i]) : ncclSuccess;
    first = first == ncclSuccess ? result : first;
  }
  return first;
}

/* --------------------------------------------- the program does not wait for it */

/* Ready, or failed; or the program has no use for it any more. */
static void end_making(const lcomm_nccl_making *it) {
  int expected = LCOMM_NCCL_MAKING;
  ncclComm_t comm = it->comm;
  bool ready = it->result == ncclSuccess && comm->comm;
  if (ready) {
    lcomm_nccl_list(comm);
  }
  if (!atomic_compare_exchange_strong(&comm->state, &expected,
                                      ready ? LCOMM_NCCL_READY : LCOMM_NCCL_FAILED)) {
    lcomm_nccl_drop(comm);
  }
}

static void *run_own_batch(void *argument) {
  batch *mine = argument;
  stand_for(mine);
  make_batch(mine);
  for (size_t i = 0; i < mine->count; i++) {
    end_making(&mine->all[i]);
  }
  free(mine->all);
  free(mine);
  return NULL;
}

/* A copy of what belongs together. NULL: no memory. */
static batch *own_batch(const lcomm_nccl_making *all, size_t count, size_t first) {
  batch *mine = calloc(1, sizeof *mine);
  lcomm_nccl_making *copies = calloc(count, sizeof *copies);
  if (!mine || !copies) {
    free(mine);
    free(copies);
    return NULL;
  }
  mine->all = copies;
  for (size_t i = first; i < count; i++) {
    if (is_of_batch(&all[i], &all[first])) {
      copies[mine->count++] = all[i];
    }
  }
  return mine;
}

static ncclResult_t start_own(batch *mine) {
  pthread_t thread;
  for (size_t i = 0; i < mine->count; i++) {
    const lcomm_nccl_making *it = &mine->all[i];
    bool is_none = it->parent && !it->shrinks && it->color < 0;
    atomic_store(&it->comm->state, is_none ? LCOMM_NCCL_ABANDONED : LCOMM_NCCL_MAKING);
    *it->receiver = is_none ? NULL : it->comm;
  }
  int error = lcomm_nccl_thread_create(&thread, run_own_batch, mine);
  if (error == 0) {
    pthread_detach(thread);
    return ncclInProgress;
  }
  for (size_t i = 0; i < mine->count; i++) {
    *mine->all[i].receiver = NULL;
    lcomm_nccl_comm_free(mine->all[i].comm);
  }
  free(mine->all);
  free(mine);
  return no_thread(error);
}

static ncclResult_t start_all(const lcomm_nccl_making *all, size_t count) {
  ncclResult_t result = ncclSuccess;
  for (size_t i = 0; i < count; i++) {
    if (all[i].comm->blocks || !begins_batch(all, i)) {
      continue;
    }
    batch *mine = own_batch(all, count, i);
    ncclResult_t here =
        mine ? start_own(mine) : lcomm_nccl_fail(ncclSystemError, "no memory for a communicator");
    result = result == ncclSuccess || result == ncclInProgress ? here : result;
  }
  return result;
}

ncclResult_t lcomm_nccl_make_all(lcomm_nccl_making *all, size_t count) {
  if (count == 0) {
    return ncclSuccess;
  }
  ncclResult_t started = start_all(all, count);
  ncclResult_t made = make_waiting(all, count);
  return made == ncclSuccess ? started : made;
}
