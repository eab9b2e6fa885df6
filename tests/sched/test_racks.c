/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums by racks: inside nodes, inside racks, between racks and back, run by the simulator. */

#include "libcomm/sched/lane.h"
#include "tests/sched/schedule_costs.h"
#include "tests/support/lane_simulator.h"
#include "tests/support/unit_tests.h"

static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_GATHER,
                                            LCOMM_EXCHANGE_RING, LCOMM_EXCHANGE_DOUBLING,
                                            LCOMM_EXCHANGE_HALVING};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static collective by_racks(lcomm_exchange_kind kind, uint64_t count) {
  collective what = sum_of(kind, count);
  what.shape.by_racks = true;
  return what;
}

static void run_one(const world_shape *shape, const collective *what, unsigned variant) {
  bool exact = passes_sums_on(what->shape.exchange);
  sim_options options = exact ? exact_options_of(variant) : options_of(variant);
  run_allreduce(shape, what, &options);
}

static void run_all(const world_shape *shape, uint64_t count) {
  for (int k = 0; k < KINDS; k++) {
    collective what = by_racks(kinds[k], count);
    for (unsigned variant = 0; variant < 8; variant += passes_sums_on(kinds[k]) ? 7 : 1) {
      run_one(shape, &what, variant);
    }
  }
}

static void sums_are_right_in_even_racks(void **state) {
  (void)state;
  static const int racks[][8] = {{2, 2},       {3, 3},    {2, 2, 2}, {4, 4},
                                 {2, 2, 2, 2}, {3, 3, 3}, {1, 1}};
  for (size_t i = 0; i < sizeof(racks) / sizeof(racks[0]); i++) {
    for (int each = 1; each <= 3; each++) {
      world_shape shape = world_of_racks(racks[i], each);
      run_all(&shape, 64 * 19 + 5);
    }
  }
}

/* Further nodes of larger racks own nothing. */
static void sums_are_right_in_uneven_racks(void **state) {
  (void)state;
  static const int racks[][8] = {{2, 3}, {4, 2}, {3, 5, 4}, {1, 3}, {2, 4, 2, 3}, {1, 4, 1}};
  for (size_t i = 0; i < sizeof(racks) / sizeof(racks[0]); i++) {
    world_shape shape = world_of_racks(racks[i], 2);
    run_all(&shape, 64 * 17 + 3);
    shape.sizes[1] = 4; /* uneven nodes, too */
    shape.sizes[shape.nodes - 1] = 1;
    run_all(&shape, 777);
  }
}

/* Nodes of one rack need not be neighbours. */
static void sums_are_right_in_racks_that_are_mixed(void **state) {
  (void)state;
  static const world_shape mixed[] = {{4, {2, 2, 2, 2}, {1, 2, 1, 2}},
                                      {5, {1, 1, 1, 1, 1}, {2, 1, 2, 1, 2}},
                                      {6, {2, 1, 2, 3, 2, 2}, {1, 2, 3, 3, 2, 1}}};
  for (int i = 0; i < 3; i++) {
    run_all(&mixed[i], 1003);
  }
}

static void counts_below_the_number_of_ranks_work(void **state) {
  (void)state;
  world_shape shape = world_of_racks((const int[8]){3, 2}, 3);
  for (uint64_t count = 0; count < 5; count++) {
    run_all(&shape, count);
  }
}

static void chunks_and_pieces_do_not_change_the_result(void **state) {
  (void)state;
  static const int racks[][8] = {{4, 4}, {4, 6}, {2, 2, 2}};
  for (unsigned i = 0; i < 3; i++) {
    world_shape shape = world_of_racks(racks[i], 2);
    for (int k = 0; k < KINDS; k++) {
      for (uint32_t pieces = 0; pieces <= (uint32_t)racks[i][0]; pieces += pieces < 2 ? 1 : 2) {
        collective what = by_racks(kinds[k], 64 * 67 + 5);
        what.shape.chunks = 1 + (pieces + i) % 3;
        what.shape.pieces = pieces;
        run_one(&shape, &what, (i + pieces) % 8);
        run_one(&shape, &what, (i + pieces + 3) % 8);
      }
    }
  }
}

