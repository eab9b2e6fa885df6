/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/device_deferred.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
  NOTED_MAX = 64,     /* devices of a process */
  NOT_A_DEVICE = 101, /* cudaErrorInvalidDevice */
};

/* Of a thread that defers. */
static _Thread_local bool defers;
static _Thread_local int stands_for;
static _Thread_local lcomm_device_table own_table;
static _Thread_local const lcomm_device_table *table_below; /* that it is made of */

/* -------------------------------------------------------------------- notes */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */

static struct {
  const lcomm_device_table *of;
  bool is_known[NOTED_MAX];
  lcomm_device_facts facts[NOTED_MAX];
} noted;

static bool has_place(int ordinal) {
  return ordinal >= 0 && ordinal < NOTED_MAX;
}

/* Tests replace tables. */
static bool is_noted(const lcomm_device_table *table, int ordinal) {
  pthread_mutex_lock(&lock);
  bool is = noted.of == table && noted.is_known[ordinal];
  pthread_mutex_unlock(&lock);
  return is;
}

static void note(const lcomm_device_table *table, int ordinal, const lcomm_device_facts *facts) {
  pthread_mutex_lock(&lock);
  for (int i = 0; i < NOTED_MAX && noted.of != table; i++) {
    noted.is_known[i] = false;
  }
  noted.of = table;
  noted.is_known[ordinal] = true;
  noted.facts[ordinal] = *facts;
  pthread_mutex_unlock(&lock);
}

/* CUDA uses device 0 in a thread that has not come to use one. */
int lcomm_device_note(void) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  lcomm_device_facts facts = {0};
  int ordinal = LCOMM_DEVICE_NONE;
  if (defers || !table || table->current(&ordinal) != 0) {
    return defers ? stands_for : LCOMM_DEVICE_NONE;
  }
  int used = ordinal == LCOMM_DEVICE_NONE ? 0 : ordinal;
  if (has_place(used) && !is_noted(table, used) && table->facts(used, &facts) == 0) {
    note(table, used, &facts);
  }
  return ordinal;
}

/* ----------------------------------------------------------------- deferring */

typedef void (*freeing_call)(const lcomm_device_table *table, void *argument);

typedef struct deferred {
  struct deferred *next;
  int ordinal;
  freeing_call call;
  void *argument;
} deferred;

static struct {
  deferred *first, **end;
  atomic_bool any; /* a look without the lock */
} list = {.end = &list.first};

static void append(deferred *it) {
  pthread_mutex_lock(&lock);
  *list.end = it;
  list.end = &it->next;
  atomic_store(&list.any, true);
  pthread_mutex_unlock(&lock);
}

static deferred *take_all(void) {
  pthread_mutex_lock(&lock);
  deferred *all = list.first;
  list.first = NULL;
  list.end = &list.first;
  atomic_store(&list.any, false);
  pthread_mutex_unlock(&lock);
  return all;
}

static void defer(int ordinal, freeing_call call, void *argument) {
  deferred *it = malloc(sizeof *it);
  if (it) {
    *it = (deferred){.ordinal = ordinal, .call = call, .argument = argument};
    append(it);
  }
}

static void do_on(int ordinal, freeing_call call, void *argument) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = ordinal;
  if (!table) {
    return;
  }
  if (ordinal != LCOMM_DEVICE_NONE) {
    (void)lcomm_device_enter(table, ordinal, &before);
  }
  call(table, argument);
  if (ordinal != LCOMM_DEVICE_NONE) {
    (void)table->use(before);
  }
}

void lcomm_device_free_by(int ordinal, freeing_call call, void *argument) {
  (defers ? defer : do_on)(ordinal, call, argument);
}

void lcomm_device_do_deferred(void) {
  if (defers || !atomic_load(&list.any)) {
    return;
  }
  for (deferred *it = take_all(), *next = NULL; it; it = next) {
    next = it->next;
    do_on(it->ordinal, it->call, it->argument);
    free(it);
  }
}

/* ----------------------------------------------------- the table of such a thread */

static int current(int *device) {
  *device = stands_for;
  return 0;
}

static int use(int device) {
  stands_for = device;
  return 0;
}

static int facts_of(int device, lcomm_device_facts *facts) {
  int used = device == LCOMM_DEVICE_NONE ? 0 : device;
  if (!has_place(used) || !is_noted(table_below, used)) {
    return NOT_A_DEVICE;
  }
  pthread_mutex_lock(&lock);
  *facts = noted.facts[used];
  pthread_mutex_unlock(&lock);
  return 0;
}

static lcomm_memory_location locate(const void *pointer) {
  (void)pointer;
  return (lcomm_memory_location){LCOMM_MEMORY_HOST, 0};
}

/* What frees `object`, of the device that the thread stands for. */
#define DEFERS(name, member)                                                                       \
  static void do_##name(const lcomm_device_table *table, void *object) {                           \
    (void)table->member(object);                                                                   \
  }                                                                                                \
  static int name(void *object) {                                                                  \
    if (object) {                                                                                  \
      defer(stands_for, do_##name, object);                                                        \
    }                                                                                              \
    return 0;                                                                                      \
  }
DEFERS(memory_free, memory.free)
DEFERS(pinned_free, memory.pinned_free)
DEFERS(unpin, memory.unpin)
DEFERS(stream_destroy, stream.destroy)
DEFERS(stream_finish, stream.finish)
DEFERS(event_destroy, event.destroy)
DEFERS(ipc_close, ipc.close)
#undef DEFERS

static void make_own_table(const lcomm_device_table *table) {
  table_below = table;
  own_table = *table;
  own_table.current = current;
  own_table.use = use;
  own_table.facts = facts_of;
  own_table.locate = locate;
  own_table.memory.free = memory_free;
  own_table.memory.pinned_free = pinned_free;
  own_table.memory.unpin = unpin;
  own_table.stream.destroy = stream_destroy;
  own_table.stream.finish = stream_finish;
  own_table.event.destroy = event_destroy;
  own_table.ipc.close = ipc_close;
}

const lcomm_device_table *lcomm_device_freeing(const lcomm_device_table *table) {
  if (!defers || !table || table == &own_table) {
    return table;
  }
  if (table_below != table) {
    make_own_table(table);
  }
  return &own_table;
}

void lcomm_device_defer(int ordinal) {
  (void)lcomm_device_bar();
  defers = true;
  stands_for = ordinal;
}
