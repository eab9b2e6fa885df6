/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Broken schedules are caught, by the verifier or by the simulator. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

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

static void swap_slots(lcomm_step *a, lcomm_step *b) {
  uint32_t slot = a->slot;
  a->slot = b->slot;
  b->slot = slot;
}

/* ------------------------------------------------------------- mutations */

/* What is done to a schedule: to the nth step of a kind, or to two of them. */
typedef struct mutation {
  void (*apply)(lcomm_schedule *schedule, const struct mutation *self);
  lcomm_step_kind kind;
  uint32_t nth, other;
} mutation;

static void keep(lcomm_schedule *schedule, const mutation *self) {
  (void)schedule;
  (void)self;
}

static void drop(lcomm_schedule *schedule, const mutation *self) {
  drop_step(schedule, find_step(schedule, self->kind, self->nth));
}

static void swap(lcomm_schedule *schedule, const mutation *self) {
  swap_slots(&schedule->steps[find_step(schedule, self->kind, self->nth)],
             &schedule->steps[find_step(schedule, self->kind, self->other)]);
}

static void shift_span(lcomm_schedule *schedule, const mutation *self) {
  lcomm_span *span = &schedule->steps[find_step(schedule, self->kind, self->nth)].span;
  span->first = span->first > 0 ? span->first - 1 : 1;
}

/* Of an all-to-all: the own segment. */
static void drop_own_segment(lcomm_schedule *schedule, const mutation *self) {
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    uint64_t own = schedule->count / 2 +
                   schedule->count / 2 / (uint64_t)schedule->size * (uint64_t)schedule->rank;
    if (step->kind == self->kind && step->span.first == own) {
      drop_step(schedule, i);
      return;
    }
  }
  fail_msg("no own segment");
}

static const mutation drop_nothing = {keep, LCOMM_STEP_SEND, 0, 0};
static const mutation drop_first_decode = {drop, LCOMM_STEP_DECODE, 0,
                                           0}; /* of a sum: the owner's */
static const mutation decode_wrong_slots = {swap, LCOMM_STEP_DECODE, 1, 2};
static const mutation decode_wrong_span = {shift_span, LCOMM_STEP_DECODE, 1, 0};
static const mutation drop_receive = {drop, LCOMM_STEP_RECV, 0, 0};
static const mutation drop_send = {drop, LCOMM_STEP_SEND, 0, 0};
static const mutation drop_reduce = {drop, LCOMM_STEP_REDUCE, 0, 0};
static const mutation swap_peers = {swap, LCOMM_STEP_SEND, 0, 1};
static const mutation receive_from_wrong_peers = {swap, LCOMM_STEP_RECV, 0, 1};
static const mutation forget_own_segment = {drop_own_segment, LCOMM_STEP_DECODE, 0, 0};

/* --------------------------------------------------------------- catching */

/* Is the mutation of one rank's schedule seen when the schedule runs? */
static bool is_caught(const world_shape *shape, const collective *what, int rank,
                      const mutation *it) {
  sim_world world;
  sim_options options = {.seed = 3, .held_rank = -1};
  options.lossy[LCOMM_STAGE_NET] = what->kind == ALLREDUCE;
  options.lossy[LCOMM_STAGE_RESULT] = what->kind == ALLREDUCE && !what->shape.tells_sum;
  build_world(&world, shape, what);
  it->apply(&world.schedules[rank], it);
  bool caught = run_is_wrong(&world, what, &options);
  sim_world_free(&world);
  return caught;
}

static void broken_sums_are_caught(void **state) {
  (void)state;
  static const lcomm_exchange_kind kinds[] = {LCOMM_EXCHANGE_DIRECT, LCOMM_EXCHANGE_SPARSE};
  static const mutation *const mutations[] = {&drop_first_decode, &decode_wrong_slots,
                                              &decode_wrong_span, &drop_receive,
                                              &drop_send,         &drop_reduce};
  world_shape shape = even_world(4, 1);
  for (size_t i = 0; i < 2; i++) {
    collective what = sum_of(kinds[i], 4 * 4096);
    assert_false(is_caught(&shape, &what, 2, &drop_nothing));
    for (size_t k = 0; k < sizeof(mutations) / sizeof(mutations[0]); k++) {
      assert_true(is_caught(&shape, &what, 2, mutations[k]));
    }
  }
}

