/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Schedules of hundreds to thousands of ranks, up to 1,024 nodes of 8, run by the simulator: a
 * sample of shapes, because all schedules have to be there at once. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

typedef struct machine {
  int racks, nodes, each; /* racks: 0: not known */
} machine;

static void make_machine(sim_world *world, machine shape) {
  int *sizes = calloc((size_t)shape.nodes, sizeof *sizes);
  int *racks = calloc((size_t)shape.nodes, sizeof *racks);
  for (int node = 0; node < shape.nodes; node++) {
    sizes[node] = shape.each;
    racks[node] = 1 + node * shape.racks / shape.nodes;
  }
  assert_int_equal(sim_world_make(world, sizes, shape.nodes), 0);
  if (shape.racks > 0) {
    assert_int_equal(sim_world_put_into_racks(world, racks), 0);
  }
  free(racks);
  free(sizes);
}

/* Built and verified one by one: that all fit together, the simulator finds. What only builders
 * need is freed. */
static void build_rank(sim_world *world, int rank, const collective *what) {
  lcomm_why why;
  bool copies[LCOMM_STAGE_COUNT] = {true, true, true, true};
  lcomm_schedule *schedule = &world->schedules[rank];
  assert_int_equal(
      lcomm_schedule_init(schedule, rank, world->size, vector_count(what, world->size)), LCOMM_OK);
  assert_int_equal(build_schedule(schedule, &world->topo, what), LCOMM_OK);
  assert_int_equal(lcomm_schedule_link(schedule, copies), LCOMM_OK);
  if (lcomm_schedule_verify(schedule, &why) != LCOMM_OK) {
    fail_msg("rank %d: %s", rank, why.text);
  }
  free(schedule->sent_to);
  free(schedule->received_from);
  schedule->sent_to = schedule->received_from = NULL;
}

/* -------------------------------------------------------------- results */

static uint64_t part_of(const collective *what, int rank) {
  return what->part_counts ? what->part_counts[rank] : what->count;
}

static void check_gathered(const sim_world *world, int rank, const collective *what, char *why) {
  uint64_t i = 0;
  for (int from = 0; from < world->size; from++) {
    for (uint64_t end = i + part_of(what, from); i < end; i++) {
      if (sim_check_moved(world, rank, i, from, i, why, 256) != 0) {
        fail_msg("%s", why);
      }
    }
  }
}

static void check_broadcast(const sim_world *world, int rank, const collective *what, char *why) {
  for (uint64_t i = 0; i < what->count; i++) {
    if (sim_check_moved(world, rank, i, what->root, i, why, 256) != 0) {
      fail_msg("%s", why);
    }
  }
}

static void check_scattered(const sim_world *world, const collective *what) {
  uint64_t i = 0, everyone = sim_everyone(world);
  for (int rank = 0; rank < world->size; rank++) {
    for (uint64_t end = i + part_of(what, rank); i < end; i++) {
      assert_true(world->vectors[rank][i].ranks == everyone);
    }
  }
}

static void check(const sim_world *world, const collective *what) {
  char why[256] = "";
  int checked = 0;
  if (what->kind == ALLREDUCE || what->kind == BARRIER) {
    checked = sim_check_allreduce(world, why, sizeof(why));
  } else if (what->kind == ALLTOALL) {
    checked = check_all_to_all(world, what->count, why);
  } else if (what->kind == REDUCE_SCATTER || what->kind == REDUCE_SCATTERV) {
    check_scattered(world, what);
  } else {
    for (int rank = 0; rank < world->size; rank++) {
      (what->kind == BROADCAST ? check_broadcast : check_gathered)(world, rank, what, why);
    }
  }
  if (checked != 0) {
    fail_msg("%s", why);
  }
}

static void run(machine shape, collective what, unsigned variant) {
  char why[256] = "";
  sim_world world;
  sim_options options = exact_options_of(variant);
  make_machine(&world, shape);
  for (int rank = 0; rank < world.size; rank++) {
    build_rank(&world, rank, &what);
  }
  bool sums = what.kind == ALLREDUCE || what.kind == BARRIER;
  (sums ? sim_fill_contributions : sim_fill_labels)(&world);
  if (sim_run(&world, &options, why, sizeof(why)) != 0) {
    fail_msg("collective %d, %d x %d: %s", (int)what.kind, shape.nodes, shape.each, why);
  }
  check(&world, &what);
  sim_world_free(&world);
}

/* ----------------------------------------------------------------- sums */

static collective short_sum(lcomm_exchange_kind kind, uint64_t count) {
  return (collective){ALLREDUCE, count,
                      .shape = {.exchange = kind,
                                .hierarchical = true,
                                .chunks = 1,
                                .leaders = true,
                                .tells_sum = kind != LCOMM_EXCHANGE_DIRECT}};
}

