/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Over an NCCL: processes with two devices, which are two ranks each, in one thread or in two. On
 * these devices memory is got when all streams of all devices are through: a stream that waited for
 * the other rank would wait for ever. */

#include <pthread.h>

#include "tests/interpose/nccl/nccl_over_world.h"

enum { DEVICES = 2, SHAPES = 3, STEPS = 24 };

static const int counts[SHAPES] = {SUM_COUNT, 3000, 700};

typedef struct device_rank {
  ncclComm_t comm;
  cudaStream_t stream;
  int *from, *to; /* ROOM elements each */
} device_rank;

static int ranks(void) {
  return DEVICES * mpi_size;
}

static void init_in_a_group(device_rank *all) {
  ncclUniqueId id = share_id();
  fine(ncclGroupStart());
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    fine(ncclCommInitRank(&all[d].comm, ranks(), id, DEVICES * mpi_rank + d));
  }
  fine(ncclGroupEnd());
}

/* Each process poses as a node; one alone as two. */
static void begin_ranks(device_rank *all, const char *policy) {
  small->device = device;
  pose_as_nodes(mpi_size > 1 ? mpi_size : DEVICES);
  setenv("LCOMM_POLICY", policy, 1);
  init_in_a_group(all);
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    check(device->stream.work_create((void **)&all[d].stream));
    all[d].from = on_device(ROOM * sizeof(float));
    all[d].to = on_device(ROOM * sizeof(float));
  }
  (void)sums_below();
}

static void end_ranks(device_rank *all) {
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    fine(ncclCommDestroy(all[d].comm));
    check(device->stream.destroy(all[d].stream));
    check(device->memory.free(all[d].from));
    check(device->memory.free(all[d].to));
  }
  check(device->use(0));
}

static void put_all(const device_rank *all, int count) {
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    put_floats(all[d].from, DEVICES * mpi_rank + d, count);
  }
}

/* Compressed, and the same bits on all ranks. */
static void all_hold_sum(const device_rank *all, int count) {
  uint64_t bits[DEVICES];
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    bits[d] = holds_sum(all[d].stream, all[d].to, 0, count, ranks(), false);
  }
  require(bits[0] == bits[1], "the ranks of a process hold other bits");
  is_equal_everywhere(bits[0]);
}

/* --------------------------------------------------------------- on which device */

/* A thread makes the backing; it stands for the device that this rank had in use. */
static void is_on(ncclComm_t comm, int rank, int ordinal) {
  lcomm_device_facts facts;
  lcomm_nccl_backing *backing = lcomm_nccl_backing_find(comm);
  require(backing && backing->now.comm, "NCCL has it to itself");
  const lcomm_topo *topo = &backing->now.comm->topo;
  check(device->facts(ordinal, &facts));
  lcomm_pci pci = lcomm_pci_parse(facts.pci, strlen(facts.pci));
  require(topo->device[rank] >= 0 && topo->device_list[topo->device[rank]].pci == pci,
          "rank %d is on another device than %d", rank, ordinal);
}

static void backings_are_on_the_devices_of_their_ranks(void) {
  device_rank all[DEVICES] = {{.comm = NULL}};
  begin_ranks(all, lossy);
  for (int rank = 0; rank < ranks(); rank++) {
    is_on(all[0].comm, rank, rank % DEVICES);
    is_on(all[1].comm, rank, rank % DEVICES);
  }
  end_ranks(all);
}

/* ------------------------------------------------------------ in one thread */

static void sum_in_a_group(const device_rank *all, int count) {
  fine(ncclGroupStart());
  for (int d = 0; d < DEVICES; d++) {
    fine(ncclAllReduce(all[d].from, all[d].to, (size_t)count, ncclFloat32, ncclSum, all[d].comm,
                       all[d].stream));
  }
  fine(ncclGroupEnd());
}

static void a_group_has_sums_of_all_ranks(void) {
  device_rank all[DEVICES] = {{.comm = NULL}};
  begin_ranks(all, lossy);
  for (int round = 0; round < 2; round++) {
    for (int shape = 0; shape < SHAPES; shape++) {
      put_all(all, counts[shape]);
      sum_in_a_group(all, counts[shape]);
      all_hold_sum(all, counts[shape]);
    }
  }
  require(sums_below() == 0, "NCCL has made some");
  end_ranks(all);
}

/* What is in the streams before is waited for, and what comes behind sees the sums. */
static void sums_of_a_group_are_in_order_with_streams(void) {
  device_rank all[DEVICES] = {{.comm = NULL}};
  begin_ranks(all, lossy);
  for (int shape = 0; shape < SHAPES; shape++) {
    size_t size = (size_t)counts[shape] * sizeof(float);
    put_all(all, counts[shape]);
    fine(ncclGroupStart());
    for (int d = 0; d < DEVICES; d++) {
      check(device->use(d));
      check(device->copy(all[d].to, all[d].from, size, all[d].stream));
      check(device->set(all[d].from, 0, size, all[d].stream));
      fine(ncclAllReduce(all[d].to, all[d].from, (size_t)counts[shape], ncclFloat32, ncclSum,
                         all[d].comm, all[d].stream));
    }
    fine(ncclGroupEnd());
    for (int d = 0; d < DEVICES; d++) {
      check(device->use(d));
      check(device->copy(all[d].to, all[d].from, size, all[d].stream));
    }
    all_hold_sum(all, counts[shape]);
  }
  require(sums_below() == 0, "NCCL has made some");
  end_ranks(all);
}

