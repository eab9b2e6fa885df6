/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Plans for up to 1,024 nodes of 8 ranks: the table of libcomm/sched/ALGORITHMS.md says what they
 * are, and messages between nodes are long where there is enough to send. */

#include <stdlib.h>

#include "tests/plan/plans.h"
#include "tests/support/unit_tests.h"

#define TABLES "libcomm/sched/ALGORITHMS.md"

enum { EACH = 8, COUNT = 25000000, PIECE = 64 << 10 };

/* What a rank does in one sum. */
typedef struct load {
  unsigned long long chunks, messages, far_messages, far_bytes, steps, slot_bytes;
} load;

static lcomm_topo machine(int nodes) {
  lcomm_why why;
  lcomm_topo topo;
  int ranks = nodes * EACH;
  lcomm_identity *identities = calloc((size_t)ranks, sizeof *identities);
  assert_non_null(identities);
  assert_int_equal(lcomm_topo_create(identities, ranks, nodes, &topo, &why), LCOMM_OK);
  free(identities);
  return topo;
}

static load load_of(const lcomm_plan *plan, const lcomm_topo *topo) {
  lcomm_plan_traffic traffic;
  load it = {.chunks = plan->shape.chunks, .steps = plan->schedule.step_count};
  lcomm_plan_count(plan, topo, &traffic);
  for (int i = 0; i < LCOMM_LINK_COUNT; i++) {
    it.messages += traffic.messages[i];
  }
  it.far_messages = traffic.messages[LCOMM_LINK_NET];
  it.far_bytes = traffic.bytes[LCOMM_LINK_NET];
  for (uint32_t i = 0; i < plan->schedule.slot_count; i++) {
    it.slot_bytes += plan->slot_sizes[i].memory;
  }
  return it;
}

static load plan_on(int nodes, int rank, const char *policy, uint64_t count) {
  lcomm_topo topo = machine(nodes);
  lcomm_plan *plan = allreduce_plan_over(&topo, policy, rank, count, false);
  load it = load_of(plan, &topo);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
  return it;
}

/* "| `int8`, 128 x 8 | 1 | 1381 | 254 | 25198 | 4371 | 16.1 |": false for other lines. */
static bool read_row(const char *line, char *policy, int *nodes, load *it) {
  char codec[16];
  double megabytes = 0;
  if (sscanf(line, "| `%15[a-z0-9]`, %d x 8 | %llu | %llu | %llu | %llu | %llu | %lf |", codec,
             nodes, &it->chunks, &it->messages, &it->far_messages, &it->far_bytes, &it->steps,
             &megabytes) != 8) {
    return false;
  }
  it->slot_bytes = (unsigned long long)(megabytes * 1e6);
  sprintf(policy, "net=%s", codec);
  return true;
}

static void the_table_of_large_machines_is_true(void **state) {
  (void)state;
  char line[1024], policy[32];
  int rows = 0, nodes = 0;
  FILE *file = fopen(TABLES, "r");
  assert_non_null(file);
  while (fgets(line, sizeof(line), file)) {
    load told = {0};
    if (!read_row(line, policy, &nodes, &told)) {
      continue;
    }
    rows++;
    for (int rank = 0; rank < nodes * EACH; rank += nodes * EACH / 2 + 3) {
      load it = plan_on(nodes, rank, policy, COUNT);
      unsigned long long mean = (it.far_bytes + it.far_messages / 2) / it.far_messages;
      if (it.chunks != told.chunks || it.messages != told.messages ||
          it.far_messages != told.far_messages || (rank == 0 && mean != told.far_bytes) ||
          it.steps != told.steps || it.slot_bytes > told.slot_bytes + 60000 ||
          (rank == 0 && it.slot_bytes + 60000 < told.slot_bytes)) {
        fail_msg("%s, %d x 8, rank %d: %llu | %llu | %llu | %llu | %llu | %.1f", policy, nodes,
                 rank, it.chunks, it.messages, it.far_messages, mean, it.steps,
                 (double)it.slot_bytes / 1e6);
      }
    }
  }
  fclose(file);
  assert_int_equal(rows, 8);
}

