/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Calls on a device whose payloads are long: kernels with many blocks, which take their time on a
 * processor. */

#include "libcomm/tensor/residual.h"
#include "tests/engine/on_emulated_device.h"

/* Payloads whose positions take many blocks of scratch, some of them shorter than others, and read
 * twice by who keeps what was not sent. */
static void long_payloads_of_top_k_have_scratch(void) {
  enum { LONG = 2300001, TIMES = 2 };
  static const char *const of_topk[] = {
      "net=topk:0.1+ef min=1 algo=direct",
      "net=topk:0.1+ef min=1 algo=gather",
  };
  float *sums[2] = {malloc(LONG * sizeof(float)), malloc(LONG * sizeof(float))};
  require(sums[0] && sums[1], "out of memory");
  for (int p = 0; p < (int)(sizeof(of_topk) / sizeof(of_topk[0])); p++) {
    for (int on_it = 0; on_it < 2; on_it++) {
      lcomm_residual *residual = NULL;
      lcomm_comm *comm = make_driven(of_topk[p], mpi_size, LCOMM_PROGRESS_CALLS);
      float *buffer = on_it ? on_device(LONG * sizeof(float)) : sums[0];
      require_fine(comm, lcomm_residual_create(comm, LONG, LCOMM_SUM, &residual));
      for (int i = 0; i < TIMES; i++) {
        fill_gradient(sums[on_it], LONG, (uint64_t)(mpi_rank + 10 * i));
        if (on_it) {
          to_device(buffer, sums[1], LONG * sizeof(float));
        }
        require_fine(comm, lcomm_allreduce_ef(residual, buffer, buffer));
      }
      if (on_it) {
        from_device(sums[1], buffer, LONG * sizeof(float));
      }
      require_fine(NULL, lcomm_destroy(comm));
      check(on_it ? device->memory.free(buffer) : 0);
    }
    require(memcmp(sums[0], sums[1], LONG * sizeof(float)) == 0,
            "'%s': other bits than on the host", of_topk[p]);
  }
  free(sums[0]);
  free(sums[1]);
}

static const mpi_property properties[] = {
    PROPERTY(long_payloads_of_top_k_have_scratch),
    PROPERTY(nothing_is_left_on_the_device),
};
RUN_PROPERTIES(pausing_device_main, properties)
