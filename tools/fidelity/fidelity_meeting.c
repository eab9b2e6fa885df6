/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_meeting.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct meeting {
  int ranks;
  fidelity_rank_work *work;
  void *context;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int arrived;           /* in this round */
  unsigned long round;   /* counts those that are over */
  bool broken;           /* a rank has left */
  unsigned char *gather; /* of the round: `ranks` pieces of `size` bytes */
  size_t size;
} meeting;

typedef struct participant {
  meeting *of;
  int rank;
  pthread_t thread;
  bool good;
} participant;

/* All ranks come here before any goes on. False when one of them has left. */
static bool meet(meeting *self) {
  unsigned long round = self->round;
  if (++self->arrived == self->ranks) {
    self->arrived = 0;
    self->round++;
    pthread_cond_broadcast(&self->changed);
  }
  while (self->round == round && !self->broken) {
    pthread_cond_wait(&self->changed, &self->lock);
  }
  return self->round != round;
}

static bool make_room(meeting *self, size_t size) {
  if (self->size >= size) {
    return true;
  }
  unsigned char *more = realloc(self->gather, (size_t)self->ranks * size);
  if (more) {
    self->gather = more;
    self->size = size;
  }
  return more != NULL;
}

/* Pieces of a round have one size, so none is copied when the room grows. */
static bool exchange(meeting *self, int rank, const void *send, void *receive, size_t size) {
  if (!make_room(self, size)) {
    return false;
  }
  memcpy(self->gather + (size_t)rank * size, send, size);
  if (!meet(self)) {
    return false;
  }
  memcpy(receive, self->gather, (size_t)self->ranks * size);
  return meet(self);
}

static int allgather(void *context, const void *send, void *receive, size_t size) {
  const participant *mine = context;
  pthread_mutex_lock(&mine->of->lock);
  bool good = exchange(mine->of, mine->rank, send, receive, size);
  pthread_mutex_unlock(&mine->of->lock);
  return good ? 0 : 1;
}

static void leave(meeting *self) {
  pthread_mutex_lock(&self->lock);
  self->broken = true;
  pthread_cond_broadcast(&self->changed);
  pthread_mutex_unlock(&self->lock);
}

static void *live(void *context) {
  participant *mine = context;
  lcomm_bootstrap boot = {mine->rank, mine->of->ranks, mine, allgather};
  mine->good = mine->of->work(mine->of->context, mine->rank, &boot);
  if (!mine->good) {
    leave(mine->of);
  }
  return NULL;
}

static bool run_all(meeting *self, participant *all) {
  int started = 0;
  bool good = true;
  for (; started < self->ranks; started++) {
    all[started] = (participant){.of = self, .rank = started};
    if (pthread_create(&all[started].thread, NULL, live, &all[started]) != 0) {
      leave(self);
      good = false;
      break;
    }
  }
  for (int rank = 0; rank < started; rank++) {
    pthread_join(all[rank].thread, NULL);
    good = good && all[rank].good;
  }
  return good;
}

bool fidelity_meeting_run(int ranks, fidelity_rank_work *work, void *context) {
  meeting self = {.ranks = ranks, .work = work, .context = context};
  participant *all = calloc((size_t)ranks, sizeof *all);
  if (!all) {
    return false;
  }
  pthread_mutex_init(&self.lock, NULL);
  pthread_cond_init(&self.changed, NULL);
  bool good = run_all(&self, all);
  pthread_cond_destroy(&self.changed);
  pthread_mutex_destroy(&self.lock);
  free(self.gather);
  free(all);
  return good;
}
