/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 8 */

/* Sums by racks whose buffers are on an emulated device have the bits of those on the host. */

#include "tests/api/device_calls.h"

#include "tests/engine/on_emulated_device.h"

/* 4 nodes of 2 ranks in 2 racks. */
static lcomm_comm *in_racks(const char *policy) {
  setenv("LCOMM_RACK", mpi_rank < mpi_size / 2 ? "r07" : "r08", 1);
  lcomm_comm *comm = make_comm(policy, 4);
  unsetenv("LCOMM_RACK");
  require(comm->topo.racks.count == 2, "there are %d racks", comm->topo.racks.count);
  return comm;
}

static void sums_by_racks_have_the_bits_of_the_host(void) {
  static const char *const by_racks[] = {"", "net=int8 min=1", "net=int8 rack=bf16 min=1",
                                         "net=bf16 rack=int8+zstd min=1 algo=direct",
                                         "net=int4-ef rack=fp8e4m3 node=bf16 min=1"};
  for (int p = 0; p < 5; p++) {
    lcomm_comm *here = in_racks(by_racks[p]), *there = in_racks(by_racks[p]);
    for (int c = 0; c < COUNTS; c++) {
      compare(here, there, c % 2 ? ALLREDUCE : IN_PLACE, counts[c], LCOMM_FLOAT32,
              c % 2 ? LCOMM_AVG : LCOMM_SUM, by_racks[p]);
      compare(here, there, SCALED, counts[c], LCOMM_BFLOAT16, LCOMM_SUM, by_racks[p]);
    }
    lcomm_destroy(here);
    lcomm_destroy(there);
  }
}

/* Behind the third call the rack is exact: then what it has kept goes out with a copy. */
static void residuals_in_racks_have_the_bits_of_the_host(void) {
  enum { COUNT = 9001, SIZE = COUNT * sizeof(float) };
  lcomm_comm *here = in_racks("net=int4+ef rack=int8 min=1 algo=direct");
  lcomm_comm *there = in_racks("net=int4+ef rack=int8 min=1 algo=direct");
  lcomm_residual *mine = NULL, *other = NULL;
  float *buffer = on_device(SIZE);
  require_fine(here, lcomm_residual_create(here, COUNT, LCOMM_SUM, &mine));
  require_fine(there, lcomm_residual_create(there, COUNT, LCOMM_SUM, &other));
  for (int step = 0; step < 6; step++) {
    if (step == 3) {
      require_fine(here, lcomm_policy_set(here, "net=int4+ef min=1 algo=direct"));
      require_fine(there, lcomm_policy_set(there, "net=int4+ef min=1 algo=direct"));
    }
    fill(COUNT, LCOMM_FLOAT32, (uint64_t)(10 * step));
    to_device(buffer, given, SIZE);
    require_fine(here, lcomm_allreduce_ef(mine, (float *)(void *)given, (float *)(void *)given));
    require_fine(there, lcomm_allreduce_ef(other, buffer, buffer));
    from_device(got, buffer, SIZE);
    require(memcmp(got, given, SIZE) == 0, "call %d: the device has other bits", step);
  }
  check(device->memory.free(buffer));
  lcomm_destroy(here);
  lcomm_destroy(there);
}

static const mpi_property properties[] = {
    PROPERTY(sums_by_racks_have_the_bits_of_the_host),
    PROPERTY(residuals_in_racks_have_the_bits_of_the_host),
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  return pausing_device_main(&argc, &argv, WITH_COUNT(properties));
}
