/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A hash table with linear probing; it is at most half full. */

#include "libcomm/engine/handles.h"

#include <pthread.h>
#include <stdlib.h>

#include "libcomm/engine/entry.h"

typedef struct entry {
  const void *handle; /* NULL: free */
  const lcomm_comm *owner;
} entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *table;
static size_t room, count; /* room: a power of 2, or 0 */

static void lock_table(void) {
  pthread_mutex_lock(&lock);
}

static void unlock_table(void) {
  pthread_mutex_unlock(&lock);
}

/* A child finds the table whole. */
static void watch_forks(void) {
  pthread_atfork(lock_table, unlock_table, unlock_table);
}

static size_t home_of(const void *handle, size_t size) {
  return (size_t)(((uint64_t)(uintptr_t)handle >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
         (size - 1);
}

/* Where the handle is, or the free place where it would be. */
static size_t find(const entry *in, size_t size, const void *handle) {
  size_t at = home_of(handle, size);
  while (in[at].handle && in[at].handle != handle) {
    at = (at + 1) & (size - 1);
  }
  return at;
}

static bool grow(void) {
  size_t size = room > 0 ? 2 * room : 256;
  entry *bigger = calloc(size, sizeof *bigger);
  if (!bigger) {
    return false;
  }
  for (size_t i = 0; i < room; i++) {
    if (table[i].handle) {
      bigger[find(bigger, size, table[i].handle)] = table[i];
    }
  }
  free(table);
  table = bigger;
  room = size;
  return true;
}

bool lcomm_handle_add(const void *handle, const lcomm_comm *owner) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_forks);
  lock_table();
  bool fits = 2 * (count + 1) <= room || grow();
  if (fits) {
    table[find(table, room, handle)] = (entry){handle, owner};
    count++;
  }
  unlock_table();
  return fits;
}

void lcomm_handle_pass(const void *handle, const lcomm_comm *owner) {
  lock_table();
  entry *it = room > 0 ? &table[find(table, room, handle)] : NULL;
  if (it && it->handle) {
    it->owner = owner;
  }
  unlock_table();
}

/* What follows moves up, so that nothing is behind a gap. */
static void close_gap(size_t gap) {
  for (size_t at = (gap + 1) & (room - 1); table[at].handle; at = (at + 1) & (room - 1)) {
    entry moved = table[at];
    table[at].handle = NULL;
    table[find(table, room, moved.handle)] = moved;
  }
}

void lcomm_handle_remove(const void *handle) {
  lock_table();
  size_t at = room > 0 ? find(table, room, handle) : 0;
  if (room > 0 && table[at].handle) {
    table[at].handle = NULL;
    close_gap(at);
    count--;
  }
  if (count == 0) {
    free(table);
    table = NULL;
    room = 0;
  }
  unlock_table();
}

const lcomm_comm *lcomm_handle_owner(const void *handle) {
  const lcomm_comm *owner = NULL;
  lock_table();
  if (room > 0) {
    const entry *it = &table[find(table, room, handle)];
    owner = it->handle ? it->owner : NULL;
  }
  unlock_table();
  return owner;
}

lcomm_status lcomm_handle_check(lcomm_comm *comm, const void *handle, const char *call,
                                const char *object) {
  LCOMM_TRY(lcomm_check_process(comm));
  const lcomm_comm *owner = lcomm_handle_owner(handle);
  if (owner) {
    return lcomm_check_owner(comm, owner, call, object);
  }
  return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                      "%s: the %s is none that lives: it was never made, or its communicator was "
                      "destroyed; give the one that this communicator has made",
                      call, object);
}
