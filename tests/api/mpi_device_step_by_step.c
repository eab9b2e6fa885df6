/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Calls on devices step by step: nothing that a communicator puts on a device waits for another
 * rank. And waiting for a stream. */

#include "libcomm/include/libcomm_interpose.h"
#include "tests/engine/on_emulated_device.h"

enum { COUNT = 5000 };

static lcomm_comm *make_stepping(lcomm_progress_mode progress) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_comm *comm = NULL;
  config.policy = "net=int8 min=1K";
  config.nodes = mpi_size;
  config.progress = progress;
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm);
  require(status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  return comm;
}

/* What gets memory waits for all streams: rank 0 does while its sum waits for the others. */
static void memory_is_got_while_a_sum_waits_for_other_ranks(void) {
  static float values[COUNT];
  lcomm_comm *comm = make_stepping(LCOMM_PROGRESS_CALLS);
  lcomm_request request = {0};
  require(lcomm_device_step_by_step(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  float *there = on_device(sizeof(values));
  for (int i = 0; i < COUNT; i++) {
    values[i] = 1;
  }
  to_device(there, values, sizeof(values));
  if (mpi_rank == 0) {
    require(lcomm_iallreduce(comm, there, there, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request) ==
                LCOMM_OK,
            "%s", lcomm_last_error(comm));
    for (int i = 0; i < 3; i++) {
      check(device->memory.free(on_device(1000)));
      (void)lcomm_progress(comm);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank > 0) {
    require(lcomm_iallreduce(comm, there, there, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request) ==
                LCOMM_OK,
            "%s", lcomm_last_error(comm));
  }
  require(lcomm_wait(comm, &request) == LCOMM_OK, "%s", lcomm_last_error(comm));
  from_device(values, there, sizeof(values));
  for (int i = 0; i < COUNT; i++) {
    float error = values[i] - (float)mpi_size;
    require(error < 0.2f && error > -0.2f, "element %d is %g", i, (double)values[i]);
  }
  check(device->memory.free(there));
  require(lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
}

static void who_was_used_or_has_a_thread_is_refused(void) {
  lcomm_comm *comm = make_stepping(LCOMM_PROGRESS_CALLS);
  require(lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(lcomm_device_step_by_step(comm) == LCOMM_ERR_STATE &&
              strstr(lcomm_last_error(comm), "before its first operation"),
          "%s", lcomm_last_error(comm));
  (void)lcomm_destroy(comm);
  comm = make_stepping(LCOMM_PROGRESS_THREAD);
  require(lcomm_device_step_by_step(comm) == LCOMM_ERR_STATE &&
              strstr(lcomm_last_error(comm), "LCOMM_PROGRESS_CALLS"),
          "%s", lcomm_last_error(comm));
  (void)lcomm_destroy(comm);
}

static void a_stream_is_waited_for_unless_it_is_captured(void) {
  unsigned char byte = 0;
  void *stream = NULL, *graph = NULL;
  unsigned char *there = on_device(1000);
  check(device->stream.create(&stream));
  check(device->set(there, 7, 1000, stream));
  require(lcomm_device_finish(there, stream) == LCOMM_OK, "%s", lcomm_last_error(NULL));
  from_device(&byte, there, 1);
  require(byte == 7, "the stream has not done its work");
  require(lcomm_device_finish(&byte, stream) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(NULL), "the host's"),
          "%s", lcomm_last_error(NULL));
  int captured = 1;
  require(lcomm_device_captured(stream, &captured) == LCOMM_OK && !captured, "it is captured");
  check(emulated_capture_begin(stream));
  check(device->set(there, 8, 1000, stream));
  require(lcomm_device_captured(stream, &captured) == LCOMM_OK && captured, "it is not captured");
  require(lcomm_device_finish(there, stream) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(NULL), "captured"),
          "%s", lcomm_last_error(NULL));
  check(emulated_capture_end(stream, &graph));
  check(emulated_graph_destroy(graph));
  check(device->stream.destroy(stream));
  check(device->memory.free(there));
}

static const mpi_property properties[] = {
    PROPERTY(memory_is_got_while_a_sum_waits_for_other_ranks),
    PROPERTY(who_was_used_or_has_a_thread_is_refused),
    PROPERTY(a_stream_is_waited_for_unless_it_is_captured),
    PROPERTY(nothing_is_left_on_the_device),
};

RUN_PROPERTIES(pausing_device_main, properties)