static void sixty_four_ranks_sum_by_racks(void **state) {
  (void)state;
  static const struct {
    int racks[8], each;
  } worlds[] = {{{4, 4}, 8}, {{8, 8, 8, 8}, 2}, {{8, 8, 8, 8, 8, 8, 8, 8}, 1}, {{10, 6, 16}, 2}};
  for (unsigned i = 0; i < 4; i++) {
    world_shape shape = world_of_racks(worlds[i].racks, worlds[i].each);
    for (int k = 0; k < KINDS; k++) {
      collective what = by_racks(kinds[k], 64 * 67 + 5);
      run_one(&shape, &what, i + 3);
    }
  }
}

static void expect_refused(const world_shape *shape, const collective *what) {
  sim_world world;
  make_world(&world, shape);
  assert_int_equal(lcomm_schedule_init(&world.schedules[0], 0, world.size, 100), LCOMM_OK);
  assert_int_equal(build_schedule(&world.schedules[0], &world.topo, what), LCOMM_ERR_ARGUMENT);
  sim_world_free(&world);
}

static void what_cannot_go_by_racks_is_refused(void **state) {
  (void)state;
  world_shape racks = world_of_racks((const int[8]){2, 2}, 2), nodes = even_world(4, 2);
  world_shape one = world_of_racks((const int[8]){4}, 2);
  collective sparse = by_racks(LCOMM_EXCHANGE_SPARSE, 100);
  collective dense = by_racks(LCOMM_EXCHANGE_DIRECT, 100), leaders = dense, odd = dense;
  leaders.shape.leaders = true;
  odd.shape.pieces = 4; /* divides the nodes, but not those of a rack */
  expect_refused(&racks, &sparse);
  expect_refused(&racks, &leaders);
  expect_refused(&racks, &odd);
  expect_refused(&nodes, &dense);
  expect_refused(&one, &dense);
}

/* With as many nodes the bytes between racks do not grow. */
static void a_rack_sends_what_a_node_would(void **state) {
  (void)state;
  static const bool none[LCOMM_STAGE_COUNT];
  for (int nodes = 2; nodes <= 6; nodes++) {
    world_shape shape = world_of_racks((const int[8]){nodes, nodes, nodes}, 2);
    collective what = by_racks(LCOMM_EXCHANGE_DIRECT, 128 * 3 * 2 * (uint64_t)nodes);
    schedule_costs racks = costs_of(&shape, &what, none);
    assert_true(racks.rack_sent == 2 * 2 * what.count / 3);
    what.shape.by_racks = false;
    schedule_costs two_levels = costs_of(&shape, &what, none);
    assert_true(two_levels.rack_sent == racks.rack_sent * (uint64_t)nodes);
  }
}

/* Devices do their computations in lanes; all end there, too. */
static void lanes_end_by_racks(void **state) {
  (void)state;
  static const int racks[][8] = {{2, 2}, {2, 3}, {3, 3, 3}};
  for (unsigned i = 0; i < 3; i++) {
    world_shape shape = world_of_racks(racks[i], 2);
    for (unsigned number = 0; number < 128; number += 3) {
      char why[800] = "";
      sim_world world;
      collective what = by_racks(kinds[number % KINDS], 64 * 67 + 5);
      what.shape.chunks = 1 + number % 2;
      what.shape.pieces = number % 3 == 0 ? (uint32_t)racks[i][0] : 0;
      lane_options options = {.lanes = number % 2 ? 1 : LCOMM_LANE_COUNT,
                              .messages = (lane_messages)(number / 2 % 4),
                              .plain = number / 8 % 2,
                              .merged = number / 16 % 2,
                              .operations = 3,
                              .tracks = 1 + (int)(number / 32 % 2),
                              .far_sends_max = (int)(number / 64 % 2),
                              .seed = number + 1};
      build_world(&world, &shape, &what);
      if (lanes_run(&world, &options, why, sizeof(why)) != 0) {
        fail_msg("%s, options %u: %s", lcomm_exchange_name(what.shape.exchange), number, why);
      }
      sim_world_free(&world);
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(sums_are_right_in_even_racks),
    cmocka_unit_test(sums_are_right_in_uneven_racks),
    cmocka_unit_test(sums_are_right_in_racks_that_are_mixed),
    cmocka_unit_test(counts_below_the_number_of_ranks_work),
    cmocka_unit_test(chunks_and_pieces_do_not_change_the_result),
    cmocka_unit_test(sixty_four_ranks_sum_by_racks),
    cmocka_unit_test(what_cannot_go_by_racks_is_refused),
    cmocka_unit_test(a_rack_sends_what_a_node_would),
    cmocka_unit_test(lanes_end_by_racks),
};
RUN_TESTS(tests)
