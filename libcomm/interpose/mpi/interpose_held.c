/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_held.h"

#include <stdlib.h>

#include "libcomm/interpose/mpi/interpose_comm.h"
#include "libcomm/interpose/mpi/interpose_staging.h"

pthread_mutex_t lcomm_interpose_held_lock = PTHREAD_MUTEX_INITIALIZER;

static struct {
  lcomm_interpose_held *spare, *undelivered; /* failures that the program has not got */
  lcomm_interpose_held *newest;              /* of those that are linked */
} all;

static lcomm_interpose_held *take_spare(void) {
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  lcomm_interpose_held *it = all.spare;
  all.spare = it ? it->next : NULL;
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  return it ? it : malloc(sizeof *it);
}

lcomm_interpose_held *lcomm_interpose_held_make(const lcomm_interpose_call *call) {
  lcomm_interpose_held *it = take_spare();
  if (it) {
    lcomm_interpose_comm_retain(call->at);
    *it = (lcomm_interpose_held){.call = *call,
                                 .size_bytes =
                                     (MPI_Count)(call->count * lcomm_dtype_size(call->dtype)),
                                 .code = MPI_ERR_OTHER};
  }
  return it;
}

void lcomm_interpose_held_recycle(lcomm_interpose_held *it) {
  lcomm_interpose_comm *at = it->call.at;
  if (it->call.staging) {
    lcomm_interpose_staging_release(it->call.staging, it->call.status);
  }
  pthread_mutex_lock(&lcomm_interpose_held_lock);
  it->next = all.spare;
  all.spare = it;
  pthread_mutex_unlock(&lcomm_interpose_held_lock);
  lcomm_interpose_comm_release(at);
}

void lcomm_interpose_held_free(void) {
  while (all.spare) {
    lcomm_interpose_held *next = all.spare->next;
    free(all.spare);
    all.spare = next;
  }
}

/* -------------------------------------------------------------------- linked */

void lcomm_interpose_held_link(lcomm_interpose_held *it) {
  it->older = all.newest;
  if (it->older) {
    it->older->newer = it;
  }
  all.newest = it;
}

void lcomm_interpose_held_unlink(lcomm_interpose_held *it) {
  if (it->newer) {
    it->newer->older = it->older;
  } else {
    all.newest = it->older;
  }
  if (it->older) {
    it->older->newer = it->newer;
  }
}

lcomm_interpose_held *lcomm_interpose_held_find(MPI_Request request) {
  lcomm_interpose_held *it = all.newest;
  while (it && it->request != request) {
    it = it->older;
  }
  return it;
}

/* ------------------------------------------------------------------- failures */

void lcomm_interpose_held_fail(lcomm_interpose_held *it, lcomm_status status) {
  it->failed = true;
  it->call.status = status;
  it->next = all.undelivered;
  all.undelivered = it;
}

bool lcomm_interpose_held_take_failure(const lcomm_interpose_held *wanted) {
  for (lcomm_interpose_held **link = &all.undelivered; *link; link = &(*link)->next) {
    if (*link == wanted) {
      *link = wanted->next;
      return true;
    }
  }
  return false;
}

lcomm_interpose_held *lcomm_interpose_held_next_failure(const lcomm_interpose_comm *at) {
  lcomm_interpose_held **link = &all.undelivered;
  while (*link && at && (*link)->call.at != at) {
    link = &(*link)->next;
  }
  lcomm_interpose_held *it = *link;
  if (it) {
    *link = it->next;
  }
  return it;
}
