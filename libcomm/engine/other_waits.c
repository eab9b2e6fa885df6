/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/other_waits.h"

#include <pthread.h>
#include <stddef.h>

enum { WAITS_MAX = 16 };

typedef struct wait {
  const struct lcomm_comm *comm; /* NULL: a free place */
  uint64_t host_hash;
  uint64_t pid;
} wait;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static wait waits[WAITS_MAX];

/* The place of a communicator, or NULL. */
static wait *place_of(const struct lcomm_comm *comm) {
  for (int i = 0; i < WAITS_MAX; i++) {
    if (waits[i].comm == comm) {
      return &waits[i];
    }
  }
  return NULL;
}

void lcomm_other_waits_add(const struct lcomm_comm *comm, uint64_t host_hash, uint64_t pid) {
  pthread_mutex_lock(&lock);
  wait *place = place_of(comm);
  bool known = place != NULL;
  place = known ? place : place_of(NULL);
  if (place && (pid != 0 || !known)) {
    *place = (wait){comm, host_hash, pid};
  }
  pthread_mutex_unlock(&lock);
}

void lcomm_other_waits_remove(const struct lcomm_comm *comm) {
  pthread_mutex_lock(&lock);
  wait *place = place_of(comm);
  if (place) {
    *place = (wait){0};
  }
  pthread_mutex_unlock(&lock);
}

bool lcomm_other_waits_find(const struct lcomm_comm *comm, uint64_t *host_hash, uint64_t *pid) {
  bool found = false;
  *host_hash = 0;
  *pid = 0;
  pthread_mutex_lock(&lock);
  for (int i = 0; i < WAITS_MAX; i++) {
    if (waits[i].comm && waits[i].comm != comm) {
      found = true;
      *host_hash = *pid != 0 ? *host_hash : waits[i].host_hash;
      *pid = *pid != 0 ? *pid : waits[i].pid;
    }
  }
  pthread_mutex_unlock(&lock);
  return found;
}
