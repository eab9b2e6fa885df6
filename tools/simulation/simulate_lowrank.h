/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_LOWRANK_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_LOWRANK_H

/* Buckets of matrices that travel by low rank: two sums of factors, the second of which begins when
 * the first is over, with the products before, between and behind them. */

#include "tools/simulation/simulate_world.h"

/* Make two of each such bucket; of net=auto those for which low rank is predicted to pay. There is
 * room for twice as many. false with a sentence in `why`: no plan. */
bool simulate_lowrank_split(const simulate_world_request *request, simulate_bucket *buckets,
                            uint32_t *count, char *why);

/* What is asked of ranks for the first or the second sum; `vector` is of the matrices. */
lcomm_plan_request simulate_lowrank_request(const lcomm_plan_request *vector,
                                            const simulate_bucket *bucket);

/* Add the products, and what is kept of matrices, to the program of one of these sums. */
void simulate_lowrank_dress(const simulate_world_request *request, const simulate_bucket *bucket,
                            simulate_program *program);

/* As net=auto counts it: what comes before the first sum is encoding, the rest decoding. */
simulate_speed simulate_lowrank_speed_of(const simulate_speeds *speeds);

#endif
