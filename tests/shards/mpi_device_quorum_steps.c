/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 */

/* Tensors on an emulated device, with quorum=: they are summed on the host, and have the bits of
 * tensors there; see ../tensor/device_steps.h. */

#include "tests/tensor/device_steps.h"

#include "tests/engine/on_emulated_device.h"

static const char *const quorums[] = {
    "net=int8+ef min=1 bucket=24K quorum=100%", "net=topk:0.02+ef min=1 bucket=24K quorum=100%",
    "net=int4 min=1 exempt=*3 quorum=100%", "net=none quorum=100%"};
enum { QUORUMS = sizeof(quorums) / sizeof(quorums[0]), LATE = 1 };

static int nodes_of(int number) {
  return 1 + number % (mpi_size < 4 ? mpi_size : 4);
}

/* Also tensors that are frozen for a while, and have other buffers. */
static void steps_have_the_bits_of_the_host(void) {
  for (int p = 0; p < 2 * QUORUMS; p++) {
    lcomm_dtype dtype = p % 3 == 2 ? LCOMM_BFLOAT16 : LCOMM_FLOAT32;
    const char *policy = quorums[p % QUORUMS];
    twin host, other;
    make_twin(&host, policy, nodes_of(p), dtype, false);
    make_twin(&other, policy, nodes_of(p), dtype, true);
    for (int step = 0; step < STEPS; step++) {
      if (step == 2) {
        void *moved = on_device(tensor_counts[2] * lcomm_dtype_size(dtype));
        require_fine(other.comm, lcomm_tensor_data_set(other.comm, other.tensors[2], moved));
        check(device->memory.free(other.data[2]));
        other.data[2] = moved;
      }
      if (step == 3) {
        require_fine(host.comm, lcomm_tensor_freeze(host.comm, host.tensors[1]));
        require_fine(other.comm, lcomm_tensor_freeze(other.comm, other.tensors[1]));
        host.frozen = other.frozen = 2;
      }
      if (step == 5) {
        require_fine(host.comm, lcomm_tensor_unfreeze(host.comm, host.tensors[1]));
        require_fine(other.comm, lcomm_tensor_unfreeze(other.comm, other.tensors[1]));
        host.frozen = other.frozen = 0;
      }
      step_twins(&host, &other, dtype, step, policy);
    }
    free_twin(&host, false);
    free_twin(&other, true);
  }
}

/* A stream makes the gradient right before the report; each tensor is waited for, or tested, and
 * changed by the program as soon as it is there. */
static void gradients_of_a_stream_and_single_tensors(void) {
  static float values[LARGEST], result[LARGEST];
  void *stream = NULL;
  twin it;
  check(device->stream.create(&stream));
  make_twin(&it, "net=none quorum=100% bucket=4K", nodes_of(1), LCOMM_FLOAT32, true);
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < TENSORS; i++) {
      for (uint64_t e = 0; e < tensor_counts[i]; e++) {
        values[e] = (float)(1 + step + mpi_rank);
      }
      check(device->copy(it.data[i], values, tensor_counts[i] * sizeof(float), stream));
      require_fine(it.comm, lcomm_tensor_ready_on_stream(it.comm, it.tensors[i], stream));
    }
    float mean = (float)(1 + step) + (float)(mpi_size - 1) / 2;
    for (int i = 0; i < TENSORS; i++) {
      for (int done = 0; i % 2 == 0 && !done;) {
        require_fine(it.comm, lcomm_tensor_test(it.comm, it.tensors[i], &done));
      }
      require_fine(it.comm, lcomm_tensor_wait(it.comm, it.tensors[i]));
      from_device(result, it.data[i], tensor_counts[i] * sizeof(float));
      float wanted = mean * (i == 1 ? 2.0f : 1.0f) * (i == 2 ? 0.25f : 1.0f);
      float got = result[tensor_counts[i] - 1], miss = got - wanted;
      require(miss < 1e-4f && miss > -1e-4f, "step %d, tensor %d: %g, not %g", step, i, (double)got,
              (double)wanted);
      check(device->set(it.data[i], 0, tensor_counts[i] * sizeof(float), NULL));
      check(device->stream.finish(NULL));
    }
    require_fine(it.comm, lcomm_tensors_wait(it.comm));
    for (int i = 0; i < TENSORS; i++) {
      from_device(result, it.data[i], tensor_counts[i] * sizeof(float));
      require(!(result[0] > 0), "tensor %d was written again", i);
    }
  }
  free_twin(&it, true);
  check(device->stream.destroy(stream));
}

static void make_step(twin *it, bool there, int step, double *sums) {
  static float values[LARGEST];
  for (int i = 0; i < TENSORS; i++) {
    size_t size = tensor_counts[i] * sizeof(float);
    fill_gradient(values, tensor_counts[i], (uint64_t)(step * 100 + i * 10 + mpi_rank));
    if (there) {
      to_device(it->data[i], values, size);
    } else {
      memcpy(it->data[i], values, size);
    }
    require_fine(it->comm, lcomm_tensor_ready(it->comm, it->tensors[i]));
  }
  require_fine(it->comm, lcomm_tensors_wait(it->comm));
  for (int i = 0; i < TENSORS; i++) {
    if (there) {
      from_device(values, it->data[i], tensor_counts[i] * sizeof(float));
    } else {
      memcpy(values, it->data[i], tensor_counts[i] * sizeof(float));
    }
    for (uint64_t e = 0; e < tensor_counts[i]; e++) {
      sums[(uint64_t)i * LARGEST + e] += (double)values[e];
    }
  }
}

/* Some on a device, others on the host, and nobody waits for the late one. */
static void ranks_may_differ_in_where_their_tensors_are(void) {
  static double sums[TENSORS * LARGEST];
  char policy[64];
  int token = 0;
  twin it;
  bool there = mpi_rank % 2 == LATE;
  snprintf(policy, sizeof policy, "net=int8+ef min=1 quorum=%d late=0", mpi_size - 1);
  memset(sums, 0, sizeof sums);
  make_twin(&it, policy, nodes_of(1), LCOMM_FLOAT32, there);
  make_step(&it, there, 0, sums);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; mpi_rank == LATE && i < mpi_size - 1; i++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  for (int step = 1; step < STEPS; step++) {
    make_step(&it, there, step, sums);
  }
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  require(same_everywhere(sums, sizeof sums), "the results differ");
  free_twin(&it, there);
}

static const mpi_property properties[] = {
    PROPERTY(steps_have_the_bits_of_the_host),
    PROPERTY(gradients_of_a_stream_and_single_tensors),
    PROPERTY(ranks_may_differ_in_where_their_tensors_are),
    PROPERTY(nothing_is_left_on_the_device),
};

int main(int argc, char **argv) {
  return churning_device_main(&argc, &argv, "14", WITH_COUNT(properties));
}
