/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DEVICE_OBJECTS_H
#define LCOMM_TESTS_DEVICE_OBJECTS_H

/* Memory, streams and events of the device of a test, which says how that is opened. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "libcomm/device/device.h"

static const lcomm_device_table *device; /* NULL: there is none, and tests are skipped */

#define CHECK(call) check(call, #call)

static inline void check(int error, const char *what) {
  if (error != 0) {
    fail_msg("%s: %s", what, device->explain(error));
  }
}

static inline void need_device(void) {
  if (!device) {
    skip();
  }
}

static inline lcomm_device_facts facts_of(int ordinal) {
  lcomm_device_facts facts;
  CHECK(device->facts(ordinal, &facts));
  return facts;
}

static inline unsigned char *memory_of(size_t size) {
  void *memory = NULL;
  CHECK(device->memory.get(size, &memory));
  return memory;
}

static inline unsigned char *pinned_of(size_t size) {
  void *memory = NULL;
  CHECK(device->memory.pinned_get(size, &memory));
  memset(memory, 0, size);
  return memory;
}

static inline void *new_stream(void) {
  void *stream = NULL;
  CHECK(device->stream.create(&stream));
  return stream;
}

/* One of the library's, which can wait for numbers. */
static inline void *new_work_stream(void) {
  void *stream = NULL;
  CHECK(device->stream.work_create(&stream));
  return stream;
}

/* Such a stream stands still until the number at `value` has come so far. */
static inline void hold(void *work_stream, void *value, uint32_t number) {
  lcomm_device_number task = {LCOMM_DEVICE_AWAIT, value, number};
  CHECK(device->stream.numbers(work_stream, &task, 1));
}

static inline void *new_event(void) {
  void *event = NULL;
  CHECK(device->event.create(false, &event));
  return event;
}

/* What a test has made; the rest is NULL. */
typedef struct belongings {
  void *events[2], *streams[2], *memory[2], *pinned[2];
} belongings;

static inline void give_all_back(belongings of_test) {
  for (int i = 0; i < 2 && of_test.events[i]; i++) {
    CHECK(device->event.destroy(of_test.events[i]));
  }
  for (int i = 0; i < 2 && of_test.streams[i]; i++) {
    CHECK(device->stream.destroy(of_test.streams[i]));
  }
  for (int i = 0; i < 2 && of_test.memory[i]; i++) {
    CHECK(device->memory.free(of_test.memory[i]));
  }
  for (int i = 0; i < 2 && of_test.pinned[i]; i++) {
    CHECK(device->memory.pinned_free(of_test.pinned[i]));
  }
}

/* Before the value reaches what a stream waits for, long enough for work that does
 * not wait to be done on most machines; a longer time would fail no more tests. */
static inline void give_time(void) {
  struct timespec moment = {0, 20000000};
  nanosleep(&moment, NULL);
}

static inline void release(void *value, uint32_t to) {
  __atomic_store_n((uint32_t *)value, to, __ATOMIC_RELEASE);
}

static inline bool is_over(void *event) {
  bool over = false;
  CHECK(device->event.query(event, &over));
  return over;
}

#endif
