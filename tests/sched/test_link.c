/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The linker finds what the slow reference finds, on schedules that no builder
 * makes too; and vectors may have more elements than 32 bits count. The
 * simulator compares with the reference whatever it runs. */

#include "tests/sched/worlds.h"
#include "tests/support/reference_linker.h"
#include "tests/support/unit_tests.h"

static uint64_t draw(uint64_t *random, uint64_t below) {
  *random ^= *random << 13;
  *random ^= *random >> 7;
  *random ^= *random << 17;
  return *random % below;
}

/* ------------------------------------------------------- random schedules */

enum { VECTOR = 64, STEPS = 40, SOURCES_MAX = 4 };

static lcomm_span draw_span(uint64_t *random) {
  uint64_t unit = VECTOR / 8, first = draw(random, 8);
  lcomm_span span = {first * unit, draw(random, 8 - first + 1) * unit, 1, 0};
  if (draw(random, 4) == 0) {
    span.parts = 2;
    span.part = (uint32_t)draw(random, 2);
  }
  return span;
}

static uint32_t draw_slot(const lcomm_schedule *schedule, uint64_t *random) {
  return (uint32_t)draw(random, schedule->slot_count);
}

static void add_encode(lcomm_schedule *schedule, uint64_t *random) {
  lcomm_stage stage = (lcomm_stage)draw(random, LCOMM_STAGE_COUNT);
  uint32_t slot = lcomm_schedule_slot(schedule, stage, 1), outputs = 1;
  for (; outputs < 3 && draw(random, 4) == 0; outputs++) {
    lcomm_schedule_slot(schedule, stage, 1);
  }
  lcomm_schedule_encode(schedule, draw_span(random), slot, outputs, LCOMM_FEEDBACK_NONE);
}

static void add_reduce(lcomm_schedule *schedule, uint64_t *random) {
  uint32_t sources[SOURCES_MAX], count = 1 + (uint32_t)draw(random, SOURCES_MAX);
  for (uint32_t i = 0; i < count; i++) {
    sources[i] = draw(random, 4) == 0 ? LCOMM_SOURCE_SELF : draw_slot(schedule, random);
  }
  lcomm_schedule_sum(schedule, draw_span(random), sources, count, LCOMM_FEEDBACK_NONE);
}

static void add_step(lcomm_schedule *schedule, uint64_t *random) {
  uint64_t kind = draw(random, 8);
  if (schedule->slot_count == 0 || kind == 0) {
    add_encode(schedule, random);
  } else if (kind <= 2) {
    lcomm_stage stage = (lcomm_stage)draw(random, LCOMM_STAGE_COUNT);
    lcomm_schedule_receive(schedule, lcomm_schedule_slot(schedule, stage, 1), 1);
  } else if (kind <= 4) {
    lcomm_schedule_send(schedule, draw_slot(schedule, random), 1);
  } else if (kind <= 6) {
    lcomm_schedule_decode(schedule, draw_slot(schedule, random), draw_span(random),
                          draw(random, 4) == 0 ? draw_slot(schedule, random) : LCOMM_NO_SLOT);
  } else {
    add_reduce(schedule, random);
  }
}

static void random_schedules_link_as_the_reference_says(void **state) {
  (void)state;
  uint64_t random = 88172645463325252u;
  uint32_t windows = 0;
  for (int run = 0; run < 4000; run++) {
    lcomm_schedule schedule;
    bool copies[LCOMM_STAGE_COUNT];
    assert_int_equal(lcomm_schedule_init(&schedule, 0, 2, VECTOR), LCOMM_OK);
    for (uint64_t steps = draw(&random, STEPS); steps > 0; steps--) {
      add_step(&schedule, &random);
    }
    for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
      copies[i] = draw(&random, 3) > 0;
    }
    assert_int_equal(lcomm_schedule_link(&schedule, copies), LCOMM_OK);
    assert_true(reference_links_alike(&schedule, copies));
    for (uint32_t i = 0; i < schedule.slot_count; i++) {
      windows += schedule.slots[i].alias.count > 0;
    }
    lcomm_schedule_free(&schedule);
  }
  assert_true(windows > 1000); /* or nothing was tested */
}

/* ------------------------------------------------------------ all builders */

static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DIRECT,   LCOMM_EXCHANGE_GATHER,
                                            LCOMM_EXCHANGE_RING,     LCOMM_EXCHANGE_SPARSE,
                                            LCOMM_EXCHANGE_DOUBLING, LCOMM_EXCHANGE_HALVING};

static void compare_all_stages(const world_shape *shape, const collective *what) {
  sim_world world;
  build_world(&world, shape, what);
  for (int rank = 0; rank < world.size; rank += 1 + world.size / 8) {
    for (unsigned exact = 0; exact < 8; exact++) {
      bool copies[LCOMM_STAGE_COUNT] = {exact & 1, exact & 2, exact & 4};
      assert_int_equal(lcomm_schedule_link(&world.schedules[rank], copies), LCOMM_OK);
      assert_true(reference_links_alike(&world.schedules[rank], copies));
    }
  }
  sim_world_free(&world);
}

