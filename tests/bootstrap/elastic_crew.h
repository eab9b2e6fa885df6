/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_BOOTSTRAP_ELASTIC_CREW_H
#define LCOMM_TESTS_BOOTSTRAP_ELASTIC_CREW_H

/* Crews whose communicators go on when members die. Included by one program each, after crew.h. */

#include "libcomm/base/env.h"
#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/engine/engine.h"
#include "libcomm/include/libcomm.h"

static unsigned victims;                   /* a bit for each rank that dies */
static const char *crew_transport = "shm"; /* of all crews, unless a test says otherwise; */
static int crew_count = 3000; /* and how many numbers a sum has, up to CREW_COUNT_MAX */

enum { CREW_COUNT_MAX = 1000000 };

static inline bool is_victim(int rank) {
  return victims >> rank & 1;
}

static inline int count_survivors(const crew *c) {
  int count = 0;
  for (int rank = 0; rank < c->size; rank++) {
    count += !is_victim(rank);
  }
  return count;
}

static inline void set_number(const char *name, int number) {
  char text[16];
  snprintf(text, sizeof(text), "%d", number);
  setenv(name, text, 1);
}

/* What a launcher sets, on two posed nodes. */
static inline void set_launcher(const crew *c, int rank) {
  for (int i = 0; i < LCOMM_LAUNCHER_COUNT; i++) {
    unsetenv(lcomm_launcher_table[i].variable);
  }
  set_number("RANK", rank);
  set_number("WORLD_SIZE", c->size);
  set_number("LOCAL_WORLD_SIZE", c->size);
  set_number("MASTER_PORT", c->place.port);
  set_number("LCOMM_NODES", c->size > 1 ? 2 : 1);
  setenv("LCOMM_TRANSPORT", crew_transport, 1);
  setenv("LCOMM_ELASTIC", "on", 1);
}

/* What the launcher of a newcomer sets. */
static inline void set_newcomer(const crew *c) {
  set_launcher(c, 0);
  unsetenv("RANK");
  unsetenv("WORLD_SIZE");
  unsetenv("LOCAL_WORLD_SIZE");
  unsetenv("LCOMM_NODES");
  setenv("LCOMM_JOIN", "on", 1);
}

static inline void keep_sentence(report *mine, const lcomm_comm *comm) {
  snprintf(mine->sentence, sizeof(mine->sentence), "%s", lcomm_last_error(comm));
}

/* NULL with a report when it did not work. */
static inline lcomm_comm *create_elastic(const crew *c, int rank, const char *policy,
                                         report *mine) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = c->timeout_s;
  config.policy = policy;
  set_launcher(c, rank);
  mine->status = lcomm_create_env(&config, &comm);
  keep_sentence(mine, NULL);
  return comm;
}

/* Join a crew that is at work. */
static inline lcomm_comm *join_elastic(const crew *c, report *mine) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = c->timeout_s;
  set_newcomer(c);
  mine->status = lcomm_create_env(&config, &comm);
  keep_sentence(mine, NULL);
  unsetenv("LCOMM_JOIN");
  return comm;
}

/* One sum over all ranks; false with a report when it fails or is wrong. */
static inline bool sums_up(lcomm_comm *comm, report *mine) {
  static float values[CREW_COUNT_MAX];
  int size = lcomm_size(comm);
  for (int i = 0; i < crew_count; i++) {
    values[i] = (float)(lcomm_rank(comm) + 1 + i % 7);
  }
  mine->status =
      lcomm_allreduce(comm, values, values, (uint64_t)crew_count, LCOMM_FLOAT32, LCOMM_SUM);
  if (mine->status != LCOMM_OK) {
    keep_sentence(mine, comm);
    return false;
  }
  for (int i = 0; i < crew_count; i++) {
    if (values[i] != (float)(size * (size + 1) / 2 + size * (i % 7))) {
      snprintf(mine->sentence, sizeof(mine->sentence), "element %d of the sum is %g", i,
               (double)values[i]);
      return false;
    }
  }
  return true;
}

/* The same of a rank that may be at it when another one is lost: a failure is as good then. */
static inline bool sums_up_or_fails(lcomm_comm *comm, report *mine) {
  return sums_up(comm, mine) || mine->status != LCOMM_OK;
}

/* Sums until a rank is lost; at most so many. */
static inline void sum_until_lost(lcomm_comm *comm, int most, report *mine) {
  for (int i = 0; i < most && sums_up(comm, mine); i++) {
  }
}

/* The next communicator; the one before is destroyed. NULL with a report when there is none. */
static inline lcomm_comm *shrink_to_next(lcomm_comm *comm, report *mine) {
  lcomm_comm *next = NULL;
  mine->status = lcomm_shrink(comm, &next);
  keep_sentence(mine, comm);
  lcomm_destroy(comm);
  return next;
}

/* The next communicator, or NULL for one that leaves; the one before is destroyed. */
static inline lcomm_comm *regroup_to_next(lcomm_comm *comm, report *mine) {
  lcomm_comm *next = NULL;
  mine->status = lcomm_regroup(comm, &next);
  keep_sentence(mine, comm);
  lcomm_status status = lcomm_destroy(comm);
  mine->status = mine->status == LCOMM_OK ? (int)status : mine->status;
  return next;
}

/* It has so many ranks on so many nodes, and sums; it is destroyed. */
static inline void expect_work(lcomm_comm *comm, int size, int nodes, report *mine) {
  bool good = comm && lcomm_size(comm) == size && lcomm_nodes(comm) == nodes;
  if (comm && !good) {
    snprintf(mine->sentence, sizeof(mine->sentence), "%d ranks on %d nodes", lcomm_size(comm),
             lcomm_nodes(comm));
  }
  for (int i = 0; good && i < 20; i++) {
    good = sums_up(comm, mine);
  }
  lcomm_status status = lcomm_destroy(comm);
  if (good && status != LCOMM_OK) {
    keep_sentence(mine, NULL);
  }
  mine->good = good && status == LCOMM_OK;
}

/* All but those in `dead`, a bit for each rank, succeed; it is dismissed. */
static inline void run_survivors(crew *c, unsigned dead) {
  run_crew(c);
  for (int i = 0; i < c->size; i++) {
    if (!(dead >> i & 1) && (c->reports[i].status != LCOMM_OK || !c->reports[i].good)) {
      print_error("rank %d: %s: %s\n", i, lcomm_status_name((lcomm_status)c->reports[i].status),
                  c->reports[i].sentence);
    }
  }
  for (int i = 0; i < c->size; i++) {
    if (!(dead >> i & 1)) {
      assert_int_equal(c->reports[i].status, LCOMM_OK);
      assert_true(c->reports[i].good);
    }
  }
  dismiss(c);
}

#endif
