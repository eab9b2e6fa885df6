/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_DEVICE_ORDER_H
#define LCOMM_TESTS_DEVICE_ORDER_H

/* What every device does, emulated or real: streams and events of one process. */

#include <pthread.h>

#include "tests/device/device_properties.h"

static void stream_works_in_order_and_in_its_own_time(void **state) {
  enum { STEPS = 20 };
  (void)state;
  need_waiting();
  void *stream = new_stream(), *end = new_event();
  unsigned char *memory = memory_of(STEPS), *got = pinned_of(STEPS), *value = pinned_of(4);
  CHECK(device->wait_value(stream, (uint32_t *)(void *)value, 1));
  for (int i = 0; i < STEPS; i++) {
    CHECK(device->set(memory, i + 1, STEPS, stream));
    CHECK(device->copy(got + i, memory + i, 1, stream));
  }
  CHECK(device->event_record(end, stream));
  give_time();
  assert_false(is_over(end));
  release(value, 1);
  CHECK(device->stream_finish(stream));
  assert_true(is_over(end));
  for (int i = 0; i < STEPS; i++) {
    assert_int_equal(got[i], i + 1);
  }
  CHECK(device->event_destroy(end));
  CHECK(device->stream_destroy(stream));
  CHECK(device->memory_free(memory));
  CHECK(device->pinned_free(got));
  CHECK(device->pinned_free(value));
}

static void event_that_was_never_recorded_is_over(void **state) {
  (void)state;
  need_device();
  void *stream = new_stream(), *event = new_event();
  assert_true(is_over(event));
  CHECK(device->stream_wait(stream, event));
  CHECK(device->stream_finish(stream));
  CHECK(device->event_destroy(event));
  CHECK(device->stream_destroy(stream));
}

/* What is recorded later in the same event does not matter. */
static void stream_waits_for_what_was_recorded_when_it_was_told(void **state) {
  (void)state;
  need_waiting();
  void *first = new_stream(), *second = new_stream(), *event = new_event(), *end = new_event();
  unsigned char *memory = memory_of(1), *got = pinned_of(1), *values = pinned_of(8);
  CHECK(device->wait_value(first, (uint32_t *)(void *)values, 1));
  CHECK(device->set(memory, 41, 1, first));
  CHECK(device->event_record(event, first));
  CHECK(device->stream_wait(second, event));
  CHECK(device->copy(got, memory, 1, second));
  CHECK(device->event_record(end, second));
  CHECK(device->wait_value(first, (uint32_t *)(void *)values + 1, 1));
  CHECK(device->event_record(event, first));
  give_time();
  assert_false(is_over(end));
  release(values, 1);
  CHECK(device->stream_finish(second));
  assert_int_equal(got[0], 41);
  assert_true(is_over(end));
  assert_false(is_over(event));
  release(values + 4, 1);
  CHECK(device->stream_finish(first));
  assert_true(is_over(event));
  CHECK(device->event_destroy(event));
  CHECK(device->event_destroy(end));
  CHECK(device->stream_destroy(first));
  CHECK(device->stream_destroy(second));
  CHECK(device->memory_free(memory));
  CHECK(device->pinned_free(got));
  CHECK(device->pinned_free(values));
}

static void values_count_on_past_2_to_the_32(void **state) {
  (void)state;
  need_waiting();
  void *stream = new_stream(), *event = new_event();
  unsigned char *value = pinned_of(4);
  release(value, 3);
  CHECK(device->wait_value(stream, (uint32_t *)(void *)value, UINT32_MAX - 1));
  CHECK(device->stream_finish(stream));
  release(value, UINT32_MAX - 5);
  CHECK(device->wait_value(stream, (uint32_t *)(void *)value, 2));
  CHECK(device->event_record(event, stream));
  give_time();
  assert_false(is_over(event));
  release(value, 1);
  give_time();
  assert_false(is_over(event));
  release(value, 2);
  CHECK(device->stream_finish(stream));
  CHECK(device->event_destroy(event));
  CHECK(device->stream_destroy(stream));
  CHECK(device->pinned_free(value));
}

/* A thread that fails says so at its end: cmocka knows one thread. */
static void *use_own_stream(void *argument) {
  enum { ROUNDS = 50, SIZE = 777 };
  unsigned char got[SIZE];
  void *stream = NULL, *memory = NULL;
  int byte = *(int *)argument;
  bool good = device->stream_create(&stream) == 0 && device->memory_get(SIZE, &memory) == 0;
  for (int i = 0; i < ROUNDS && good; i++) {
    good = device->set(memory, byte + i, SIZE, stream) == 0 &&
           device->copy(got, memory, SIZE, stream) == 0 && device->stream_finish(stream) == 0 &&
           device->place(memory).kind == LCOMM_MEMORY_DEVICE;
    for (int j = 0; j < SIZE && good; j++) {
      good = got[j] == (unsigned char)(byte + i);
    }
  }
  device->memory_free(memory);
  device->stream_destroy(stream);
  return good ? argument : NULL;
}

static void threads_use_streams_of_their_own(void **state) {
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int bytes[THREADS];
  (void)state;
  need_device();
  for (int i = 0; i < THREADS; i++) {
    bytes[i] = 60 * i;
    assert_int_equal(pthread_create(&threads[i], NULL, use_own_stream, &bytes[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    pthread_join(threads[i], &result);
    assert_non_null(result);
  }
}

#define DEVICE_ORDER(TEST)                                                                         \
  TEST(stream_works_in_order_and_in_its_own_time), TEST(event_that_was_never_recorded_is_over),    \
      TEST(stream_waits_for_what_was_recorded_when_it_was_told),                                   \
      TEST(values_count_on_past_2_to_the_32), TEST(threads_use_streams_of_their_own)

#endif
