/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Payloads of an emulated device that leave for other hosts, over UCX. */

#include "tests/api/device_calls.h"
#include "tests/engine/on_emulated_device.h"

/* Between ranks that say they are on different hosts. */
static void payloads_cross_between_hosts(void) {
  setenv("LCOMM_HOSTID", mpi_rank % 2 == 0 ? "even" : "odd", 1);
  for (int p = 0; p < POLICIES; p++) {
    lcomm_config config = LCOMM_CONFIG_INIT;
    config.policy = policies[p];
    config.transport = "shm,ucx";
    lcomm_comm *here = make_comm_if_possible(&config);
    lcomm_comm *there = here ? make_comm_if_possible(&config) : NULL;
    for (int f = 0; there && f < FORMS; f++) {
      compare(here, there, (form)f, f < GATHER ? COUNT_MAX : 9001, LCOMM_FLOAT32, LCOMM_SUM,
              policies[p]);
    }
    lcomm_destroy(here);
    lcomm_destroy(there);
  }
  unsetenv("LCOMM_HOSTID");
}

static const mpi_property properties[] = {
    PROPERTY(payloads_cross_between_hosts),
    PROPERTY(data_on_devices_meets_data_on_hosts),
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  emulated_setup setup = {
      .devices = 1, .kernels = &lcomm_cuda_kernels_table, .seed = 3, .pause_us_max = 50};
  return emulated_device_main(&argc, &argv, &setup, WITH_COUNT(properties));
}
