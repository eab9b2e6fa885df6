/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/simulation/simulate_lowrank.h"
#include "tools/simulation/simulate_servers.h"

/* ------------------------------------------------------------------ ranks */

lcomm_status simulate_world_pose(int nodes, int ranks, lcomm_topo *topo, char *why) {
  lcomm_why error = {"out of memory"};
  lcomm_identity *all = calloc((size_t)nodes * (size_t)ranks, sizeof *all);
  lcomm_status status = LCOMM_ERR_MEMORY;
  if (all) {
    for (int i = 0; i < nodes * ranks; i++) {
      snprintf(all[i].host, sizeof all[i].host, "node%d", i / ranks);
      all[i].host_hash = (uint64_t)(i / ranks) + 1;
    }
    status = lcomm_topo_create(all, nodes * ranks, 0, topo, &error);
  }
  free(all);
  if (status != LCOMM_OK) {
    snprintf(why, SIMULATE_WHY_MAX, "no topology of %d nodes: %.400s", nodes, error.text);
  }
  return status;
}

static bool is_even(const lcomm_topo *topo) {
  for (int i = 0; i < topo->size; i++) {
    if (topo->node[i] != i / topo->node_size[0] ||
        topo->node_size[topo->node[i]] != topo->node_size[0]) {
      return false;
    }
  }
  return true;
}

/* --------------------------------------------------------------- programs */

static bool make_program(const simulate_world_request *request, const simulate_bucket *bucket,
                         int rank, simulate_program *program, char *why) {
  lcomm_why reason;
  lcomm_plan *plan = NULL;
  lcomm_plan_request it = simulate_bucket_request(request, bucket);
  if (lcomm_plan_create(&it, request->policy, request->topo, rank, &plan, &reason) != LCOMM_OK) {
    snprintf(why, SIMULATE_WHY_MAX, "no plan: %.480s", reason.text);
    return false;
  }
  bool made =
      simulate_program_make(plan, request->topo, request->speeds, request->cached, program, why);
  lcomm_plan_destroy(plan);
  if (made && bucket->sum != SIMULATE_SUM_WHOLE) {
    simulate_lowrank_dress(request, bucket, program);
  }
  return made;
}

/* Nodes 1, 2, 4, ... and the last one are compared with node 0. *failed: a program could not be
 * made. */
static bool is_symmetric(const simulate_world_request *request, const simulate_bucket *bucket,
                         const simulate_program *first, simulate_mirror mirror, bool *failed,
                         char *why) {
  const lcomm_topo *topo = request->topo;
  bool alike = true;
  for (int node = 1; alike && node < topo->nodes;
       node = node < topo->nodes - 1 && 2 * node >= topo->nodes ? topo->nodes - 1 : 2 * node) {
    simulate_program other;
    if (!make_program(request, bucket, lcomm_topo_rank(topo, node, 0), &other, why)) {
      *failed = true;
      return false;
    }
    alike = simulate_routes_alike(topo, first, &other, node, mirror);
    simulate_program_free(&other);
  }
  return alike;
}

static bool route_shape(const simulate_world_request *request, const simulate_world *world,
                        const simulate_bucket *bucket, simulate_program *programs, bool *failed,
                        char *why) {
  if (!world->symmetric) {
    return simulate_routes_make(world->topo, programs, world->ranks, SIMULATE_MIRROR_NONE);
  }
  for (int mirror = SIMULATE_MIRROR_ROTATION; mirror <= SIMULATE_MIRROR_PAIRS && !*failed;
       mirror++) {
    if (is_symmetric(request, bucket, programs, (simulate_mirror)mirror, failed, why) &&
        simulate_routes_make(world->topo, programs, world->ranks, (simulate_mirror)mirror)) {
      return true;
    }
  }
  return false;
}

