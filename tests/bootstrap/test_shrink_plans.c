/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Racks and codecs on each level, across changes: what a communicator plans and computes after a
 * loss is what a part of the one before, of the same ranks, planned and computed. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/bootstrap/crew.h"
#include "tests/bootstrap/elastic_crew.h"
#include "tests/support/unit_tests.h"

/* 4 nodes of 2 ranks, in racks a and b. */
enum { RANKS = 8, NODES = 4, COUNT = 50000, PLAN_MAX = 4096 };

typedef struct loss {
  unsigned lost; /* a bit for each rank */
  int nodes, racks;
} loss;

/* Ranks that are left pose as the nodes that are left, in rank order, so losses are such that each
 * stays on its node. */
static const loss losses[] = {
    {1 << 7, 4, 2},         /* a node is uneven, */
    {3 << 2, 3, 2},         /* one is gone, and racks are uneven, */
    {0xaa, 4, 2},           /* all nodes have one rank, */
    {15 << 4, 2, 1},        /* a rack is gone, */
    {127 ^ (1 << 2), 2, 2}, /* a rank is left in each */
};

static const char *const policies[] = {
    "net=int8+zstd rack=bf16 min=1K",
    "net=int8+zstd node=bf16 rack=fp16 min=1K",
    "net=fp8e4m3 node=fp16 rack=int8+zstd min=1K check=xxhash",
    "net=int8+zstd node=int8+zstd min=1K",
    "node=bf16+zstd net=topk:0.05 rack=none min=1K",
};

static const loss *the_loss; /* of the crew */
static const char *policy;
static atomic_int *foreseen; /* ranks that know what will be */

/* -------------------------------------------------------- what is compared */

typedef struct outcome {
  char plan[PLAN_MAX];
  float sums[COUNT];
  lcomm_rack_stats in_rack; /* of that sum */
} outcome;

static float value_of(int seat, int i) {
  return (float)((seat * 7919 + i * 31) % 2003 - 1001) / 64;
}

/* A sum, and how it is planned. The sum is one of a rank's seat, which a loss leaves as it is. */
static bool sum_and_plan(lcomm_comm *comm, int seat, outcome *found, report *mine) {
  for (int i = 0; i < COUNT; i++) {
    found->sums[i] = value_of(seat, i);
  }
  mine->status = lcomm_stats_reset(comm);
  if (mine->status == LCOMM_OK) {
    mine->status = lcomm_allreduce(comm, found->sums, found->sums, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  }
  if (mine->status == LCOMM_OK) {
    mine->status = lcomm_rack_stats_get(comm, &found->in_rack);
  }
  if (mine->status == LCOMM_OK) {
    mine->status =
        lcomm_plan_print(comm, COUNT, LCOMM_FLOAT32, 0, found->plan, sizeof(found->plan));
  }
  keep_sentence(mine, comm);
  return mine->status == LCOMM_OK;
}

static bool is_the_same(const outcome *now, const outcome *before, report *mine) {
  bool same_plan = strcmp(now->plan, before->plan) == 0;
  bool same_sums = memcmp(now->sums, before->sums, sizeof(now->sums)) == 0;
  bool same_bytes = memcmp(&now->in_rack, &before->in_rack, sizeof(now->in_rack)) == 0;
  if (!same_plan || !same_sums || !same_bytes) {
    snprintf(mine->sentence, sizeof(mine->sentence), "%s, loss %x: %s: %.300s but before %.300s",
             policy, the_loss->lost,
             !same_plan   ? "another plan"
             : !same_sums ? "other sums"
                          : "other bytes in racks",
             now->plan, before->plan);
  }
  return same_plan && same_sums && same_bytes;
}

/* ----------------------------------------------------------------- the ranks */

static lcomm_comm *create_in_rack(const crew *c, int rank, report *mine) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.timeout_s = c->timeout_s;
  config.policy = policy;
  config.nodes = NODES;
  set_launcher(c, rank);
  unsetenv("LCOMM_NODES");
  setenv("LCOMM_RACK", rank < RANKS / 2 ? "a" : "b", 1);
  mine->status = lcomm_create_env(&config, &comm);
  keep_sentence(mine, NULL);
  return comm;
}

