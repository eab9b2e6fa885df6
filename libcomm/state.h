/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_STATE_H
#define LCOMM_STATE_H

/* Saving and loading the error-feedback state, inside; what it promises is in
 * libcomm.h, the bytes are in codecs/state.h. state_save.c writes this rank's
 * file, state.c reads files and brings all ranks to one verdict, state_place.c
 * puts values where they were, state_deal.c deals them anew.
 *
 * A *placement* holds what was read until all ranks have agreed; only
 * lcomm_placement_commit changes the communicator, and it cannot fail.
 */

#include "codecs/state.h"
#include "libcomm/base/file.h"
#include "libcomm/bucket.h"

enum {
  LCOMM_STATE_WHY_MAX = 768, /* a multiple of 4: it travels as words */
  LCOMM_STATE_FILE_MAX = 64,
  LCOMM_STATE_TILE = 1024 /* elements that are handed out together */
};

_Static_assert((int)LCOMM_STATE_WHY_MAX > (int)LCOMM_FILE_WHY_MAX, "a file's complaint fits");

/* "rank-00001-of-00004.lcs"; returns name. */
const char *lcomm_state_file(int rank, int ranks, char name[LCOMM_STATE_FILE_MAX]);

typedef struct lcomm_placed_bucket {
  lcomm_feedback_state *feedback; /* what this rank will keep, NULL for nothing */
  bool has_residual;              /* the files hold a residual of one of its tensors */
  float *velocity, *owed;         /* as in lcomm_bucket, NULL for none */
} lcomm_placed_bucket;

typedef struct lcomm_placement {
  lcomm_comm *comm;
  lcomm_placed_bucket *buckets; /* as many as comm has */
  bool *seen;                   /* tensors of the file that is being read */
  /* First element and number of elements that each rank keeps of each bucket,
   * bucket after bucket, rank after rank. NULL until lcomm_placement_share. */
  uint64_t *ranges;
  char why[LCOMM_STATE_WHY_MAX]; /* of a failure: one sentence */
} lcomm_placement;

/* Begin with nothing placed; the buckets are made. Free with
 * lcomm_placement_free, after a failure, too. MEMORY, or a sticky error. */
lcomm_status lcomm_placement_begin(lcomm_comm *comm, lcomm_placement *placement);
void lcomm_placement_free(lcomm_placement *placement);

/* Place the file of this very rank bit for bit. *fits becomes false when it
 * holds something that has another place here. ARGUMENT for a tensor that is
 * not here, MEMORY. */
lcomm_status lcomm_placement_copy(lcomm_placement *placement, lcomm_state_reader *reader,
                                  bool *fits);

/* Tell all ranks what this one will keep. Collective. */
lcomm_status lcomm_placement_share(lcomm_placement *placement);

/* After that: add one rank's file, which `header` belongs to; files in rank
 * order, then finish. Each element is handed to one of the ranks that keep it,
 * or, when nobody does, it is owed. Errors as copy. */
lcomm_status lcomm_placement_add(lcomm_placement *placement, const lcomm_state_header *header,
                                 lcomm_state_reader *reader);
void lcomm_placement_finish(lcomm_placement *placement);

/* Replace the state of the communicator's buckets. */
void lcomm_placement_commit(lcomm_placement *placement);

/* Parts of the above. */

/* Index of a tensor's bucket. */
static inline size_t lcomm_placement_bucket(const lcomm_placement *placement,
                                            const lcomm_tensor *tensor) {
  return (size_t)(tensor->bucket - placement->comm->buckets);
}

static inline bool lcomm_placement_has_momentum(const lcomm_placement *placement) {
  return placement->comm->policy.momentum > 0;
}

/* Make a vector for a bucket, of zeros, unless it has been made. MEMORY. */
lcomm_status lcomm_placement_vector(lcomm_placement *placement, size_t bucket, float **vector);

bool lcomm_placement_all_zero(const uint8_t *values, uint64_t n);

/* The tensor of a record; NULL for a record without a state. *index is where
 * the search begins, and then where it ended. ARGUMENT, WIRE for a tensor that
 * was seen in this file already. */
lcomm_status lcomm_placement_match(lcomm_placement *placement, const lcomm_state_tensor *record,
                                   size_t *index, lcomm_tensor **tensor);

/* Copy the velocity of a record. MEMORY. */
lcomm_status lcomm_placement_velocity(lcomm_placement *placement, const lcomm_tensor *tensor,
                                      const lcomm_state_tensor *record);

#endif
