/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_STUDY_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_STUDY_H

/* All cases of a command line: links x numbers of nodes x policies. */

#include "tools/simulation/simulate_options.h"

typedef struct simulate_case {
  size_t link, policy; /* of the options */
  int nodes, ranks;    /* ranks of all nodes together */
  bool done;           /* else `why` says why not */
  simulate_result result;
  uint32_t buckets;
  char codec[48];   /* between nodes, of the largest bucket */
  char reason[512]; /* of its plan */
  char why[SIMULATE_WHY_MAX];
  bool late_done; /* with --late; else `late_why` says why not */
  simulate_late_result late;
  char late_why[SIMULATE_LATE_WHY_MAX];
} simulate_case;

typedef struct simulate_study {
  const simulate_options *options;
  simulate_workload workload;
  simulate_speeds speeds, cached; /* of vectors in memory, and in a cache */
  simulate_case *cases;           /* in the order links, nodes, policies */
  size_t count;
} simulate_study;

/* Read the files and simulate. false with a sentence in `why` where a file cannot be read; a case
 * that cannot be simulated says so itself. Free with simulate_study_free. */
bool simulate_study_run(const simulate_options *options, simulate_study *study, char *why);
void simulate_study_free(simulate_study *study);

/* "25g", or "topology" where no link was named. */
const char *simulate_study_link(const simulate_options *options, size_t link);

/* How many times as fast as the first policy on the same link and nodes; 0: not known. */
double simulate_study_times(const simulate_study *study, size_t index);

/* The same with late ranks. */
double simulate_study_late_times(const simulate_study *study, size_t index);

/* Where a policy pays on a link, in words: "from 2 to 64 nodes", "nowhere", "everywhere": where it
 * is at least a hundredth faster than the first one. Returns text. */
enum { SIMULATE_VERDICT_MAX = 256 };
const char *simulate_study_verdict(const simulate_study *study, size_t link, size_t policy,
                                   char text[SIMULATE_VERDICT_MAX]);

#endif
