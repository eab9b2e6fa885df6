/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* Calls in a stream of an emulated device that the program holds. No other thread may wait for this
 * device to be idle meanwhile (script_device_churn.sh): it would wait for the program, and the
 * program for it. */

#include "tests/api/device_streams.h"

#include "tests/engine/on_emulated_device.h"

/* A stream that waits for a number: calls of shapes that were made before return all the same. */
static void calls_return_while_their_stream_is_held(void) {
  streamed it;
  void *number = NULL;
  static float result[STREAM_WHOLE];
  if (!begin_streamed(&it, "net=int8+ef min=1", mpi_size, LCOMM_PROGRESS_CALLS)) {
    return;
  }
  make_residuals(&it);
  check(device->stream.destroy(it.stream));
  check(device->stream.work_create(&it.stream)); /* that can wait for a number */
  check(device->memory.pinned_get(sizeof(uint32_t), &number));
  __atomic_store_n((uint32_t *)number, 0, __ATOMIC_RELEASE);
  for (int call = 0; call < 2; call++) {
    call_in_stream(&it, call);
    scatter_and_gather(&it, 6);
  }
  check(device->stream.finish(it.stream));
  require_fine(it.there, lcomm_barrier(it.there));
  lcomm_device_number task = {LCOMM_DEVICE_AWAIT, number, 1};
  check(device->stream.numbers(it.stream, &task, 1));
  for (int call = 2; call < 4; call++) { /* no two with one residual */
    call_in_stream(&it, call);
  }
  scatter_and_gather(&it, 4);
  __atomic_store_n((uint32_t *)number, 1, __ATOMIC_RELEASE);
  check(device->stream.finish(it.stream));
  for (int call = 0; call < 4; call++) {
    size_t count = call_here(&it, call, result);
    require_same(&it, call, result, count, "held");
  }
  scatter_and_gather_here(&it, 4, result);
  require_same(&it, 4, result, STREAM_WHOLE, "held");
  check(device->memory.pinned_free(number));
  end_streamed(&it);
}

static const mpi_property properties[] = {
    PROPERTY(calls_return_while_their_stream_is_held),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)
