/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* When a stream takes up what it was given. On a device with few queues, what many streams were
 * given stands in one line: what is in front begins when its stream has done all before it and
 * what it waits for has come; only then is it the turn of what stands behind it, of whatever
 * stream. A test may also want one task at a time, of a stream that is drawn. */

#include <string.h>

#include "kernels/element.h"
#include "tests/support/emulated/emulated_stream.h"

typedef struct queue {
  emulated_task *first, *last;
} queue;

static queue queues[2 * EMULATED_QUEUES_MAX];
static bool is_stopped, is_taken; /* by nobody; by the one that was drawn */
static uint64_t drawn;

void emulated_turn_begin(void) {
  memset(queues, 0, sizeof(queues));
  is_stopped = is_taken = false;
  drawn = 0;
}

static bool is_ready(const emulated_stream *s) {
  return s->first && !s->is_busy && (s->queue < 0 || queues[s->queue].first == s->first) &&
         (!s->first->is_ready || s->first->is_ready(s->first));
}

const emulated_stream *emulated_turn_before(const emulated_stream *s) {
  const emulated_task *first = s->queue < 0 ? NULL : queues[s->queue].first;
  return first && first->stream != s ? first->stream : NULL;
}

/* ------------------------------------------------------------------- drawing */

static emulated_stream *draw(void) {
  uint32_t count = 0, random = lcomm_random(emulated.setup.turns, drawn++);
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    count += is_ready(s);
  }
  uint32_t place = count > 0 ? random % count : 0;
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    if (is_ready(s) && place-- == 0) {
      return s;
    }
  }
  return NULL;
}

static void choose(void) {
  emulated_stream *s = is_taken || is_stopped ? NULL : draw();
  if (s) {
    is_taken = s->is_chosen = true;
    pthread_cond_signal(&s->given);
  }
}

/* -------------------------------------------------------------------- turns */

void emulated_turn_add(emulated_stream *s) {
  if (s->queue >= 0) {
    queue *q = &queues[s->queue];
    *(q->last ? &q->last->next_in_queue : &q->first) = s->last;
    q->last = s->last;
  }
  if (!is_stopped && s->first == s->last) {
    pthread_cond_signal(&s->given);
  }
}

static void leave_queue(const emulated_stream *s) {
  if (s->queue < 0) {
    return;
  }
  queue *q = &queues[s->queue];
  q->first = s->first->next_in_queue;
  q->last = q->first ? q->last : NULL;
  if (q->first) {
    pthread_cond_signal(&q->first->stream->given);
  }
}

static bool may_take(const emulated_stream *s) {
  if (!s->first || is_stopped) {
    return false;
  }
  if (emulated.setup.turns != 0) {
    choose();
    return s->is_chosen;
  }
  return is_ready(s);
}

bool emulated_turn_take(emulated_stream *s) {
  if (atomic_load(&emulated.ending)) { /* no queue matters any more */
    return s->first;
  }
  if (!may_take(s)) {
    return false;
  }
  leave_queue(s);
  s->is_busy = true;
  return true;
}

void emulated_turn_end(emulated_stream *s) {
  s->is_busy = false;
  if (s->is_chosen) {
    s->is_chosen = is_taken = false;
    choose();
  }
}

void emulated_turn_look(void) {
  for (emulated_stream *s = emulated_streams; s; s = s->next) {
    if (s->first && !s->is_busy) {
      pthread_cond_signal(&s->given);
    }
  }
}

void emulated_streams_stop(bool stopped) {
  emulated_lock();
  is_stopped = stopped;
  emulated_turn_look();
  emulated_unlock();
}