/* The part of those that will be left. */
static bool foresee(lcomm_comm *comm, int rank, outcome *before, report *mine) {
  lcomm_comm *part = NULL;
  mine->status = lcomm_split(comm, is_victim(rank), rank, NULL, &part);
  keep_sentence(mine, comm);
  bool good = mine->status == LCOMM_OK && sum_and_plan(part, rank, before, mine);
  return lcomm_destroy(part) == LCOMM_OK && good;
}

static void go_on_in_racks(const crew *c, int rank, report *mine) {
  static outcome before, now;
  lcomm_comm *comm = create_in_rack(c, rank, mine);
  bool good = comm && foresee(comm, rank, &before, mine);
  atomic_fetch_add(foreseen, 1);
  if (!good) {
    return;
  }
  if (is_victim(rank)) {
    while (atomic_load(foreseen) < c->size) {
      sleep_ms(1);
    }
    raise(SIGKILL);
  }
  while (sum_and_plan(comm, rank, &now, mine)) {
  }
  comm = shrink_to_next(comm, mine);
  good = comm && lcomm_nodes(comm) == the_loss->nodes && sum_and_plan(comm, rank, &now, mine);
  if (good) {
    good = (int)now.in_rack.racks == the_loss->racks && is_the_same(&now, &before, mine);
  }
  lcomm_destroy(comm);
  mine->good = good;
}

static void plans_and_sums_follow_racks_and_codecs(void **state) {
  (void)state;
  foreseen =
      mmap(NULL, sizeof *foreseen, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(foreseen != MAP_FAILED);
  for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++) {
      crew c = new_crew(RANKS, go_on_in_racks);
      atomic_store(foreseen, 0);
      policy = policies[p];
      the_loss = &losses[i];
      victims = losses[i].lost;
      run_survivors(&c, victims);
    }
  }
  munmap(foreseen, sizeof *foreseen);
}

/* ----------------------------------------------------------------- newcomers */

static atomic_int *has_left; /* the last rank */

static lcomm_comm *regroup_until(lcomm_comm *comm, int size, report *mine) {
  while (comm && lcomm_size(comm) != size) {
    comm = regroup_to_next(comm, mine);
    sleep_ms(10);
  }
  return comm;
}

/* The last rank leaves, and another process comes in its place. */
static lcomm_comm *go_through_a_change(const crew *c, int member, outcome *before, report *mine) {
  crew first = *c;
  first.size = RANKS;
  if (member == RANKS) {
    while (atomic_load(has_left) == 0) {
      sleep_ms(5);
    }
    setenv("LCOMM_RACK", "b", 1);
    return join_elastic(c, mine);
  }
  lcomm_comm *comm = create_in_rack(&first, member, mine);
  if (!comm || !sum_and_plan(comm, member, before, mine)) {
    return NULL;
  }
  if (member == RANKS - 1) {
    (void)lcomm_leave(comm);
  }
  comm = regroup_until(comm, RANKS - 1, mine);
  if (comm) {
    atomic_store(has_left, 1);
  }
  return regroup_until(comm, RANKS, mine);
}

static void be_replaced_in_a_rack(const crew *c, int member, report *mine) {
  static outcome before, now;
  lcomm_comm *comm = go_through_a_change(c, member, &before, mine);
  if (member == RANKS - 1) {
    mine->good = !comm && mine->status == LCOMM_OK;
    return;
  }
  int seat = member == RANKS ? RANKS - 1 : member;
  bool good = comm && sum_and_plan(comm, seat, &now, mine) && now.in_rack.racks == 2;
  mine->good = good && (member == RANKS || is_the_same(&now, &before, mine));
  lcomm_destroy(comm);
}

static void a_newcomer_in_its_place_changes_nothing(void **state) {
  static const loss nothing = {0, NODES, 2};
  (void)state;
  the_loss = &nothing;
  has_left =
      mmap(NULL, sizeof *has_left, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  assert_true(has_left != MAP_FAILED);
  for (size_t p = 0; p < sizeof(policies) / sizeof(policies[0]); p++) {
    crew c = new_crew(RANKS + 1, be_replaced_in_a_rack);
    atomic_store(has_left, 0);
    policy = policies[p];
    run_survivors(&c, 0);
  }
  munmap(has_left, sizeof *has_left);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_newcomer_in_its_place_changes_nothing),
    cmocka_unit_test(plans_and_sums_follow_racks_and_codecs),
};
RUN_TESTS(tests)