/* *asymmetric: that is why it failed. */
static bool make_shape(const simulate_world_request *request, simulate_world *world,
                       const simulate_bucket *bucket, bool *asymmetric, char *why) {
  simulate_program *programs = &world->programs[bucket->shape * (uint32_t)world->ranks];
  if (world->roles.servers > 0) {
    return simulate_servers_make(request, bucket, &world->roles, programs, why);
  }
  for (int rank = 0; rank < world->ranks; rank++) {
    if (!make_program(request, bucket, rank, &programs[rank], why)) {
      return false;
    }
  }
  bool failed = false;
  if (!route_shape(request, world, bucket, programs, &failed, why)) {
    if (failed) {
      return false;
    }
    *asymmetric = world->symmetric;
    snprintf(why, SIMULATE_WHY_MAX,
             "a sum of %llu elements treats nodes differently (%.200s), so one cannot stand for "
             "all, and all %d ranks are more than %d",
             (unsigned long long)bucket->count, programs[0].reason, world->topo->size,
             SIMULATE_ALL_RANKS_MAX);
    return false;
  }
  return true;
}

static void drop_programs(simulate_world *world) {
  size_t count = (size_t)world->shape_count * (size_t)world->ranks;
  for (size_t i = 0; world->programs && i < count; i++) {
    simulate_program_free(&world->programs[i]);
  }
  free(world->programs);
  world->programs = NULL;
}

static bool make_programs(const simulate_world_request *request, simulate_world *world,
                          bool *asymmetric, char *why) {
  size_t count = (size_t)world->shape_count * (size_t)world->ranks;
  world->programs = calloc(count, sizeof *world->programs);
  if (!world->programs) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for %zu programs", count);
    return false;
  }
  uint32_t made = 0;
  for (uint32_t i = 0; i < world->bucket_count; i++) {
    if (world->buckets[i].shape == made) {
      if (!make_shape(request, world, &world->buckets[i], asymmetric, why)) {
        return false;
      }
      made++;
    }
  }
  return true;
}

static void count_shapes(simulate_world *world) {
  for (uint32_t i = 0; i < world->bucket_count; i++) {
    uint32_t shape = world->buckets[i].shape;
    world->shape_count = shape >= world->shape_count ? shape + 1 : world->shape_count;
  }
}

static bool make(const simulate_world_request *request, bool symmetric, simulate_world *world,
                 bool *asymmetric, char *why) {
  world->symmetric = symmetric;
  world->ranks = symmetric ? request->topo->node_size[0] : request->topo->size;
  return make_programs(request, world, asymmetric, why);
}

/* Servers do what workers do not, so no node stands for others. */
static bool make_roles(const simulate_world_request *request, simulate_world *world, char *why) {
  lcomm_why reason = {"out of memory"};
  if (!simulate_servers_sum(request) ||
      lcomm_shard_roles_make(&request->policy->quorum.servers, request->topo, &world->roles,
                             &reason) == LCOMM_OK) {
    return true;
  }
  snprintf(why, SIMULATE_WHY_MAX, "%.480s", reason.text);
  return false;
}

bool simulate_world_make(const simulate_world_request *request, simulate_world *world, char *why) {
  const lcomm_topo *topo = request->topo;
  bool asymmetric = false;
  bool even = is_even(topo) && topo->nodes > 1 && !simulate_servers_sum(request);
  bool wanted = request->symmetry != SIMULATE_SYMMETRY_OFF && even;
  *world = (simulate_world){.topo = topo};
  if (request->symmetry == SIMULATE_SYMMETRY_ON && !even) {
    snprintf(why, SIMULATE_WHY_MAX, "nodes that are not alike cannot stand for each other");
    return false;
  }
  if (!wanted && topo->size > SIMULATE_ALL_RANKS_MAX) {
    snprintf(why, SIMULATE_WHY_MAX, "%d ranks without symmetry are more than %d", topo->size,
             SIMULATE_ALL_RANKS_MAX);
    return false;
  }
  if (make_roles(request, world, why)) {
    world->buckets = simulate_buckets_make(request, &world->bucket_count, why);
  }
  if (!world->buckets) {
    lcomm_shard_roles_free(&world->roles);
    return false;
  }
  count_shapes(world);
  bool good = make(request, wanted, world, &asymmetric, why);
  if (!good && asymmetric && request->symmetry == SIMULATE_SYMMETRY_AUTO &&
      topo->size <= SIMULATE_ALL_RANKS_MAX) {
    drop_programs(world);
    good = make(request, false, world, &asymmetric, why);
  }
  if (!good) {
    simulate_world_free(world);
  }
  return good;
}

void simulate_world_free(simulate_world *world) {
  drop_programs(world);
  simulate_buckets_free(world->buckets, world->bucket_count);
  lcomm_shard_roles_free(&world->roles);
  *world = (simulate_world){0};
}
