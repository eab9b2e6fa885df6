/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Events of emulated devices, recorded and awaited. Who waits for an event waits for what was
 * recorded last when it began to, so each record has a mark of its own. Where other processes look,
 * records are counted on a page that all of them see. */

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/emulated/emulated_event.h"
#include "tests/support/emulated/emulated_stream.h"

typedef struct mark_task {
  emulated_task base;
  emulated_record *of;
  uint64_t number; /* of a record on a page */
} mark_task;

static void drop(emulated_task *base) {
  emulated_record_let_go(((mark_task *)base)->of);
}

static void run_record(emulated_task *base) {
  mark_task *task = (mark_task *)base;
  emulated_before(task->of);
  if (task->of->shared) {
    atomic_store(&task->of->shared->reached, task->number);
    return;
  }
  emulated_lock();
  task->of->is_over = true;
  emulated_turn_look();
  emulated_unlock();
}

/* With the lock. */
static bool is_over(const emulated_task *base) {
  const mark_task *task = (const mark_task *)base;
  return task->of->shared ? atomic_load(&task->of->shared->reached) >= task->number
                          : task->of->is_over;
}

static void describe_wait(const emulated_task *base, char text[EMULATED_TEXT_MAX]) {
  const emulated_record *of = ((const mark_task *)base)->of;
  uint64_t stream = of->shared ? atomic_load(&of->shared->stream) : of->stream;
  snprintf(text, EMULATED_TEXT_MAX, "waits for an event of stream %u of process %u",
           (unsigned)(stream & UINT32_MAX), (unsigned)(stream >> 32));
}

/* It is over: what was done before it is seen from here on. */
static void run_wait(emulated_task *base) {
  const mark_task *task = (mark_task *)base;
  if (task->of->shared) {
    (void)atomic_load(&task->of->shared->reached);
  }
  emulated_after(task->of);
}

/* ------------------------------------------------------------ record and wait */

/* With the lock: count it on the page. Records of two streams could end in another
 * order than they are counted in, so the second one is refused while the first is
 * not over. */
static int count_record(emulated_board *at, uint64_t stream, uint64_t *number) {
  bool is_over = atomic_load(&at->reached) >= atomic_load(&at->recorded);
  if (!is_over && atomic_load(&at->stream) != stream) {
    return EMULATED_NOT_SUPPORTED;
  }
  atomic_store(&at->stream, stream);
  *number = atomic_fetch_add(&at->recorded, 1) + 1;
  return 0;
}

/* With the lock: what the task is to mark as over. */
static int mark_record(emulated_event *it, int device, uint64_t stream, mark_task *task) {
  if (!it || it->device != device) {
    return EMULATED_INVALID_HANDLE;
  }
  if (it->page) {
    int error = count_record(it->page->shared, stream, &task->number);
    task->of = error ? NULL : emulated_record_hold(it->page);
    return error;
  }
  emulated_record *fresh = calloc(1, sizeof *fresh);
  if (!fresh) {
    return EMULATED_OUT_OF_MEMORY;
  }
  fresh->stream = stream;
  emulated_record_let_go(it->last);
  it->last = emulated_record_hold(fresh);
  task->of = emulated_record_hold(fresh);
  return 0;
}

/* In a stream that is captured it marks a place of the graph, and nothing that ever is over. */
static bool is_captured_mark(void *handle, void *stream) {
  emulated_lock();
  const emulated_stream *s = emulated_stream_find(stream);
  emulated_event *it = emulated_event_find(handle);
  bool is_captured = s && s->captured.capture != 0 && it && !it->page;
  if (it) {
    it->captured = s ? s->captured : (emulated_frontier){0};
  }
  emulated_unlock();
  return is_captured;
}

int emulated_mark(void *handle, void *stream) {
  if (is_captured_mark(handle, stream)) {
    return 0;
  }
  int device = emulated_stream_device(stream);
  uint64_t identity = emulated_stream_identity(stream);
  mark_task *task = emulated_task_new(sizeof *task, run_record);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->base.drop = drop;
  emulated_lock();
  int error = mark_record(emulated_event_find(handle), device, identity, task);
  emulated_unlock();
  if (error != 0) {
    free(task);
    return error;
  }
  return emulated_put(stream, &task->base);
}

int emulated_event_record(void *handle, void *stream) {
  emulated_enter(EMULATED_CALL_EVENT_RECORD);
  return emulated_mark(handle, stream);
}

/* False where neither of the two is captured; else it is done, or refused. */
static bool follow_in_capture(void *stream, void *handle, int *error) {
  emulated_lock();
  emulated_stream *s = emulated_stream_find(stream);
  const emulated_event *it = emulated_event_find(handle);
  bool is_event = it && it->captured.capture != 0, is_stream = s && s->captured.capture != 0;
  if (is_event && s) {
    *error = emulated_capture_follow(s, &it->captured);
  } else if (is_stream) {
    *error = it && !it->last && !it->page ? 0 : EMULATED_CAPTURE_ISOLATION;
  }
  emulated_unlock();
  return is_event || is_stream;
}

int emulated_stream_wait(void *stream, void *handle) {
  emulated_enter(EMULATED_CALL_STREAM_WAIT);
  return emulated_follow(stream, handle);
}

int emulated_follow(void *stream, void *handle) {
  int error = 0;
  if (follow_in_capture(stream, handle, &error)) {
    return error;
  }
  mark_task *task = emulated_task_new(sizeof *task, run_wait);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->base.drop = drop;
  task->base.is_ready = is_over;
  task->base.describe = describe_wait;
  emulated_lock();
  const emulated_event *it = emulated_event_find(handle);
  emulated_record *of = it && it->page ? it->page : it ? it->last : NULL;
  task->of = of ? emulated_record_hold(of) : NULL;
  task->number = of && of->shared ? atomic_load(&of->shared->recorded) : 0;
  emulated_unlock();
  if (!of) { /* no event, or one that was never recorded */
    free(task);
    return it ? 0 : EMULATED_INVALID_HANDLE;
  }
  return emulated_put(stream, &task->base);
}

int emulated_event_query(void *handle, bool *over) {
  emulated_enter(EMULATED_CALL_EVENT_QUERY);
  return emulated_look(handle, over);
}

int emulated_look(void *handle, bool *over) {
  emulated_lock();
  const emulated_event *it = emulated_event_find(handle);
  if (it && it->captured.capture != 0) {
    emulated_unlock();
    return EMULATED_CAPTURED_EVENT;
  }
  const emulated_record *of = it && it->page ? it->page : it ? it->last : NULL;
  const emulated_board *at = of ? of->shared : NULL;
  *over = it && (at   ? atomic_load(&at->reached) >= atomic_load(&at->recorded)
                 : of ? of->is_over
                      : true);
  emulated_unlock();
  if (of && *over) {
    emulated_after(of);
  }
  return it ? 0 : EMULATED_INVALID_HANDLE;
}
