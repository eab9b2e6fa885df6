/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Steps run in any order that their dependencies allow: that changes nothing,
 * and with one dependency less it does. */

#include "tests/sched/worlds.h"
#include "tests/support/unit_tests.h"

/* Does the later step of this dependency wait for the earlier one by way of
 * others as well? `reached`: scratch, one entry per step. */
static bool is_implied(const lcomm_schedule *schedule, uint32_t from, uint32_t dependency,
                       bool *reached) {
  memset(reached, 0, schedule->step_count);
  for (uint32_t i = from; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t k = 0; (i == from || reached[i]) && k < step->next_count; k++) {
      uint32_t place = step->next_first + k;
      reached[schedule->next[place]] |= place != dependency;
    }
  }
  return reached[schedule->next[dependency]];
}

/* The values of all ranks after a run; NULL when it failed. The caller frees. */
static sim_element *result_of(const world_shape *shape, const collective *what,
                              const sim_options *options) {
  sim_world world;
  sim_element *result = NULL;
  build_world(&world, shape, what);
  if (!run_is_wrong(&world, what, options)) {
    uint64_t count = world.schedules[0].count;
    result = calloc(count * (uint64_t)world.size, sizeof *result);
    assert_non_null(result);
    for (int rank = 0; rank < world.size; rank++) {
      memcpy(result + (uint64_t)rank * count, world.vectors[rank], count * sizeof *result);
    }
  }
  sim_world_free(&world);
  return result;
}

/* Dropping a dependency of rank 0 shows in one of many random orders: the run
 * fails, or its sums are made in another order. */
static bool loss_shows(const world_shape *shape, const collective *what, uint32_t dependency,
                       size_t elements) {
  sim_options options = {.seed = 1, .held_rank = -1, .rendezvous = true};
  sim_element *wanted = result_of(shape, what, &options);
  bool shows = false;
  assert_non_null(wanted);
  options.lost_tie = dependency + 1;
  for (; !shows && options.seed < 400; options.seed++) {
    sim_element *result = result_of(shape, what, &options);
    shows = !result || memcmp(result, wanted, elements * sizeof *result) != 0;
    free(result);
  }
  free(wanted);
  return shows;
}

/* Ties that nobody misses: with the ENCODE or DECODE of a window, which does
 * nothing; and of a SEND with what comes back for it, which cannot be there
 * before the message has been taken. */
static bool is_beyond_doubt(const lcomm_schedule *schedule, uint32_t from, uint32_t to) {
  const lcomm_step *steps[] = {&schedule->steps[from], &schedule->steps[to]};
  for (int i = 0; i < 2; i++) {
    bool converts = steps[i]->kind == LCOMM_STEP_ENCODE || steps[i]->kind == LCOMM_STEP_DECODE;
    if (converts && schedule->slots[steps[i]->slot].alias.count > 0) {
      return true;
    }
  }
  return steps[0]->kind == LCOMM_STEP_SEND &&
         (steps[1]->kind == LCOMM_STEP_RECV ||
          schedule->slots[steps[0]->slot].stage == LCOMM_STAGE_NODE);
}

static void drop_every_tie(const world_shape *shape, const collective *what) {
  sim_world world;
  build_world(&world, shape, what);
  const lcomm_schedule *schedule = &world.schedules[0];
  bool *reached = malloc(schedule->step_count + 1);
  uint32_t dropped = 0;
  size_t elements = schedule->count * (size_t)world.size;
  assert_non_null(reached);
  for (uint32_t i = 0; i < schedule->step_count; i++) {
    const lcomm_step *step = &schedule->steps[i];
    for (uint32_t k = 0; k < step->next_count; k++) {
      uint32_t dependency = step->next_first + k, later = schedule->next[dependency];
      if (is_implied(schedule, i, dependency, reached) || is_beyond_doubt(schedule, i, later)) {
        continue;
      }
      dropped++;
      if (!loss_shows(shape, what, dependency, elements)) {
        fail_msg("%s: nobody misses that step %u waits for step %u",
                 lcomm_exchange_name(what->shape.exchange), later, i);
      }
    }
  }
  assert_true(dropped > 0);
  free(reached);
  sim_world_free(&world);
}

static void results_do_not_depend_on_the_order_of_steps(void **state) {
  (void)state;
  world_shape shape = even_world(3, 2);
  for (int kind = LCOMM_EXCHANGE_DIRECT; kind <= LCOMM_EXCHANGE_HALVING; kind++) {
    collective what = sum_of((lcomm_exchange_kind)kind, 300);
    sim_element *first = NULL;
    for (unsigned seed = 1; seed <= 8; seed++) {
      sim_options options = {.seed = seed, .held_rank = -1, .rendezvous = seed & 1};
      sim_element *result = result_of(&shape, &what, &options);
      assert_non_null(result);
      first = first ? first : result;
      assert_memory_equal(result, first, 6 * 300 * sizeof *result);
      if (result != first) {
        free(result);
      }
    }
    free(first);
  }
}

static void every_dependency_is_needed(void **state) {
  (void)state;
  world_shape single = even_world(3, 1), twin = even_world(2, 2);
  collective direct = sum_of(LCOMM_EXCHANGE_DIRECT, 9), gather = sum_of(LCOMM_EXCHANGE_GATHER, 9),
             ring = sum_of(LCOMM_EXCHANGE_RING, 9), exchange = {ALLTOALL, .count = 2},
             doubling = sum_of(LCOMM_EXCHANGE_DOUBLING, 9),
             halving = sum_of(LCOMM_EXCHANGE_HALVING, 130);
  drop_every_tie(&single, &direct);
  drop_every_tie(&single, &ring);
  drop_every_tie(&single, &doubling);
  drop_every_tie(&single, &halving);
  drop_every_tie(&twin, &doubling);
  drop_every_tie(&twin, &direct);
  drop_every_tie(&twin, &gather);
  gather.shape.leaders = gather.shape.tells_sum = true;
  drop_every_tie(&twin, &gather);
  drop_every_tie(&twin, &exchange);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(results_do_not_depend_on_the_order_of_steps),
    cmocka_unit_test(every_dependency_is_needed),
};
RUN_TESTS(tests)
