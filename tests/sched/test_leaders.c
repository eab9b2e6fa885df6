/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-reduce for short vectors: one rank speaks for its node, and a node hears
 * the sum instead of what it was made of. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

static collective short_sum(lcomm_exchange_kind kind, bool leaders, bool tells_sum) {
  return (collective){ALLREDUCE, .count = 23,
                      .shape = {.exchange = kind,
                                .hierarchical = true,
                                .chunks = 1,
                                .leaders = leaders,
                                .tells_sum = tells_sum}};
}

/* Where members tell the sum, the stage of results is exact: their own sum
 * stays as it is. */
static void run(const world_shape *shape, const collective *what) {
  unsigned stride = passes_sums_on(what->shape.exchange) ? 7 : 1;
  for (unsigned variant = 0; variant < 8; variant += stride) {
    sim_options options = stride == 1 ? options_of(variant) : exact_options_of(variant);
    options.lossy[LCOMM_STAGE_RESULT] &= !what->shape.tells_sum;
    run_allreduce(shape, what, &options);
  }
}

static void run_on_all_worlds(collective what) {
  for (int nodes = 2; nodes <= 9; nodes++) {
    for (int each = 1; each <= 4; each++) {
      world_shape even = even_world(nodes, each), uneven = even;
      run(&even, &what);
      uneven.sizes[nodes - 1] += 2;
      uneven.sizes[nodes / 2] = 1;
      run(&uneven, &what);
    }
  }
  for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
    run(&uneven_worlds[i], &what);
  }
}

static void leaders_sum_for_their_nodes(void **state) {
  (void)state;
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_GATHER, true, false));
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_DIRECT, true, false));
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_RING, true, false));
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_DOUBLING, true, false));
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_HALVING, true, true));
}

static void members_tell_the_sum(void **state) {
  (void)state;
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_GATHER, false, true));
  run_on_all_worlds(short_sum(LCOMM_EXCHANGE_GATHER, true, true));
}

static void telling_the_sum_is_for_a_gather_only(void **state) {
  (void)state;
  sim_world with, without;
  world_shape shape = even_world(3, 2);
  collective what = short_sum(LCOMM_EXCHANGE_DIRECT, false, true);
  build_world(&with, &shape, &what);
  what.shape.tells_sum = false;
  build_world(&without, &shape, &what);
  for (int rank = 0; rank < with.size; rank++) {
    const lcomm_schedule *a = &with.schedules[rank], *b = &without.schedules[rank];
    assert_int_equal(a->step_count, b->step_count);
    for (uint32_t i = 0; i < a->step_count; i++) {
      assert_int_equal(a->steps[i].kind, b->steps[i].kind);
      assert_int_equal(a->steps[i].slot, b->steps[i].slot);
    }
  }
  sim_world_free(&with);
  sim_world_free(&without);
}

static void short_and_chunked_vectors_work(void **state) {
  (void)state;
  for (uint64_t count = 0; count < 4; count++) {
    for (uint32_t chunks = 1; chunks < 4; chunks++) {
      collective what = short_sum(LCOMM_EXCHANGE_GATHER, true, true);
      what.count = count;
      what.shape.chunks = chunks;
      run(&uneven_worlds[2], &what);
      what.shape.leaders = false;
      run(&uneven_worlds[2], &what);
    }
  }
}

static uint64_t elements_between_nodes(int nodes, int each, collective what) {
  char why[256] = "";
  sim_world world;
  sim_options options = exact_options_of(0);
  world_shape shape = even_world(nodes, each);
  build_world(&world, &shape, &what);
  sim_fill_contributions(&world);
  assert_int_equal(sim_run(&world, &options, why, sizeof(why)), 0);
  uint64_t elements = world.far_elements;
  sim_world_free(&world);
  return elements;
}

static void bytes_between_nodes_equal_the_formula(void **state) {
  (void)state;
  for (int nodes = 2; nodes <= 9; nodes++) {
    for (int each = 1; each <= 4; each++) {
      uint64_t m = (uint64_t)nodes, gathered = m * (m - 1) * 23, two_phase = 2 * (m - 1) * 23;
      for (int tells_sum = 0; tells_sum < 2; tells_sum++) {
        assert_int_equal(
            elements_between_nodes(nodes, each, short_sum(LCOMM_EXCHANGE_GATHER, true, tells_sum)),
            gathered);
        assert_int_equal(
            elements_between_nodes(nodes, each, short_sum(LCOMM_EXCHANGE_GATHER, false, tells_sum)),
            gathered);
      }
      assert_int_equal(
          elements_between_nodes(nodes, each, short_sum(LCOMM_EXCHANGE_DIRECT, true, false)),
          two_phase);
    }
  }
}

/* Latency is steps and messages, so these are held to their number. */
static void schedules_of_short_sums_are_short(void **state) {
  (void)state;
  sim_world world;
  world_shape shape = even_world(4, 3);
  collective what = short_sum(LCOMM_EXCHANGE_GATHER, true, true);
  build_world(&world, &shape, &what);
  for (int rank = 0; rank < world.size; rank++) {
    /* a leader: 2 in, sum; encode, 3 out, 3 in, sum; encode, 2 out */
    uint32_t wanted = world.topo.local[rank] == 0 ? 3 + 8 + 3 : 4;
    assert_int_equal(world.schedules[rank].step_count, wanted);
  }
  sim_world_free(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(leaders_sum_for_their_nodes),
    cmocka_unit_test(members_tell_the_sum),
    cmocka_unit_test(telling_the_sum_is_for_a_gather_only),
    cmocka_unit_test(short_and_chunked_vectors_work),
    cmocka_unit_test(bytes_between_nodes_equal_the_formula),
    cmocka_unit_test(schedules_of_short_sums_are_short),
};
RUN_TESTS(tests)
