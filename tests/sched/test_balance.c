/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Senders and receivers pair up: the n-th messages that all ranks send go to
 * as many different ranks, so nobody is crowded while others have nothing. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

enum { MOST_RANKS = 64 };

/* The peer of the n-th SEND of a schedule; -1 past the last one. */
static int nth_peer(const lcomm_schedule *schedule, uint32_t n) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    if (schedule->steps[i].kind == LCOMM_STEP_SEND && n-- == 0) {
      return schedule->steps[i].peer;
    }
  }
  return -1;
}

static void check(const world_shape *shape, const collective *what) {
  sim_world world;
  build_world(&world, shape, what);
  bool more = true;
  for (uint32_t n = 0; more; n++) {
    bool taken[MOST_RANKS] = {false};
    more = false;
    for (int rank = 0; rank < world.size; rank++) {
      int peer = nth_peer(&world.schedules[rank], n);
      if (peer >= 0 && taken[peer]) {
        fail_msg("collective %d, %s, %d ranks on %d nodes: send %u of rank %d meets another",
                 (int)what->kind, lcomm_exchange_name(what->shape.exchange), world.size,
                 shape->nodes, n, rank);
      }
      if (peer >= 0) {
        taken[peer] = more = true;
      }
    }
  }
  sim_world_free(&world);
}

static void check_all(const world_shape *shape) {
  for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_SPARSE; kind++) {
    collective what = sum_of((lcomm_exchange_kind)kind, 4096 * 36);
    check(shape, &what);
    for (uint32_t pieces = 1; pieces <= (uint32_t)shape->nodes; pieces++) {
      what.shape.pieces = pieces;
      if ((uint32_t)shape->nodes % pieces == 0) {
        check(shape, &what);
      }
    }
    what.shape.hierarchical = false;
    what.shape.pieces = 0;
    check(shape, &what);
  }
  check(shape, &(collective){REDUCE_SCATTER, .count = 3});
  check(shape, &(collective){ALLGATHER, .count = 3});
  check(shape, &(collective){ALLTOALL, .count = 3});
}

static void ranks_of_one_node_pair_up(void **state) {
  (void)state;
  for (int size = 2; size <= 9; size++) {
    world_shape shape = even_world(1, size);
    check_all(&shape);
  }
}

static void ranks_of_even_nodes_pair_up(void **state) {
  (void)state;
  for (int nodes = 2; nodes <= 6; nodes += nodes == 4 ? 2 : 1) {
    for (int each = 1; each <= 4; each++) {
      world_shape shape = even_world(nodes, each);
      check_all(&shape);
    }
  }
}

static void ranks_of_even_racks_pair_up(void **state) {
  (void)state;
  for (int nodes = 2; nodes <= 4; nodes++) {
    for (int each = 1; each <= 3; each++) {
      world_shape shape = world_of_racks((const int[8]){nodes, nodes, nodes}, each);
      for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_RING; kind++) {
        collective what = sum_of((lcomm_exchange_kind)kind, 4096 * 36);
        what.shape.by_racks = true;
        check(&shape, &what);
        what.shape.pieces = (uint32_t)nodes;
        check(&shape, &what);
      }
    }
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_of_even_racks_pair_up),
    cmocka_unit_test(ranks_of_one_node_pair_up),
    cmocka_unit_test(ranks_of_even_nodes_pair_up),
};
RUN_TESTS(tests)
