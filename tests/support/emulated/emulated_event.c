/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Events of emulated devices. Who waits for an event waits for what was recorded
 * last when it began to, so each record has a mark of its own. Where other
 * processes look, records are counted on a page that all of them see. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/emulated/emulated_stream.h"

/* What processes share. */
typedef struct board {
  _Atomic uint64_t recorded, reached; /* how many records were made, how many are over */
  _Atomic uint64_t stream;            /* where the last one was made */
} board;

/* A record, or a page that is mapped. Held by the event and by tasks. */
typedef struct mark {
  int holders;
  bool is_over;
  uint64_t stream; /* where it was made, without a page */
  board *shared;   /* of a page */
} mark;

typedef struct event {
  struct event *next;
  int device;
  mark *last; /* NULL: never recorded */
  mark *page; /* NULL: of this process alone */
  int file;
  emulated_handle handle;
  bool is_opened;
} event;

static event *events;

/* With the lock. */
static event *find(void *handle) {
  event *it = events;
  while (it && it != handle) {
    it = it->next;
  }
  return it;
}

/* ------------------------------------------------------------------- marks */

static mark *hold(mark *m) {
  m->holders++;
  return m;
}

static void let_go(mark *m) {
  if (!m || --m->holders > 0) {
    return;
  }
  if (m->shared) {
    munmap(m->shared, sizeof *m->shared);
  }
  free(m);
}

typedef struct mark_task {
  emulated_task base;
  mark *of;
  uint64_t number; /* of a record on a page */
} mark_task;

static void drop(emulated_task *base) {
  let_go(((mark_task *)base)->of);
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
  const mark *of = ((const mark_task *)base)->of;
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
static int count_record(board *at, uint64_t stream, uint64_t *number) {
  bool is_over = atomic_load(&at->reached) >= atomic_load(&at->recorded);
  if (!is_over && atomic_load(&at->stream) != stream) {
    return EMULATED_NOT_SUPPORTED;
  }
  atomic_store(&at->stream, stream);
  *number = atomic_fetch_add(&at->recorded, 1) + 1;
  return 0;
}

/* With the lock: what the task is to mark as over. */
static int mark_record(event *it, int device, uint64_t stream, mark_task *task) {
  if (!it || it->device != device) {
    return EMULATED_INVALID_HANDLE;
  }
  if (it->page) {
    int error = count_record(it->page->shared, stream, &task->number);
    task->of = error ? NULL : hold(it->page);
    return error;
  }
  mark *fresh = calloc(1, sizeof *fresh);
  if (!fresh) {
    return EMULATED_OUT_OF_MEMORY;
  }
  fresh->stream = stream;
  let_go(it->last);
  it->last = hold(fresh);
  task->of = hold(fresh);
  return 0;
}

int emulated_event_record(void *handle, void *stream) {
  emulated_enter(EMULATED_CALL_EVENT_RECORD);
  int device = emulated_stream_device(stream);
  uint64_t identity = emulated_stream_identity(stream);
  mark_task *task = emulated_task_new(sizeof *task, run_record);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->base.drop = drop;
  emulated_lock();
  int error = mark_record(find(handle), device, identity, task);
  emulated_unlock();
  if (error != 0) {
    free(task);
    return error;
  }
  return emulated_put(stream, &task->base);
}

int emulated_stream_wait(void *stream, void *handle) {
  emulated_enter(EMULATED_CALL_STREAM_WAIT);
  mark_task *task = emulated_task_new(sizeof *task, run_wait);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->base.drop = drop;
  task->base.is_ready = is_over;
  task->base.describe = describe_wait;
  emulated_lock();
  const event *it = find(handle);
  mark *of = it && it->page ? it->page : it ? it->last : NULL;
  task->of = of ? hold(of) : NULL;
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
  emulated_lock();
  const event *it = find(handle);
  const mark *of = it && it->page ? it->page : it ? it->last : NULL;
  const board *at = of ? of->shared : NULL;
  *over = it && (at   ? atomic_load(&at->reached) >= atomic_load(&at->recorded)
                 : of ? of->is_over
                      : true);
  emulated_unlock();
  if (of && *over) {
    emulated_after(of);
  }
  return it ? 0 : EMULATED_INVALID_HANDLE;
}

/* ------------------------------------------------------------ life and death */

static mark *map_page(int file) {
  mark *page = calloc(1, sizeof *page);
  void *at =
      page ? mmap(NULL, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (at == MAP_FAILED) {
    free(page);
    return NULL;
  }
  page->shared = at;
  return hold(page);
}

static void list(event *it, void **handle) {
  it->device = emulated_current();
  emulated_lock();
  it->next = events;
  events = it;
  emulated_unlock();
  *handle = it;
}

int emulated_event_create(bool for_processes, void **handle) {
  emulated_enter(EMULATED_CALL_EVENT_CREATE);
  event *it = calloc(1, sizeof *it);
  *handle = NULL;
  if (!it) {
    return EMULATED_OUT_OF_MEMORY;
  }
  it->file = -1;
  if (for_processes && emulated_file_create(sizeof(board), &it->handle)) {
    it->file = it->handle.file;
    it->page = map_page(it->file);
  }
  if (for_processes && !it->page) {
    if (it->file >= 0) {
      close(it->file);
    }
    free(it);
    return EMULATED_OUT_OF_MEMORY;
  }
  list(it, handle);
  return 0;
}

/* With the lock. */
static void destroy(event *it) {
  let_go(it->last);
  let_go(it->page);
  if (it->file >= 0) {
    close(it->file);
  }
  free(it);
}

int emulated_event_destroy(void *handle) {
  int error = EMULATED_INVALID_HANDLE;
  emulated_enter(EMULATED_CALL_EVENT_DESTROY);
  if (!handle) {
    return 0;
  }
  emulated_lock();
  for (event **at = &events; *at; at = &(*at)->next) {
    if (*at == handle) {
      event *it = *at;
      *at = it->next;
      destroy(it);
      error = 0;
      break;
    }
  }
  emulated_unlock();
  return error;
}

int emulated_events_end(void) {
  int left = 0;
  emulated_lock();
  while (events) {
    event *it = events;
    events = it->next;
    destroy(it);
    left++;
  }
  emulated_unlock();
  return left;
}

/* ------------------------------------------------------------------ sharing */

int emulated_event_ipc_get(void *handle, uint8_t bytes[LCOMM_DEVICE_IPC_SIZE]) {
  int error = EMULATED_INVALID_HANDLE;
  emulated_enter(EMULATED_CALL_EVENT_IPC_GET);
  emulated_lock();
  const event *it = find(handle);
  if (it && it->page && !it->is_opened && !emulated.setup.without_sharing) {
    memset(bytes, 0, LCOMM_DEVICE_IPC_SIZE);
    memcpy(bytes, &it->handle, sizeof(it->handle));
    error = 0;
  }
  emulated_unlock();
  return error;
}

int emulated_event_ipc_open(const uint8_t bytes[LCOMM_DEVICE_IPC_SIZE], void **handle) {
  emulated_handle its;
  int error = 0;
  *handle = NULL;
  emulated_enter(EMULATED_CALL_EVENT_IPC_OPEN);
  int file = emulated_file_open(bytes, &its, &error);
  if (file < 0) {
    return error;
  }
  event *it = calloc(1, sizeof *it);
  mark *page = it && its.size == sizeof(board) ? map_page(file) : NULL;
  if (!page) {
    free(it);
    close(file);
    return EMULATED_INVALID_VALUE;
  }
  it->page = page;
  it->file = file;
  it->handle = its;
  it->is_opened = true;
  list(it, handle);
  return 0;
}
