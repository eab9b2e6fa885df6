/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Streams that are held, on an emulated device. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "libcomm/device/stream_gate.h"
#include "tests/support/emulated/emulated_device.h"

static const lcomm_device_table *device;

static bool is_over(void *event) {
  bool over = false;
  assert_int_equal(device->event.query(event, &over), 0);
  return over;
}

static void stream_is_held_until_it_is_released(void **state) {
  void *stream = NULL, *event = NULL;
  (void)state;
  assert_int_equal(device->stream.create(&stream), 0);
  assert_int_equal(device->event.create(false, &event), 0);
  for (unsigned round = 0; round < 3; round++) {
    assert_int_equal(lcomm_stream_gate_count(), 0);
    lcomm_stream_gate *hold = lcomm_stream_gate_close(device, stream);
    assert_non_null(hold);
    assert_int_equal(lcomm_stream_gate_count(), 1);
    assert_int_equal(device->event.record(event, stream), 0);
    assert_false(is_over(event));
    lcomm_stream_gate_open(hold);
    assert_int_equal(device->stream.finish(stream), 0);
    assert_true(is_over(event));
  }
  assert_int_equal(device->event.destroy(event), 0);
  assert_int_equal(device->stream.destroy(stream), 0);
}

static void nothing_is_held_during_a_pause(void **state) {
  void *stream = NULL;
  (void)state;
  assert_int_equal(device->stream.create(&stream), 0);
  lcomm_stream_gate *before = lcomm_stream_gate_close(device, stream);
  assert_non_null(before);
  lcomm_stream_gate_quiesce();
  lcomm_stream_gate_quiesce();
  assert_null(lcomm_stream_gate_close(device, stream));
  assert_int_equal(lcomm_stream_gate_count(), 1);
  lcomm_stream_gate_open(before);
  assert_int_equal(lcomm_stream_gate_count(), 0);
  lcomm_stream_gate_resume();
  assert_null(lcomm_stream_gate_close(device, stream));
  lcomm_stream_gate_resume();
  lcomm_stream_gate *after = lcomm_stream_gate_close(device, stream);
  assert_non_null(after);
  lcomm_stream_gate_open(after);
  assert_int_equal(device->stream.finish(stream), 0);
  assert_int_equal(device->stream.destroy(stream), 0);
}

/* Where the work is done that would let it go. */
static void streams_for_work_are_not_held(void **state) {
  void *stream = NULL;
  (void)state;
  assert_int_equal(device->stream.work_create(&stream), 0);
  assert_null(lcomm_stream_gate_close(device, stream));
  assert_int_equal(lcomm_stream_gate_count(), 0);
  assert_int_equal(device->stream.destroy(stream), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(stream_is_held_until_it_is_released),
      cmocka_unit_test(nothing_is_held_during_a_pause),
      cmocka_unit_test(streams_for_work_are_not_held),
  };
  static const emulated_setup setup = {.devices = 1};
  device = emulated_begin(&setup);
  lcomm_stream_gate_prepare(device);
  int failures = cmocka_run_group_tests(tests, NULL, NULL);
  (void)emulated_end();
  return failures;
}
