/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All collectives end when every rank does its computations in lanes, in program order. */

#include "libcomm/sched/lane_group.h"
#include "tests/sched/worlds.h"
#include "tests/support/lane_simulator.h"
#include "tests/support/unit_tests.h"

/* Vectors so short that spans are empty on some ranks, and longer ones. */
static const uint64_t counts[] = {3, 64 * 67 + 5};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]), WHY_MAX = 800 };

static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DIRECT,   LCOMM_EXCHANGE_GATHER,
                                            LCOMM_EXCHANGE_RING,     LCOMM_EXCHANGE_SPARSE,
                                            LCOMM_EXCHANGE_DOUBLING, LCOMM_EXCHANGE_HALVING};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

/* Option sets 0 .. VARIANTS - 1: all that matters, with one another. */
enum { VARIANTS = 2 * 4 * 2 * 2 * 2 * 2 };

static lane_options variant_of(unsigned number) {
  lane_options options = {.operations = 3, .seed = number + 1};
  options.lanes = number % 2 ? 1 : LCOMM_LANE_COUNT;
  options.messages = (lane_messages)(number / 2 % 4);
  options.plain = number / 8 % 2;
  options.merged = number / 16 % 2;
  options.tracks = 1 + (int)(number / 32 % 2);
  options.far_sends_max = (int)(number / 64 % 2);
  return options;
}

static void check(sim_world *world, const world_shape *shape, const collective *what,
                  const lane_options *options) {
  char why[WHY_MAX] = "";
  if (lanes_run(world, options, why, sizeof(why)) != 0) {
    fail_msg(
        "collective %d, %s, hierarchical %d, leaders %d, tells sum %d, chunks %u, pieces %u, %d "
        "ranks on %d nodes, %llu elements; lanes %d, messages %d, plain %d, merged %d, tracks %d, "
        "far "
        "sends %d, seed %u: %s",
        (int)what->kind, lcomm_exchange_name(what->shape.exchange), what->shape.hierarchical,
        what->shape.leaders, what->shape.tells_sum, what->shape.chunks, what->shape.pieces,
        world->size, shape->nodes, (unsigned long long)what->count, options->lanes,
        (int)options->messages, options->plain, options->merged, options->tracks,
        options->far_sends_max, options->seed, why);
  }
}

/* Every `stride`-th set of options, others in other worlds. */
static void run(const world_shape *shape, const collective *what, unsigned stride) {
  sim_world world;
  build_world(&world, shape, what);
  for (unsigned number = (unsigned)world.size % stride; number < VARIANTS; number += stride) {
    lane_options options = variant_of(number);
    check(&world, shape, what, &options);
  }
  sim_world_free(&world);
}

static void run_sums(const world_shape *shape, uint64_t count, unsigned stride) {
  for (size_t k = 0; k < KINDS; k++) {
    collective what = {ALLREDUCE, count, .shape = {.exchange = kinds[k], .chunks = 1}};
    run(shape, &what, stride);
    what.shape.hierarchical = true;
    what.shape.chunks = 3;
    run(shape, &what, stride);
    what.shape.leaders = true;
    run(shape, &what, stride);
    what.shape.tells_sum = true;
    what.shape.leaders = false;
    run(shape, &what, stride);
    what.shape.tells_sum = false;
    what.shape.pieces = (uint32_t)shape->nodes;
    run(shape, &what, stride);
    what.shape.pieces = shape->nodes % 2 == 0 ? (uint32_t)shape->nodes / 2 : 1;
    run(shape, &what, stride);
  }
}

