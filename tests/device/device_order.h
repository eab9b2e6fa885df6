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
  need_device();
  void *stream = new_work_stream(), *end = new_event();
  unsigned char *memory = memory_of(STEPS), *got = pinned_of(STEPS), *value = pinned_of(4);
  hold(stream, value, 1);
  for (int i = 0; i < STEPS; i++) {
    CHECK(device->set(memory, i + 1, STEPS, stream));
    CHECK(device->copy(got + i, memory + i, 1, stream));
  }
  CHECK(device->event.record(end, stream));
  give_time();
  assert_false(is_over(end));
  release(value, 1);
  CHECK(device->stream.finish(stream));
  assert_true(is_over(end));
  for (int i = 0; i < STEPS; i++) {
    assert_int_equal(got[i], i + 1);
  }
  give_all_back((belongings){
      .events = {end}, .streams = {stream}, .memory = {memory}, .pinned = {got, value}});
}

static void event_that_was_never_recorded_is_over(void **state) {
  (void)state;
  need_device();
  void *stream = new_stream(), *event = new_event();
  assert_true(is_over(event));
  CHECK(device->stream.wait(stream, event));
  CHECK(device->stream.finish(stream));
  CHECK(device->event.destroy(event));
  CHECK(device->stream.destroy(stream));
}

/* What is recorded later in the same event does not matter. */
static void stream_waits_for_what_was_recorded_when_it_was_told(void **state) {
  (void)state;
  need_device();
  void *first = new_work_stream(), *second = new_stream(), *event = new_event(), *end = new_event();
  unsigned char *memory = memory_of(1), *got = pinned_of(1), *values = pinned_of(8);
  hold(first, values, 1);
  CHECK(device->set(memory, 41, 1, first));
  CHECK(device->event.record(event, first));
  CHECK(device->stream.wait(second, event));
  CHECK(device->copy(got, memory, 1, second));
  CHECK(device->event.record(end, second));
  hold(first, values + 4, 1);
  CHECK(device->event.record(event, first));
  give_time();
  assert_false(is_over(end));
  release(values, 1);
  CHECK(device->stream.finish(second));
  assert_int_equal(got[0], 41);
  assert_true(is_over(end));
  assert_false(is_over(event));
  release(values + 4, 1);
  CHECK(device->stream.finish(first));
  assert_true(is_over(event));
  give_all_back((belongings){.events = {event, end},
                             .streams = {first, second},
                             .memory = {memory},
                             .pinned = {got, values}});
}

static void values_count_on_past_2_to_the_32(void **state) {
  (void)state;
  need_device();
  void *stream = new_work_stream(), *event = new_event();
  unsigned char *value = pinned_of(4);
  release(value, 3);
  hold(stream, value, UINT32_MAX - 1);
  CHECK(device->stream.finish(stream));
  release(value, UINT32_MAX - 5);
  hold(stream, value, 2);
  CHECK(device->event.record(event, stream));
  give_time();
  assert_false(is_over(event));
  release(value, 1);
  give_time();
  assert_false(is_over(event));
  release(value, 2);
  CHECK(device->stream.finish(stream));
  give_all_back((belongings){.events = {event}, .streams = {stream}, .pinned = {value}});
}

