/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_ENGINE_ON_EMULATED_DEVICE_H
#define LCOMM_TESTS_ENGINE_ON_EMULATED_DEVICE_H

/* Programs of properties whose buffers are on emulated devices. Included by one program each. */

#include <sched.h>

#include "libcomm/engine/engine.h"
#include "libcomm/engine/entry.h"
#include "tests/engine/on_device.h"
#include "tests/support/emulated/emulated_device.h"

/* Until the run is there for the next call: another one would be made else. */
static inline void await_idle_runs(lcomm_comm *comm) {
  bool idle = false;
  while (!idle) {
    require_fine(comm, lcomm_enter(comm));
    idle = comm->runs.played == 0;
    lcomm_exit(comm);
    sched_yield();
  }
}

/* Ends emulation: properties destroyed what they made. */
static inline void require_nothing_left_on_device(void) {
  int left = emulated_end();
  require(left == 0, "%d pieces of memory, streams and events are left", left);
}

static inline void nothing_is_left_on_the_device(void) {
  require_nothing_left_on_device();
}

/* The exit code for main: the library takes the emulated devices for real ones. */
static inline int emulated_device_main(int *argc, char ***argv, const emulated_setup *setup,
                                       const mpi_property *properties, int count) {
  device = emulated_begin(setup);
  lcomm_device_replace(device);
  return mpi_property_main_threads(argc, argv, properties, count);
}

/* The same, with two devices whose streams pause at random. */
static inline int pausing_device_main(int *argc, char ***argv, const mpi_property *properties,
                                      int count) {
  emulated_setup setup = {
      .devices = 2, .kernels = &lcomm_cuda_kernels_table, .seed = 11, .pause_us_max = 50};
  return emulated_device_main(argc, argv, &setup, properties, count);
}

/* The same, and another thread of the program gets and frees memory, at random by the seed. */
static inline int churning_device_main(int *argc, char ***argv, const char *seed,
                                       const mpi_property *properties, int count) {
  setenv("EMULATED_CHURN", seed, 0);
  return pausing_device_main(argc, argv, properties, count);
}

#endif
