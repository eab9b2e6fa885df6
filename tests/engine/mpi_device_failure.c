/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* What fails on an emulated device, or while streams wait for what fails. Runs that
 * are given up keep their memory, so nothing is counted at the end. */

#include <pthread.h>
#include <unistd.h>

#include "tests/engine/on_emulated_device.h"

enum { COUNT = 5000, BEFORE = 4 };

/* A communicator and a stream that have made sums: memory is there, and open where peers read it.
 */
typedef struct driven {
  lcomm_comm *comm;
  float *buffer;
  void *stream;
} driven;

static lcomm_status sum(const driven *it) {
  return lcomm_allreduce_on_stream(it->comm, it->buffer, it->buffer, COUNT, LCOMM_FLOAT32,
                                   LCOMM_SUM, it->stream);
}

static driven begin_driven(double timeout_s) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.nodes = 1;
  config.progress = LCOMM_PROGRESS_THREAD;
  config.timeout_s = timeout_s;
  driven it = {make_comm_if_possible(&config), on_device(COUNT * sizeof(float)), NULL};
  check(device->stream.work_create(&it.stream)); /* may wait for numbers */
  for (int i = 0; i < BEFORE; i++) {
    require_fine(it.comm, lcomm_allreduce(it.comm, it.buffer, it.buffer, COUNT, LCOMM_FLOAT32,
                                          LCOMM_SUM)); /* over, so the next one has the same run */
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return it;
}

