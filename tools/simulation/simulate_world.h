/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_WORLD_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_WORLD_H

/* Who takes part, and what each of them does: the programs of all buckets of a step on all
 * simulated ranks, with the receiver of every message.
 *
 * Where all nodes are alike, the ranks of node 0 stand for those of every node: what node 0 sends
 * to node d, it receives from node -d (schedules whose peers are rotated), or from node d
 * (schedules whose pairs differ in a bit). Programs of some other nodes are compared with node
 * 0's, so a schedule that is not symmetric is found and not simulated by one node. */

#include "libcomm/plan/auto_lowrank.h"
#include "libcomm/shards/shard_roles.h"
#include "tools/simulation/simulate_program.h"
#include "tools/simulation/simulate_workload.h"

enum { SIMULATE_RANKS_MAX = 1 << 16, SIMULATE_ALL_RANKS_MAX = 1024, SIMULATE_NODES_MAX = 1 << 13 };

typedef enum simulate_symmetry {
  SIMULATE_SYMMETRY_AUTO, /* where the world has it */
  SIMULATE_SYMMETRY_ON,   /* or it is refused */
  SIMULATE_SYMMETRY_OFF
} simulate_symmetry;

/* How a bucket is summed: as it is, or by low rank in two sums. Each of these is a bucket here. */
typedef enum simulate_sum {
  SIMULATE_SUM_WHOLE,
  SIMULATE_SUM_FIRST,
  SIMULATE_SUM_SECOND
} simulate_sum;

/* A bucket: tensors that travel together, as the library fuses them. */
typedef struct simulate_bucket {
  uint64_t count;
  size_t last_tensor; /* when its gradient is there, the bucket starts */
  size_t segments;
  uint64_t *segment_ends;
  bool exact;
  lcomm_codec_spec net;
  uint32_t shape; /* buckets of one shape have the same programs */
  simulate_sum sum;
  lcomm_lowrank_sizes matrices; /* where all of its tensors are some */
} simulate_bucket;

typedef struct simulate_world {
  const lcomm_topo *topo;
  bool symmetric;
  int ranks; /* that are simulated: the first ones */
  simulate_bucket *buckets;
  uint32_t bucket_count;
  simulate_program *programs; /* of shape s and rank r: [s * ranks + r] */
  uint32_t shape_count;
  lcomm_shard_roles roles; /* with algo=servers; else zeros */
} simulate_world;

typedef struct simulate_world_request {
  const lcomm_topo *topo; /* with the costs of links and codecs, for net=auto */
  const lcomm_policy *policy;
  const simulate_workload *workload;
  const simulate_speeds *speeds;
  const simulate_speeds *cached; /* of vectors in a cache; NULL: as `speeds` */
  lcomm_dtype dtype;
  bool calls; /* plain all-reduces, not tensors */
  simulate_symmetry symmetry;
} simulate_world_request;

/* false with a sentence in `why` (SIMULATE_WHY_MAX bytes). Free with simulate_world_free. */
bool simulate_world_make(const simulate_world_request *request, simulate_world *world, char *why);
void simulate_world_free(simulate_world *world);

static inline const simulate_program *simulate_world_program(const simulate_world *world,
                                                             uint32_t bucket, uint32_t rank) {
  return &world->programs[world->buckets[bucket].shape * (uint32_t)world->ranks + rank];
}

/* Does a rank serve, which has no gradients? */
static inline bool simulate_world_serves(const simulate_world *world, uint32_t rank) {
  return world->roles.servers > 0 && lcomm_shard_roles_serves(&world->roles, (int)rank);
}

/* The first rank that computes gradients. */
static inline uint32_t simulate_world_first(const simulate_world *world) {
  uint32_t rank = 0;
  while (simulate_world_serves(world, rank)) {
    rank++;
  }
  return rank;
}

/* Ranks that each simulated one stands for. */
static inline int simulate_world_weight(const simulate_world *world) {
  return world->topo->size / world->ranks;
}

/* A topology of `nodes` nodes with `ranks` ranks each, that are not there. */
lcomm_status simulate_world_pose(int nodes, int ranks, lcomm_topo *topo, char *why);

/* Buckets of a workload, as the library makes them of tensors; or one for each tensor, for calls.
 * NULL with a sentence in `why`. Free with simulate_buckets_free. */
simulate_bucket *simulate_buckets_make(const simulate_world_request *request, uint32_t *count,
                                       char *why);
void simulate_buckets_free(simulate_bucket *buckets, uint32_t count);

/* What is asked of ranks for a bucket. */
lcomm_plan_request simulate_bucket_request(const simulate_world_request *request,
                                           const simulate_bucket *bucket);

/* Find the receiver of every message of one shape. `mirror`: which node's messages come back.
 * Blocks of nodes rotate, and nodes in their block. */
typedef enum simulate_mirror {
  SIMULATE_MIRROR_NONE, /* all ranks are simulated */
  SIMULATE_MIRROR_ROTATION,
  SIMULATE_MIRROR_PAIRS
} simulate_mirror;

/* Does `other`, of the rank with the same local number on node `node`, do what `program` of node 0
 * does, step by step, with the nodes of its peers shifted? */
bool simulate_routes_alike(const lcomm_topo *topo, const simulate_program *program,
                           const simulate_program *other, int node, simulate_mirror mirror);

/* false: a message has no receiver, or memory ended. */
bool simulate_routes_make(const lcomm_topo *topo, simulate_program *programs, int ranks,
                          simulate_mirror mirror);

#endif
