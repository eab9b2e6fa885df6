/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 */

/* Ranks that are in calls of different kinds: for every pair of kinds all ranks end
 * with the same sentence, which names both, long before the time-out. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/mpi_property.h"

enum { COUNT = 3000, RANKS_MAX = 8 };

static const double TIMEOUT_S = 120;

static float data[RANKS_MAX * COUNT], received[RANKS_MAX * COUNT];

/* What a kind of call works on. */
typedef struct subject {
  lcomm_comm *comm;
  lcomm_residual *residual;
  lcomm_tensor *tensor;
  int root; /* of a broadcast */
} subject;

static lcomm_status sum(subject *it) {
  return lcomm_allreduce(it->comm, data, received, 1000, LCOMM_FLOAT32, LCOMM_SUM);
}

static lcomm_status sum_scaled(subject *it) {
  return lcomm_allreduce_scaled(it->comm, data, received, COUNT, LCOMM_FLOAT32, LCOMM_AVG, 2, 1);
}

static lcomm_status scatter(subject *it) {
  return lcomm_reduce_scatter(it->comm, data, received, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
}

static lcomm_status gather(subject *it) {
  return lcomm_allgather(it->comm, data, received, 2, LCOMM_INT32);
}

static lcomm_status gather_parts(subject *it) {
  static const uint64_t counts[RANKS_MAX] = {5, 6, 7, 8, 9, 10, 11, 12};
  return lcomm_allgatherv(it->comm, data, received, counts, LCOMM_FLOAT32);
}

static lcomm_status exchange(subject *it) {
  return lcomm_alltoall(it->comm, data, received, 50, LCOMM_FLOAT32);
}

static lcomm_status broadcast(subject *it) {
  return lcomm_broadcast(it->comm, data, 30, LCOMM_FLOAT32, it->root);
}

static lcomm_status barrier(subject *it) {
  return lcomm_barrier(it->comm);
}

static lcomm_status error_feedback(subject *it) {
  return lcomm_allreduce_ef(it->residual, data, received);
}

static lcomm_status flush(subject *it) {
  return lcomm_allreduce_flush(it->residual, data, received);
}

static lcomm_status split(subject *it) {
  lcomm_comm *part = NULL;
  lcomm_status status = lcomm_split(it->comm, 0, 0, NULL, &part);
  lcomm_destroy(part);
  return status;
}

static lcomm_status load(subject *it) {
  return lcomm_state_load(it->comm, "/nowhere");
}

static lcomm_status step(subject *it) {
  lcomm_status status = lcomm_tensor_ready(it->comm, it->tensor);
  return status == LCOMM_OK ? lcomm_tensors_wait(it->comm) : status;
}

static lcomm_status destroy(subject *it) {
  lcomm_status status = lcomm_destroy(it->comm);
  it->comm = NULL;
  return status;
}

typedef struct kind {
  lcomm_status (*call)(subject *it);
  const char *words; /* in the sentence */
} kind;

/* The first step compares the tensors, so there is a kind of its own for those after it. */
enum { FIRST_STEP = 12, LATER_STEP = 13 };

static const kind kinds[] = {
    {sum, "in all-reduce #%u of 1,000 float32"},
    {sum_scaled, "in all-reduce #%u of 3,000 float32, averaged"},
    {scatter, "in reduce-scatter #%u of 3,000 float32"},
    {gather, "in all-gather #%u of 2 int32"},
    {gather_parts, "in uneven all-gather #%u of "},
    {exchange, "in all-to-all #%u of 50 float32"},
    {broadcast, "in broadcast #%u of 30 float32 from rank "},
    {barrier, "in barrier #%u"},
    {error_feedback, "in all-reduce with residual 1 #%u of 3,000 float32"},
    {flush, "in all-reduce that flushes residual 1 #%u of 3,000 float32"},
    {split, "in lcomm_split"},
    {load, "in lcomm_state_load"},
    [FIRST_STEP] = {step, "in lcomm_tensors_wait"},
    [LATER_STEP] = {step, "in bucket of tensors #%u of 3,000 float32"},
    {destroy, "in lcomm_destroy"},
};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Where a root would be through with its broadcast and in its next call when the others
 * find out, it is a rank of the other kind. */
static int choose_root(int first, int second) {
  bool broadcasts_first = kinds[first].call == broadcast;
  int other = broadcasts_first ? second : first;
  bool waits = other == LATER_STEP || other == FIRST_STEP || kinds[other].call == load;
  return waits == broadcasts_first ? mpi_size - 1 : 0;
}

static subject prepare(const lcomm_config *config, bool stepped) {
  subject it = {0};
  lcomm_status status = lcomm_create_mpi(MPI_COMM_WORLD, config, &it.comm);
  require(status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  lcomm_residual_create(it.comm, COUNT, LCOMM_SUM, &it.residual);
  lcomm_tensor_add(it.comm, "weight", data, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &it.tensor);
  if (stepped) {
    status = step(&it);
    require(status == LCOMM_OK, "a step failed: %s", lcomm_last_error(it.comm));
  }
  return it;
}

/* What is the same on all ranks: the author's sentence. */
static const char *said_by_author(const char *sentence) {
  const char *by = strstr(sentence, ": stopped by ");
  return by ? by + strlen(": stopped by ") : sentence;
}

static bool said_everywhere(const char *sentence) {
  char said[1024] = "";
  snprintf(said, sizeof(said), "%s", sentence);
  return same_everywhere(said, sizeof(said));
}

/* The number is that of the operation: any. */
static bool holds(const char *sentence, const char *words) {
  char before[64];
  const char *mark = strchr(words, '#');
  if (!mark) {
    return strstr(sentence, words) != NULL;
  }
  snprintf(before, sizeof(before), "%.*s", (int)(mark + 1 - words), words);
  const char *found = strstr(sentence, before), *after = mark + strlen("#%u");
  while (found) {
    const char *behind = found + strlen(before);
    behind += strspn(behind, "0123456789");
    if (strncmp(behind, after, strlen(after)) == 0) {
      return true;
    }
    found = strstr(found + 1, before);
  }
  return false;
}

/* "rank 1 (host x) in", as in "is in" of the first of the two. */
static const char *behind_is(const char *words) {
  return words + strlen("in ");
}

static void require_both_named(const lcomm_config *config, int first, int second) {
  char sentence[1024];
  subject it = prepare(config, first == LATER_STEP || second == LATER_STEP);
  it.root = choose_root(first, second);
  MPI_Barrier(MPI_COMM_WORLD); /* a rank that is late would hear of the error before its call */
  double begin_s = MPI_Wtime();
  lcomm_status status = kinds[mpi_rank == 0 ? first : second].call(&it);
  if (status == LCOMM_OK && it.comm) { /* a rank may be through before another one complains */
    status = destroy(&it);
  }
  snprintf(sentence, sizeof(sentence), "%s",
           said_by_author(lcomm_last_error(it.comm ? it.comm : NULL)));
  require(status == LCOMM_ERR_MISMATCH, "'%s' and '%s': %s (%s)", kinds[first].words,
          kinds[second].words, lcomm_status_name(status), sentence);
  require(holds(sentence, behind_is(kinds[first].words)) &&
              holds(sentence, behind_is(kinds[second].words)),
          "'%s' and '%s' are not both named: %s", kinds[first].words, kinds[second].words,
          sentence);
  require(said_everywhere(sentence), "ranks differ: %s", sentence);
  require(MPI_Wtime() - begin_s < TIMEOUT_S / 2, "it took %.1f s", MPI_Wtime() - begin_s);
  lcomm_destroy(it.comm);
}

/* Which of two kinds is that of rank 0 changes from pair to pair. */
static bool can_meet(int first, int second) {
  bool one_is_first = first == FIRST_STEP || second == FIRST_STEP;
  bool one_is_later = first == LATER_STEP || second == LATER_STEP;
  bool once = (first + second) % 2 == 0 ? first < second : first > second;
  return once && !(one_is_first && one_is_later);
}

/* One of so many pairs: all of them would take long in each place. A progress thread may
 * begin buckets while the program is in a call, so there only the time-out tells. */
static void some_pairs(const lcomm_config *changes, int one_of) {
  lcomm_config config = *changes;
  config.policy = "net=int8+ef min=1";
  config.timeout_s = TIMEOUT_S;
  lcomm_comm *possible = make_comm_if_possible(&config);
  if (!possible) {
    return;
  }
  lcomm_destroy(possible);
  for (int first = 0, pair = 0; first < KINDS; first++) {
    for (int second = 0; second < KINDS; second++) {
      bool steps = first == LATER_STEP || second == LATER_STEP;
      bool early = !steps || config.progress != LCOMM_PROGRESS_THREAD;
      if (can_meet(first, second) && early && pair++ % one_of == 0) {
        require_both_named(&config, first, second);
      }
    }
  }
}

static void every_two_kinds_are_named_inside_a_node(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "shm";
  config.nodes = 1;
  some_pairs(&config, mpi_size == 2 ? 1 : 3);
}

static void two_kinds_are_named_between_nodes(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.nodes = 2;
  some_pairs(&config, 7);
}

static void two_kinds_are_named_over_mpi(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "mpi";
  config.nodes = 2;
  some_pairs(&config, 11);
}

static void two_kinds_are_named_with_a_progress_thread(void) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.transport = "shm";
  config.progress = LCOMM_PROGRESS_THREAD;
  some_pairs(&config, 13);
}

static const mpi_property properties[] = {
    PROPERTY(every_two_kinds_are_named_inside_a_node),
    PROPERTY(two_kinds_are_named_between_nodes),
    PROPERTY(two_kinds_are_named_over_mpi),
    PROPERTY(two_kinds_are_named_with_a_progress_thread),
};
RUN_PROPERTIES(mpi_property_main, properties)