static void short_sums_are_right_on_8192_ranks(void **state) {
  (void)state;
  machine largest = {0, 1024, 8};
  run(largest, short_sum(LCOMM_EXCHANGE_DOUBLING, 3), 1);
  run(largest, short_sum(LCOMM_EXCHANGE_HALVING, 100), 0);
  run((machine){0, 1000, 8}, short_sum(LCOMM_EXCHANGE_DOUBLING, 2), 4);
  run((machine){0, 8192, 1}, sum_of(LCOMM_EXCHANGE_DOUBLING, 2), 1);
  collective barrier = short_sum(LCOMM_EXCHANGE_DOUBLING, 1);
  barrier.kind = BARRIER;
  run(largest, barrier, 0);
}

static void sums_by_shards_are_right_on_8192_ranks(void **state) {
  (void)state;
  run((machine){0, 1024, 8}, sum_of(LCOMM_EXCHANGE_DOUBLING, 32), 1);
  run((machine){0, 1024, 8}, sum_of(LCOMM_EXCHANGE_HALVING, 24), 5);
  run((machine){0, 128, 8}, sum_of(LCOMM_EXCHANGE_HALVING, 1024), 0);
}

static void sums_among_all_nodes_are_right_on_512_ranks(void **state) {
  (void)state;
  collective pieces = sum_of(LCOMM_EXCHANGE_DIRECT, 1024);
  pieces.shape.pieces = 8;
  run((machine){0, 64, 8}, sum_of(LCOMM_EXCHANGE_DIRECT, 1024), 5);
  run((machine){0, 64, 8}, pieces, 1);
  run((machine){0, 256, 1}, sum_of(LCOMM_EXCHANGE_DIRECT, 256), 0);
  run((machine){0, 128, 4}, sum_of(LCOMM_EXCHANGE_RING, 512), 1);
  run((machine){0, 64, 4}, short_sum(LCOMM_EXCHANGE_DIRECT, 64), 5);
}

static void sums_by_racks_are_right_on_8192_ranks(void **state) {
  (void)state;
  collective what = sum_of(LCOMM_EXCHANGE_HALVING, 256);
  what.shape.by_racks = true;
  run((machine){64, 1024, 8}, what, 1);
  what.count = 1024;
  run((machine){16, 256, 4}, what, 4);
  what.shape.exchange = LCOMM_EXCHANGE_DIRECT;
  run((machine){16, 128, 4}, what, 5);
}

/* ---------------------------------------------------------------- moves */

enum { LARGEST = 8192 };

/* One rank of 256 has something: vectors of all ranks would be too long. */
static const uint64_t *few_parts(void) {
  static uint64_t parts[LARGEST];
  for (int rank = 0; rank < LARGEST; rank++) {
    parts[rank] = rank % 256 == 21 ? 1 + (uint64_t)rank % 3 : 0;
  }
  return parts;
}

static void broadcasts_reach_8192_ranks(void **state) {
  (void)state;
  run((machine){0, 1024, 8}, (collective){BROADCAST, .count = 3, .root = 4711}, 1);
  run((machine){0, 1024, 8},
      (collective){BROADCAST, .count = 40, .root = 8191, .shape = {.chunks = 20}}, 0);
  run((machine){0, 1, 256},
      (collective){BROADCAST, .count = 40, .root = 7, .shape = {.chunks = 20}}, 5);
}

static void parts_are_gathered_on_8192_ranks(void **state) {
  (void)state;
  collective some = {ALLGATHERV, .part_counts = few_parts(),
                     .shape = {.exchange = LCOMM_EXCHANGE_DOUBLING}};
  run((machine){0, 1024, 8}, some, 1);
  run((machine){0, 1000, 8}, some, 0);
  some.shape.exchange = LCOMM_EXCHANGE_DIRECT;
  run((machine){0, 1024, 8}, some, 5);
  collective all = {ALLGATHER, .count = 1, .shape = {.exchange = LCOMM_EXCHANGE_DOUBLING}};
  run((machine){0, 250, 4}, all, 4);
  all.shape.exchange = LCOMM_EXCHANGE_RING;
  run((machine){0, 64, 4}, all, 1);
}

static void parts_are_summed_on_8192_ranks(void **state) {
  (void)state;
  collective some = {REDUCE_SCATTERV, .part_counts = few_parts()};
  run((machine){0, 1024, 8}, some, 1);
  collective all = {REDUCE_SCATTER, .count = 1};
  run((machine){0, 64, 4}, all, 5);
  all.shape.exchange = LCOMM_EXCHANGE_RING;
  run((machine){0, 64, 4}, all, 0);
}

static void all_to_all_is_right_on_256_ranks(void **state) {
  (void)state;
  run((machine){0, 32, 8}, (collective){ALLTOALL, .count = 1}, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(short_sums_are_right_on_8192_ranks),
    cmocka_unit_test(sums_by_shards_are_right_on_8192_ranks),
    cmocka_unit_test(sums_among_all_nodes_are_right_on_512_ranks),
    cmocka_unit_test(sums_by_racks_are_right_on_8192_ranks),
    cmocka_unit_test(broadcasts_reach_8192_ranks),
    cmocka_unit_test(parts_are_gathered_on_8192_ranks),
    cmocka_unit_test(parts_are_summed_on_8192_ranks),
    cmocka_unit_test(all_to_all_is_right_on_256_ranks),
};
RUN_TESTS(tests)
