/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Schedules of all collectives, run by the simulator on many worlds. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/simulator.h"

typedef struct world_shape {
  int nodes;
  int sizes[64];
} world_shape;

static world_shape even_world(int nodes, int ranks_each) {
  world_shape shape = {.nodes = nodes};
  for (int i = 0; i < nodes; i++) {
    shape.sizes[i] = ranks_each;
  }
  return shape;
}

static const world_shape uneven_worlds[] = {
    {2, {1, 2}}, {2, {3, 1}}, {3, {2, 5, 3}}, {4, {1, 1, 1, 4}}, {5, {4, 2, 3, 2, 7}}};

static const lcomm_exchange_kind dense_kinds[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_GATHER,
                                                  LCOMM_EXCHANGE_RING};

static void build_allreduce(sim_world *world, const world_shape *shape, uint64_t count,
                            lcomm_exchange_kind kind, bool hierarchical, uint32_t chunks) {
  char why[256] = "";
  lcomm_allreduce_shape plan = {kind, hierarchical, chunks};
  bool copies[LCOMM_STAGE_COUNT] = {true, true, true};
  assert_int_equal(sim_world_make(world, shape->sizes, shape->nodes), 0);
  for (int rank = 0; rank < world->size; rank++) {
    lcomm_schedule *schedule = &world->schedules[rank];
    assert_int_equal(lcomm_schedule_init(schedule, rank, world->size, count), LCOMM_OK);
    assert_int_equal(lcomm_allreduce_build(schedule, &world->topo, &plan), LCOMM_OK);
    assert_int_equal(lcomm_schedule_link(schedule, copies), LCOMM_OK);
  }
  if (lcomm_schedule_verify_all(world->schedules, world->size, why, sizeof(why)) != LCOMM_OK) {
    fail_msg("%s", why);
  }
  sim_fill_contributions(world);
}

/* Options number `variant`: exact or lossy, eager or rendezvous, and paced
 * as hard as can be. */
static sim_options options_of(unsigned variant, bool ring) {
  sim_options options = {.seed = variant + 1, .held_rank = -1};
  options.rendezvous = variant & 1;
  options.far_sends_max = variant & 4 ? 1 : 0;
  options.lossy[LCOMM_STAGE_NET] = options.lossy[LCOMM_STAGE_RESULT] = !ring && (variant & 2);
  options.lossy[LCOMM_STAGE_NODE] = !ring && (variant & 4);
  return options;
}

static void run_variant(const world_shape *shape, uint64_t count, lcomm_exchange_kind kind,
                        bool hierarchical, uint32_t chunks, unsigned variant) {
  char why[256] = "";
  sim_world world;
  sim_options options = options_of(variant, kind == LCOMM_EXCHANGE_RING);
  build_allreduce(&world, shape, count, kind, hierarchical, chunks);
  if (sim_run(&world, &options, why, sizeof(why)) != 0 ||
      sim_check_allreduce(&world, why, sizeof(why)) != 0) {
    fail_msg("%s, %d ranks on %d nodes, %llu elements, hierarchical %d, chunks %u, variant %u: %s",
             lcomm_exchange_name(kind), world.size, shape->nodes, (unsigned long long)count,
             hierarchical, chunks, variant, why);
  }
  sim_world_free(&world);
}

static void run_allreduce(const world_shape *shape, uint64_t count, lcomm_exchange_kind kind,
                          bool hierarchical, uint32_t chunks) {
  unsigned stride = kind == LCOMM_EXCHANGE_RING ? 7 : 1; /* a ring is never lossy */
  for (unsigned variant = 0; variant < 8; variant += stride) {
    run_variant(shape, count, kind, hierarchical, chunks, variant);
  }
}

/* --------------------------------------------------------------- results */

static void every_element_is_reduced_once_on_2_to_64_ranks(void **state) {
  (void)state;
  static const int sizes[] = {2, 3, 4, 5, 7, 8, 13, 16, 33};
  for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
    world_shape shape = even_world(1, sizes[i]);
    for (size_t k = 0; k < sizeof(dense_kinds) / sizeof(dense_kinds[0]); k++) {
      run_allreduce(&shape, 3 * 64 + 5, dense_kinds[k], false, 1);
    }
  }
  world_shape largest = even_world(1, 64);
  run_variant(&largest, 64 + 5, LCOMM_EXCHANGE_DIRECT, false, 1, 7);
  run_variant(&largest, 64 + 5, LCOMM_EXCHANGE_RING, false, 1, 7);
}

