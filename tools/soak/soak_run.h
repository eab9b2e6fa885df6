/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SOAK_SOAK_RUN_H
#define LCOMM_TOOLS_SOAK_SOAK_RUN_H

/* Random collective calls on several communicators with policies of their own. All ranks
 * draw the same numbers, so they make the same calls. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm.h"

enum { SOAK_WORLDS = 4, SOAK_TENSORS = 5, SOAK_RANKS_MAX = 16, SOAK_COUNT_MAX = 20000 };

typedef struct soak_world {
  lcomm_comm *comm;
  bool lossy;
  float *gradients[SOAK_TENSORS];
  uint64_t counts[SOAK_TENSORS];
  lcomm_tensor *tensors[SOAK_TENSORS];
} soak_world;

typedef struct soak {
  lcomm_comm *control; /* exact: what the ranks tell each other of the run itself */
  soak_world worlds[SOAK_WORLDS];
  int rank, ranks;
  uint64_t drawn; /* state of the numbers that all ranks draw alike */
  uint64_t hash;  /* of all results that ranks must have alike, since they last compared */
  void *send, *receive;
  uint64_t wrong, drifted;  /* operations */
  const lcomm_comm *failed; /* whose operation failed; NULL: that of making one */
} soak;

/* Make all communicators; world 0 is exact. `transport` and `progress` as in
 * lcomm_config. On a failure the status, and soak_sentence() says why. Free with
 * soak_end() in any case. */
lcomm_status soak_begin(soak *run, uint64_t seed, const char *transport,
                        lcomm_progress_mode progress);

/* One operation, or several at once; wrong results are counted. */
lcomm_status soak_step(soak *run);

/* Do all ranks have the same results so far? Counted as drifted if not. Collective. */
lcomm_status soak_compare(soak *run);

/* The largest value of any rank takes the place of each. Collective. */
lcomm_status soak_share_largest(soak *run, int64_t *values, int count);

const char *soak_sentence(const soak *run);
void soak_end(soak *run);

#endif
