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
  if (emulated_place(memory).kind == LCOMM_MEMORY_HOST) {
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
  emulated_enter(EMULATED_CALL_COPY);
  if (size == 0) {
    return 0;
  }
  bool from_host = is_of_host(source, size, &error);
  bool to_host = is_of_host(destination, size, &error);
  if (error == 0 && (from_host || to_host) && emulated_stream_is_captured(stream)) {
    return EMULATED_CAPTURE_UNSUPPORTED; /* what is there when the graph is launched, nobody says */
  }
  if (error == 0) {
    error = put_copy(destination, source, size, from_host, stream);
  }
  return error == 0 && to_host ? emulated_finish(stream) : error;
}

int emulated_copy_in(void *destination, const void *source, size_t size, void *stream) {
  int error = 0;
  emulated_enter(EMULATED_CALL_COPY);
  if (size == 0) {
    return 0;
  }
  bool to_host = is_of_host(destination, size, &error);
  if (to_host || error != 0 || emulated_stream_is_captured(stream)) {
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
  emulated_enter(EMULATED_CALL_SET);
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

/* ----------------------------------------------------------------- numbers */

typedef struct value_task {
  emulated_task base;
  const uint32_t *value;
  uint32_t least;
} value_task;

static uint32_t value_now(const value_task *task) {
  return __atomic_load_n(task->value, __ATOMIC_ACQUIRE);
}

static bool is_reached(const emulated_task *base) {
  const value_task *task = (const value_task *)base;
  return (int32_t)(value_now(task) - task->least) >= 0;
}

static void describe_value(const emulated_task *base, char text[EMULATED_TEXT_MAX]) {
  const value_task *task = (const value_task *)base;
  snprintf(text, EMULATED_TEXT_MAX, "waits until the number at %p is %u, it is %u",
           (const void *)task->value, task->least, value_now(task));
}

/* The number is reached: what was written before it is seen from here on. */
static void run_wait(emulated_task *base) {
  (void)value_now((value_task *)base);
}

static bool is_place_of_value(const uint32_t *value) {
  return emulated_holds(LCOMM_MEMORY_PINNED, value, sizeof *value) &&
         (uintptr_t)value % sizeof *value == 0;
}

static int put_wait(void *stream, const uint32_t *value, uint32_t least) {
  value_task *task = emulated_task_new(sizeof *task, run_wait);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->value = value;
  task->least = least;
  task->base.is_ready = is_reached;
  task->base.describe = describe_value;
  return emulated_put(stream, &task->base);
}

typedef struct number_task {
  emulated_task base;
  lcomm_device_number it;
} number_task;

static void run_write(emulated_task *base) {
  const number_task *task = (number_task *)base;
  __atomic_store_n(task->it.place, task->it.number, __ATOMIC_RELEASE);
}

static int put_write(void *stream, const lcomm_device_number *it) {
  number_task *task = emulated_task_new(sizeof *task, run_write);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->it = *it;
  return emulated_put(stream, &task->base);
}

/* By a kernel, as where streams cannot. */
static int launch_numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  int error = 0;
  for (uint32_t i = 0; i < count && error == 0; i++) {
    lcomm_cuda_number it = {list[i].place, list[i].number, list[i].task == LCOMM_DEVICE_AWAIT};
    error = emulated.setup.kernels->numbers(&it, 1, stream);
  }
  return error;
}

int emulated_stream_numbers(void *stream, const lcomm_device_number *list, uint32_t count) {
  int error = 0;
  emulated_enter(EMULATED_CALL_STREAM_NUMBERS);
  if (!emulated_stream_is_work(stream)) {
    return EMULATED_NOT_SUPPORTED;
  }
  for (uint32_t i = 0; i < count; i++) {
    if (!is_place_of_value(list[i].place)) {
      return EMULATED_INVALID_VALUE;
    }
  }
  if (emulated.setup.without_waits) {
    return launch_numbers(stream, list, count);
  }
  for (uint32_t i = 0; i < count && error == 0; i++) {
    error = list[i].task == LCOMM_DEVICE_AWAIT ? put_wait(stream, list[i].place, list[i].number)
                                               : put_write(stream, &list[i]);
  }
  return error;
}

/* ------------------------------------------------------------------- gates */

typedef struct gate_task {
  emulated_task base;
  lcomm_device_gate it;
} gate_task;

static uint32_t gate_number(const gate_task *task) {
  return __atomic_load_n(task->it.number, __ATOMIC_ACQUIRE);
}

static bool is_gate_open(const emulated_task *base) {
  const gate_task *task = (const gate_task *)base;
  uint32_t now = __atomic_load_n(task->it.place, __ATOMIC_ACQUIRE);
  return (int32_t)(now - gate_number(task)) >= 0 ||
         __atomic_load_n(task->it.passed, __ATOMIC_ACQUIRE) != 0;
}

static void describe_gate(const emulated_task *base, char text[EMULATED_TEXT_MAX]) {
  const gate_task *task = (const gate_task *)base;
  snprintf(text, EMULATED_TEXT_MAX, "waits until the gate at %p is %u, it is %u",
           (const void *)task->it.place, gate_number(task),
           __atomic_load_n(task->it.place, __ATOMIC_ACQUIRE));
}

/* What was written before the number, or before all was passed, is seen from here on. */
static void run_gate(emulated_task *base) {
  gate_task *task = (gate_task *)base;
  if (task->it.task == LCOMM_DEVICE_AWAIT) {
    (void)is_gate_open(base);
    return;
  }
  __atomic_store_n(task->it.place, gate_number(task), __ATOMIC_RELEASE);
}

static int put_gate(void *stream, const lcomm_device_gate *it) {
  gate_task *task = emulated_task_new(sizeof *task, run_gate);
  if (!task) {
    return EMULATED_OUT_OF_MEMORY;
  }
  task->it = *it;
  if (it->task == LCOMM_DEVICE_AWAIT) {
    task->base.is_ready = is_gate_open;
    task->base.describe = describe_gate;
  }
  return emulated_put(stream, &task->base);
}

static int launch_gate(void *stream, const lcomm_device_gate *it) {
  lcomm_cuda_gate gate = {it->place, it->number, it->passed, it->task == LCOMM_DEVICE_AWAIT};
  return emulated.setup.kernels->gates(&gate, 1, stream);
}

int emulated_stream_gates(void *stream, const lcomm_device_gate *list, uint32_t count) {
  int error = 0;
  emulated_enter(EMULATED_CALL_STREAM_GATES);
  if (!emulated_stream_is_work(stream)) {
    return EMULATED_NOT_SUPPORTED;
  }
  for (uint32_t i = 0; i < count && error == 0; i++) {
    bool fine = is_place_of_value(list[i].place) && is_place_of_value(list[i].number) &&
                is_place_of_value(list[i].passed);
    error = !fine                          ? EMULATED_INVALID_VALUE
            : emulated.setup.without_waits ? launch_gate(stream, &list[i])
                                           : put_gate(stream, &list[i]);
  }
  return error;
}