static void hierarchical_sums_are_right_on_even_nodes(void **state) {
  (void)state;
  static const int nodes[] = {2, 2, 3, 4, 4, 8, 16}, each[] = {1, 4, 2, 2, 4, 4, 4};
  for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    world_shape shape = even_world(nodes[i], each[i]);
    for (size_t k = 0; k < sizeof(dense_kinds) / sizeof(dense_kinds[0]); k++) {
      run_allreduce(&shape, 301, dense_kinds[k], true, 1);
    }
  }
}

static void hierarchical_sums_are_right_on_uneven_nodes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof(uneven_worlds) / sizeof(uneven_worlds[0]); i++) {
    for (size_t k = 0; k < sizeof(dense_kinds) / sizeof(dense_kinds[0]); k++) {
      run_allreduce(&uneven_worlds[i], 777, dense_kinds[k], true, 1);
    }
  }
}

static void sparse_stripes_cover_every_element(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 5; ranks++) {
    world_shape flat = even_world(ranks, 1), deep = even_world(ranks, 2);
    run_allreduce(&flat, 4096 * 7 + 33, LCOMM_EXCHANGE_SPARSE, true, 1);
    run_allreduce(&deep, 4096 * 9 + 1, LCOMM_EXCHANGE_SPARSE, true, 1);
  }
  run_allreduce(&uneven_worlds[2], 4096 * 11 + 5, LCOMM_EXCHANGE_SPARSE, true, 1);
}

static void counts_below_the_number_of_ranks_work(void **state) {
  (void)state;
  for (uint64_t count = 0; count < 5; count++) {
    for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_SPARSE; kind++) {
      world_shape flat = even_world(1, 7), deep = even_world(3, 3);
      run_allreduce(&flat, count, (lcomm_exchange_kind)kind, false, 1);
      run_allreduce(&deep, count, (lcomm_exchange_kind)kind, true, 1);
    }
  }
}

static void chunks_do_not_change_the_result(void **state) {
  (void)state;
  world_shape shape = even_world(3, 2);
  for (uint32_t chunks = 2; chunks <= 5; chunks++) {
    run_allreduce(&shape, 2000, LCOMM_EXCHANGE_DIRECT, true, chunks);
    run_allreduce(&shape, 2000, LCOMM_EXCHANGE_RING, true, chunks);
    run_allreduce(&uneven_worlds[3], 2000, LCOMM_EXCHANGE_DIRECT, true, chunks);
  }
}

static void bytes_between_nodes_equal_the_formula(void **state) {
  (void)state;
  static const int nodes[] = {2, 3, 4, 8}, each[] = {4, 2, 2, 2};
  static const lcomm_exchange_kind two_phase[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_RING,
                                                  LCOMM_EXCHANGE_SPARSE};
  for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    for (size_t k = 0; k < 3; k++) {
      char why[256] = "";
      sim_world world;
      sim_options options = options_of(0, true);
      world_shape shape = even_world(nodes[i], each[i]);
      build_allreduce(&world, &shape, 50000, two_phase[k], true, 1);
      assert_int_equal(sim_run(&world, &options, why, sizeof(why)), 0);
      /* 2(m-1)/m * n per node, times m nodes */
      assert_int_equal(world.far_elements, 2 * (uint64_t)(nodes[i] - 1) * 50000);
      sim_world_free(&world);
    }
  }
}

/* ---------------------------------------------------- other collectives */

typedef enum other { REDUCE_SCATTER, ALLGATHER, BROADCAST } other;

static void build_other(sim_world *world, const world_shape *shape, other what, uint64_t count,
                        int root) {
  assert_int_equal(sim_world_make(world, shape->sizes, shape->nodes), 0);
  uint64_t whole = what == BROADCAST ? count : count * (uint64_t)world->size;
  char why[256] = "";
  bool copies[LCOMM_STAGE_COUNT] = {true, true, true};
  for (int rank = 0; rank < world->size; rank++) {
    lcomm_schedule *schedule = &world->schedules[rank];
    assert_int_equal(lcomm_schedule_init(schedule, rank, world->size, whole), LCOMM_OK);
    lcomm_status status = what == REDUCE_SCATTER
                              ? lcomm_reduce_scatter_build(schedule, &world->topo, count)
                          : what == ALLGATHER ? lcomm_allgather_build(schedule, &world->topo, count)
                                              : lcomm_broadcast_build(schedule, &world->topo, root);
    assert_int_equal(status, LCOMM_OK);
    assert_int_equal(lcomm_schedule_link(schedule, copies), LCOMM_OK);
  }
  if (lcomm_schedule_verify_all(world->schedules, world->size, why, sizeof(why)) != LCOMM_OK) {
    fail_msg("%s", why);
  }
  sim_fill_contributions(world);
}