static void a_group_has_parts_of_sums(void) {
  enum { EACH = 1000 };
  device_rank all[DEVICES] = {{.comm = NULL}};
  begin_ranks(all, lossy);
  put_all(all, EACH * ranks());
  fine(ncclGroupStart());
  for (int d = 0; d < DEVICES; d++) {
    fine(ncclReduceScatter(all[d].from, all[d].to, EACH, ncclFloat32, ncclSum, all[d].comm,
                           all[d].stream));
  }
  fine(ncclGroupEnd());
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    (void)holds_sum(all[d].stream, all[d].to, EACH * (DEVICES * mpi_rank + d), EACH, ranks(),
                    false);
  }
  require(sums_below() == 0, "NCCL has made some");
  end_ranks(all);
}

static void all_devices_of_one_call_are_ranks(void) {
  device_rank all[DEVICES] = {{.comm = NULL}};
  ncclComm_t comms[DEVICES] = {NULL};
  begin_ranks(all, lossy);
  pose_as_nodes(DEVICES);
  fine(ncclCommInitAll(comms, DEVICES, NULL));
  is_on(comms[0], 1, 1);
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    put_floats(all[d].from, d, SUM_COUNT);
  }
  fine(ncclGroupStart());
  for (int d = 0; d < DEVICES; d++) {
    fine(ncclAllReduce(all[d].from, all[d].to, SUM_COUNT, ncclFloat32, ncclAvg, comms[d],
                       all[d].stream));
    fine(ncclAllReduce(all[d].from, all[d].to, SUM_COUNT, ncclFloat32, ncclSum, comms[d],
                       all[d].stream));
  }
  fine(ncclGroupEnd());
  require(sums_below() == 0, "NCCL has made some");
  for (int d = 0; d < DEVICES; d++) {
    check(device->use(d));
    (void)holds_sum(all[d].stream, all[d].to, 0, SUM_COUNT, DEVICES, false);
    fine(ncclCommDestroy(comms[d]));
  }
  end_ranks(all);
}

/* ------------------------------------------------------------- in two threads */

static void *sums_of_thread(void *argument) {
  const device_rank *mine = argument;
  for (int shape = SHAPES - 1; shape >= 0; shape--) {
    fine(ncclAllReduce(mine->from, mine->to, (size_t)counts[shape], ncclFloat32, ncclSum,
                       mine->comm, mine->stream));
  }
  return NULL;
}

static void threads_have_a_rank_each(void) {
  device_rank all[DEVICES] = {{.comm = NULL}};
  pthread_t threads[DEVICES];
  begin_ranks(all, lossy);
  put_all(all, SUM_COUNT);
  for (int d = 0; d < DEVICES; d++) {
    require(pthread_create(&threads[d], NULL, sums_of_thread, &all[d]) == 0, "no thread");
  }
  for (int d = 0; d < DEVICES; d++) {
    pthread_join(threads[d], NULL);
  }
  all_hold_sum(all, SUM_COUNT);
  require(sums_below() == 0, "NCCL has made some");
  end_ranks(all);
}

/* --------------------------------------------------------------- error feedback */

static double applied[SUM_COUNT];

static void apply(const device_rank *it) {
  check(device->use(0));
  add_from_device(applied, it->to, SUM_COUNT, it->stream);
}

static double largest_difference(int steps) {
  double largest = 0;
  for (int i = 0; i < SUM_COUNT; i++) {
    double difference = applied[i];
    for (int rank = 0; rank < ranks(); rank++) {
      difference -= steps * (double)value_of(rank, i);
    }
    difference = difference < 0 ? -difference : difference;
    largest = difference > largest ? difference : largest;
  }
  return largest;
}

/* A sum of another length breaks the pattern, and the next one brings what was left out. */
static void what_is_left_out_comes_later(void) {
  device_rank all[DEVICES] = {{.comm = NULL}};
  memset(applied, 0, sizeof(applied));
  begin_ranks(all, "net=topk:0.05+ef min=1K");
  put_all(all, SUM_COUNT);
  for (int step = 0; step < STEPS; step++) {
    sum_in_a_group(all, SUM_COUNT);
    apply(&all[0]);
  }
  require(sums_below() < DEVICES * STEPS, "NCCL has made all");
  require(largest_difference(STEPS) > 1e-3, "nothing was left out");
  sum_in_a_group(all, 3000);
  require(sums_below() == DEVICES, "one that breaks the pattern is not exact");
  sum_in_a_group(all, SUM_COUNT);
  apply(&all[0]);
  require(largest_difference(STEPS + 1) < 0.05, "%g is lost", largest_difference(STEPS + 1));
  end_ranks(all);
}

static const mpi_property properties[] = {
    PROPERTY(backings_are_on_the_devices_of_their_ranks),
    PROPERTY(a_group_has_sums_of_all_ranks),
    PROPERTY(sums_of_a_group_are_in_order_with_streams),
    PROPERTY(a_group_has_parts_of_sums),
    PROPERTY(all_devices_of_one_call_are_ranks),
    PROPERTY(threads_have_a_rank_each),
    PROPERTY(what_is_left_out_comes_later),
    PROPERTY(nothing_of_threads_is_left_on_the_device),
};

RUN_PROPERTIES(over_main, properties)