static void broken_telling_is_caught(void **state) {
  (void)state;
  collective what = sum_of(LCOMM_EXCHANGE_GATHER, 40);
  what.shape.leaders = what.shape.tells_sum = true;
  world_shape shape = even_world(3, 3);
  assert_false(is_caught(&shape, &what, 3, &drop_nothing));
  assert_true(is_caught(&shape, &what, 3, &drop_reduce)); /* a leader's sum of its node */
  assert_true(is_caught(&shape, &what, 3, &drop_send));
  assert_true(is_caught(&shape, &what, 4, &drop_send)); /* a member's contribution */
  assert_true(is_caught(&shape, &what, 4, &drop_receive));
  assert_true(is_caught(&shape, &what, 4, &drop_first_decode));
}

static void broken_sums_by_racks_are_caught(void **state) {
  (void)state;
  static const mutation *const mutations[] = {&drop_first_decode, &decode_wrong_slots,
                                              &decode_wrong_span, &drop_receive,
                                              &drop_send,         &drop_reduce};
  world_shape shape = world_of_racks((const int[8]){2, 2, 2}, 2);
  collective what = sum_of(LCOMM_EXCHANGE_DIRECT, 12 * 128);
  what.shape.by_racks = true;
  for (int rank = 0; rank < 12; rank += 5) {
    assert_false(is_caught(&shape, &what, rank, &drop_nothing));
    for (size_t k = 0; k < sizeof(mutations) / sizeof(mutations[0]); k++) {
      assert_true(is_caught(&shape, &what, rank, mutations[k]));
    }
  }
}

static void broken_all_to_all_is_caught(void **state) {
  (void)state;
  static const mutation *const mutations[] = {
      &decode_wrong_slots, &decode_wrong_span,        &drop_receive,      &drop_send,
      &swap_peers,         &receive_from_wrong_peers, &forget_own_segment};
  collective what = {ALLTOALL, .count = 5};
  world_shape shape = even_world(2, 2);
  for (int rank = 0; rank < 4; rank++) {
    assert_false(is_caught(&shape, &what, rank, &drop_nothing));
    for (size_t k = 0; k < sizeof(mutations) / sizeof(mutations[0]); k++) {
      assert_true(is_caught(&shape, &what, rank, mutations[k]));
    }
  }
}

/* --------------------------------------------------------------- verifier */

static void verifier_refuses_spans_that_do_not_fit_their_slots(void **state) {
  (void)state;
  lcomm_why why;
  sim_world world;
  world_shape shape = even_world(3, 1);
  collective what = sum_of(LCOMM_EXCHANGE_DIRECT, 300);
  build_world(&world, &shape, &what);
  lcomm_schedule *broken = &world.schedules[1];
  broken->steps[find_step(broken, LCOMM_STEP_ENCODE, 0)].span.count = 0;
  assert_int_equal(lcomm_schedule_verify(broken, &why), LCOMM_ERR_INTERNAL);
  assert_non_null(strstr(why.text, "rank 1"));
  sim_world_free(&world);
}

/* The last slot of rank 3, of four on two nodes, that takes the memory of an earlier one. */
static uint32_t build_shared(sim_world *world) {
  world_shape shape = even_world(2, 2);
  collective what = sum_of(LCOMM_EXCHANGE_DIRECT, 6400);
  what.shape.chunks = 9;
  what.shape.pieces = 2;
  build_world(world, &shape, &what);
  const lcomm_schedule *schedule = &world->schedules[3];
  uint32_t slot = schedule->slot_count - 1;
  while (slot > 0 && schedule->slots[slot].before == LCOMM_NO_SLOT) {
    slot--;
  }
  assert_true(slot > 0);
  return slot;
}

static void refuse_memory(void (*broken)(lcomm_schedule *schedule, uint32_t slot),
                          const char *reason) {
  lcomm_why why;
  sim_world world;
  uint32_t slot = build_shared(&world);
  broken(&world.schedules[3], slot);
  assert_int_equal(lcomm_schedule_verify(&world.schedules[3], &why), LCOMM_ERR_INTERNAL);
  if (!strstr(why.text, reason)) {
    fail_msg("\"%s\" instead of \"%s\"", why.text, reason);
  }
  sim_world_free(&world);
}

static void take_none(lcomm_schedule *schedule, uint32_t slot) {
  schedule->slots[slot].before = schedule->slot_count;
}

static void take_own(lcomm_schedule *schedule, uint32_t slot) {
  schedule->slots[slot].before = slot;
}

