/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Streams of emulated devices: waiting for them, and what they are asked. */

#include <unistd.h>

#include "tests/support/emulated/emulated_stream.h"

/* ------------------------------------------------------------------ waiting */

int emulated_finish(void *handle) {
  emulated_watch watch;
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(handle);
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
  if (emulated_stream_is_captured(handle)) {
    return EMULATED_CAPTURE_UNSUPPORTED;
  }
  return emulated_finish(handle);
}

static bool is_of(const emulated_stream *s, int device) {
  return device == LCOMM_DEVICE_NONE || device == s->device;
}

/* Streams of other devices have goals of those who wait for these. */
static bool all_have_reached_their_goal(int device) {
  for (const emulated_stream *s = emulated_streams; s; s = s->next) {
    if (is_of(s, device) && s->done < s->goal) {
      return false;
    }
  }
  return true;
}

void emulated_finish_all(const char *what, int device) {
  emulated_watch watch;
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    s->goal = is_of(s, device) ? s->put : s->goal;
  }
  emulated_watch_begin(&watch, what, "all streams");
  while (!all_have_reached_their_goal(device) && !atomic_load(&emulated.ending)) {
    emulated_watch_step(&watch);
  }
  emulated_watch_end(&watch);
}

/* ---------------------------------------------------------------- questions */

bool emulated_stream_is_work(void *handle) {
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(handle);
  bool is_work = s && s->is_work;
  emulated_unlock();
  return is_work;
}

bool emulated_stream_is_captured(void *handle) {
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(handle);
  bool is_captured = s && s->captured.capture != 0;
  emulated_unlock();
  return is_captured;
}

int emulated_stream_device(void *handle) {
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(handle);
  int device = s ? s->device : -1;
  emulated_unlock();
  return device;
}

uint64_t emulated_stream_identity(void *handle) {
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(handle);
  uint64_t identity = ((uint64_t)getpid() << 32) + (s ? s->number : 0);
  emulated_unlock();
  return identity;
}
