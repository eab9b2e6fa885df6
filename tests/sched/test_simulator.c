/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Schedules of all-reduce and barrier, run by the simulator on many worlds. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

static const lcomm_exchange_kind dense_kinds[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_GATHER,
                                                  LCOMM_EXCHANGE_RING, LCOMM_EXCHANGE_DOUBLING,
                                                  LCOMM_EXCHANGE_HALVING};

enum { DENSE_KINDS = sizeof(dense_kinds) / sizeof(dense_kinds[0]) };

static collective flat(lcomm_exchange_kind kind, uint64_t count) {
  return (collective){ALLREDUCE, count, .shape = {.exchange = kind, .chunks = 1}};
}

static collective deep(lcomm_exchange_kind kind, uint64_t count) {
  return (collective){ALLREDUCE, count,
                      .shape = {.exchange = kind, .hierarchical = true, .chunks = 1}};
}

static void run_one(const world_shape *shape, const collective *what, unsigned variant) {
  bool exact = passes_sums_on(what->shape.exchange);
  sim_options options = exact ? exact_options_of(variant) : options_of(variant);
  run_allreduce(shape, what, &options);
}

static void run(const world_shape *shape, collective what) {
  unsigned stride = passes_sums_on(what.shape.exchange) ? 7 : 1;
  for (unsigned variant = 0; variant < 8; variant += stride) {
    run_one(shape, &what, variant);
  }
}

/* --------------------------------------------------------------- results */

static void every_element_is_reduced_once_on_1_to_64_ranks(void **state) {
  (void)state;
  for (int size = 1; size <= 16; size++) {
    world_shape shape = even_world(1, size);
    for (size_t k = 0; k < DENSE_KINDS; k++) {
      run(&shape, flat(dense_kinds[k], 3 * 64 + 5));
    }
  }
  world_shape large = even_world(1, 33), largest = even_world(1, 64);
  run(&large, flat(LCOMM_EXCHANGE_DIRECT, 3 * 64 + 5));
  collective two_phase = flat(LCOMM_EXCHANGE_DIRECT, 64 + 5);
  collective ring = flat(LCOMM_EXCHANGE_RING, 64 + 5);
  run_one(&largest, &two_phase, 7);
  run_one(&largest, &ring, 7);
  run(&large, flat(LCOMM_EXCHANGE_DOUBLING, 3 * 64 + 5));
  run(&large, flat(LCOMM_EXCHANGE_HALVING, 64 * 64 + 5));
  run(&largest, flat(LCOMM_EXCHANGE_HALVING, 64 * 64 + 5));
}

static void hierarchical_sums_are_right_on_even_nodes(void **state) {
  (void)state;
  static const int nodes[] = {2, 2, 3, 4, 4, 8, 16}, each[] = {1, 4, 2, 2, 4, 4, 4};
  for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    world_shape shape = even_world(nodes[i], each[i]);
    for (size_t k = 0; k < DENSE_KINDS; k++) {
      run(&shape, deep(dense_kinds[k], 301));
    }
  }
}

static void hierarchical_sums_are_right_on_uneven_nodes(void **state) {
  (void)state;
  for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
    for (size_t k = 0; k < DENSE_KINDS; k++) {
      run(&uneven_worlds[i], deep(dense_kinds[k], 777));
    }
  }
}

static void sparse_stripes_cover_every_element(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 5; ranks++) {
    world_shape single = even_world(ranks, 1), twin = even_world(ranks, 2);
    run(&single, deep(LCOMM_EXCHANGE_SPARSE, 4096 * 7 + 33));
    run(&twin, deep(LCOMM_EXCHANGE_SPARSE, 4096 * 9 + 1));
  }
  run(&uneven_worlds[2], deep(LCOMM_EXCHANGE_SPARSE, 4096 * 11 + 5));
}

