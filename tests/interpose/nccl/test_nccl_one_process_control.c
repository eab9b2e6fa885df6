/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Several ranks in one process, in one thread and in a thread each: another policy without a
 * restart. */

#include <stdio.h>
#include <unistd.h>

#include "tests/interpose/nccl/nccl_one_process.h"

enum { SUMS_BETWEEN_LOOKS = 16 };

static const int rank_counts[] = {2, 3};

static char control_path[64];

static void say(const char *words) {
  FILE *file = fopen(control_path, "w");
  if (!file || fprintf(file, "%s\n", words) < 0 || fclose(file) != 0) {
    abort();
  }
}

static const struct {
  const char *words;
  bool is_exact;
} cases[] = {{"off", true},
             {"policy net=bf16 min=1K", false},
             {"policy net=nonsense", false},
             {"policy net=none min=1K", true},
             {"on", false},
             {"off", true},
             {"on", false}};
enum { CASES = sizeof cases / sizeof *cases };

static void begin_controlled(forked *self) {
  (void)self;
  snprintf(control_path, sizeof(control_path), "/tmp/lcomm-nccl-process-%d", (int)getpid());
  setenv("LCOMM_INTERPOSE_CONTROL", control_path, 1);
  begin("net=int8 min=1K");
}

static void pose_as_nodes(int ranks) {
  char nodes[16];
  snprintf(nodes, sizeof(nodes), "%d", ranks);
  setenv("LCOMM_NODES", nodes, 1);
}

static float value_of(int rank, int i) {
  return (float)((i * 37 + rank * 11) % 1009) / 64;
}

static void put_floats(forked *self, const rank_state *it, int rank) {
  float values[COUNT];
  for (int i = 0; i < COUNT; i++) {
    values[i] = value_of(rank, i);
  }
  CUDA(cudaMemcpy(it->from, values, sizeof(values), cudaMemcpyHostToDevice));
}

static void holds_sum(forked *self, const rank_state *it, int ranks, bool is_exact) {
  float values[COUNT];
  int differ = 0;
  CUDA(cudaStreamSynchronize(it->stream));
  CUDA(cudaMemcpy(values, it->to, sizeof(values), cudaMemcpyDeviceToHost));
  for (int i = 0; i < COUNT; i++) {
    float sum = 0;
    for (int rank = 0; rank < ranks; rank++) {
      sum += value_of(rank, i);
    }
    float error = values[i] - sum, bound = 0.2f * (float)ranks;
    differ += error < 0 || error > 0;
    forked_require(self, error < bound && error > -bound, "element %d: %g, not %g", i,
                   (double)values[i], (double)sum);
  }
  forked_require(self, (differ == 0) == is_exact, "%d of %d elements differ from the exact ones",
                 differ, COUNT);
}

/* ------------------------------------------------------------ in one thread */

static void groups_of_sums(forked *self, const rank_state *all, int ranks, int groups,
                           bool are_exact) {
  for (int i = 0; i < groups; i++) {
    FINE(ncclGroupStart());
    for (int rank = 0; rank < ranks; rank++) {
      FINE(ncclAllReduce(all[rank].from, all[rank].to, COUNT, ncclFloat32, ncclSum, all[rank].comm,
                         all[rank].stream));
    }
    FINE(ncclGroupEnd());
    for (int rank = 0; rank < ranks; rank++) {
      holds_sum(self, &all[rank], ranks, are_exact);
    }
  }
}

/* The file is read at the end of the first group, and of every 16th after it. */
static void work_in_one_thread(forked *self, int ranks) {
  rank_state all[RANKS_MAX] = {{.comm = NULL}};
  ncclComm_t comms[RANKS_MAX] = {NULL};
  int devices[RANKS_MAX] = {0};
  pose_as_nodes(ranks);
  for (int i = 0; i < ranks; i++) {
    open_rank(self, &all[i], i);
    put_floats(self, &all[i], i);
    devices[i] = i % DEVICES;
  }
  FINE(ncclCommInitAll(comms, ranks, devices));
  for (int i = 0; i < ranks; i++) {
    all[i].comm = comms[i];
  }
  say(cases[0].words);
  groups_of_sums(self, all, ranks, 1, false);
  for (int i = 0; i < CASES; i++) {
    groups_of_sums(self, all, ranks, SUMS_BETWEEN_LOOKS - 1, cases[i].is_exact);
    say(cases[i + 1 < CASES ? i + 1 : i].words);
    groups_of_sums(self, all, ranks, 1, cases[i].is_exact);
  }
  for (int i = 0; i < ranks; i++) {
    FINE(ncclCommDestroy(all[i].comm));
    close_rank(self, &all[i]);
  }
}

static void ranks_of_one_thread_obey_together(forked *self) {
  begin_controlled(self);
  for (size_t i = 0; i < sizeof(rank_counts) / sizeof *rank_counts; i++) {
    work_in_one_thread(self, rank_counts[i]);
  }
  unlink(control_path);
  forked_require(self, emulated_end() == 0, "something is left on the devices");
}

/* ----------------------------------------------------------- a thread each */

typedef struct thread_of_rank {
  forked *self;
  ncclUniqueId id;
  int rank, ranks;
  pthread_t thread;
  pthread_barrier_t *barrier;
} thread_of_rank;

static void say_to_all(const thread_of_rank *mine, const char *words) {
  pthread_barrier_wait(mine->barrier);
  if (mine->rank == 0) {
    say(words);
  }
  pthread_barrier_wait(mine->barrier);
}

static void *work_of_rank(void *argument) {
  thread_of_rank *mine = argument;
  forked *self = mine->self;
  rank_state it = {.comm = NULL};
  open_rank(self, &it, mine->rank);
  put_floats(self, &it, mine->rank);
  FINE(ncclCommInitRank(&it.comm, mine->ranks, mine->id, mine->rank));
  for (int i = 0; i < CASES; i++) {
    say_to_all(mine, cases[i].words);
    for (int k = 0; k < SUMS_BETWEEN_LOOKS; k++) {
      FINE(ncclAllReduce(it.from, it.to, COUNT, ncclFloat32, ncclSum, it.comm, it.stream));
      holds_sum(self, &it, mine->ranks, cases[i].is_exact);
    }
  }
  FINE(ncclCommDestroy(it.comm));
  close_rank(self, &it);
  return NULL;
}

static void work_in_threads(forked *self, int ranks) {
  thread_of_rank all[RANKS_MAX];
  pthread_barrier_t barrier;
  ncclUniqueId id;
  pose_as_nodes(ranks);
  pthread_barrier_init(&barrier, NULL, (unsigned)ranks);
  FINE(ncclGetUniqueId(&id));
  for (int i = 0; i < ranks; i++) {
    all[i] =
        (thread_of_rank){.self = self, .id = id, .rank = i, .ranks = ranks, .barrier = &barrier};
    forked_require(self, pthread_create(&all[i].thread, NULL, work_of_rank, &all[i]) == 0,
                   "no thread");
  }
  for (int i = 0; i < ranks; i++) {
    pthread_join(all[i].thread, NULL);
  }
  pthread_barrier_destroy(&barrier);
}

static void ranks_in_threads_obey_together(forked *self) {
  begin_controlled(self);
  for (size_t i = 0; i < sizeof(rank_counts) / sizeof *rank_counts; i++) {
    work_in_threads(self, rank_counts[i]);
  }
  unlink(control_path);
  forked_require(self, emulated_end() == 0, "something is left on the devices");
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(ranks_of_one_thread_obey_together, 1),
    FORKED_TEST(ranks_in_threads_obey_together, 1),
};

RUN_TESTS(tests)
