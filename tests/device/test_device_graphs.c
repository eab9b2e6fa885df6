/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Graphs of emulated devices: captured, launched, refused and ended as CUDA does. */

#include <stdatomic.h>

#include "tests/device/device_emulated.h"

enum { SIZE = 64 };

static const emulated_setup setup = {
    .devices = 2, .memory_size = 16 << 20, .seed = 5, .pause_us_max = 50};

static int begin(void **state) {
  (void)state;
  return begin_devices(&setup);
}

typedef struct launchable {
  void *graph, *executable;
} launchable;

static void end_capture(launchable *it, void *stream) {
  assert_int_equal(emulated_capture_end(stream, &it->graph), 0);
  assert_int_equal(emulated_graph_instantiate(it->graph, &it->executable), 0);
}

static void free_graph(const launchable *it) {
  assert_int_equal(emulated_executable_destroy(it->executable), 0);
  assert_int_equal(emulated_graph_destroy(it->graph), 0);
}

/* ---------------------------------------------------------------- capturing */

static void captures_are_seen(void **state) {
  uint64_t capture = 1, other = 0;
  void *graph = NULL;
  (void)state;
  void *stream = new_stream(), *beside = new_stream();
  CHECK(device->stream.captured(stream, &capture));
  assert_int_equal(capture, 0);
  assert_int_equal(emulated_capture_begin(stream), 0);
  assert_int_not_equal(emulated_capture_begin(stream), 0);
  CHECK(device->stream.captured(stream, &capture));
  assert_int_not_equal(capture, 0);
  CHECK(device->stream.captured(beside, &other));
  assert_int_equal(other, 0);
  assert_int_equal(emulated_capture_begin(beside), 0);
  CHECK(device->stream.captured(beside, &other));
  assert_int_not_equal(other, capture);
  assert_int_equal(emulated_capture_end(beside, &graph), 0);
  assert_int_equal(emulated_graph_destroy(graph), 0);
  assert_int_equal(emulated_capture_end(stream, &graph), 0);
  assert_int_equal(emulated_graph_destroy(graph), 0);
  CHECK(device->stream.captured(stream, &capture));
  assert_int_equal(capture, 0);
  assert_int_not_equal(emulated_capture_end(stream, &graph), 0);
  CHECK(device->stream.destroy(stream));
  CHECK(device->stream.destroy(beside));
}

/* From one piece of memory to the next, in two streams. */
static void what_is_captured_is_done_by_each_launch(void **state) {
  launchable it;
  (void)state;
  void *stream = new_stream(), *beside = new_stream(), *fork = new_event(), *join = new_event();
  unsigned char *from = pinned_of(SIZE), *to = pinned_of(SIZE), *middle = memory_of(SIZE);
  assert_int_equal(emulated_capture_begin(stream), 0);
  CHECK(device->copy(middle, from, SIZE, stream));
  CHECK(device->event.record(fork, stream));
  CHECK(device->stream.wait(beside, fork));
  CHECK(device->set(middle, 7, SIZE / 2, beside));
  CHECK(device->event.record(join, beside));
  CHECK(device->stream.wait(stream, join));
  CHECK(device->copy(to, middle, SIZE, stream));
  end_capture(&it, stream);
  CHECK(device->stream.finish(stream));
  assert_int_equal(to[SIZE - 1], 0);
  for (int launch = 1; launch < 5; launch++) {
    memset(from, launch, SIZE);
    assert_int_equal(emulated_graph_launch(it.executable, launch % 2 ? stream : beside), 0);
    CHECK(device->stream.finish(launch % 2 ? stream : beside));
    assert_int_equal(to[0], 7);
    assert_int_equal(to[SIZE - 1], launch);
  }
  free_graph(&it);
  give_all_back((belongings){.events = {fork, join},
                             .streams = {stream, beside},
                             .memory = {middle},
                             .pinned = {from, to}});
}

/* A launch begins when its stream comes to it, and after the one before. */
static void launches_come_one_after_the_other(void **state) {
  enum { LAUNCHES = 3 };
  launchable it;
  (void)state;
  void *stream = new_work_stream(), *other = new_work_stream();
  uint32_t *numbers = (uint32_t *)(void *)pinned_of(3 * sizeof(uint32_t));
  lcomm_device_number list[] = {{LCOMM_DEVICE_AWAIT, &numbers[0], 1},
                                {LCOMM_DEVICE_WRITE, &numbers[0], 0},
                                {LCOMM_DEVICE_WRITE, &numbers[1], 1}};
  assert_int_equal(emulated_capture_begin(stream), 0);
  CHECK(device->stream.numbers(stream, list, 3));
  end_capture(&it, stream);
  for (int i = 0; i < LAUNCHES; i++) {
    assert_int_equal(emulated_graph_launch(it.executable, i % 2 ? stream : other), 0);
  }
  for (int i = 0; i < LAUNCHES; i++) {
    give_time();
    assert_int_equal(__atomic_load_n(&numbers[1], __ATOMIC_ACQUIRE), 0);
    release(&numbers[0], 1);
    while (__atomic_load_n(&numbers[1], __ATOMIC_ACQUIRE) == 0) {
      give_time();
    }
    release(&numbers[1], 0);
  }
  CHECK(device->stream.finish(stream));
  CHECK(device->stream.finish(other));
  free_graph(&it);
  give_all_back((belongings){.streams = {stream, other}, .pinned = {numbers}});
}

