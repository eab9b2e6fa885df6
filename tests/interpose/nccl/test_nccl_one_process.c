/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Several ranks in one process: in one thread, as ncclCommInitAll makes them, and in a thread each.
 * Each number of ranks runs in a process of its own. */

#include "tests/interpose/nccl/nccl_one_process.h"

static const int rank_counts[] = {1, 2, 3, 8};

static void holds(forked *self, const rank_state *it, const char *what, int first, int times) {
  int values[COUNT];
  CUDA(cudaStreamSynchronize(it->stream));
  CUDA(cudaMemcpy(values, it->to, sizeof(values), cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) {
    forked_require(self, values[i] == first + times * (i % 7), "%s: element %d is %d, not %d", what,
                   i, values[i], first + times * (i % 7));
  }
}

static int sum_of(int ranks) {
  return 100 * ranks * (ranks - 1) / 2;
}

/* ------------------------------------------------------------ in one thread */

static void sum_in_a_group(forked *self, const rank_state *all, int ranks) {
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    FINE(ncclAllReduce(all[i].from, all[i].to, COUNT, ncclInt32, ncclSum, all[i].comm,
                       all[i].stream));
  }
  FINE(ncclGroupEnd());
  for (int i = 0; i < ranks; i++) {
    holds(self, &all[i], "all-reduce", sum_of(ranks), ranks);
  }
}

/* All calls of a rank before those of the next one, of a shape that is new: each gets memory, and
 * their devices wait for what they have in flight. */
static void equal_sums_in_a_group(forked *self, const rank_state *all, int ranks) {
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    for (int k = 0; k < 3; k++) {
      FINE(ncclAllReduce(all[i].from, all[i].to + k * COUNT, COUNT - 1, ncclInt32, ncclSum,
                         all[i].comm, all[i].stream));
    }
    FINE(ncclAllReduce(all[i].from, all[i].to, COUNT, ncclInt32, ncclSum, all[i].comm,
                       all[i].stream));
  }
  FINE(ncclGroupEnd());
  for (int i = 0; i < ranks; i++) {
    holds(self, &all[i], "one of several", sum_of(ranks), ranks);
  }
}

/* The host waits for each, but not before all are begun. */
static void gathered_sum_in_a_group(forked *self, const rank_state *all, int ranks) {
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    FINE(ncclAllReduce(all[i].from, all[i].to, COUNT, ncclUint32, ncclMax, all[i].comm,
                       all[i].stream));
  }
  FINE(ncclGroupEnd());
  for (int i = 0; i < ranks; i++) {
    holds(self, &all[i], "largest", 100 * (ranks - 1), 1);
  }
}

/* Around a ring, receives first. */
static void exchange_in_a_group(forked *self, const rank_state *all, int ranks) {
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    FINE(
        ncclRecv(all[i].to, COUNT, ncclInt32, (i + ranks - 1) % ranks, all[i].comm, all[i].stream));
    FINE(ncclSend(all[i].from, COUNT, ncclInt32, (i + 1) % ranks, all[i].comm, all[i].stream));
  }
  FINE(ncclGroupEnd());
  for (int i = 0; i < ranks; i++) {
    holds(self, &all[i], "from the left", 100 * ((i + ranks - 1) % ranks), 1);
  }
}

static void roots_in_a_group(forked *self, const rank_state *all, int ranks) {
  int root = ranks - 1;
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    FINE(ncclGather(all[i].from, all[i].to, COUNT, ncclInt32, root, all[i].comm, all[i].stream));
  }
  FINE(ncclGroupEnd());
  holds(self, &all[root], "gather", 0, 1);
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    FINE(ncclReduce(all[i].from, all[i].to, COUNT, ncclInt32, ncclSum, root, all[i].comm,
                    all[i].stream));
  }
  FINE(ncclGroupEnd());
  holds(self, &all[root], "reduce", sum_of(ranks), ranks);
}

/* Parts of even and odd ranks, in one group. */
static void parts_in_a_group(forked *self, rank_state *all, int ranks) {
  ncclComm_t parts[RANKS_MAX] = {NULL}, whole[RANKS_MAX];
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    whole[i] = all[i].comm;
    FINE(ncclCommSplit(all[i].comm, i % 2, i, &parts[i], NULL));
  }
  FINE(ncclGroupEnd());
  FINE(ncclGroupStart());
  for (int i = 0; i < ranks; i++) {
    FINE(ncclBroadcast(all[i].from, all[i].to, COUNT, ncclInt32, 0, parts[i], all[i].stream));
  }
  FINE(ncclGroupEnd());
  for (int i = 0; i < ranks; i++) {
    holds(self, &all[i], "broadcast", 100 * (i % 2), 1);
    FINE(ncclCommDestroy(parts[i]));
    all[i].comm = whole[i];
  }
}