/* Without the call of rank 0, which now makes another one, it can only fail. */
static void end_driven(driven it, lcomm_status expected) {
  check(device->stream.finish(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_status status = lcomm_barrier(it.comm);
  bool fits = status == expected || status == LCOMM_ERR_ABORTED;
  require(status != LCOMM_OK && (fits || mpi_rank == 0), "%s: %s", lcomm_status_name(status),
          lcomm_last_error(it.comm));
  lcomm_destroy(it.comm);
  check(device->stream.destroy(it.stream));
  check(device->memory.free(it.buffer));
}

/* Rank 0 gives up; the streams of the others go on all the same. */
static void a_failure_lets_streams_go_on(void) {
  driven it = begin_driven(60);
  if (mpi_rank == 0) {
    lcomm_abort(it.comm, "no more electricity");
  } else {
    (void)sum(&it);
  }
  end_driven(it, LCOMM_ERR_ABORTED);
}

/* Nobody waits in a call, only streams do: they, too, have patience. */
static void a_silent_peer_lets_streams_go_on(void) {
  static const double PATIENCE_S = 5;
  driven it = begin_driven(PATIENCE_S);
  if (mpi_rank > 0) {
    require_fine(it.comm, sum(&it));
  }
  end_driven(it, LCOMM_ERR_TIMEOUT);
}

/* The same of a call with a residual, which somebody waits for later. */
static void a_silent_peer_lets_a_stream_with_a_residual_go_on(void) {
  static const double PATIENCE_S = 5;
  lcomm_residual *residual = NULL;
  driven it = begin_driven(PATIENCE_S);
  require_fine(it.comm, lcomm_residual_create(it.comm, COUNT, LCOMM_SUM, &residual));
  require_fine(it.comm, lcomm_allreduce_ef_on_stream(residual, it.buffer, it.buffer, it.stream));
  check(device->stream.finish(it.stream));
  MPI_Barrier(MPI_COMM_WORLD);
  if (mpi_rank > 0) {
    require_fine(it.comm, lcomm_allreduce_ef_on_stream(residual, it.buffer, it.buffer, it.stream));
  }
  end_driven(it, LCOMM_ERR_TIMEOUT);
}

static const double SHORT_PATIENCE_S = 5; /* a starved progress thread answers within half of it */

static void *release_later(void *number) {
  usleep((useconds_t)(2 * SHORT_PATIENCE_S * 1e6));
  __atomic_store_n((uint32_t *)number, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

/* A stream that comes to the call late, because of what is in it before, is nobody's fault. */
static void a_slow_stream_is_no_silent_peer(void) {
  uint32_t *number = NULL;
  driven it = begin_driven(SHORT_PATIENCE_S);
  check(device->memory.pinned_get(sizeof *number, (void **)&number));
  __atomic_store_n(number, 0, __ATOMIC_SEQ_CST);
  lcomm_device_number hold = {LCOMM_DEVICE_AWAIT, number, 1};
  check(device->stream.numbers(it.stream, &hold, 1));
  pthread_t releaser; /* before a call that may wait for a thread which waits for the stream */
  require(pthread_create(&releaser, NULL, release_later, number) == 0, "no thread");
  require_fine(it.comm, sum(&it));
  /* Another shape: its run gets memory, which waits for the stream. */
  require_fine(it.comm, lcomm_allreduce_on_stream(it.comm, it.buffer, it.buffer, COUNT / 2,
                                                  LCOMM_FLOAT32, LCOMM_SUM, it.stream));
  pthread_join(releaser, NULL);
  check(device->stream.finish(it.stream));
  require_fine(it.comm, lcomm_barrier(it.comm));
  require_fine(NULL, lcomm_destroy(it.comm));
  check(device->memory.pinned_free(number));
  check(device->stream.destroy(it.stream));
  check(device->memory.free(it.buffer));
}

/* A device without memory: the operation is refused, with a sentence, everywhere. */
static void too_little_memory_is_an_error_with_a_name(void) {
  enum { LARGE = 3 << 20 };
  lcomm_comm *comm = make_driven("net=int8", 1, LCOMM_PROGRESS_CALLS);
  float *buffer = on_device(LARGE * sizeof(float));
  lcomm_status status = lcomm_allreduce(comm, buffer, buffer, LARGE, LCOMM_FLOAT32, LCOMM_SUM);
  require(status != LCOMM_OK, "a sum was made without memory");
  require(lcomm_last_error(comm)[0] != '\0', "there is no sentence");
  lcomm_destroy(comm);
  check(device->memory.free(buffer));
}

/* What is summed changes with the steps. */
static void tensors_are_not_captured(void) {
  lcomm_comm *comm = make_driven("", 1, LCOMM_PROGRESS_THREAD);
  float *buffer = on_device(COUNT * sizeof(float));
  lcomm_tensor *tensor = NULL;
  void *stream = NULL, *graph = NULL;
  check(device->stream.create(&stream));
  require_fine(comm, lcomm_tensor_add(comm, "g", buffer, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  check(emulated_capture_begin(stream));
  require(lcomm_tensor_ready_on_stream(comm, tensor, stream) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(comm), "captured"),
          "%s", lcomm_last_error(comm));
  check(emulated_capture_end(stream, &graph));
  check(emulated_graph_destroy(graph));
  require_fine(comm, lcomm_tensor_ready_on_stream(comm, tensor, stream));
  require_fine(comm, lcomm_tensors_wait(comm));
  require_fine(NULL, lcomm_destroy(comm));
  check(device->stream.destroy(stream));
  check(device->memory.free(buffer));
}

static const mpi_property properties[] = {
    PROPERTY(tensors_are_not_captured),
    PROPERTY_OF(2, a_failure_lets_streams_go_on),
    PROPERTY_OF(2, a_silent_peer_lets_streams_go_on),
    PROPERTY_OF(2, a_silent_peer_lets_a_stream_with_a_residual_go_on),
    PROPERTY(a_slow_stream_is_no_silent_peer),
    PROPERTY(too_little_memory_is_an_error_with_a_name),
};

int main(int argc, char **argv) {
  emulated_setup setup = {.devices = 1,
                          .kernels = &lcomm_cuda_kernels_table,
                          .seed = 5,
                          .pause_us_max = 50,
                          .memory_size = 14 << 20};
  int failures = emulated_device_main(&argc, &argv, &setup, WITH_COUNT(properties));
  (void)emulated_end();
  return failures;
}
