/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Schedules of reduce-scatter, all-gather, all-to-all and broadcast: every
 * element ends up where it belongs. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

enum { MOST_RANKS = 64 };

static void check(int verdict, const char *why) {
  if (verdict != 0) {
    fail_msg("%s", why);
  }
}

/* Element i of the result came from rank `from`, element `there`. */
static void check_gathered(const sim_world *world, int rank, const collective *what, char *why) {
  uint64_t i = 0;
  for (int from = 0; from < world->size; from++) {
    uint64_t end = i + (what->kind == ALLGATHERV ? what->part_counts[from] : what->count);
    for (; i < end; i++) {
      check(sim_check_moved(world, rank, i, from, i, why, 256), why);
    }
  }
}

static void check_exchanged(const sim_world *world, int rank, uint64_t count, char *why) {
  check(check_all_to_all(world, count, why), why);
  for (uint64_t i = 0; i < count * (uint64_t)world->size; i++) {
    check(sim_check_moved(world, rank, i, rank, i, why, 256), why); /* the input is left alone */
  }
}

static void check_reduced(const sim_world *world, int rank, const collective *what) {
  bool uneven = what->kind == REDUCE_SCATTERV;
  uint64_t first = uneven ? 0 : (uint64_t)rank * what->count;
  for (int i = 0; uneven && i < rank; i++) {
    first += what->part_counts[i];
  }
  uint64_t end = first + (uneven ? what->part_counts[rank] : what->count);
  for (uint64_t i = first; i < end; i++) {
    double sum = 0;
    for (int from = 0; from < world->size; from++) {
      sum += sim_label(from, i);
    }
    assert_int_equal(world->vectors[rank][i].ranks, sim_everyone(world));
    assert_true(world->vectors[rank][i].value == sum); /* labels are whole numbers: no rounding */
  }
}

static void check_rank(const sim_world *world, int rank, const collective *what) {
  char why[256] = "";
  switch (what->kind) {
  case ALLGATHER:
  case ALLGATHERV:
    check_gathered(world, rank, what, why);
    break;
  case ALLTOALL:
    check_exchanged(world, rank, what->count, why);
    break;
  case BROADCAST:
    for (uint64_t i = 0; i < what->count; i++) {
      check(sim_check_moved(world, rank, i, what->root, i, why, sizeof(why)), why);
    }
    break;
  default:
    check_reduced(world, rank, what);
    break;
  }
}

/* Elements that have to go from one node to another. */
static uint64_t far_elements(const sim_world *world, const collective *what) {
  uint64_t nodes = (uint64_t)world->topo.nodes, pairs = 0;
  for (int a = 0; a < world->size; a++) {
    for (int b = 0; b < world->size; b++) {
      pairs += world->topo.node[a] != world->topo.node[b];
    }
  }
  switch (what->kind) {
  case ALLTOALL:
    return pairs * what->count;
  case REDUCE_SCATTER:
  case ALLGATHER:
    return (nodes - 1) * what->count * (uint64_t)world->size;
  default:
    return (nodes - 1) * vector_count(what, world->size);
  }
}

static void run_one(const world_shape *shape, const collective *what, sim_options options) {
  char why[256] = "";
  sim_world world;
  build_world(&world, shape, what);
  sim_fill_labels(&world);
  if (sim_run(&world, &options, why, sizeof(why)) != 0) {
    fail_msg("collective %d, %d ranks: %s", (int)what->kind, world.size, why);
  }
  assert_int_equal(world.far_elements, far_elements(&world, what));
  for (int rank = 0; rank < world.size; rank++) {
    check_rank(&world, rank, what);
  }
  sim_world_free(&world);
}

/* Sums also through lossy stages: their grids keep whole numbers as they are. */
static void run(const world_shape *shape, collective what) {
  bool sums = what.kind == REDUCE_SCATTER || what.kind == REDUCE_SCATTERV;
  for (unsigned variant = 0; variant < 8; variant++) {
    if (sums && !passes_sums_on(what.shape.exchange)) {
      run_one(shape, &what, options_of(variant));
    } else if (!(variant & 2)) {
      run_one(shape, &what, exact_options_of(variant));
    }
  }
}

