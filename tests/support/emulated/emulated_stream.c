/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Streams of emulated devices: a thread and a queue each. */

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/element.h"
#include "tests/support/emulated/emulated_stream.h"

emulated_stream *emulated_streams;
/* Default streams, made when they are used: one for all, and one of each thread. */
static emulated_stream *legacy[EMULATED_DEVICES_MAX];
static _Thread_local emulated_stream *own[EMULATED_DEVICES_MAX];
static _Thread_local uint64_t own_of; /* which devices: how often some had ended before */
static uint64_t ended;
static uint64_t number_last;

/* ------------------------------------------------------------------ working */

/* Every other time, for a random while. */
static void dawdle(uint64_t number, uint64_t done) {
  uint64_t seed = emulated.setup.seed;
  if (seed == 0) {
    return;
  }
  uint32_t random = lcomm_random(seed + number * UINT64_C(0x9e3779b97f4a7c15), done);
  if (random & 1) {
    struct timespec moment = {0, (long)((random >> 1) % (emulated.setup.pause_us_max + 1)) * 1000};
    nanosleep(&moment, NULL);
  }
}

/* With the lock; the first task is over. */
static void take_off(emulated_stream *s) {
  emulated_task *task = s->first;
  s->first = task->next;
  s->last = s->first ? s->last : NULL;
  s->done++;
  if (task->drop) {
    task->drop(task);
  }
  free(task);
  emulated_watch_moved();
  emulated_turn_end(s);
  emulated_tell();
}

/* With the lock, which is given up meanwhile. */
static void work(emulated_stream *s) {
  emulated_task *task = s->first;
  uint64_t number = s->number, done = s->done;
  emulated_unlock();
  emulated_after(task);
  if (!atomic_load(&emulated.ending)) {
    dawdle(number, done);
    task->run(task);
  }
  emulated_before(s);
  emulated_lock();
  take_off(s);
}

/* Numbers in memory, and events of other processes, change without a word. */
static void wait_to_be_given(emulated_stream *s, double *pause_s) {
  static const double LONGEST_S = 4e-4;
  if (s->first && s->first->is_ready) {
    emulated_wait_for(&s->given, *pause_s);
    *pause_s = *pause_s < LONGEST_S ? *pause_s * 2 : LONGEST_S;
  } else {
    emulated_wait(&s->given);
  }
}

static void *serve(void *argument) {
  static const double SHORTEST_S = 2e-5;
  emulated_stream *s = argument;
  double pause_s = SHORTEST_S;
  emulated_lock();
  while (s->first || !s->is_destroyed) {
    if (emulated_turn_take(s)) {
      work(s);
      pause_s = SHORTEST_S;
    } else {
      wait_to_be_given(s, &pause_s);
    }
  }
  s->has_ended = true;
  emulated_unlock();
  return NULL;
}

/* ------------------------------------------------------------------ streams */

/* That of the next stream. */
static int next_queue(bool is_work) {
  int queues = emulated.setup.queues;
  return queues > 0 ? (int)((number_last + 1) % (uint64_t)queues) + is_work * queues : -1;
}

/* With the lock. */
static emulated_stream *start(int device, bool is_work, int queue) {
  emulated_stream *s = calloc(1, sizeof *s);
  if (!s) {
    return NULL;
  }
  s->device = device;
  s->number = ++number_last;
  s->is_work = is_work;
  s->queue = queue;
  pthread_cond_init(&s->given, NULL);
  if (pthread_create(&s->thread, NULL, serve, s) != 0) {
    free(s);
    return NULL;
  }
  s->next = emulated_streams;
  emulated_streams = s;
  return s;
}

static void join(emulated_stream *s) {
  pthread_join(s->thread, NULL);
  pthread_cond_destroy(&s->given);
  free(s);
}

static emulated_stream *find_default(emulated_stream **streams) {
  emulated_stream **it = &streams[emulated_current()];
  *it = *it ? *it : start(emulated_current(), false, next_queue(false));
  if (*it) {
    (*it)->is_default = true;
  }
  return *it;
}

static emulated_stream *find_own(void) {
  if (own_of != ended) {
    memset(own, 0, sizeof(own));
    own_of = ended;
  }
  return find_default(own);
}

emulated_stream *emulated_stream_find(void *handle) {
  enum { LEGACY = 1, PER_THREAD = 2 }; /* CUDA's names */
  if ((uintptr_t)handle <= LEGACY) {
    return find_default(legacy);
  }
  if ((uintptr_t)handle == PER_THREAD) {
    return find_own();
  }
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    if (s == handle && !s->is_destroyed) {
      return s;
    }
  }
  return NULL;
}

/* With the lock: threads of destroyed streams that have come to their end. */
static void reap(void) {
  for (emulated_stream **at = &emulated_streams; *at;) {
    emulated_stream *s = *at;
    if (!s->has_ended) {
      at = &s->next;
      continue;
    }
    *at = s->next;
    join(s); /* it needs the lock no more */
  }
}

static int create(bool is_work, void **handle) {
  emulated_enter(EMULATED_CALL_STREAM_CREATE);
  emulated_lock();
  reap();
  emulated_stream *s = start(emulated_current(), is_work, next_queue(is_work));
  emulated_unlock();
  *handle = s;
  return s ? 0 : EMULATED_OUT_OF_MEMORY;
}

int emulated_stream_create(void **handle) {
  return create(false, handle);
}

int emulated_work_stream_create(void **handle) {
  return create(true, handle);
}

static int destroy(void *handle) {
  emulated_lock();
  emulated_stream *s = emulated_stream_find(handle);
  if (s) {
    s->is_destroyed = true;
    pthread_cond_signal(&s->given);
  }
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

/* At once, as on a device: what is in the stream will still be done. */
int emulated_stream_destroy(void *handle) {
  emulated_enter(EMULATED_CALL_STREAM_DESTROY);
  return handle ? destroy(handle) : 0;
}

void *emulated_branch_begin(int device) {
  emulated_lock();
  reap();
  emulated_stream *s = start(device, true, -1);
  emulated_unlock();
  return s;
}

void emulated_branch_end(void *handle) {
  (void)destroy(handle);
}

/* ------------------------------------------------------------------ the end */

int emulated_streams_end(void) {
  int left = 0;
  emulated_lock();
  atomic_store(&emulated.ending, true);
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    left += !s->is_destroyed && !s->is_default;
    s->is_destroyed = true;
    pthread_cond_signal(&s->given);
  }
  emulated_tell();
  emulated_unlock();
  while (emulated_streams) {
    emulated_stream *s = emulated_streams;
    emulated_streams = s->next;
    join(s);
  }
  memset(legacy, 0, sizeof(legacy));
  ended++;
  return left;
}

/* -------------------------------------------------------------------- tasks */

void *emulated_task_new(size_t size, void (*run)(emulated_task *task)) {
  emulated_task *task = calloc(1, size);
  if (task) {
    task->run = run;
    task->size = size;
  }
  return task;
}

int emulated_put(void *handle, emulated_task *task) {
  emulated_before(task);
  emulated_lock();
  emulated_stream *s = emulated_stream_find(handle);
  if (s && emulated_capture_takes(s, task)) {
    emulated_unlock();
    return 0;
  }
  if (s) {
    *(s->last ? &s->last->next : &s->first) = task;
    s->last = task;
    s->put++;
    task->stream = s;
    emulated_turn_add(s);
  } else {
    if (task->drop) {
      task->drop(task);
    }
    free(task);
  }
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}