static void run_moves(const world_shape *shape, uint64_t count, unsigned stride) {
  uint64_t parts[64];
  for (int i = 0; i < 64; i++) {
    parts[i] = (uint64_t)(i * 7 % 5) * count / 3;
  }
  for (int kind = REDUCE_SCATTER; kind <= BARRIER; kind++) {
    collective what = {(collective_kind)kind, count, .root = 1, .part_counts = parts,
                       .shape = {.exchange = LCOMM_EXCHANGE_GATHER, .chunks = 1}};
    run(shape, &what, stride);
  }
  run(shape, &(collective){BROADCAST, count, .root = 1, .shape = {.chunks = 4}}, stride);
  for (int kind = REDUCE_SCATTER; kind <= ALLGATHERV; kind++) {
    collective what = {(collective_kind)kind, count, .part_counts = parts,
                       .shape = {.exchange = LCOMM_EXCHANGE_RING}};
    run(shape, &what, stride);
    what.shape.exchange = LCOMM_EXCHANGE_DOUBLING; /* of a reduce-scatter: straight */
    run(shape, &what, stride);
  }
}

static void run_all(const world_shape *shape, unsigned stride) {
  for (int c = 0; c < COUNTS; c++) {
    run_sums(shape, counts[c], stride);
    run_moves(shape, counts[c], stride);
  }
}

static void lanes_end_on_one_node(void **state) {
  (void)state;
  for (int ranks = 2; ranks <= 64; ranks = ranks < 9 ? ranks + 1 : ranks * 2 - 1) {
    world_shape shape = even_world(1, ranks);
    run_all(&shape, ranks < 9 ? 1 : 29);
  }
  world_shape largest = even_world(1, 64);
  run_all(&largest, 41);
}

static void lanes_end_on_even_nodes(void **state) {
  (void)state;
  static const int nodes[] = {2, 2, 3, 4, 4, 8, 16, 64}, each[] = {1, 4, 2, 2, 8, 4, 4, 1};
  for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
    world_shape shape = even_world(nodes[i], each[i]);
    run_all(&shape, nodes[i] * each[i] < 9 ? 1 : 29);
  }
}

static void lanes_end_on_uneven_nodes(void **state) {
  (void)state;
  for (size_t i = 0; i < UNEVEN_WORLDS; i++) {
    run_all(&uneven_worlds[i], i < 3 ? 1 : 5);
  }
}

/* --------------------------------------------------------- what does not end */

/* Two ranks that exchange a vector: first hear, then tell. */
static void hear_first(lcomm_schedule *schedule, int peer) {
  lcomm_span half = lcomm_span_whole(0, 64), other = lcomm_span_whole(64, 64);
  uint32_t in = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
  uint32_t out = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
  lcomm_schedule_receive(schedule, in, peer);
  lcomm_schedule_decode(schedule, in, half, LCOMM_NO_SLOT);
  lcomm_schedule_encode(schedule, other, out, 1, LCOMM_FEEDBACK_NONE);
  lcomm_schedule_send(schedule, out, peer);
}

/* ... and one that tells what it has, which it decodes before it decodes what it hears. */
static void tell_own(lcomm_schedule *schedule, int peer) {
  lcomm_span half = lcomm_span_whole(0, 64), other = lcomm_span_whole(64, 64);
  uint32_t own = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
  uint32_t out = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
  uint32_t in = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
  lcomm_schedule_encode(schedule, half, own, 1, LCOMM_FEEDBACK_NONE);
  lcomm_schedule_decode(schedule, own, half, LCOMM_NO_SLOT);
  lcomm_schedule_encode(schedule, half, out, 1, LCOMM_FEEDBACK_NONE);
  lcomm_schedule_send(schedule, out, peer);
  lcomm_schedule_receive(schedule, in, peer);
  lcomm_schedule_decode(schedule, in, other, LCOMM_NO_SLOT);
}

static bool ends(void (*build)(lcomm_schedule *schedule, int peer), const lane_options *options,
                 char *why) {
  world_shape shape = even_world(2, 1);
  sim_world world;
  assert_int_equal(sim_world_make(&world, shape.sizes, shape.nodes), 0);
  for (int rank = 0; rank < 2; rank++) {
    assert_int_equal(lcomm_schedule_init(&world.schedules[rank], rank, 2, 128), LCOMM_OK);
    build(&world.schedules[rank], 1 - rank);
  }
  bool ended = lanes_run(&world, options, why, WHY_MAX) == 0;
  sim_world_free(&world);
  return ended;
}