/* 1 to 16 ranks on nodes of one size, where that goes, and of several. */
static void run_on_all_worlds(collective what) {
  for (int size = 1; size <= 16; size++) {
    for (int nodes = 1; nodes <= size; nodes += nodes < 4 ? 1 : 4) {
      world_shape shape = even_world(nodes, size / nodes);
      for (int i = 0; i < size % nodes; i++) {
        shape.sizes[i * 2 % nodes]++;
      }
      run(&shape, what);
    }
  }
  for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
    run(&uneven_worlds[i], what);
  }
}

static void segments_are_summed_on_their_ranks(void **state) {
  (void)state;
  world_shape largest = even_world(1, MOST_RANKS);
  run_on_all_worlds((collective){REDUCE_SCATTER, .count = 4});
  run_one(&largest, &(collective){REDUCE_SCATTER, .count = 1}, exact_options_of(1));
}

static void segments_arrive_everywhere(void **state) {
  (void)state;
  world_shape largest = even_world(1, MOST_RANKS);
  run_on_all_worlds((collective){ALLGATHER, .count = 3});
  run_one(&largest, &(collective){ALLGATHER, .count = 1}, exact_options_of(1));
}

static void run_uneven(collective_kind kind, lcomm_exchange_kind exchange) {
  uint64_t growing[MOST_RANKS], gaps[MOST_RANKS], last[MOST_RANKS] = {0}, none[MOST_RANKS] = {0};
  for (int i = 0; i < MOST_RANKS; i++) {
    growing[i] = (uint64_t)i;
    gaps[i] = i % 3 == 1 ? 5 : 0;
  }
  last[0] = 7;
  run_on_all_worlds((collective){kind, .part_counts = growing, .shape = {.exchange = exchange}});
  run_on_all_worlds((collective){kind, .part_counts = gaps, .shape = {.exchange = exchange}});
  run_on_all_worlds((collective){kind, .part_counts = last, .shape = {.exchange = exchange}});
  run_on_all_worlds((collective){kind, .part_counts = none, .shape = {.exchange = exchange}});
}

static void segments_are_summed_around_a_ring(void **state) {
  (void)state;
  run_on_all_worlds(
      (collective){REDUCE_SCATTER, .count = 4, .shape = {.exchange = LCOMM_EXCHANGE_RING}});
}

static void segments_arrive_around_a_ring(void **state) {
  (void)state;
  run_on_all_worlds(
      (collective){ALLGATHER, .count = 3, .shape = {.exchange = LCOMM_EXCHANGE_RING}});
}

static void segments_arrive_in_log2_steps(void **state) {
  (void)state;
  run_on_all_worlds(
      (collective){ALLGATHER, .count = 3, .shape = {.exchange = LCOMM_EXCHANGE_DOUBLING}});
}

/* Then all ranks are parties, and more than one of a node hears of other nodes. */
static void run_in_turn(world_shape shape, const collective *what) {
  for (unsigned variant = 0; variant < 8; variant++) {
    char why[256] = "";
    sim_world world;
    sim_options options = exact_options_of(variant);
    assert_int_equal(sim_world_make_in_turn(&world, shape.sizes, shape.nodes), 0);
    build_schedules(&world, what);
    sim_fill_labels(&world);
    check(sim_run(&world, &options, why, sizeof(why)), why);
    for (int rank = 0; rank < world.size; rank++) {
      check_rank(&world, rank, what);
    }
    sim_world_free(&world);
  }
}

static void segments_of_scattered_nodes_arrive_in_log2_steps(void **state) {
  (void)state;
  for (int exchange = LCOMM_EXCHANGE_DIRECT; exchange <= LCOMM_EXCHANGE_DOUBLING; exchange++) {
    collective what = {ALLGATHER, .count = 3, .shape = {.exchange = (lcomm_exchange_kind)exchange}};
    run_in_turn(even_world(3, 3), &what);
    run_in_turn(even_world(4, 2), &what);
    for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
      run_in_turn(uneven_worlds[i], &what);
    }
  }
}

/* So are all links of log2 steps: peers are a power of two away, and nodes have one rank that
 * leaves them. */