static void counts_below_the_number_of_ranks_work(void **state) {
  (void)state;
  for (uint64_t count = 0; count < 5; count++) {
    for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_HALVING; kind++) {
      world_shape one = even_world(1, 7), three = even_world(3, 3);
      run(&one, flat((lcomm_exchange_kind)kind, count));
      run(&three, deep((lcomm_exchange_kind)kind, count));
    }
  }
}

static void chunks_do_not_change_the_result(void **state) {
  (void)state;
  world_shape shape = even_world(3, 2);
  for (uint32_t chunks = 2; chunks <= 5; chunks++) {
    for (size_t k = 0; k < DENSE_KINDS; k++) {
      collective what = deep(dense_kinds[k], 2000);
      what.shape.chunks = chunks;
      run(&shape, what);
    }
    collective direct = deep(LCOMM_EXCHANGE_DIRECT, 2000);
    direct.shape.chunks = chunks;
    run(&uneven_worlds[3], direct);
  }
}

/* Slots that a rank hears from its node take each other's memory, which is gone by then. */
static collective in_pieces(lcomm_exchange_kind kind, uint64_t count, uint32_t pieces) {
  collective what = deep(kind, count);
  what.shape.chunks = 1 + pieces % 3;
  what.shape.pieces = pieces;
  return what;
}

static void run_in_pieces(const world_shape *shape, uint64_t count, unsigned first) {
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_GATHER,
                                              LCOMM_EXCHANGE_SPARSE};
  for (uint32_t pieces = 1; pieces <= (uint32_t)shape->nodes; pieces++) {
    for (size_t k = 0; (uint32_t)shape->nodes % pieces == 0 && k < sizeof(kinds) / sizeof(kinds[0]);
         k++) {
      collective what = in_pieces(kinds[k], count, pieces);
      run_one(shape, &what, first % 8);
      run_one(shape, &what, (first + 3) % 8);
    }
  }
}

static void pieces_inside_nodes_do_not_change_the_result(void **state) {
  (void)state;
  static const int nodes[] = {2, 2, 3, 4, 6}, each[] = {2, 4, 2, 3, 2};
  for (unsigned i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    world_shape shape = even_world(nodes[i], each[i]);
    run_in_pieces(&shape, nodes[i] == 4 ? 4096 * 7 + 5 : 64 * 19 + 5, i);
    run_in_pieces(&shape, 13, i + 1);
  }
  for (unsigned i = 0; i < UNEVEN_WORLDS; i++) {
    run_in_pieces(&uneven_worlds[i], 777, i);
  }
  for (uint32_t pieces = 4; pieces <= 16; pieces *= 2) { /* 64 ranks */
    world_shape large = even_world(16, 4);
    collective what = in_pieces(LCOMM_EXCHANGE_DIRECT, 64 * 67 + 5, pieces);
    run_one(&large, &what, pieces == 8 ? 6 : 3);
  }
}

static void pieces_divide_the_nodes(void **state) {
  (void)state;
  sim_world world;
  world_shape shape = even_world(6, 2);
  assert_int_equal(sim_world_make(&world, shape.sizes, shape.nodes), 0);
  collective what = deep(LCOMM_EXCHANGE_DIRECT, 100);
  what.shape.pieces = 4;
  assert_int_equal(lcomm_schedule_init(&world.schedules[0], 0, world.size, 100), LCOMM_OK);
  assert_int_equal(build_schedule(&world.schedules[0], &world.topo, &what), LCOMM_ERR_ARGUMENT);
  sim_world_free(&world);
}

/* Whole vectors that cross between m nodes, all together: two phases 2(m-1), gather m(m-1),
 * doubling log2 of the largest power of two p for each of p nodes. Of the others each tells
 * one node its part, and hears the sum. */