/* ------------------------------------------------------ other collectives */

/* Of `nodes` x 8 ranks: 25 million float32 all together, or two for each rank. */
static lcomm_plan_request move_of(const char *name, int nodes) {
  uint64_t ranks = (uint64_t)nodes * EACH, each = COUNT / ranks;
  lcomm_plan_request request = {.dtype = LCOMM_FLOAT32, .op = LCOMM_SUM, .count = each};
  request.collective = LCOMM_COLLECTIVE_ALLGATHER;
  if (strcmp(name, "broadcast") == 0) {
    request.collective = LCOMM_COLLECTIVE_BROADCAST;
    request.count = COUNT;
  } else if (strcmp(name, "reduce-scatter") == 0) {
    request.collective = LCOMM_COLLECTIVE_REDUCE_SCATTER;
  } else if (strcmp(name, "all-to-all") == 0) {
    request.collective = LCOMM_COLLECTIVE_ALLTOALL;
  } else if (strcmp(name, "short all-gather") == 0) {
    request.count = 2;
  }
  return request;
}

static load move_on(const char *name, int nodes, int rank) {
  lcomm_why why;
  lcomm_policy policy;
  lcomm_plan *plan = NULL;
  lcomm_topo topo = machine(nodes);
  lcomm_plan_request request = move_of(name, nodes);
  assert_int_equal(lcomm_policy_parse("", &policy, &why), LCOMM_OK);
  assert_int_equal(lcomm_plan_create(&request, &policy, &topo, rank, &plan, &why), LCOMM_OK);
  load it = load_of(plan, &topo);
  lcomm_plan_destroy(plan);
  lcomm_topo_free(&topo);
  return it;
}

/* "| broadcast, 128 x 8 | 95 | 380 | 95 | 1052631 | 476 | 0.0 |": false for other lines. */
static bool read_move(const char *line, char *name, int *nodes, load *it) {
  double megabytes = 0;
  if (sscanf(line, "| %31[a-z -], %d x 8 | %llu | %llu | %llu | %llu | %llu | %lf |", name, nodes,
             &it->chunks, &it->messages, &it->far_messages, &it->far_bytes, &it->steps,
             &megabytes) != 8) {
    return false;
  }
  it->slot_bytes = (unsigned long long)(megabytes * 1e6 + 0.5);
  return true;
}

static void the_table_of_other_collectives_is_true(void **state) {
  (void)state;
  char line[1024], name[32];
  int rows = 0, nodes = 0;
  FILE *file = fopen(TABLES, "r");
  assert_non_null(file);
  while (fgets(line, sizeof(line), file)) {
    load told = {0};
    if (!read_move(line, name, &nodes, &told)) {
      continue;
    }
    rows++;
    load it = move_on(name, nodes, 0);
    unsigned long long mean =
        it.far_messages > 0 ? (it.far_bytes + it.far_messages / 2) / it.far_messages : 0;
    bool slots = it.slot_bytes < told.slot_bytes + 60000 && told.slot_bytes < it.slot_bytes + 60000;
    if (it.chunks != told.chunks || it.messages != told.messages ||
        it.far_messages != told.far_messages || mean != told.far_bytes || it.steps != told.steps ||
        !slots) {
      fail_msg("| %s, %d x 8 | %llu | %llu | %llu | %llu | %llu | %.1f |", name, nodes, it.chunks,
               it.messages, it.far_messages, mean, it.steps, (double)it.slot_bytes / 1e6);
    }
  }
  fclose(file);
  assert_int_equal(rows, 15);
}

