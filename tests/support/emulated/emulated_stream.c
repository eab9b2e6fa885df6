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
static emulated_stream *legacy[EMULATED_DEVICES_MAX]; /* default streams; made when used */
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

static int queue_of(uint64_t number, bool is_work) {
  int queues = emulated.setup.queues;
  return queues > 0 ? (int)(number % (uint64_t)queues) + is_work * queues : -1;
}

/* With the lock. */
static emulated_stream *start(int device, bool is_work) {
  emulated_stream *s = calloc(1, sizeof *s);
  if (!s) {
    return NULL;
  }
  s->device = device;
  s->number = ++number_last;
  s->is_work = is_work;
  s->queue = queue_of(s->number, is_work);
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

/* With the lock: the stream behind a handle, NULL where there is none. */
static emulated_stream *find(void *handle) {
  if (!handle) {
    emulated_stream **own = &legacy[emulated_current()];
    *own = *own ? *own : start(emulated_current(), false);
    return *own;
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
  emulated_stream *s = start(emulated_current(), is_work);
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

bool emulated_stream_is_work(void *handle) {
  emulated_lock();
  const emulated_stream *s = find(handle);
  bool is_work = s && s->is_work;
  emulated_unlock();
  return is_work;
}

void emulated_capture(void *handle, bool begins) {
  emulated_lock();
  emulated_stream *s = find(handle);
  if (s) {
    s->is_captured = begins;
  }
  emulated_unlock();
}

int emulated_stream_captured(void *handle, bool *captured) {
  emulated_enter(EMULATED_CALL_STREAM_CAPTURED);
  emulated_lock();
  const emulated_stream *s = find(handle);
  *captured = s && s->is_captured;
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

/* At once, as on a device: what is in the stream will still be done. */
int emulated_stream_destroy(void *handle) {
  emulated_enter(EMULATED_CALL_STREAM_DESTROY);
  if (!handle) {
    return 0;
  }
  emulated_lock();
  emulated_stream *s = find(handle);
  if (s) {
    s->is_destroyed = true;
    pthread_cond_signal(&s->given);
  }
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

/* ------------------------------------------------------------------ waiting */

int emulated_finish(void *handle) {
  emulated_watch watch;
  emulated_lock();
  const emulated_stream *s = find(handle);
  uint64_t goal = s ? s->put : 0;
  emulated_watch_begin(&watch, "stream.finish", "a stream");
  while (s && s->done < goal) {
    emulated_watch_step(&watch);
  }
  emulated_watch_end(&watch);
  emulated_unlock();
  if (s) {
    emulated_after(s);
  }
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

int emulated_stream_finish(void *handle) {
  emulated_enter(EMULATED_CALL_STREAM_FINISH);
  return emulated_finish(handle);
}

static bool all_have_reached_their_goal(void) {
  for (const emulated_stream *s = emulated_streams; s; s = s->next) {
    if (s->done < s->goal) {
      return false;
    }
  }
  return true;
}

void emulated_finish_all(const char *what) {
  emulated_watch watch;
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    s->goal = s->put;
  }
  emulated_watch_begin(&watch, what, "all streams");
  while (!all_have_reached_their_goal() && !atomic_load(&emulated.ending)) {
    emulated_watch_step(&watch);
  }
  emulated_watch_end(&watch);
}

bool emulated_streams_held(void) {
  for (const emulated_stream *s = emulated_streams; s; s = s->next) {
    for (const emulated_task *task = s->first; task; task = task->next) {
      if (task->holds && !task->is_ready(task)) {
        return true;
      }
    }
  }
  return false;
}

/* ---------------------------------------------------------------- questions */

int emulated_stream_device(void *handle) {
  emulated_lock();
  const emulated_stream *s = find(handle);
  int device = s ? s->device : -1;
  emulated_unlock();
  return device;
}

uint64_t emulated_stream_identity(void *handle) {
  emulated_lock();
  const emulated_stream *s = find(handle);
  uint64_t identity = ((uint64_t)getpid() << 32) + (s ? s->number : 0);
  emulated_unlock();
  return identity;
}

int emulated_streams_end(void) {
  int left = 0;
  emulated_lock();
  atomic_store(&emulated.ending, true);
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    left += !s->is_destroyed && s != legacy[s->device];
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
  return left;
}

/* -------------------------------------------------------------------- tasks */

void *emulated_task_new(size_t size, void (*run)(emulated_task *task)) {
  emulated_task *task = calloc(1, size);
  if (task) {
    task->run = run;
  }
  return task;
}

int emulated_put(void *handle, emulated_task *task) {
  emulated_before(task);
  emulated_lock();
  emulated_stream *s = find(handle);
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
