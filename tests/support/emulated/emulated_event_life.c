/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Events of emulated devices: made and destroyed, and what processes share of them. */

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/emulated/emulated_event.h"

static emulated_event *events;

emulated_event *emulated_event_find(void *handle) {
  emulated_event *it = events;
  while (it && it != handle) {
    it = it->next;
  }
  return it;
}

/* ------------------------------------------------------------------- marks */

emulated_record *emulated_record_hold(emulated_record *m) {
  m->holders++;
  return m;
}

void emulated_record_let_go(emulated_record *m) {
  if (!m || --m->holders > 0) {
    return;
  }
  if (m->shared) {
    munmap(m->shared, sizeof *m->shared);
  }
  free(m);
}

/* ------------------------------------------------------------ life and death */

static emulated_record *map_page(int file) {
  emulated_record *page = calloc(1, sizeof *page);
  void *at = page ? mmap(NULL, sizeof(emulated_board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                  : MAP_FAILED;
  if (at == MAP_FAILED) {
    free(page);
    return NULL;
  }
  page->shared = at;
  return emulated_record_hold(page);
}

static void list(emulated_event *it, void **handle) {
  it->device = emulated_current();
  emulated_lock();
  it->next = events;
  events = it;
  emulated_unlock();
  *handle = it;
}

static int create(bool for_processes, void **handle) {
  emulated_event *it = calloc(1, sizeof *it);
  *handle = NULL;
  if (!it) {
    return EMULATED_OUT_OF_MEMORY;
  }
  it->file = -1;
  if (for_processes && emulated_file_create(sizeof(emulated_board), &it->handle)) {
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

int emulated_event_create(bool for_processes, void **handle) {
  emulated_enter(EMULATED_CALL_EVENT_CREATE);
  return create(for_processes, handle);
}

int emulated_event_make(void **handle) {
  return create(false, handle);
}

/* With the lock. */
static void destroy(emulated_event *it) {
  emulated_record_let_go(it->last);
  emulated_record_let_go(it->page);
  if (it->file >= 0) {
    close(it->file);
  }
  free(it);
}

int emulated_event_destroy(void *handle) {
  emulated_enter(EMULATED_CALL_EVENT_DESTROY);
  return emulated_event_drop(handle);
}

int emulated_event_drop(void *handle) {
  int error = EMULATED_INVALID_HANDLE;
  if (!handle) {
    return 0;
  }
  emulated_lock();
  for (emulated_event **at = &events; *at; at = &(*at)->next) {
    if (*at == handle) {
      emulated_event *it = *at;
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
    emulated_event *it = events;
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
  const emulated_event *it = emulated_event_find(handle);
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
  emulated_event *it = calloc(1, sizeof *it);
  emulated_record *page = it && its.size == sizeof(emulated_board) ? map_page(file) : NULL;
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