static void all_collectives_link_as_the_reference_says(void **state) {
  (void)state;
  uint64_t parts[64];
  for (int i = 0; i < 64; i++) {
    parts[i] = (uint64_t)i % 5;
  }
  world_shape shapes[] = {even_world(1, 16), even_world(4, 3), even_world(8, 4), uneven_worlds[2],
                          uneven_worlds[4]};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
      collective sum = sum_of(kinds[k], 50000);
      sum.shape.chunks = 3;
      compare_all_stages(&shapes[i], &sum);
      sum.shape.pieces = shapes[i].nodes % 2 == 0 ? (uint32_t)shapes[i].nodes / 2 : 1;
      compare_all_stages(&shapes[i], &sum);
      sum.shape.pieces = 0;
      sum.shape.leaders = sum.shape.tells_sum = true;
      compare_all_stages(&shapes[i], &sum);
    }
    compare_all_stages(&shapes[i], &(collective){REDUCE_SCATTER, .count = 7});
    compare_all_stages(&shapes[i], &(collective){ALLGATHERV, .part_counts = parts});
    compare_all_stages(&shapes[i], &(collective){ALLTOALL, .count = 7});
    compare_all_stages(&shapes[i], &(collective){BROADCAST, .count = 7});
  }
}

/* A slot that is made of one span and decoded into another has to hold its
 * values: as a window it would leave one of the two out. */
static void moved_segments_are_no_windows(void **state) {
  (void)state;
  sim_world world;
  world_shape shape = even_world(1, 3);
  build_world(&world, &shape, &(collective){ALLTOALL, .count = 4});
  uint32_t apart = 0;
  for (uint32_t i = 0; i < world.schedules[1].slot_count; i++) {
    apart += world.schedules[1].slots[i].alias.count == 0;
  }
  assert_int_equal(apart, 1); /* the own segment */
  sim_world_free(&world);
}

/* ------------------------------------------------------------ long vectors */

static void assert_scaled(lcomm_span small, lcomm_span large, uint64_t scale) {
  assert_true(large.first == small.first * scale);
  assert_true(large.count == small.count * scale);
}

/* The collective over a vector `scale` times as long has the same steps over
 * spans that are `scale` times as long: no count is cut to 32 bits. */
static void compare_lengths(const world_shape *shape, const collective *small,
                            const collective *large, uint64_t scale) {
  sim_world a, b;
  build_world(&a, shape, small);
  build_world(&b, shape, large);
  for (int rank = 0; rank < a.size; rank++) {
    const lcomm_schedule *left = &a.schedules[rank], *right = &b.schedules[rank];
    assert_int_equal(left->step_count, right->step_count);
    assert_int_equal(left->next_count, right->next_count);
    assert_int_equal(left->slot_count, right->slot_count);
    assert_memory_equal(left->next, right->next, left->next_count * sizeof *left->next);
    for (uint32_t i = 0; i < left->step_count; i++) {
      assert_scaled(left->steps[i].span, right->steps[i].span, scale);
    }
    for (uint32_t i = 0; i < left->slot_count; i++) {
      assert_true(right->slots[i].count == left->slots[i].count * scale);
      assert_scaled(left->slots[i].alias, right->slots[i].alias, scale);
    }
  }
  sim_world_free(&a);
  sim_world_free(&b);
}

enum { TILES = 4096 * 60 };             /* in 2, 3, 4, 5 or 6 parts without a rest */
static const uint64_t SCALE = 1u << 16; /* 2^33 elements and more */

static void sums_of_more_than_32_bits_are_cut_alike(void **state) {
  (void)state;
  world_shape shapes[] = {even_world(1, 5), even_world(3, 2), even_world(6, 1)};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
      collective small = sum_of(kinds[k], TILES), large = sum_of(kinds[k], TILES * SCALE);
      small.shape.chunks = large.shape.chunks = 2;
      compare_lengths(&shapes[i], &small, &large, SCALE);
      small.shape.leaders = large.shape.leaders = true;
      small.shape.tells_sum = large.shape.tells_sum = true;
      compare_lengths(&shapes[i], &small, &large, SCALE);
    }
  }
}

static void moves_of_more_than_32_bits_are_cut_alike(void **state) {
  (void)state;
  uint64_t small_parts[] = {5, 0, 3, 1, 2, 7}, large_parts[6];
  uint64_t scale = UINT64_C(1) << 33;
  for (int i = 0; i < 6; i++) {
    large_parts[i] = small_parts[i] * scale;
  }
  world_shape shapes[] = {even_world(1, 6), even_world(3, 2), {.nodes = 2, .sizes = {1, 5}}};
  for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
    collective small = {ALLGATHERV, .count = 1, .part_counts = small_parts};
    collective large = {ALLGATHERV, .count = scale, .part_counts = large_parts};
    for (int kind = REDUCE_SCATTER; kind <= BROADCAST; kind++) {
      small.kind = large.kind = (collective_kind)kind;
      compare_lengths(&shapes[i], &small, &large, scale);
    }
  }
}

static void long_vectors_are_covered_whatever_their_length(void **state) {
  (void)state;
  uint64_t count = (UINT64_C(1) << 33) + 77;
  for (uint32_t pieces = 1; pieces < 70; pieces++) {
    uint64_t at = 5, striped = 0;
    for (uint32_t i = 0; i < pieces; i++) {
      lcomm_span piece = lcomm_span_piece(lcomm_span_whole(5, count), pieces, i);
      assert_true(piece.first == at);
      at += piece.count;
      striped += lcomm_span_count((lcomm_span){5, count, pieces, i});
    }
    assert_true(at == 5 + count);
    assert_true(striped == count);
  }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(random_schedules_link_as_the_reference_says),
    cmocka_unit_test(all_collectives_link_as_the_reference_says),
    cmocka_unit_test(moved_segments_are_no_windows),
    cmocka_unit_test(sums_of_more_than_32_bits_are_cut_alike),
    cmocka_unit_test(moves_of_more_than_32_bits_are_cut_alike),
    cmocka_unit_test(long_vectors_are_covered_whatever_their_length),
};
RUN_TESTS(tests)
