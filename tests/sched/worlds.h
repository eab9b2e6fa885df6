/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SCHED_WORLDS_H
#define LCOMM_TESTS_SCHED_WORLDS_H

/* Worlds for the tests of schedules, and any collective built over them. */

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
  int racks[64]; /* of each node, from 1; all 0: not known */
} world_shape;

static inline world_shape even_world(int nodes, int ranks_each) {
  world_shape shape = {.nodes = nodes};
  for (int i = 0; i < nodes; i++) {
    shape.sizes[i] = ranks_each;
  }
  return shape;
}

/* Racks of so many nodes, all 0 behind the last one, each node of `ranks_each`. */
static inline world_shape world_of_racks(const int rack_sizes[8], int ranks_each) {
  world_shape shape = {.nodes = 0};
  for (int rack = 0; rack < 8; rack++) {
    for (int i = 0; i < rack_sizes[rack]; i++) {
      shape.racks[shape.nodes] = rack + 1;
      shape.sizes[shape.nodes++] = ranks_each;
    }
  }
  return shape;
}

static const world_shape uneven_worlds[] = {{.nodes = 2, .sizes = {1, 2}},
                                            {.nodes = 2, .sizes = {3, 1}},
                                            {.nodes = 3, .sizes = {2, 5, 3}},
                                            {.nodes = 4, .sizes = {1, 1, 1, 4}},
                                            {.nodes = 5, .sizes = {4, 2, 3, 2, 7}}};

enum { UNEVEN_WORLDS = sizeof(uneven_worlds) / sizeof(uneven_worlds[0]) };

typedef enum collective_kind {
  ALLREDUCE,
  REDUCE_SCATTER,
  REDUCE_SCATTERV,
  ALLGATHER,
  ALLGATHERV,
  ALLTOALL,
  BROADCAST,
  BARRIER
} collective_kind;

typedef struct collective {
  collective_kind kind;
  uint64_t count;              /* of a whole vector, or of each segment */
  int root;                    /* of a broadcast */
  const uint64_t *part_counts; /* of uneven parts */
  lcomm_allreduce_shape shape; /* of an all-reduce, and of a barrier, which is one; of a broadcast
                                * its chunks, 0 is 1; of segments its exchange */
} collective;

static inline uint64_t vector_count(const collective *what, int size) {
  uint64_t sum = 0;
  switch (what->kind) {
  case ALLREDUCE:
  case BROADCAST:
    return what->count;
  case REDUCE_SCATTER:
  case ALLGATHER:
    return what->count * (uint64_t)size;
  case ALLTOALL:
    return what->count * (uint64_t)size * 2;
  case ALLGATHERV:
  case REDUCE_SCATTERV:
    for (int rank = 0; rank < size; rank++) {
      sum += what->part_counts[rank];
    }
    return sum;
  case BARRIER:
    break;
  }
  return 1;
}

static inline lcomm_status build_schedule(lcomm_schedule *schedule, const lcomm_topo *topo,
                                          const collective *what) {
  switch (what->kind) {
  case ALLREDUCE:
  case BARRIER:
    break;
  case REDUCE_SCATTER:
    return lcomm_reduce_scatter_build(schedule, topo, what->count, NULL, what->shape.exchange);
  case REDUCE_SCATTERV:
    return lcomm_reduce_scatter_build(schedule, topo, what->count, what->part_counts,
                                      what->shape.exchange);
  case ALLGATHER:
    return lcomm_allgather_build(schedule, topo, what->count, NULL, what->shape.exchange);
  case ALLGATHERV:
    return lcomm_allgather_build(schedule, topo, what->count, what->part_counts,
                                 what->shape.exchange);
  case ALLTOALL:
    return lcomm_alltoall_build(schedule, topo, what->count);
  case BROADCAST:
    return lcomm_broadcast_build(schedule, topo, what->root,
                                 what->shape.chunks > 0 ? what->shape.chunks : 1);
  }
  return lcomm_allreduce_build(schedule, topo, &what->shape);
}

static inline void make_world(sim_world *world, const world_shape *shape) {
  assert_int_equal(sim_world_make(world, shape->sizes, shape->nodes), 0);
  if (shape->racks[0] > 0) {
    assert_int_equal(sim_world_put_into_racks(world, shape->racks), 0);
  }
}