static void log2_steps_need_few_peers(void **state) {
  (void)state;
  static const int nodes[] = {2, 7, 8, 12, 64}, each[] = {3, 1, 2, 4, 1}, most[] = {2, 6, 6, 8, 12};
  for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
    sim_world world;
    world_shape shape = even_world(nodes[i], each[i]);
    build_world(
        &world, &shape,
        &(collective){ALLGATHER, .count = 1, .shape = {.exchange = LCOMM_EXCHANGE_DOUBLING}});
    for (int rank = 0; rank < world.size; rank++) {
      const lcomm_schedule *schedule = &world.schedules[rank];
      int peers = 0, home = world.topo.node[rank];
      for (int peer = 0; peer < world.size; peer++) {
        bool far = world.topo.node[peer] != home;
        peers += far && schedule->sent_to[peer] + schedule->received_from[peer] > 0;
      }
      assert_true(peers <= (world.topo.local[rank] == 0 ? most[i] : 0));
    }
    sim_world_free(&world);
  }
}

static void uneven_parts_arrive_everywhere(void **state) {
  (void)state;
  run_uneven(ALLGATHERV, LCOMM_EXCHANGE_DIRECT);
  run_uneven(ALLGATHERV, LCOMM_EXCHANGE_RING);
  run_uneven(ALLGATHERV, LCOMM_EXCHANGE_DOUBLING);
}

static void uneven_parts_are_summed_on_their_ranks(void **state) {
  (void)state;
  run_uneven(REDUCE_SCATTERV, LCOMM_EXCHANGE_DIRECT);
  run_uneven(REDUCE_SCATTERV, LCOMM_EXCHANGE_RING);
}

static void all_to_all_turns_the_matrix(void **state) {
  (void)state;
  world_shape largest = even_world(4, 8);
  run_on_all_worlds((collective){ALLTOALL, .count = 3});
  run_on_all_worlds((collective){ALLTOALL, .count = 0});
  run_one(&largest, &(collective){ALLTOALL, .count = 1}, exact_options_of(5));
}

static void every_root_reaches_everyone(void **state) {
  (void)state;
  for (int size = 1; size <= 9; size++) {
    for (int root = 0; root < size; root++) {
      world_shape flat = even_world(1, size), single = even_world(size, 1),
                  twin = even_world(2, size);
      run(&flat, (collective){BROADCAST, .count = 11, .root = root});
      run(&single, (collective){BROADCAST, .count = 11, .root = root});
      run(&twin, (collective){BROADCAST, .count = 11, .root = root + size});
    }
  }
  for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
    run(&uneven_worlds[i], (collective){BROADCAST, .count = 3, .root = 1});
  }
}

/* Also where there are fewer elements than chunks. */
static void chunks_reach_everyone_along_a_chain(void **state) {
  (void)state;
  for (int size = 1; size <= 9; size += 2) {
    for (int root = 0; root < size; root++) {
      world_shape flat = even_world(1, size), single = even_world(size, 1),
                  twin = even_world(2, size), wide = even_world(size, 3);
      collective what = {BROADCAST, .count = 3 * 128 + 11, .root = root, .shape = {.chunks = 3}};
      run(&flat, what);
      run(&single, what);
      what.root = root + size;
      run(&twin, what);
      run(&wide, what);
    }
  }
  for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
    run(&uneven_worlds[i], (collective){BROADCAST, .count = 3, .root = 1, .shape = {.chunks = 5}});
  }
}

/* Of each node's ranks one hears from the node before it, and tells the one behind it, for each
 * part. */
static void a_ring_has_one_sender_to_each_node(void **state) {
  (void)state;
  static const collective_kind kinds[] = {REDUCE_SCATTER, ALLGATHER};
  world_shape shape = even_world(5, 3);
  for (int k = 0; k < 2; k++) {
    sim_world world;
    build_world(&world, &shape,
                &(collective){kinds[k], .count = 8, .shape = {.exchange = LCOMM_EXCHANGE_RING}});
    for (int rank = 0; rank < world.size; rank++) {
      const lcomm_schedule *schedule = &world.schedules[rank];
      int home = world.topo.node[rank], far = 0;
      for (uint32_t i = 0; i < schedule->step_count; i++) {
        const lcomm_step *step = &schedule->steps[i];
        int other = lcomm_step_is_message(step) ? world.topo.node[step->peer] : home;
        int next = step->kind == LCOMM_STEP_SEND ? (home + 1) % 5 : (home + 4) % 5;
        assert_true(other == home || other == next);
        far += other != home;
      }
      assert_int_equal(far, 2 * 4);
    }
    sim_world_free(&world);
  }
}