static void take_what_another_took(lcomm_schedule *schedule, uint32_t slot) {
  uint32_t before = schedule->slots[slot].before;
  assert_int_not_equal(schedule->slots[before].before, LCOMM_NO_SLOT);
  schedule->slots[slot].before = schedule->slots[before].before;
}

static void be_elsewhere(lcomm_schedule *schedule, uint32_t slot) {
  schedule->slots[slot].place = slot;
}

/* The step that writes it comes right before the one that reads what was there. */
static void take_too_early(lcomm_schedule *schedule, uint32_t slot) {
  uint32_t before = schedule->slots[slot].before, write = 0, read = 0;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    write = step->kind == LCOMM_STEP_RECV && step->slot == slot ? i : write;
    read = step->kind == LCOMM_STEP_DECODE && step->slot == before ? i : read;
  }
  assert_true(read > 0 && read < write);
  lcomm_step moved = schedule->steps[write];
  memmove(&schedule->steps[read + 1], &schedule->steps[read],
          (write - read) * sizeof *schedule->steps);
  schedule->steps[read] = moved;
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    schedule->steps[i].next_count = 0;
  }
}

static void verifier_refuses_memory_that_is_not_free(void **state) {
  (void)state;
  refuse_memory(take_none, "cannot take the memory");
  refuse_memory(take_own, "cannot take the memory");
  refuse_memory(take_what_another_took, "cannot take the memory");
  refuse_memory(be_elsewhere, "cannot take the memory");
  refuse_memory(take_too_early, "after another has taken its memory");
}

/* Message 1 between ranks 0 and 1 of a sum in two chunks of equal size. */
static lcomm_step *find_message(sim_world *world, int rank, lcomm_step_kind kind) {
  lcomm_schedule *schedule = &world->schedules[rank];
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    lcomm_step *step = &schedule->steps[i];
    if (step->kind == kind && step->peer == 1 - rank && step->message == 1) {
      return step;
    }
  }
  fail_msg("no such message");
  return NULL;
}

static void build_two_chunks(sim_world *world) {
  world_shape shape = even_world(3, 1);
  collective what = sum_of(LCOMM_EXCHANGE_GATHER, 256);
  what.shape.chunks = 2;
  build_world(world, &shape, &what);
}

static void check_refusal(const sim_world *world, const char *reason) {
  lcomm_why why;
  assert_int_equal(lcomm_schedule_verify_all(world->schedules, 3, &why), LCOMM_ERR_INTERNAL);
  assert_non_null(strstr(why.text, reason));
}

static void verifier_refuses_a_send_without_its_receive(void **state) {
  (void)state;
  sim_world world;
  build_two_chunks(&world);
  find_message(&world, 1, LCOMM_STEP_RECV)->message = 9;
  check_refusal(&world, "has no partner");
  sim_world_free(&world);
}

static void verifier_refuses_a_message_that_is_there_twice(void **state) {
  (void)state;
  sim_world world;
  build_two_chunks(&world);
  find_message(&world, 0, LCOMM_STEP_SEND)->message = 0;
  find_message(&world, 1, LCOMM_STEP_RECV)->message = 0;
  check_refusal(&world, "is there twice");
  sim_world_free(&world);
}

static void verifier_refuses_messages_of_different_sizes(void **state) {
  (void)state;
  sim_world world;
  build_two_chunks(&world);
  lcomm_step *receive = find_message(&world, 1, LCOMM_STEP_RECV);
  lcomm_slot *slot = &world.schedules[1].slots[receive->slot];
  slot->stage = LCOMM_STAGE_RESULT;
  check_refusal(&world, "differs in size or stage");
  sim_world_free(&world);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(broken_sums_are_caught),
    cmocka_unit_test(broken_sums_by_racks_are_caught),
    cmocka_unit_test(broken_telling_is_caught),
    cmocka_unit_test(broken_all_to_all_is_caught),
    cmocka_unit_test(verifier_refuses_spans_that_do_not_fit_their_slots),
    cmocka_unit_test(verifier_refuses_memory_that_is_not_free),
    cmocka_unit_test(verifier_refuses_a_send_without_its_receive),
    cmocka_unit_test(verifier_refuses_a_message_that_is_there_twice),
    cmocka_unit_test(verifier_refuses_messages_of_different_sizes),
};
RUN_TESTS(tests)