/* ------------------------------------------------------------------ refused */

static void what_is_not_joined_is_no_graph(void **state) {
  void *graph = NULL;
  (void)state;
  void *stream = new_stream(), *beside = new_stream(), *fork = new_event();
  unsigned char *memory = memory_of(SIZE);
  assert_int_equal(emulated_capture_begin(stream), 0);
  CHECK(device->event.record(fork, stream));
  CHECK(device->stream.wait(beside, fork));
  CHECK(device->set(memory, 7, SIZE, beside));
  assert_int_not_equal(emulated_capture_end(stream, &graph), 0);
  assert_null(graph);
  CHECK(device->set(memory, 1, SIZE, beside)); /* it is captured no more */
  CHECK(device->stream.finish(beside));
  give_all_back((belongings){.events = {fork}, .streams = {stream, beside}, .memory = {memory}});
}

static void captures_have_nothing_to_do_with_what_is_not_captured(void **state) {
  void *graph = NULL;
  bool over = false;
  unsigned char here[SIZE] = {0};
  (void)state;
  void *stream = new_stream(), *beside = new_stream(), *event = new_event();
  unsigned char *memory = memory_of(SIZE);
  CHECK(device->set(memory, 7, SIZE, beside));
  CHECK(device->event.record(event, beside));
  assert_int_equal(emulated_capture_begin(stream), 0);
  assert_int_not_equal(device->stream.wait(stream, event), 0);
  assert_int_not_equal(device->stream.finish(stream), 0);
  assert_int_not_equal(device->copy(memory, here, SIZE, stream), 0);
  assert_int_not_equal(device->copy(here, memory, SIZE, stream), 0);
  CHECK(device->event.record(event, stream));
  assert_int_not_equal(device->event.query(event, &over), 0);
  assert_int_equal(emulated_capture_begin(beside), 0);
  assert_int_not_equal(device->stream.wait(beside, event), 0); /* two would become one */
  assert_int_not_equal(emulated_capture_end(stream, &graph), 0);
  assert_int_equal(emulated_capture_end(beside, &graph), 0);
  assert_int_equal(emulated_graph_destroy(graph), 0);
  give_all_back((belongings){.events = {event}, .streams = {stream, beside}, .memory = {memory}});
}

/* ------------------------------------------------------------------- the end */

static void release_now(void *data) {
  assert_true(lcomm_device_is_barred());
  atomic_store((atomic_int *)data, 1);
}

static void graphs_keep_what_they_retain(void **state) {
  atomic_int released = 0;
  launchable it;
  (void)state;
  void *stream = new_work_stream();
  uint32_t *number = (uint32_t *)(void *)pinned_of(sizeof(uint32_t));
  lcomm_device_number task = {LCOMM_DEVICE_AWAIT, number, 1};
  assert_int_not_equal(device->stream.retain(stream, release_now, &released), 0);
  assert_int_equal(emulated_capture_begin(stream), 0);
  CHECK(device->stream.retain(stream, release_now, &released));
  CHECK(device->stream.numbers(stream, &task, 1));
  end_capture(&it, stream);
  assert_int_equal(emulated_graph_launch(it.executable, stream), 0);
  free_graph(&it);
  give_time();
  assert_int_equal(atomic_load(&released), 0); /* it is at work */
  release(number, 1);
  CHECK(device->stream.finish(stream));
  while (atomic_load(&released) == 0) {
    give_time();
  }
  CHECK(device->stream.destroy(stream));
  CHECK(device->memory.pinned_free(number));
}

static void captures_that_fail_keep_nothing(void **state) {
  atomic_int released = 0;
  void *graph = NULL;
  (void)state;
  void *stream = new_stream(), *beside = new_stream(), *fork = new_event();
  unsigned char *memory = memory_of(SIZE);
  assert_int_equal(emulated_capture_begin(stream), 0);
  CHECK(device->stream.retain(stream, release_now, &released));
  CHECK(device->event.record(fork, stream));
  CHECK(device->stream.wait(beside, fork));
  CHECK(device->set(memory, 7, SIZE, beside));
  assert_int_not_equal(emulated_capture_end(stream, &graph), 0);
  assert_int_equal(atomic_load(&released), 1);
  give_all_back((belongings){.events = {fork}, .streams = {stream, beside}, .memory = {memory}});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(captures_are_seen, begin, end_devices),
      cmocka_unit_test_setup_teardown(what_is_captured_is_done_by_each_launch, begin, end_devices),
      cmocka_unit_test_setup_teardown(launches_come_one_after_the_other, begin, end_devices),
      cmocka_unit_test_setup_teardown(what_is_not_joined_is_no_graph, begin, end_devices),
      cmocka_unit_test_setup_teardown(captures_have_nothing_to_do_with_what_is_not_captured, begin,
                                      end_devices),
      cmocka_unit_test_setup_teardown(graphs_keep_what_they_retain, begin, end_devices),
      cmocka_unit_test_setup_teardown(captures_that_fail_keep_nothing, begin, end_devices),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
