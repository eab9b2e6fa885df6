/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Threads that make and end communicators for a program call no device: the emulated one would end
 * this test. What they free is freed later, by a thread of the program. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "libcomm/device/device_deferred.h"
#include "tests/device/device_emulated.h"
#include "tests/support/unit_tests.h"

static int begin_two(void **state) {
  static const emulated_setup setup = {.devices = 2};
  (void)state;
  int error = begin_devices(&setup);
  lcomm_device_replace(device);
  return error;
}

/* ------------------------------------------------------------ in such a thread */

/* What it stands for, what it has seen, and what it is to free. */
typedef struct errand {
  int ordinal;
  int seen, facts_error;
  lcomm_device_facts facts;
  lcomm_memory_location place;
  void *memory, *pinned, *stream, *event;
} errand;

static void *run(void *argument) {
  errand *it = argument;
  lcomm_device_defer(it->ordinal);
  const lcomm_device_table *table = lcomm_device_freeing(device);
  (void)table->current(&it->seen);
  it->facts_error = table->facts(it->seen, &it->facts);
  it->place = table->locate(it->memory);
  (void)table->stream.finish(it->stream);
  (void)table->event.destroy(it->event);
  (void)table->stream.destroy(it->stream);
  (void)table->memory.free(it->memory);
  (void)table->memory.pinned_free(it->pinned);
  lcomm_device_do_deferred(); /* not by this thread */
  return lcomm_device_get(NULL) == table ? it : NULL;
}

static void send(errand *it) {
  pthread_t thread;
  void *answer = NULL;
  assert_int_equal(pthread_create(&thread, NULL, run, it), 0);
  assert_int_equal(pthread_join(thread, &answer), 0);
  assert_ptr_equal(answer, it);
}

/* ------------------------------------------------------------------ properties */

static void what_was_noted_is_known_there(void **state) {
  lcomm_device_facts facts;
  errand it = {.ordinal = 1};
  (void)state;
  CHECK(device->use(1));
  assert_int_equal(lcomm_device_note(), 1);
  CHECK(device->facts(1, &facts));
  send(&it);
  assert_int_equal(it.seen, 1);
  assert_int_equal(it.facts_error, 0);
  assert_string_equal(it.facts.pci, facts.pci);
  assert_memory_equal(it.facts.uuid, facts.uuid, sizeof facts.uuid);
}

static void what_was_not_noted_is_not(void **state) {
  errand it = {.ordinal = 1};
  (void)state;
  assert_int_equal(lcomm_device_note(), 0);
  send(&it);
  assert_int_not_equal(it.facts_error, 0);
}

/* Nothing is freed by the thread, and everything by the next call: the end of the devices counts.
 */
static void what_it_frees_is_freed_later(void **state) {
  errand it = {.ordinal = 1};
  size_t unused = 0, all = 0, before = 0;
  (void)state;
  CHECK(device->use(1));
  CHECK(device->memory.get(1 << 20, &it.memory));
  CHECK(device->memory.pinned_get(64, &it.pinned));
  CHECK(device->stream.work_create(&it.stream));
  CHECK(device->event.create(false, &it.event));
  CHECK(device->event.record(it.event, it.stream));
  CHECK(device->use(0));
  emulated_memory_info(1, &before, &all);
  send(&it);
  assert_int_equal(it.place.kind, LCOMM_MEMORY_HOST);
  emulated_memory_info(1, &unused, &all);
  assert_int_equal(unused, before);
  lcomm_device_do_deferred();
  emulated_memory_info(1, &unused, &all);
  assert_int_equal(unused, before + (1 << 20));
  int ordinal = -1;
  CHECK(device->current(&ordinal));
  assert_int_equal(ordinal, 0); /* that of the caller, as before */
}

static int order[4], done;

static void remember(const lcomm_device_table *table, void *number) {
  int ordinal = -1;
  CHECK(table->current(&ordinal));
  order[done++] = 10 * ordinal + *(const int *)number;
}

static int numbers[3] = {1, 2, 3};

static void *leave_three(void *unused) {
  lcomm_device_defer(LCOMM_DEVICE_NONE);
  for (int i = 0; i < 3; i++) {
    lcomm_device_free_by(i % 2, remember, &numbers[i]);
  }
  return unused;
}

static void it_is_done_in_order_on_its_devices(void **state) {
  pthread_t thread;
  (void)state;
  done = 0;
  assert_int_equal(pthread_create(&thread, NULL, leave_three, NULL), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_int_equal(done, 0);
  lcomm_device_do_deferred();
  assert_int_equal(done, 3);
  assert_true(order[0] == 1 && order[1] == 12 && order[2] == 3);
  lcomm_device_free_by(1, remember, &numbers[0]); /* other threads do it at once */
  assert_true(done == 4 && order[3] == 11);
}

/* Everybody else frees by the table that he has. */
static void other_threads_have_the_table_itself(void **state) {
  (void)state;
  assert_ptr_equal(lcomm_device_freeing(device), device);
  assert_ptr_equal(lcomm_device_get(NULL), device);
  assert_null(lcomm_device_freeing(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_was_not_noted_is_not, begin_two, end_devices),
    cmocka_unit_test_setup_teardown(what_was_noted_is_known_there, begin_two, end_devices),
    cmocka_unit_test_setup_teardown(what_it_frees_is_freed_later, begin_two, end_devices),
    cmocka_unit_test_setup_teardown(it_is_done_in_order_on_its_devices, begin_two, end_devices),
    cmocka_unit_test_setup_teardown(other_threads_have_the_table_itself, begin_two, end_devices),
};
RUN_TESTS(tests)