static uint64_t far_vectors(int nodes, lcomm_exchange_kind kind) {
  uint64_t m = (uint64_t)nodes, p = 1, rounds = 0;
  while (p * 2 <= m) {
    p *= 2;
    rounds++;
  }
  switch (kind) {
  case LCOMM_EXCHANGE_GATHER:
    return m * (m - 1);
  case LCOMM_EXCHANGE_DOUBLING:
    return p * rounds + 2 * (m - p);
  case LCOMM_EXCHANGE_HALVING:
    return 2 * (p - 1) + 2 * (m - p);
  case LCOMM_EXCHANGE_DIRECT:
  case LCOMM_EXCHANGE_RING:
  case LCOMM_EXCHANGE_SPARSE:
    break;
  }
  return 2 * (m - 1);
}

static void bytes_between_nodes_equal_the_formula(void **state) {
  (void)state;
  static const int nodes[] = {2, 3, 4, 8}, each[] = {4, 2, 2, 2};
  for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_HALVING; kind++) {
      char why[256] = "";
      sim_world world;
      sim_options options = exact_options_of(0);
      world_shape shape = even_world(nodes[i], each[i]);
      collective what = deep((lcomm_exchange_kind)kind, 50000);
      build_world(&world, &shape, &what);
      sim_fill_contributions(&world);
      assert_int_equal(sim_run(&world, &options, why, sizeof(why)), 0);
      assert_int_equal(world.far_elements,
                       far_vectors(nodes[i], (lcomm_exchange_kind)kind) * 50000);
      sim_world_free(&world);
    }
  }
}

/* --------------------------------------------------------------- barrier */

static void hold_each_rank(const world_shape *shape, lcomm_allreduce_shape how) {
  int size = 0;
  for (int i = 0; i < shape->nodes; i++) {
    size += shape->sizes[i];
  }
  for (int held = 0; held < size; held++) {
    char why[256] = "";
    sim_world world;
    sim_options options = {.seed = 5, .held_rank = held};
    collective barrier = {.kind = BARRIER, .shape = how};
    build_world(&world, shape, &barrier);
    sim_fill_contributions(&world);
    assert_int_equal(sim_run(&world, &options, why, sizeof(why)), 0);
    assert_int_equal(sim_check_allreduce(&world, why, sizeof(why)), 0);
    assert_int_equal(world.over_before_held, 0);
    sim_world_free(&world);
  }
}

static void nobody_leaves_a_barrier_before_all_have_entered(void **state) {
  (void)state;
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_GATHER, LCOMM_EXCHANGE_DIRECT,
                                              LCOMM_EXCHANGE_DOUBLING, LCOMM_EXCHANGE_HALVING};
  for (int k = 0; k < 4; k++) {
    lcomm_allreduce_shape all = {.exchange = kinds[k], .chunks = 1};
    lcomm_allreduce_shape leaders = {.exchange = kinds[k],
                                     .hierarchical = true,
                                     .chunks = 1,
                                     .leaders = true,
                                     .tells_sum = kinds[k] != LCOMM_EXCHANGE_DIRECT};
    for (int size = 2; size <= 18; size++) {
      world_shape one_node = even_world(1, size), nodes = even_world(size, 1);
      hold_each_rank(&one_node, all);
      hold_each_rank(&nodes, all);
    }
    world_shape few_nodes = even_world(3, 7);
    hold_each_rank(&few_nodes, leaders);
    hold_each_rank(&uneven_worlds[4], leaders);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_element_is_reduced_once_on_1_to_64_ranks),
    cmocka_unit_test(hierarchical_sums_are_right_on_even_nodes),
    cmocka_unit_test(hierarchical_sums_are_right_on_uneven_nodes),
    cmocka_unit_test(sparse_stripes_cover_every_element),
    cmocka_unit_test(counts_below_the_number_of_ranks_work),
    cmocka_unit_test(chunks_do_not_change_the_result),
    cmocka_unit_test(pieces_inside_nodes_do_not_change_the_result),
    cmocka_unit_test(pieces_divide_the_nodes),
    cmocka_unit_test(bytes_between_nodes_equal_the_formula),
    cmocka_unit_test(nobody_leaves_a_barrier_before_all_have_entered),
};
RUN_TESTS(tests)