/* A thread that fails says so at its end: cmocka knows one thread. */
static void *use_own_stream(void *argument) {
  enum { ROUNDS = 50, SIZE = 777 };
  unsigned char got[SIZE];
  void *stream = NULL, *memory = NULL;
  int byte = *(int *)argument;
  bool good = device->stream.create(&stream) == 0 && device->memory.get(SIZE, &memory) == 0;
  for (int i = 0; i < ROUNDS && good; i++) {
    good = device->set(memory, byte + i, SIZE, stream) == 0 &&
           device->copy(got, memory, SIZE, stream) == 0 && device->stream.finish(stream) == 0 &&
           device->locate(memory).kind == LCOMM_MEMORY_DEVICE;
    for (int j = 0; j < SIZE && good; j++) {
      good = got[j] == (unsigned char)(byte + i);
    }
  }
  device->memory.free(memory);
  device->stream.destroy(stream);
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

/* ----------------------------------------------------------------- numbers */

/* More than a call of the driver takes at once. */
static void numbers_are_awaited_and_written_in_order(void **state) {
  enum { TASKS = 150 };
  lcomm_device_number list[TASKS];
  (void)state;
  need_device();
  void *stream = new_work_stream();
  unsigned char *places = pinned_of(TASKS * 4), *memory = memory_of(1), *got = pinned_of(1);
  uint32_t *numbers = (uint32_t *)(void *)places;
  for (int i = 0; i < TASKS; i++) {
    list[i] = (lcomm_device_number){LCOMM_DEVICE_WRITE, &numbers[i], 7};
  }
  list[0].task = LCOMM_DEVICE_AWAIT;
  numbers[0] = UINT32_MAX;
  CHECK(device->set(memory, 41, 1, stream));
  CHECK(device->copy(got, memory, 1, stream));
  CHECK(device->stream.numbers(stream, list, TASKS));
  memset(list, 0xff, sizeof(list)); /* it was copied */
  give_time();
  assert_int_equal(__atomic_load_n(&numbers[1], __ATOMIC_ACQUIRE), 0);
  release(places, 7);
  while (__atomic_load_n(&numbers[TASKS - 1], __ATOMIC_ACQUIRE) != 7) {
    give_time();
  }
  assert_int_equal(got[0], 41);
  CHECK(device->stream.finish(stream));
  give_all_back((belongings){.streams = {stream}, .memory = {memory}, .pinned = {got, places}});
}

/* The number is the one that is there when the stream comes to it. */
static void gates_are_awaited_and_written_in_order(void **state) {
  enum { TASKS = 150, NUMBER = TASKS, PASSED };
  lcomm_device_gate list[TASKS];
  (void)state;
  need_device();
  void *stream = new_work_stream();
  unsigned char *places = pinned_of((TASKS + 2) * 4);
  uint32_t *numbers = (uint32_t *)(void *)places;
  for (int i = 0; i < TASKS; i++) {
    list[i] = (lcomm_device_gate){.task = LCOMM_DEVICE_WRITE,
                                  .place = &numbers[i],
                                  .number = &numbers[NUMBER],
                                  .passed = &numbers[PASSED]};
  }
  list[0].task = LCOMM_DEVICE_AWAIT;
  numbers[0] = UINT32_MAX;
  numbers[NUMBER] = 6;
  hold(stream, &numbers[1], 1);
  CHECK(device->stream.gates(stream, list, TASKS));
  release(&numbers[NUMBER], 7);
  release(&numbers[1], 1);
  give_time();
  assert_int_equal(__atomic_load_n(&numbers[1], __ATOMIC_ACQUIRE), 1);
  release(&numbers[0], 7);
  CHECK(device->stream.finish(stream));
  for (int i = 0; i < TASKS; i++) {
    assert_int_equal(numbers[i], 7);
  }
  release(&numbers[NUMBER], 8); /* nobody comes so far */
  CHECK(device->stream.gates(stream, list, 1));
  give_time();
  release(&numbers[PASSED], 1);
  CHECK(device->stream.finish(stream));
  CHECK(device->stream.destroy(stream));
  CHECK(device->memory.pinned_free(places));
}

static void streams_are_not_captured_by_themselves(void **state) {
  uint64_t capture = 1;
  (void)state;
  need_device();
  void *stream = new_stream();
  CHECK(device->stream.captured(stream, &capture));
  assert_int_equal(capture, 0);
  capture = 1;
  CHECK(device->stream.captured(NULL, &capture));
  assert_int_equal(capture, 0);
  CHECK(device->stream.destroy(stream));
}

/* --------------------------------------------------------- threads without */

static void *come_and_go(void *argument) {
  int now = 0;
  void *memory = NULL;
  bool good = device->current(&now) == 0 && now == LCOMM_DEVICE_NONE;
  for (int i = 0; i < 2 && good; i++) {
    good = device->use(0) == 0 && device->current(&now) == 0 && now == 0 &&
           device->memory.get(100, &memory) == 0 && device->locate(memory).device == 0 &&
           device->memory.free(memory) == 0 && device->use(LCOMM_DEVICE_NONE) == 0 &&
           device->current(&now) == 0 && now == LCOMM_DEVICE_NONE;
  }
  return good ? argument : NULL;
}

static void thread_that_uses_no_device_can_be_left_so(void **state) {
  pthread_t thread;
  void *result = NULL;
  int anything = 0;
  (void)state;
  need_device();
  assert_int_equal(pthread_create(&thread, NULL, come_and_go, &anything), 0);
  pthread_join(thread, &result);
  assert_non_null(result);
}

#define DEVICE_ORDER(TEST)                                                                         \
  TEST(stream_works_in_order_and_in_its_own_time), TEST(event_that_was_never_recorded_is_over),    \
      TEST(stream_waits_for_what_was_recorded_when_it_was_told),                                   \
      TEST(values_count_on_past_2_to_the_32), TEST(threads_use_streams_of_their_own),              \
      TEST(numbers_are_awaited_and_written_in_order),                                              \
      TEST(gates_are_awaited_and_written_in_order), TEST(streams_are_not_captured_by_themselves),  \
      TEST(thread_that_uses_no_device_can_be_left_so)

#endif
