/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_SAVED_STATE_READ_H
#define LCOMM_TENSOR_SAVED_STATE_READ_H

/* What a rank reads of a saved state, and what it says of it. Local: ranks agree in
 * saved_state_load.c. */

#include "libcomm/tensor/saved_state.h"

/* What a rank sends to the others about what it has read. Travels as words. */
typedef struct lcomm_state_verdict {
  int32_t status;
  uint32_t fits; /* its file was placed as it is */
  uint32_t ranks, nodes, sequence, zero;
  uint64_t step;
  uint64_t digest;    /* of all files, or 0 */
  uint64_t residuals; /* a hash of those that were made here */
  uint64_t guards;    /* of what the guard remembered, or 0 */
} lcomm_state_verdict;

_Static_assert(sizeof(lcomm_state_verdict) % sizeof(float) == 0, "a verdict is whole words");
_Static_assert(sizeof(lcomm_why) % sizeof(float) == 0, "a sentence is whole words");

typedef struct lcomm_state_loading {
  lcomm_comm *comm;
  const char *call; /* for sentences */
  lcomm_state_source source;
  lcomm_ef_list list;
  lcomm_restore restore;
  lcomm_state_verdict mine, *all; /* all: one per rank */
  int ranks_before;               /* see lcomm_restore */
  bool regroups;                  /* a tensor has another codec by its guard */
} lcomm_state_loading;

/* Each reads and writes its part of the verdict; on failure the sentence is in restore.why. */

/* Read what this rank saved, if there are as many ranks as there were. */
lcomm_status lcomm_state_read_own(lcomm_state_loading *it);

/* Take the guards that rank 0 saved, before the ranks say what they will keep. */
lcomm_status lcomm_state_read_guards(lcomm_state_loading *it);

/* Read what all ranks saved, one file after the other. */
lcomm_status lcomm_state_read_all(lcomm_state_loading *it);

#endif