/* As long as its head passes chunks on while others arrive, no rank sends one to two nodes. */
static void a_chain_crosses_each_link_between_nodes_once(void **state) {
  (void)state;
  sim_world world;
  world_shape shape = even_world(6, 2);
  build_world(&world, &shape, &(collective){BROADCAST, .count = 4096, .shape = {.chunks = 8}});
  for (int rank = 0; rank < world.size; rank++) {
    const lcomm_schedule *schedule = &world.schedules[rank];
    uint64_t far = 0;
    for (uint32_t i = 0; i < schedule->step_count; i++) {
      const lcomm_step *step = &schedule->steps[i];
      bool leaves =
          step->kind == LCOMM_STEP_SEND && world.topo.node[step->peer] != world.topo.node[rank];
      far += leaves ? schedule->slots[step->slot].count : 0;
    }
    assert_true(far == (world.topo.local[rank] == 0 && world.topo.node[rank] < 5 ? 4096 : 0));
  }
  sim_world_free(&world);
}

static void parts_that_do_not_fill_the_vector_are_refused(void **state) {
  (void)state;
  static const uint64_t few[] = {1, 2, 3}, many[] = {4, 5, 2}, wrapped[] = {UINT64_MAX, 8, 3};
  sim_world world;
  world_shape shape = even_world(1, 3);
  build_world(&world, &shape, &(collective){BROADCAST, .count = 10});
  lcomm_schedule *schedule = &world.schedules[0];
  assert_int_equal(lcomm_allgather_build(schedule, &world.topo, 0, few, LCOMM_EXCHANGE_DIRECT),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_allgather_build(schedule, &world.topo, 0, many, LCOMM_EXCHANGE_RING),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_allgather_build(schedule, &world.topo, 0, wrapped, LCOMM_EXCHANGE_DIRECT),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_reduce_scatter_build(schedule, &world.topo, 0, few, LCOMM_EXCHANGE_DIRECT),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_reduce_scatter_build(schedule, &world.topo, 0, many, LCOMM_EXCHANGE_RING),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_allgather_build(schedule, &world.topo, 3, NULL, LCOMM_EXCHANGE_RING),
                   LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_broadcast_build(schedule, &world.topo, 0, 0), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_alltoall_build(schedule, &world.topo, 1), LCOMM_ERR_ARGUMENT);
  assert_int_equal(lcomm_alltoall_build(schedule, &world.topo, UINT64_MAX / 3), LCOMM_ERR_ARGUMENT);
  sim_world_free(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(segments_are_summed_on_their_ranks),
    cmocka_unit_test(segments_arrive_everywhere),
    cmocka_unit_test(segments_are_summed_around_a_ring),
    cmocka_unit_test(segments_arrive_around_a_ring),
    cmocka_unit_test(segments_arrive_in_log2_steps),
    cmocka_unit_test(segments_of_scattered_nodes_arrive_in_log2_steps),
    cmocka_unit_test(log2_steps_need_few_peers),
    cmocka_unit_test(uneven_parts_arrive_everywhere),
    cmocka_unit_test(uneven_parts_are_summed_on_their_ranks),
    cmocka_unit_test(all_to_all_turns_the_matrix),
    cmocka_unit_test(every_root_reaches_everyone),
    cmocka_unit_test(chunks_reach_everyone_along_a_chain),
    cmocka_unit_test(a_ring_has_one_sender_to_each_node),
    cmocka_unit_test(a_chain_crosses_each_link_between_nodes_once),
    cmocka_unit_test(parts_that_do_not_fill_the_vector_are_refused),
};
RUN_TESTS(tests)
