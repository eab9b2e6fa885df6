/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/left_memory.h"

#include <stdlib.h>

#include "libcomm/engine/gates.h"
#include "libcomm/engine/run_device.h"
#include "libcomm/engine/tape.h"

enum { PIECES = 6 };

typedef struct left_memory {
  struct left_memory *next;
  lcomm_graph_life *graph;
  int ordinal;
  void *device[PIECES], *pinned[PIECES];
  lcomm_gates *gates;
} left_memory;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static left_memory *all;

static void *taken(void **place) {
  void *memory = *place;
  *place = NULL;
  return memory;
}

/* Without memory to remember them by, they stay. */
static void remember(const left_memory *it) {
  left_memory *kept = malloc(sizeof *kept);
  if (!kept) {
    return;
  }
  *kept = *it;
  pthread_mutex_lock(&lock);
  kept->next = all;
  all = kept;
  pthread_mutex_unlock(&lock);
}

void lcomm_left_memory_take_pinned(lcomm_graph_life *graph, int ordinal, void *pinned) {
  remember(&(left_memory){.graph = graph, .ordinal = ordinal, .pinned = {pinned}});
}

void lcomm_left_memory_take(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  lcomm_recording *recording = run->recording;
  left_memory it = {
      .graph = recording->graph,
      .ordinal = device->ordinal,
      .device = {taken((void **)&run->memory.own_vector), taken((void **)&run->memory.own_input),
                 taken((void **)&device->memory), taken((void **)&device->found),
                 taken((void **)&device->squares), taken((void **)&recording->device_seed)},
      .pinned = {taken((void **)&run->memory.arena), taken((void **)&run->tape->numbers),
                 taken((void **)&device->payload_sizes), taken((void **)&device->found_here),
                 taken((void **)&recording->seed), taken((void **)&run->tape->from)},
      .gates = taken((void **)&recording->gates)};
  recording->graph = NULL;
  remember(&it);
}

/* --------------------------------------------------- what messages may read */

/* Reachable, for who looks for leaks. */
typedef struct kept_memory {
  struct kept_memory *next;
  void *arena, *memory;
} kept_memory;

static kept_memory *kept_for_good;

void lcomm_left_memory_keep(lcomm_run *run) {
  lcomm_run_device *device = run->device;
  bool exports = device->handle_memory != NULL;
  kept_memory it = {.arena = taken((void **)&run->memory.arena),
                    .memory = exports ? taken((void **)&device->memory) : NULL};
  device->handle_memory = NULL; /* of the links, which free it when nobody reads it any more */
  kept_memory *kept = malloc(sizeof *kept);
  if (!kept) {
    return;
  }
  *kept = it;
  pthread_mutex_lock(&lock);
  kept->next = kept_for_good;
  kept_for_good = kept;
  pthread_mutex_unlock(&lock);
}

/* ----------------------------------------------------- what graphs refer to */

/* One whose graph is gone, no longer in the list; NULL. */
static left_memory *take_free(void) {
  pthread_mutex_lock(&lock);
  left_memory **at = &all;
  while (*at && !atomic_load(&(*at)->graph->is_over)) {
    at = &(*at)->next;
  }
  left_memory *it = *at;
  if (it) {
    *at = it->next;
  }
  pthread_mutex_unlock(&lock);
  return it;
}

static void release(const left_memory *it) {
  const lcomm_device_table *table = lcomm_device_get(NULL);
  int before = it->ordinal;
  (void)lcomm_device_enter(table, it->ordinal, &before);
  for (int i = 0; i < PIECES; i++) {
    (void)table->memory.free(it->device[i]);
    (void)table->memory.pinned_free(it->pinned[i]);
  }
  lcomm_gates_free(it->gates);
  (void)table->use(before);
}

void lcomm_left_memory_free(void) {
  for (left_memory *it = take_free(); it; it = take_free()) {
    release(it);
    free(it->graph);
    free(it);
  }
}
