/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* Calls with a residual, with quorum=, whose buffers are on an emulated device: they are summed on
 * the host, and have the bits of the same calls there; see ../tensor/device_residuals.h. */

#include <math.h>

#include "tests/tensor/device_residuals.h"

#include "tests/engine/on_emulated_device.h"

static const char *const quorums[] = {"net=int8+ef min=1 quorum=100%",
                                      "net=topk:0.05+ef min=1 quorum=100%",
                                      "net=int4 min=1 clip=0.5 quorum=100%", "net=none quorum=100%",
                                      "net=fp8e4m3:stochastic+ef min=1 quorum=100%"};
enum { QUORUMS = sizeof(quorums) / sizeof(quorums[0]) };

static void with_all_ranks_a_device_has_the_bits_of_the_host(void) {
  for (int i = 0; i < QUORUMS; i++) {
    compare(quorums[i], nodes_of(i + 1), i % 2 ? LCOMM_SUM : LCOMM_AVG, false);
  }
}

static void data_may_be_at_another_place_in_each_call(void) {
  for (int i = 0; i < QUORUMS; i++) {
    compare(quorums[i], nodes_of(i + 1), i % 2 ? LCOMM_AVG : LCOMM_SUM, true);
  }
}

/* Whatever is in the stream before and behind a call. */
static void in_order_with_a_stream_the_bits_are_the_same(void) {
  for (int i = 0; i < QUORUMS; i++) {
    compare_on_a_stream(quorums[i], nodes_of(i + 1));
  }
}

/* Some ranks have their data on a device, others on the host, and one of them is late: routes are
 * the same, and nobody waits for it. */
static void ranks_may_differ_in_where_their_data_is(void) {
  enum { LATE = 1, AHEAD = 5 };
  static calls c;
  static float held[WHOLE];
  static double came[WHOLE], left[WHOLE], kept[WHOLE];
  char policy[64];
  int token = 0;
  memset(came, 0, sizeof came);
  memset(left, 0, sizeof left);
  snprintf(policy, sizeof policy, "net=int8+ef min=1 quorum=%d late=0", mpi_size - 1);
  make_calls(&c, policy, nodes_of(1), LCOMM_SUM);
  bool on_it = mpi_rank % 2 == 1;
  call_at(&c, 0, 0, on_it, false);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; mpi_rank == LATE && i < mpi_size - 1; i++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int step = 1; step <= AHEAD; step++) {
    call_at(&c, 0, step, on_it, false);
    fill_gradient(held, WHOLE, (uint64_t)(step * 100 + 1000 * mpi_rank));
    for (int i = 0; i < WHOLE; i++) {
      came[i] += (double)held[i];
      left[i] += (double)c.result[i];
    }
  }
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  require(same_everywhere(left, sizeof left), "the results differ");
  require_fine(c.comm, lcomm_residual_get(c.residuals[0], held));
  for (int i = 0; i < WHOLE; i++) {
    kept[i] = held[i];
  }
  sum_everywhere(kept, WHOLE);
  sum_everywhere(came, WHOLE);
  for (int i = 0; i < WHOLE; i++) {
    require(fabs(came[i] - left[i] - kept[i]) <= 1e-4 * (1e-2 + fabs(came[i])),
            "element %d: %g came, %g left, %g is kept", i, came[i], left[i], kept[i]);
  }
  free_calls(&c);
}

static const mpi_property properties[] = {
    PROPERTY(with_all_ranks_a_device_has_the_bits_of_the_host),
    PROPERTY(data_may_be_at_another_place_in_each_call),
    PROPERTY(in_order_with_a_stream_the_bits_are_the_same),
    PROPERTY(ranks_may_differ_in_where_their_data_is),
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  return churning_device_main(&argc, &argv, "12", WITH_COUNT(properties));
}