/* Which rank's contribution element i must hold after a move. */
static uint64_t wanted_ranks(const sim_world *world, other what, uint64_t count, uint64_t i,
                             int root) {
  if (what == REDUCE_SCATTER) {
    return world->size == 64 ? UINT64_MAX : (UINT64_C(1) << world->size) - 1;
  }
  return UINT64_C(1) << (what == ALLGATHER ? (int)(i / count) : root);
}

static void run_other(const world_shape *shape, other what, uint64_t count, int root) {
  for (unsigned variant = 0; variant < 2; variant++) {
    char why[256] = "";
    sim_world world;
    sim_options options = options_of(variant, true);
    build_other(&world, shape, what, count, root);
    if (sim_run(&world, &options, why, sizeof(why)) != 0) {
      fail_msg("collective %d, %d ranks: %s", (int)what, world.size, why);
    }
    for (int rank = 0; rank < world.size; rank++) {
      uint64_t first = what == REDUCE_SCATTER ? (uint64_t)rank * count : 0;
      uint64_t last = what == REDUCE_SCATTER ? first + count : world.schedules[rank].count;
      for (uint64_t i = first; i < last; i++) {
        assert_int_equal(world.vectors[rank][i].ranks, wanted_ranks(&world, what, count, i, root));
      }
    }
    sim_world_free(&world);
  }
}

static void segments_and_roots_arrive_everywhere(void **state) {
  (void)state;
  static const int nodes[] = {1, 1, 2, 3, 4, 1}, each[] = {2, 7, 3, 1, 4, 64};
  for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    world_shape shape = even_world(nodes[i], each[i]);
    int size = nodes[i] * each[i];
    run_other(&shape, REDUCE_SCATTER, 5, 0);
    run_other(&shape, ALLGATHER, 3, 0);
    run_other(&shape, BROADCAST, 11, 0);
    run_other(&shape, BROADCAST, 11, size - 1);
    run_other(&shape, BROADCAST, 11, size / 2);
  }
  for (size_t i = 0; i < sizeof(uneven_worlds) / sizeof(uneven_worlds[0]); i++) {
    run_other(&uneven_worlds[i], REDUCE_SCATTER, 4, 0);
    run_other(&uneven_worlds[i], ALLGATHER, 2, 0);
    run_other(&uneven_worlds[i], BROADCAST, 3, 1);
  }
}

static void nobody_leaves_a_barrier_before_all_have_entered(void **state) {
  (void)state;
  for (int size = 2; size <= 18; size++) {
    for (int held = 0; held < size; held++) {
      char why[256] = "";
      sim_world world;
      sim_options options = {.seed = 5, .held_rank = held};
      world_shape shape = even_world(1, size);
      assert_int_equal(sim_world_make(&world, shape.sizes, shape.nodes), 0);
      for (int rank = 0; rank < size; rank++) {
        assert_int_equal(lcomm_schedule_init(&world.schedules[rank], rank, size, 1), LCOMM_OK);
        assert_int_equal(lcomm_barrier_build(&world.schedules[rank], &world.topo), LCOMM_OK);
      }
      sim_fill_contributions(&world);
      assert_int_equal(sim_run(&world, &options, why, sizeof(why)), 0);
      assert_int_equal(world.over_before_held, 0);
      sim_world_free(&world);
    }
  }
}

/* ------------------------------------------------------------- mutations */

static uint32_t find_step(const lcomm_schedule *schedule, lcomm_step_kind kind, uint32_t nth) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (schedule->steps[i].kind == kind && nth-- == 0) {
      return i;
    }
  }
  fail_msg("no such step");
  return 0;
}

static void drop_step(lcomm_schedule *schedule, uint32_t index) {
  memmove(&schedule->steps[index], &schedule->steps[index + 1],
          (schedule->step_count - index - 1) * sizeof(lcomm_step));
  schedule->step_count--;
}

/* The first DECODE after the ENCODE of a result is the owner's own. */
static void drop_self_decode(lcomm_schedule *schedule) {
  drop_step(schedule, find_step(schedule, LCOMM_STEP_DECODE, 0));
}

static void use_wrong_slot(lcomm_schedule *schedule) {
  uint32_t a = find_step(schedule, LCOMM_STEP_DECODE, 1);
  uint32_t b = find_step(schedule, LCOMM_STEP_DECODE, 2);
  uint32_t slot = schedule->steps[a].slot;
  schedule->steps[a].slot = schedule->steps[b].slot;
  schedule->steps[b].slot = slot;
}

