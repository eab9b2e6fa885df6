/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_LATE_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_LATE_H

/* Steps of ranks that are late: slow ones, and ones that pause. Who waits for whom is decided by
 * the library's own rules (shards/quorum.h, shards/staleness.h), for quorum= and stale= of the
 * policy, among all ranks or the workers of servers; without them all wait for all. A step is its
 * computation, and an exchange that takes as long for everybody, as the simulation of a step
 * without late ranks says; results follow each other no faster than the busiest link carries them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/plan/policy.h"

enum { SIMULATE_LATE_MAX = 8, SIMULATE_LATE_RANKS_MAX = 1024, SIMULATE_LATE_STEPS = 400 };

/* One word of --late. */
typedef struct simulate_lateness {
  int rank;       /* -1: all */
  double factor;  /* times that its computation takes, 1: as the others */
  double pause_s; /* in some steps besides, */
  double share;   /* so many of them, 0 to 1 */
} simulate_lateness;

typedef struct simulate_late_case {
  int ranks;
  const uint8_t *apart; /* set of ranks (quorum.h): servers, which compute nothing; NULL: none */
  double compute_s, exchange_s;
  double wire_s; /* of a step, on the busiest link */
  lcomm_quorum_policy policy;
  const simulate_lateness *late;
  size_t late_count;
} simulate_late_case;

typedef struct simulate_late_result {
  double step_s;   /* from one result to the next, on average */
  double computed; /* share of the gradients of all workers and steps that were computed: the others
                    * were left out by ranks that were behind */
  double used;     /* share of the contributions that their rounds used at once */
  double age;      /* of gradients, on average */
  uint64_t age_most;
} simulate_late_result;

/* "rank=3:x3", "pause=200ms:5%", or both of one rank: "rank=3:pause=200ms:5%". */
bool simulate_late_read(const char *text, simulate_lateness *late);

/* false where there are more than SIMULATE_LATE_RANKS_MAX ranks, or a quorum of more than those
 * that compute, or without memory: a sentence in `why` (SIMULATE_LATE_WHY_MAX bytes). */
enum { SIMULATE_LATE_WHY_MAX = 128 };
bool simulate_late_run(const simulate_late_case *of, simulate_late_result *result, char *why);

#endif
