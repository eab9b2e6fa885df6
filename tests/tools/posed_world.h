/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOOLS_POSED_WORLD_H
#define LCOMM_TESTS_TOOLS_POSED_WORLD_H

/* A world that is simulated, with all that it is made of. */

#include "tests/support/unit_tests.h"
#include "tools/simulation/simulate_world.h"

typedef struct posed {
  lcomm_topo topo;
  lcomm_policy policy;
  simulate_workload workload;
  simulate_speeds speeds;
  simulate_world world;
  char why[SIMULATE_WHY_MAX];
} posed;

static inline simulate_world_request request_of(const posed *it, simulate_symmetry symmetry) {
  return (simulate_world_request){.topo = &it->topo,
                                  .policy = &it->policy,
                                  .workload = &it->workload,
                                  .speeds = &it->speeds,
                                  .dtype = LCOMM_FLOAT32,
                                  .symmetry = symmetry};
}

/* The world of the rest, which is made. */
static inline bool make_world(posed *it, simulate_symmetry symmetry) {
  simulate_world_request request = request_of(it, symmetry);
  return simulate_world_make(&request, &it->world, it->why);
}

static inline void free_posed(posed *it) {
  simulate_world_free(&it->world);
  simulate_workload_free(&it->workload);
  lcomm_topo_free(&it->topo);
}

#endif