static void work_in_one_thread(forked *self, int ranks) {
  rank_state all[RANKS_MAX] = {{.comm = NULL}};
  ncclComm_t comms[RANKS_MAX] = {NULL};
  int devices[RANKS_MAX] = {0}, device = -1;
  for (int i = 0; i < ranks; i++) {
    open_rank(self, &all[i], i);
    devices[i] = i % DEVICES;
  }
  FINE(ncclCommInitAll(comms, ranks, devices));
  for (int i = 0; i < ranks; i++) {
    int rank = -1;
    all[i].comm = comms[i];
    FINE(ncclCommUserRank(comms[i], &rank));
    FINE(ncclCommCuDevice(comms[i], &device));
    forked_require(self, rank == i && device == devices[i], "rank %d on device %d", rank, device);
  }
  for (int round = 0; round < 3; round++) {
    equal_sums_in_a_group(self, all, ranks);
    sum_in_a_group(self, all, ranks);
    gathered_sum_in_a_group(self, all, ranks);
    exchange_in_a_group(self, all, ranks);
    roots_in_a_group(self, all, ranks);
  }
  parts_in_a_group(self, all, ranks);
  for (int i = 0; i < ranks; i++) {
    FINE(ncclCommDestroy(all[i].comm));
    close_rank(self, &all[i]);
  }
}

/* ----------------------------------------------------------- a thread each */

typedef struct thread_of_rank {
  forked *self;
  ncclUniqueId id;
  int rank, ranks;
  pthread_t thread;
} thread_of_rank;

static void *work_of_rank(void *argument) {
  thread_of_rank *mine = argument;
  forked *self = mine->self;
  rank_state it = {.comm = NULL};
  int left = (mine->rank + mine->ranks - 1) % mine->ranks;
  open_rank(self, &it, mine->rank);
  FINE(ncclCommInitRank(&it.comm, mine->ranks, mine->id, mine->rank));
  for (int round = 0; round < 3; round++) {
    FINE(ncclAllReduce(it.from, it.to, COUNT, ncclInt32, ncclSum, it.comm, it.stream));
    holds(self, &it, "all-reduce", sum_of(mine->ranks), mine->ranks);
    FINE(ncclGroupStart());
    FINE(ncclSend(it.from, COUNT, ncclInt32, (mine->rank + 1) % mine->ranks, it.comm, it.stream));
    FINE(ncclRecv(it.to, COUNT, ncclInt32, left, it.comm, it.stream));
    FINE(ncclGroupEnd());
    holds(self, &it, "from the left", 100 * left, 1);
    FINE(ncclReduceScatter(it.from, it.to, COUNT / mine->ranks, ncclInt32, ncclMax, it.comm,
                           it.stream));
    CUDA(cudaStreamSynchronize(it.stream));
  }
  FINE(ncclCommDestroy(it.comm));
  close_rank(self, &it);
  return NULL;
}

static void work_in_threads(forked *self, int ranks) {
  thread_of_rank all[RANKS_MAX];
  ncclUniqueId id;
  FINE(ncclGetUniqueId(&id));
  for (int i = 0; i < ranks; i++) {
    all[i] = (thread_of_rank){.self = self, .id = id, .rank = i, .ranks = ranks};
    forked_require(self, pthread_create(&all[i].thread, NULL, work_of_rank, &all[i]) == 0,
                   "no thread");
  }
  for (int i = 0; i < ranks; i++) {
    pthread_join(all[i].thread, NULL);
  }
}

/* ------------------------------------------------------------------ properties */

static void ranks_of_one_thread_work_together(forked *self) {
  begin("net=none");
  for (size_t i = 0; i < sizeof(rank_counts) / sizeof *rank_counts; i++) {
    work_in_one_thread(self, rank_counts[i]);
  }
  forked_require(self, emulated_end() == 0, "something is left on the devices");
}

static void ranks_in_threads_work_together(forked *self) {
  begin("net=none");
  for (size_t i = 0; i < sizeof(rank_counts) / sizeof *rank_counts; i++) {
    work_in_threads(self, rank_counts[i]);
  }
  forked_require(self, emulated_end() == 0, "something is left on the devices");
}

/* The program destroys in a row; nothing waits for a rank that comes later. */
static void an_abort_of_one_rank_ends_all(forked *self) {
  ncclComm_t comms[3] = {NULL};
  int devices[3] = {0, 1, 2};
  begin("net=none");
  FINE(ncclCommInitAll(comms, 3, devices));
  FINE(ncclCommDestroy(comms[1]));
  FINE(ncclCommAbort(comms[0]));
  FINE(ncclCommAbort(comms[2]));
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(ranks_of_one_thread_work_together, 1),
    FORKED_TEST(ranks_in_threads_work_together, 1),
    FORKED_TEST(an_abort_of_one_rank_ends_all, 1),
};

RUN_TESTS(tests)
