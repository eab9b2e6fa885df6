/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* libcomm makes NCCL's collectives. Values are small whole numbers, so that every sum is exact in
 * any order. */

#include "tests/interpose/nccl/nccl_world.h"

static void sums_of_any_length_in_place_and_not(void) {
  static const int counts[] = {0, 1, 7, 1000, LONGEST};
  world it = begin("net=none");
  int ranks = mpi_size * (mpi_size - 1) / 2;
  for (int i = 0; i < 5; i++) {
    put(it.from, mpi_rank, 1, counts[i]);
    fine(ncclAllReduce(it.from, it.to, (size_t)counts[i], ncclInt32, ncclSum, it.comm, it.stream));
    holds(&it, it.to, ranks, mpi_size, counts[i]);
    holds(&it, it.from, mpi_rank, 1, counts[i]);
    fine(ncclAllReduce(it.from, it.from, (size_t)counts[i], ncclUint32, ncclSum, it.comm,
                       it.stream));
    holds(&it, it.from, ranks, mpi_size, counts[i]);
  }
  end(&it);
}

static void maxima_minima_and_averages(void) {
  world it = begin("net=none");
  put(it.from, 4 * mpi_rank, 1, 500);
  fine(ncclAllReduce(it.from, it.to, 500, ncclInt32, ncclMax, it.comm, it.stream));
  holds(&it, it.to, 4 * (mpi_size - 1), 1, 500);
  fine(ncclAllReduce(it.from, it.to, 500, ncclInt32, ncclMin, it.comm, it.stream));
  holds(&it, it.to, 0, 1, 500);
  fine(ncclAllReduce(it.from, it.to, 500, ncclInt32, ncclAvg, it.comm, it.stream));
  holds(&it, it.to, 2 * (mpi_size - 1), 1, 500);
  end(&it);
}

static void floats_of_three_widths(void) {
  static const struct {
    ncclDataType_t type;
    size_t size;
    uint64_t one, ranks[5]; /* the bits of 1, and of 1 to 4 */
  } types[] = {
      {ncclFloat16, 2, 0x3c00, {0, 0x3c00, 0x4000, 0x4200, 0x4400}},
      {ncclBfloat16, 2, 0x3f80, {0, 0x3f80, 0x4000, 0x4040, 0x4080}},
      {ncclFloat64,
       8,
       0x3ff0000000000000,
       {0, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000, 0x4010000000000000}}};
  enum { COUNT = 900 };
  static unsigned char bytes[8 * COUNT];
  world it = begin("net=none");
  for (int t = 0; t < 3; t++) {
    for (size_t i = 0; i < COUNT; i++) {
      memcpy(bytes + i * types[t].size, &types[t].one, types[t].size);
    }
    to_device(it.from, bytes, COUNT * types[t].size);
    fine(ncclAllReduce(it.from, it.to, COUNT, types[t].type, ncclSum, it.comm, it.stream));
    check(device->stream.finish(it.stream));
    from_device(bytes, it.to, COUNT * types[t].size);
    for (size_t i = 0; i < COUNT; i++) {
      require(memcmp(bytes + i * types[t].size, &types[t].ranks[mpi_size], types[t].size) == 0,
              "type %d, element %zu", (int)types[t].type, i);
    }
  }
  end(&it);
}

static void parts_are_scattered_and_gathered(void) {
  enum { EACH = 1000 };
  world it = begin("net=none");
  put(it.from, mpi_rank, 1, EACH * mpi_size);
  fine(ncclReduceScatter(it.from, it.to, EACH, ncclInt32, ncclSum, it.comm, it.stream));
  int first = mpi_size * (mpi_size - 1) / 2 + mpi_size * EACH * mpi_rank;
  holds(&it, it.to, first, mpi_size, EACH);
  fine(ncclAllGather(it.to, it.from, EACH, ncclInt32, it.comm, it.stream));
  holds(&it, it.from, mpi_size * (mpi_size - 1) / 2, mpi_size, EACH * mpi_size);
  for (int to = 0; to < mpi_size; to++) {
    put(it.from + to * EACH, 100 * mpi_rank + to, 0, EACH);
  }
  fine(ncclAlltoAll(it.from, it.to, EACH, ncclFloat32, it.comm, it.stream));
  for (int from = 0; from < mpi_size; from++) {
    holds(&it, it.to + from * EACH, 100 * from + mpi_rank, 0, EACH);
  }
  end(&it);
}

