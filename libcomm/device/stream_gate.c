/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/device/stream_gate.h"

#include <pthread.h>
#include <stdatomic.h>

enum { HOLDS = 1024 };

struct lcomm_stream_gate {
  uint32_t value; /* what the stream waits for */
  lcomm_stream_gate *next_free;
};

/* Of the process, for one table; a test that replaces the table gets another pool. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lcomm_stream_gate holds[HOLDS];
static lcomm_stream_gate *first_free;
static uint32_t *numbers; /* pinned: one for each hold */
static const lcomm_device_table *owner;
static atomic_uint count;
static unsigned pauses;

unsigned lcomm_stream_gate_count(void) {
  return atomic_load(&count);
}

void lcomm_stream_gate_quiesce(void) {
  pthread_mutex_lock(&lock);
  pauses++;
  pthread_mutex_unlock(&lock);
}

void lcomm_stream_gate_resume(void) {
  pthread_mutex_lock(&lock);
  pauses--;
  pthread_mutex_unlock(&lock);
}

/* The caller has the lock. */
static void make_pool(const lcomm_device_table *table) {
  void *memory = NULL;
  owner = table;
  numbers = table->memory.pinned_get(HOLDS * sizeof(uint32_t), &memory) == 0 ? memory : NULL;
  first_free = numbers ? holds : NULL;
  for (int i = 0; numbers && i < HOLDS; i++) {
    numbers[i] = holds[i].value = 0;
    holds[i].next_free = i + 1 < HOLDS ? &holds[i + 1] : NULL;
  }
}

void lcomm_stream_gate_prepare(const lcomm_device_table *table) {
  pthread_mutex_lock(&lock);
  if (owner != table) {
    make_pool(table);
  }
  pthread_mutex_unlock(&lock);
}

static lcomm_stream_gate *take(const lcomm_device_table *table) {
  pthread_mutex_lock(&lock);
  lcomm_stream_gate *hold = pauses == 0 && owner == table ? first_free : NULL;
  if (hold) {
    first_free = hold->next_free;
    hold->value++;
    atomic_fetch_add(&count, 1);
  }
  pthread_mutex_unlock(&lock);
  return hold;
}

static void release(lcomm_stream_gate *hold) {
  pthread_mutex_lock(&lock);
  hold->next_free = first_free;
  first_free = hold;
  atomic_fetch_sub(&count, 1);
  pthread_mutex_unlock(&lock);
}

lcomm_stream_gate *lcomm_stream_gate_close(const lcomm_device_table *table, void *stream) {
  lcomm_stream_gate *hold = take(table);
  if (hold && table->wait_value(stream, &numbers[hold - holds], hold->value) != 0) {
    release(hold);
    return NULL;
  }
  return hold;
}

void lcomm_stream_gate_open(lcomm_stream_gate *hold) {
  atomic_store_explicit((_Atomic uint32_t *)&numbers[hold - holds], hold->value,
                        memory_order_release);
  release(hold);
}