/* The schedules of all ranks: built, linked for exact stages, and verified. */
static inline void build_schedules(sim_world *world, const collective *what) {
  lcomm_why why;
  bool copies[LCOMM_STAGE_COUNT] = {true, true, true, true};
  for (int rank = 0; rank < world->size; rank++) {
    lcomm_schedule *schedule = &world->schedules[rank];
    uint64_t count = vector_count(what, world->size);
    assert_int_equal(lcomm_schedule_init(schedule, rank, world->size, count), LCOMM_OK);
    assert_int_equal(build_schedule(schedule, &world->topo, what), LCOMM_OK);
    assert_int_equal(lcomm_schedule_link(schedule, copies), LCOMM_OK);
  }
  if (lcomm_schedule_verify_all(world->schedules, world->size, &why) != LCOMM_OK) {
    fail_msg("%s", why.text);
  }
}

static inline void build_world(sim_world *world, const world_shape *shape, const collective *what) {
  make_world(world, shape);
  build_schedules(world, what);
}

/* Options number `variant` of 8: eager or rendezvous (1), exact or lossy
 * between nodes (2), inside them and inside racks, and paced as hard as can be (4). */
static inline sim_options options_of(unsigned variant) {
  sim_options options = {.seed = variant + 1, .held_rank = -1};
  options.rendezvous = variant & 1;
  options.far_sends_max = variant & 4 ? 1 : 0;
  options.lossy[LCOMM_STAGE_NET] = options.lossy[LCOMM_STAGE_RESULT] = variant & 2;
  options.lossy[LCOMM_STAGE_NODE] = options.lossy[LCOMM_STAGE_RACK] = variant & 4;
  return options;
}

/* The same with plain copies everywhere. */
static inline sim_options exact_options_of(unsigned variant) {
  sim_options options = options_of(variant);
  memset(options.lossy, 0, sizeof(options.lossy));
  return options;
}

/* Do members pass on what they have summed? Such an exchange is never lossy. */
static inline bool passes_sums_on(lcomm_exchange_kind kind) {
  return kind == LCOMM_EXCHANGE_RING || kind == LCOMM_EXCHANGE_DOUBLING ||
         kind == LCOMM_EXCHANGE_HALVING;
}

/* A hierarchical sum in one chunk. */
static inline collective sum_of(lcomm_exchange_kind kind, uint64_t count) {
  return (collective){ALLREDUCE, count,
                      .shape = {.exchange = kind, .hierarchical = true, .chunks = 1}};
}

/* All-to-all: 0 if every element is where it belongs, else -1 with a sentence. */
static inline int check_all_to_all(const sim_world *world, uint64_t count, char *why) {
  uint64_t half = count * (uint64_t)world->size;
  for (int rank = 0; rank < world->size; rank++) {
    for (uint64_t i = 0; i < half; i++) {
      uint64_t mine = (uint64_t)rank * count + i % count;
      if (sim_check_moved(world, rank, half + i, (int)(i / count), mine, why, 256) != 0) {
        return -1;
      }
    }
  }
  return 0;
}

/* Fill the vectors, run, and look at the result of a sum or an all-to-all. */
static inline bool run_is_wrong(sim_world *world, const collective *what,
                                const sim_options *options) {
  char why[256] = "";
  if (what->kind == ALLTOALL) {
    sim_fill_labels(world);
    return sim_run(world, options, why, sizeof(why)) != 0 ||
           check_all_to_all(world, what->count, why) != 0;
  }
  sim_fill_contributions(world);
  return sim_run(world, options, why, sizeof(why)) != 0 ||
         sim_check_allreduce(world, why, sizeof(why)) != 0;
}

/* Build and run an all-reduce, and check the sums. */
static inline void run_allreduce(const world_shape *shape, const collective *what,
                                 const sim_options *options) {
  char why[256] = "";
  sim_world world;
  build_world(&world, shape, what);
  sim_fill_contributions(&world);
  if (sim_run(&world, options, why, sizeof(why)) != 0 ||
      sim_check_allreduce(&world, why, sizeof(why)) != 0) {
    fail_msg("%s, %d ranks on %d nodes, %llu elements, hierarchical %d, leaders %d, tells sum %d, "
             "chunks %u, pieces %u, by racks %d, seed %u: %s",
             lcomm_exchange_name(what->shape.exchange), world.size, shape->nodes,
             (unsigned long long)what->count, what->shape.hierarchical, what->shape.leaders,
             what->shape.tells_sum, what->shape.chunks, what->shape.pieces, what->shape.by_racks,
             options->seed, why);
  }
  sim_world_free(&world);
}

#endif