/* As many bytes as pieces of 64 KiB for all peers, or a single chunk. */
static void messages_between_nodes_are_long(void **state) {
  (void)state;
  static const char *const policies[] = {"net=none", "net=int8", "net=bf16", "net=int4",
                                         "net=none algo=direct"};
  for (int p = 0; p < 5; p++) {
    for (int nodes = 3; nodes <= 128; nodes += nodes < 20 ? 1 : 36) {
      for (uint64_t count = 1 << 20; count <= 1 << 26; count *= 4) {
        load it = plan_on(nodes, nodes * EACH / 2, policies[p], count);
        if (it.chunks > 1 && it.far_bytes / it.far_messages < PIECE * 99 / 100) {
          fail_msg("%s, %d x 8, %llu floats: %llu chunks, messages of %llu bytes", policies[p],
                   nodes, (unsigned long long)count, it.chunks, it.far_bytes / it.far_messages);
        }
      }
    }
  }
}

/* Between few nodes chunks are as long as inside one: there, the wire and the codecs overlap. */
static void few_nodes_have_as_many_chunks_as_before(void **state) {
  (void)state;
  assert_int_equal(plan_on(2, 0, "net=int8", COUNT).chunks, 12);
  assert_int_equal(plan_on(4, 0, "net=int8", COUNT).chunks, 12);
  assert_int_equal(plan_on(4, 0, "net=none", COUNT).chunks, 12);
  assert_int_equal(plan_on(8, 0, "net=none", COUNT).chunks, 12);
}

/* 13,884 and more when each chunk had its MiB. */
static void a_rank_of_a_thousand_sends_few_messages(void **state) {
  (void)state;
  assert_true(plan_on(128, 0, "net=int8", COUNT).messages <= 2000);
  assert_true(plan_on(128, 1023, "net=none", COUNT).messages <= 2000);
  assert_true(plan_on(1024, 8191, "net=int8", COUNT).messages <= 10000);
}

/* 120 MB where each slot had memory of its own. */
static void slots_cost_what_they_hold(void **state) {
  (void)state;
  for (int rank = 0; rank < 128 * EACH; rank += 341) {
    assert_true(plan_on(128, rank, "net=int8", COUNT).slot_bytes <= 20000000);
  }
  for (int nodes = 16; nodes <= 1024; nodes *= 2) {
    load it = plan_on(nodes, nodes * EACH - 1, "net=int8", COUNT);
    if (it.slot_bytes > 25000000) {
      fail_msg("%d x 8: %llu bytes of slots", nodes, it.slot_bytes);
    }
  }
}

/* The leaders of nodes go from pair to pair, all others send to their leader alone. */
static void a_barrier_takes_few_messages(void **state) {
  (void)state;
  for (int nodes = 4, pairs = 2; nodes <= 1024; nodes *= 4, pairs += 2) {
    lcomm_topo topo = machine(nodes);
    lcomm_policy policy;
    lcomm_why why;
    lcomm_plan_request request = request_of(LCOMM_COLLECTIVE_BARRIER, 0, LCOMM_FLOAT32, LCOMM_SUM);
    assert_int_equal(lcomm_policy_parse("", &policy, &why), LCOMM_OK);
    for (int rank = 0; rank < 2; rank++) {
      lcomm_plan *plan = NULL;
      assert_int_equal(lcomm_plan_create(&request, &policy, &topo, rank, &plan, &why), LCOMM_OK);
      load it = load_of(plan, &topo);
      assert_int_equal(it.far_messages, rank == 0 ? pairs : 0);
      assert_int_equal(it.messages, rank == 0 ? pairs + EACH - 1 : 1);
      lcomm_plan_destroy(plan);
    }
    lcomm_topo_free(&topo);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_barrier_takes_few_messages),
    cmocka_unit_test(the_table_of_large_machines_is_true),
    cmocka_unit_test(the_table_of_other_collectives_is_true),
    cmocka_unit_test(messages_between_nodes_are_long),
    cmocka_unit_test(few_nodes_have_as_many_chunks_as_before),
    cmocka_unit_test(a_rank_of_a_thousand_sends_few_messages),
    cmocka_unit_test(slots_cost_what_they_hold),
};
RUN_TESTS(tests)