static void use_wrong_span(lcomm_schedule *schedule) {
  uint32_t a = find_step(schedule, LCOMM_STEP_DECODE, 1);
  schedule->steps[a].span.first -= schedule->steps[a].span.first > 0 ? 1 : -UINT64_C(1);
}

static void drop_receive(lcomm_schedule *schedule) {
  drop_step(schedule, find_step(schedule, LCOMM_STEP_RECV, 0));
}

static bool simulator_catches(void (*mutate)(lcomm_schedule *), lcomm_exchange_kind kind) {
  char why[256] = "";
  sim_world world;
  sim_options options = {.seed = 3, .held_rank = -1, .lossy = {false, true, true}};
  world_shape shape = even_world(4, 1);
  build_allreduce(&world, &shape, 4 * 4096, kind, true, 1);
  mutate(&world.schedules[2]);
  bool caught = sim_run(&world, &options, why, sizeof(why)) != 0 ||
                sim_check_allreduce(&world, why, sizeof(why)) != 0;
  sim_world_free(&world);
  return caught;
}

static void simulator_catches_broken_schedules(void **state) {
  (void)state;
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_SPARSE};
  for (size_t i = 0; i < 2; i++) {
    assert_true(simulator_catches(drop_self_decode, kinds[i]));
    assert_true(simulator_catches(use_wrong_slot, kinds[i]));
    assert_true(simulator_catches(use_wrong_span, kinds[i]));
    assert_true(simulator_catches(drop_receive, kinds[i]));
  }
}

static void ignore_nothing(lcomm_schedule *schedule) {
  (void)schedule;
}

static void simulator_accepts_the_unbroken_schedule(void **state) {
  (void)state;
  assert_false(simulator_catches(ignore_nothing, LCOMM_EXCHANGE_DIRECT));
  assert_false(simulator_catches(ignore_nothing, LCOMM_EXCHANGE_SPARSE));
}

/* Without the dependencies that come from sharing memory with the vector, a
 * slow receiver would read what a later step has already overwritten. */
static void forget_vector_ties(lcomm_schedule *schedule) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (schedule->steps[i].kind == LCOMM_STEP_ENCODE) {
      schedule->steps[i].span.first = schedule->count; /* no overlap with anything */
      schedule->steps[i].span.count = 0;
    }
  }
}

static void verifier_refuses_spans_that_do_not_fit_their_slots(void **state) {
  (void)state;
  char why[256] = "";
  sim_world world;
  world_shape shape = even_world(3, 1);
  build_allreduce(&world, &shape, 300, LCOMM_EXCHANGE_DIRECT, false, 1);
  forget_vector_ties(&world.schedules[1]);
  assert_int_equal(lcomm_schedule_verify(&world.schedules[1], why, sizeof(why)),
                   LCOMM_ERR_INTERNAL);
  assert_non_null(strstr(why, "rank 1"));
  sim_world_free(&world);
}

static void verifier_refuses_a_send_without_its_receive(void **state) {
  (void)state;
  char why[256] = "";
  sim_world world;
  world_shape shape = even_world(3, 1);
  build_allreduce(&world, &shape, 300, LCOMM_EXCHANGE_GATHER, false, 1);
  uint32_t receive = find_step(&world.schedules[1], LCOMM_STEP_RECV, 0);
  world.schedules[1].steps[receive].message = 9;
  assert_int_equal(lcomm_schedule_verify_all(world.schedules, 3, why, sizeof(why)),
                   LCOMM_ERR_INTERNAL);
  sim_world_free(&world);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_element_is_reduced_once_on_2_to_64_ranks),
      cmocka_unit_test(hierarchical_sums_are_right_on_even_nodes),
      cmocka_unit_test(hierarchical_sums_are_right_on_uneven_nodes),
      cmocka_unit_test(sparse_stripes_cover_every_element),
      cmocka_unit_test(counts_below_the_number_of_ranks_work),
      cmocka_unit_test(chunks_do_not_change_the_result),
      cmocka_unit_test(bytes_between_nodes_equal_the_formula),
      cmocka_unit_test(segments_and_roots_arrive_everywhere),
      cmocka_unit_test(nobody_leaves_a_barrier_before_all_have_entered),
      cmocka_unit_test(simulator_catches_broken_schedules),
      cmocka_unit_test(simulator_accepts_the_unbroken_schedule),
      cmocka_unit_test(verifier_refuses_spans_that_do_not_fit_their_slots),
      cmocka_unit_test(verifier_refuses_a_send_without_its_receive),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
