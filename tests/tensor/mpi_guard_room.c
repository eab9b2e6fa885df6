/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 12 */

/* How many entries of top-k found no room is counted, and the guard tells it. That takes more
 * owners than the eight even shares that a slot holds. */

#include "codecs/codec_topk.h"
#include "kernels/stripe.h"
#include "tests/support/mpi_property.h"

enum { COUNT = 800000, KEPT = 40000, OWNERS = 12 };

/* What every rank picks lies in the tiles of one owner. */
static void fill(float *gradient) {
  for (uint64_t i = 0; i < COUNT; i++) {
    gradient[i] = 1e-3f * (float)((i + (uint64_t)mpi_rank) % 1000);
  }
  for (int i = 0; i < KEPT; i++) {
    gradient[lcomm_stripe_global((uint64_t)i, OWNERS, 0)] = 2 + (float)i;
  }
}

static void entries_that_find_no_room_are_counted(void) {
  static float gradient[COUNT];
  lcomm_tensor *tensor = NULL;
  lcomm_guard_figures found = {0};
  lcomm_stats stats;
  const uint64_t late = KEPT - lcomm_topk_capacity(KEPT, OWNERS, COUNT);
  if (mpi_size != OWNERS) {
    skip_property("needs 12 ranks");
    return;
  }
  lcomm_comm *comm = make_comm("net=topk:0.05+ef guard=1 algo=direct", OWNERS);
  require(lcomm_tensor_add(comm, "embed", gradient, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensor) ==
              LCOMM_OK,
          "%s", lcomm_last_error(comm));
  fill(gradient);
  lcomm_tensor_ready(comm, tensor);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_tensor_guard(comm, tensor, &found);
  require(found.checks == 1 && found.waited == OWNERS * late, "%llu entries waited instead of %llu",
          (unsigned long long)found.waited, (unsigned long long)(OWNERS * late));
  require(lcomm_stats_get(comm, &stats) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(stats.topk_picked == KEPT && stats.topk_waited == late, "%llu of %llu waited",
          (unsigned long long)stats.topk_waited, (unsigned long long)stats.topk_picked);
  require(lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
}

static const mpi_property properties[] = {
    PROPERTY(entries_that_find_no_room_are_counted),
};
RUN_PROPERTIES(mpi_property_main, properties)
