/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Streams of emulated devices: a thread and a queue each. */

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kernels/element.h"
#include "tests/support/emulated/emulated_internal.h"

enum { PAUSE_US = 20 };

typedef struct stream {
  struct stream *next;
  int device;
  uint64_t number;
  pthread_t thread;
  emulated_task *first, *last;  /* the first one is in work */
  uint64_t put, done;           /* tasks so far */
  bool is_destroyed, has_ended; /* the thread goes on until the queue is empty */
  bool is_work, is_captured;
} stream;

static stream *streams;
static stream *legacy[EMULATED_DEVICES_MAX]; /* default streams, of `streams`; made when used */
static uint64_t number_last;

static void sleep_us(uint64_t us) {
  struct timespec moment = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
  nanosleep(&moment, NULL);
}

void emulated_pause(void) {
  sleep_us(PAUSE_US);
}

/* ------------------------------------------------------------------ working */

/* Every other time, for a random while. */
static void dawdle(uint64_t number, uint64_t done) {
  uint64_t seed = emulated.setup.seed;
  if (seed == 0) {
    return;
  }
  uint32_t random = lcomm_random(seed + number * UINT64_C(0x9e3779b97f4a7c15), done);
  if (random & 1) {
    sleep_us((random >> 1) % (emulated.setup.pause_us_max + 1));
  }
}

/* With the lock; `task` is the first of the queue. */
static void take_off(stream *s) {
  emulated_task *task = s->first;
  s->first = task->next;
  s->last = s->first ? s->last : NULL;
  s->done++;
  if (task->drop) {
    task->drop(task);
  }
  free(task);
  emulated_tell();
}

static void *serve(void *argument) {
  stream *s = argument;
  emulated_lock();
  for (;;) {
    while (!s->first && !s->is_destroyed) {
      emulated_wait();
    }
    if (!s->first) {
      break;
    }
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
  s->has_ended = true;
  emulated_unlock();
  return NULL;
}

/* ------------------------------------------------------------------ streams */

/* With the lock. */
static stream *start(int device) {
  stream *s = calloc(1, sizeof *s);
  if (!s) {
    return NULL;
  }
  s->device = device;
  s->number = ++number_last;
  if (pthread_create(&s->thread, NULL, serve, s) != 0) {
    free(s);
    return NULL;
  }
  s->next = streams;
  streams = s;
  return s;
}

/* With the lock: the stream behind a handle, NULL where there is none. */
static stream *find(void *handle) {
  if (!handle) {
    stream **own = &legacy[emulated_current()];
    *own = *own ? *own : start(emulated_current());
    return *own;
  }
  for (stream *s = streams; s; s = s->next) {
    if (s == handle && !s->is_destroyed) {
      return s;
    }
  }
  return NULL;
}

/* With the lock: threads of destroyed streams that have come to their end. */
static void reap(void) {
  for (stream **at = &streams; *at;) {
    stream *s = *at;
    if (!s->has_ended) {
      at = &s->next;
      continue;
    }
    *at = s->next;
    pthread_join(s->thread, NULL); /* it needs the lock no more */
    free(s);
  }
}

static int create(bool is_work, void **handle) {
  emulated_need_no_hold("making a stream");
  emulated_lock();
  reap();
  stream *s = start(emulated_current());
  if (s) {
    s->is_work = is_work;
  }
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
  const stream *s = find(handle);
  bool is_work = s && s->is_work;
  emulated_unlock();
  return is_work;
}

void emulated_capture(void *handle, bool begins) {
  emulated_lock();
  stream *s = find(handle);
  if (s) {
    s->is_captured = begins;
  }
  emulated_unlock();
}

int emulated_stream_captured(void *handle, bool *captured) {
  emulated_lock();
  const stream *s = find(handle);
  *captured = s && s->is_captured;
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

/* At once, as on a device: what is in the stream will still be done. */
int emulated_stream_destroy(void *handle) {
  if (!handle) {
    return 0;
  }
  emulated_lock();
  stream *s = find(handle);
  if (s) {
    s->is_destroyed = true;
    emulated_tell();
  }
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

int emulated_stream_finish(void *handle) {
  emulated_lock();
  stream *s = find(handle);
  for (uint64_t goal = s ? s->put : 0; s && s->done < goal;) {
    emulated_wait();
  }
  emulated_unlock();
  if (s) {
    emulated_after(s);
  }
  return s ? 0 : EMULATED_INVALID_HANDLE;
}

int emulated_stream_device(void *handle) {
  emulated_lock();
  const stream *s = find(handle);
  int device = s ? s->device : -1;
  emulated_unlock();
  return device;
}

uint64_t emulated_stream_identity(void *handle) {
  emulated_lock();
  const stream *s = find(handle);
  uint64_t identity = ((uint64_t)getpid() << 32) + (s ? s->number : 0);
  emulated_unlock();
  return identity;
}

int emulated_streams_end(void) {
  int left = 0;
  emulated_lock();
  atomic_store(&emulated.ending, true);
  for (stream *s = streams; s; s = s->next) {
    left += !s->is_destroyed && s != legacy[s->device];
    s->is_destroyed = true;
  }
  emulated_tell();
  emulated_unlock();
  while (streams) {
    stream *s = streams;
    streams = s->next;
    pthread_join(s->thread, NULL);
    free(s);
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
  stream *s = find(handle);
  if (s) {
    *(s->last ? &s->last->next : &s->first) = task;
    s->last = task;
    s->put++;
    emulated_tell();
  } else {
    if (task->drop) {
      task->drop(task);
    }
    free(task);
  }
  emulated_unlock();
  return s ? 0 : EMULATED_INVALID_HANDLE;
}
