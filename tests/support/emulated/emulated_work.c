/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What streams of emulated devices do by themselves: copies, and waiting. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/emulated/emulated_internal.h"

typedef struct copy_task {
  emulated_task base;
  unsigned char *destination;
  const unsigned char *source; /* `bytes`, or where they will be */
  size_t size;
  unsigned char bytes[];
} copy_task;

static void run_copy(emulated_task *base) {
  copy_task *task = (copy_task *)base;
  memcpy(task->destination, task->source, task->size);
}

/* Memory that only the host knows; false with an error where less is there. */
static bool is_of_host(const void *memory, size_t size, int *error) {
  if (emulated_locate(memory).kind == LCOMM_MEMORY_HOST) {
    return true;
  }
  if (!emulated_holds(LCOMM_MEMORY_KIND_COUNT, memory, size)) {
    *error = EMULATED_INVALID_VALUE;
  }
  return false;
}

static int put_copy(void *destination, const void *source, size_t size, bool reads_now,
                    void *stream) {
  copy_task *task = emulated_task_new(sizeof *task + (reads_now ? size : 0), run_copy);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->destination = destination;
  task->source = source;
  task->size = size;
  if (reads_now) {
    memcpy(task->bytes, source, size);
    task->source = task->bytes;
  }
  return emulated_put(stream, &task->base);
}

int emulated_copy(void *destination, const void *source, size_t size, void *stream) {
  int error = 0;
  if (size == 0) {
    return 0;
  }
  bool from_host = is_of_host(source, size, &error);
  bool to_host = is_of_host(destination, size, &error);
  if (error == 0) {
    error = put_copy(destination, source, size, from_host, stream);
  }
  return error == 0 && to_host ? emulated_stream_finish(stream) : error;
}

int emulated_copy_in(void *destination, const void *source, size_t size, void *stream) {
  int error = 0;
  if (size == 0) {
    return 0;
  }
  bool to_host = is_of_host(destination, size, &error);
  if (to_host || error != 0) {
    return EMULATED_INVALID_VALUE;
  }
  return put_copy(destination, source, size, true, stream);
}

typedef struct set_task {
  emulated_task base;
  void *memory;
  int byte;
  size_t size;
} set_task;

static void run_set(emulated_task *base) {
  set_task *task = (set_task *)base;
  memset(task->memory, task->byte, task->size);
}

int emulated_set(void *memory, int byte, size_t size, void *stream) {
  if (size == 0) {
    return 0;
  }
  if (!emulated_holds(LCOMM_MEMORY_KIND_COUNT, memory, size)) {
    return EMULATED_INVALID_VALUE;
  }
  set_task *task = emulated_task_new(sizeof *task, run_set);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->memory = memory;
  task->byte = byte;
  task->size = size;
  return emulated_put(stream, &task->base);
}

/* ------------------------------------------------------------ held streams */

typedef struct value_task {
  emulated_task base;
  const uint32_t *value;
  uint32_t least;
  struct value_task *next_waiting;
} value_task;

static value_task *waiting; /* tasks that wait for a value, or will */

static bool is_reached(const value_task *task) {
  return (int32_t)(__atomic_load_n(task->value, __ATOMIC_ACQUIRE) - task->least) >= 0;
}

static void run_wait_value(emulated_task *base) {
  const value_task *task = (value_task *)base;
  while (!is_reached(task) && !atomic_load(&emulated.ending)) {
    emulated_pause();
  }
}

/* With the lock. */
static void drop_wait_value(emulated_task *base) {
  value_task **at = &waiting;
  while (*at != (value_task *)base) {
    at = &(*at)->next_waiting;
  }
  *at = (*at)->next_waiting;
}

void emulated_need_no_hold(const char *what) {
  bool held = false;
  emulated_lock();
  for (const value_task *task = waiting; task; task = task->next_waiting) {
    held = held || !is_reached(task);
  }
  emulated_unlock();
  if (held) {
    fprintf(stderr, "emulated device: %s waits for the whole device, and a stream is held\n", what);
    abort();
  }
}

int emulated_wait_value(void *stream, const uint32_t *value, uint32_t least) {
  if (emulated.setup.without_wait_value || emulated_stream_is_work(stream)) {
    return EMULATED_NOT_SUPPORTED;
  }
  if (!emulated_holds(LCOMM_MEMORY_PINNED, value, sizeof *value) ||
      (uintptr_t)value % sizeof *value != 0) {
    return EMULATED_INVALID_VALUE;
  }
  value_task *task = emulated_task_new(sizeof *task, run_wait_value);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->value = value;
  task->least = least;
  task->base.drop = drop_wait_value;
  emulated_lock();
  task->next_waiting = waiting;
  waiting = task;
  emulated_unlock();
  return emulated_put(stream, &task->base);
}

/* --------------------------------------------------------------- numbers */

typedef struct numbers_task {
  emulated_task base;
  uint32_t count;
  lcomm_device_number list[];
} numbers_task;

static void await(const lcomm_device_number *it) {
  while ((int32_t)(__atomic_load_n(it->place, __ATOMIC_ACQUIRE) - it->number) < 0 &&
         !atomic_load(&emulated.ending)) {
    emulated_pause();
  }
}

static void run_numbers(emulated_task *base) {
  const numbers_task *task = (numbers_task *)base;
  for (uint32_t i = 0; i < task->count; i++) {
    const lcomm_device_number *it = &task->list[i];
    if (it->task == LCOMM_DEVICE_AWAIT) {
      await(it);
    } else {
      __atomic_store_n(it->place, it->number, __ATOMIC_RELEASE);
    }
  }
}

static bool is_number(const lcomm_device_number *it) {
  return emulated_holds(LCOMM_MEMORY_PINNED, it->place, sizeof *it->place) &&
         (uintptr_t)it->place % sizeof *it->place == 0;
}

int emulated_stream_numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  if (emulated.setup.without_wait_value || !emulated_stream_is_work(stream)) {
    return EMULATED_NOT_SUPPORTED;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!is_number(&list[i])) {
      return EMULATED_INVALID_VALUE;
    }
  }
  if (count == 0) {
    return 0;
  }
  numbers_task *task = emulated_task_new(sizeof *task + count * sizeof *list, run_numbers);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->count = count;
  memcpy(task->list, list, count * sizeof *list);
  return emulated_put(stream, &task->base);
}