static void a_root_tells_all(void) {
  world it = begin("net=none");
  for (int root = 0; root < mpi_size; root++) {
    put(it.from, 1000 * mpi_rank, 1, 700);
    put(it.to, -1, 0, 700);
    fine(ncclBroadcast(it.from, it.to, 700, ncclFloat8e4m3, root, it.comm, it.stream));
    holds(&it, it.to, 1000 * root, 1, 175);
    holds(&it, it.to + 175, -1, 0, 525);
    fine(ncclBroadcast(it.from, it.to, 700, ncclInt32, root, it.comm, it.stream));
    holds(&it, it.to, 1000 * root, 1, 700);
    holds(&it, it.from, 1000 * mpi_rank, 1, 700);
    fine(ncclBcast(it.from, 700, ncclUint32, root, it.comm, it.stream));
    holds(&it, it.from, 1000 * root, 1, 700);
  }
  end(&it);
}

/* The same on all ranks, and another number than the exact one. */
static void the_policy_compresses_sums(void) {
  static float values[LONGEST], exact[LONGEST];
  world it = begin("net=int8 min=1K");
  uint64_t sum = 1469598103934665603u, first;
  int differ = 0;
  for (int i = 0; i < LONGEST; i++) {
    values[i] = (float)((i * 37 + mpi_rank * 11) % 1009) / 64;
  }
  MPI_Allreduce(values, exact, LONGEST, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  to_device(it.from, values, sizeof(values));
  fine(ncclAllReduce(it.from, it.from, LONGEST, ncclFloat32, ncclSum, it.comm, it.stream));
  check(device->stream.finish(it.stream));
  from_device(values, it.from, sizeof(values));
  for (int i = 0; i < LONGEST; i++) {
    uint32_t bits;
    memcpy(&bits, &values[i], sizeof(bits));
    sum = (sum ^ bits) * 1099511628211u;
    differ += values[i] != exact[i];
    float error = values[i] - exact[i], bound = 0.2f * (float)mpi_size;
    require(error < bound && error > -bound, "element %d: %g, not %g", i, (double)values[i],
            (double)exact[i]);
  }
  require((differ > 0) == (mpi_size > 1), "%d elements differ from the exact ones", differ);
  first = sum;
  MPI_Bcast(&first, sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
  require(sum == first, "other bits than on rank 0");
  end(&it);
}

/* Nothing is asserted: the figure is for people. */
static void the_time_of_a_short_sum_is_printed(void) {
  enum { SUMS = 200 };
  world it = begin("net=none");
  put(it.from, 1, 0, 2);
  for (int i = 0; i < 2; i++) { /* the first one makes a plan */
    double begin_s = MPI_Wtime();
    for (int k = 0; k < (i ? SUMS : 1); k++) {
      fine(ncclAllReduce(it.from, it.to, 2, ncclInt32, ncclSum, it.comm, it.stream));
      check(device->stream.finish(it.stream));
    }
    if (i && mpi_rank == 0) {
      printf("# ncclAllReduce of 8 B, %d ranks: %.1f us until the stream is through\n", mpi_size,
             (MPI_Wtime() - begin_s) / SUMS * 1e6);
    }
  }
  holds(&it, it.to, mpi_size, 0, 2);
  end(&it);
}

static const mpi_property properties[] = {
    PROPERTY(sums_of_any_length_in_place_and_not),
    PROPERTY(maxima_minima_and_averages),
    PROPERTY(floats_of_three_widths),
    PROPERTY(parts_are_scattered_and_gathered),
    PROPERTY(a_root_tells_all),
    PROPERTY(the_policy_compresses_sums),
    PROPERTY(the_time_of_a_short_sum_is_printed),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(alone_main, properties)