static void ranks_that_hear_before_they_tell_need_two_lanes(void **state) {
  char why[WHY_MAX] = "";
  lane_options options = {.lanes = 1, .operations = 1, .tracks = 1, .seed = 1};
  (void)state;
  assert_false(ends(hear_first, &options, why));
  assert_non_null(strstr(why, "rank 0, step 0 (RECV) waits for operation 0, rank 1, step 3 (SEND) "
                              "waits for operation 0, rank 1, step 2 (ENCODE) waits for"));
  options.lanes = LCOMM_LANE_COUNT;
  assert_true(ends(hear_first, &options, why));
}

/* Where the group of each computation ends. */
static void find_groups(lcomm_schedule *schedule, lcomm_group_limits limits, uint32_t *last) {
  lcomm_lane lanes[16];
  assert_int_equal(lcomm_schedule_link(schedule, (bool[LCOMM_STAGE_COUNT]){false}), LCOMM_OK);
  lcomm_schedule_lanes(schedule, lanes);
  assert_int_equal(lcomm_schedule_groups(schedule, lanes, &limits, last), LCOMM_OK);
}

static const lcomm_group_limits all_groups = {
    {true, true, true}, {true, true, true}, 32, {1 << 20, 1 << 20, 1 << 20}};

static void what_peers_need_is_not_joined_with_what_they_send(void **state) {
  char why[WHY_MAX] = "";
  lane_options options = {.lanes = 1, .operations = 2, .tracks = 2, .seed = 1, .merged = true};
  lcomm_schedule schedule;
  uint32_t last[16];
  (void)state;
  assert_true(ends(tell_own, &options, why));
  assert_int_equal(lcomm_schedule_init(&schedule, 0, 2, 192), LCOMM_OK);
  tell_own(&schedule, 1);
  uint32_t slot = lcomm_schedule_slot(&schedule, LCOMM_STAGE_NET, 64);
  lcomm_schedule_receive(&schedule, slot, 1);
  lcomm_schedule_decode(&schedule, slot, lcomm_span_whole(128, 64), LCOMM_NO_SLOT);
  find_groups(&schedule, all_groups, last);
  assert_int_equal(last[1], 1); /* an ENCODE waits for it */
  assert_int_equal(last[2], 2); /* is one */
  assert_int_equal(last[5], 7);
  assert_int_equal(last[7], 7);
  lcomm_schedule_free(&schedule);
}

/* Five pieces for a peer, of which two overlap, and what is made of one that it sends. */
static void build_pieces(lcomm_schedule *schedule) {
  static const uint64_t first[] = {0, 64, 96, 192};
  assert_int_equal(lcomm_schedule_init(schedule, 0, 2, 320), LCOMM_OK);
  for (int i = 0; i < 4; i++) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
    lcomm_schedule_encode(schedule, lcomm_span_whole(first[i], 64), slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_send(schedule, slot, 1);
  }
  uint32_t in = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64), source = in;
  lcomm_schedule_receive(schedule, in, 1);
  lcomm_schedule_sum(schedule, lcomm_span_whole(256, 64), &source, 1, LCOMM_FEEDBACK_NONE);
}

static void pieces_that_wait_for_nothing_are_made_at_once(void **state) {
  lcomm_group_limits limits = all_groups;
  lcomm_schedule schedule;
  uint32_t last[16];
  (void)state;
  build_pieces(&schedule);
  find_groups(&schedule, limits, last);
  assert_int_equal(last[0], 2);
  assert_int_equal(last[2], 2);
  assert_int_equal(last[4], 6); /* the one that overlaps begins a group of its own */
  assert_int_equal(last[6], 6);
  assert_int_equal(last[9], 9);
  lcomm_schedule_free(&schedule);
}

