/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* What fails on an emulated device, or while streams wait for what fails. Runs that
 * are given up keep their memory, so nothing is counted at the end. */

#include "tests/libcomm/on_device.h"
#include "tests/support/emulated/device.h"

/* Rank 0 gives up; the streams of the others go on all the same. */
static void a_failure_lets_streams_go_on(void) {
  enum { COUNT = 5000 };
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
  lcomm_comm *comm = make_driven("net=none", 1, LCOMM_PROGRESS_THREAD);
  float *buffer = on_device(COUNT * sizeof(float));
  void *stream = NULL;
  check(device->stream_create(&stream));
  lcomm_status status = LCOMM_OK;
  if (mpi_rank == 0) {
    lcomm_abort(comm, "no more electricity");
  } else {
    status =
        lcomm_allreduce_on_stream(comm, buffer, buffer, COUNT, LCOMM_FLOAT32, LCOMM_SUM, stream);
  }
  check(device->stream_finish(stream));
  MPI_Barrier(MPI_COMM_WORLD);
  status = status == LCOMM_OK ? lcomm_barrier(comm) : status;
  require(status == LCOMM_ERR_ABORTED, "%s", lcomm_status_name(status));
  lcomm_destroy(comm);
  check(device->stream_destroy(stream));
  check(device->memory_free(buffer));
}

/* A device without memory: the operation is refused, with a sentence, everywhere. */
static void too_little_memory_is_an_error_with_a_name(void) {
  enum { COUNT = 3 << 20 };
  lcomm_comm *comm = make_driven("net=int8", 1, LCOMM_PROGRESS_CALLS);
  float *buffer = on_device(COUNT * sizeof(float));
  lcomm_status status = lcomm_allreduce(comm, buffer, buffer, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  require(status != LCOMM_OK, "a sum was made without memory");
  require(lcomm_last_error(comm)[0] != '\0', "there is no sentence");
  lcomm_destroy(comm);
  check(device->memory_free(buffer));
}

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      {"a_failure_lets_streams_go_on", a_failure_lets_streams_go_on},
      {"too_little_memory_is_an_error_with_a_name", too_little_memory_is_an_error_with_a_name},
  };
  emulated_setup setup = {.devices = 1,
                          .kernels = &lcomm_cuda_kernels_table,
                          .seed = 5,
                          .pause_us_max = 50,
                          .memory_size = 14 << 20};
  device = emulated_begin(&setup);
  lcomm_device_replace(device);
  return mpi_property_main_threads(&argc, &argv, properties,
                                   sizeof(properties) / sizeof(properties[0]));
}