static void groups_have_limits(void **state) {
  lcomm_group_limits few = all_groups, small = all_groups, none = all_groups;
  lcomm_schedule schedule;
  uint32_t last[16];
  (void)state;
  few.steps_max = 1;
  small.elements_max[LCOMM_STAGE_NET] = 127;
  none.made[LCOMM_STAGE_NET] = false;
  const lcomm_group_limits *all[] = {&few, &small, &none};
  for (int i = 0; i < 3; i++) {
    build_pieces(&schedule);
    find_groups(&schedule, *all[i], last);
    for (uint32_t step = 0; step < schedule.step_count; step++) {
      assert_int_equal(last[step], step);
    }
    lcomm_schedule_free(&schedule);
  }
}

/* A selection for each of two owners, and what each makes of it. */
static void build_selections(lcomm_schedule *schedule) {
  uint32_t sent = 0;
  assert_int_equal(lcomm_schedule_init(schedule, 0, 3, 128), LCOMM_OK);
  for (int i = 0; i < 2; i++) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_NET, 64);
    sent = i == 0 ? slot : sent;
  }
  lcomm_schedule_encode(schedule, lcomm_span_whole(0, 128), sent, 2, LCOMM_FEEDBACK_HOLD);
  for (int i = 0; i < 2; i++) {
    lcomm_schedule_send(schedule, sent + (uint32_t)i, 1 + i);
  }
  for (int i = 0; i < 2; i++) {
    uint32_t slot = lcomm_schedule_slot(schedule, LCOMM_STAGE_RESULT, 64);
    lcomm_schedule_receive(schedule, slot, 1 + i);
    lcomm_schedule_decode(schedule, slot, lcomm_span_whole(64 * (uint64_t)i, 64),
                          sent + (uint32_t)i);
  }
}

/* Those that commit, too; what cannot be read with others is alone. */
static void results_are_read_together(void **state) {
  lcomm_group_limits unread = all_groups;
  (void)state;
  unread.read[LCOMM_STAGE_RESULT] = false;
  const lcomm_group_limits *all[] = {&all_groups, &unread};
  for (int i = 0; i < 2; i++) {
    lcomm_schedule schedule;
    uint32_t last[16];
    build_selections(&schedule);
    find_groups(&schedule, *all[i], last);
    assert_int_equal(last[4], i == 0 ? 6 : 4);
    assert_int_equal(last[6], 6);
    lcomm_schedule_free(&schedule);
  }
}

static void lanes_wait_for_lanes_before_them_only(void **state) {
  lcomm_schedule schedule;
  lcomm_lane lanes[6];
  (void)state;
  assert_int_equal(lcomm_schedule_init(&schedule, 0, 2, 128), LCOMM_OK);
  tell_own(&schedule, 1);
  assert_int_equal(lcomm_schedule_link(&schedule, (bool[LCOMM_STAGE_COUNT]){false}), LCOMM_OK);
  lcomm_schedule_lanes(&schedule, lanes);
  assert_int_equal(lanes[0], LCOMM_LANE_ENCODE);
  assert_int_equal(lanes[1], LCOMM_LANE_DECODE);
  assert_int_equal(lanes[2], LCOMM_LANE_DECODE); /* of what was decoded */
  assert_int_equal(lanes[5], LCOMM_LANE_DECODE);
  lcomm_schedule_free(&schedule);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(lanes_end_on_one_node),
    cmocka_unit_test(lanes_end_on_even_nodes),
    cmocka_unit_test(lanes_end_on_uneven_nodes),
    cmocka_unit_test(ranks_that_hear_before_they_tell_need_two_lanes),
    cmocka_unit_test(what_peers_need_is_not_joined_with_what_they_send),
    cmocka_unit_test(pieces_that_wait_for_nothing_are_made_at_once),
    cmocka_unit_test(groups_have_limits),
    cmocka_unit_test(results_are_read_together),
    cmocka_unit_test(lanes_wait_for_lanes_before_them_only),
};
RUN_TESTS(tests)
