/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_STATE_H
#define LCOMM_FEEDBACK_EF_STATE_H

/* The error-feedback state of a bucket or a residual on this rank: what was not sent
 * yet of the elements that this rank looks after, and, with momentum correction, the
 * momentum of its own part of the gradient. It outlives the plans of a density
 * warm-up, which change from stage to stage.
 *
 * Momentum correction (Lin et al., Deep Gradient Compression, 2018): a rank's
 * contribution is u = m*u + gradient instead of the gradient, accumulated in
 * the residual; what is sent and applied leaves the residual and zeroes its
 * momentum. Sums that travel exactly get the same momentum after the sum, so
 * every tensor sees one optimiser. The policy's `clip` scales a rank's tensor
 * down before all of this.
 */

#include "libcomm/engine/engine.h"
#include "libcomm/engine/feedback_state.h"
#include "libcomm/plan/plan.h"

/* All that is kept from one operation to the next. All zero: nothing. */
typedef struct lcomm_ef_state {
  lcomm_feedback_state *feedback; /* NULL: this rank keeps none, or before the first lossy step */
  lcomm_ef_array velocity;        /* momentum of the applied sums of exact steps, or NULL */
  lcomm_ef_array basis;           /* of low rank: Q of all matrices, see ef_lowrank.h, or NULL; the
                                     same on all ranks */
  float *carried; /* added to the next result, or NULL: a residual that was loaded and that nobody
                     keeps; the same on all ranks */
} lcomm_ef_state;

/* That of a part of a vector which has no lcomm_ef for a while. All zero: none. */
typedef struct lcomm_ef_parked {
  uint64_t first, count;      /* elements whose residual this rank keeps */
  float *residual, *momentum; /* of those; NULL for none */
  float *velocity, *carried;  /* of all elements, as in lcomm_ef_state; NULL for none */
  float *basis;               /* of a matrix: its Q, basis_count values; NULL for none */
  uint64_t basis_count;
  unsigned rank; /* of it */
} lcomm_ef_parked;

/* Where elements of a part are in a feedback state: first .. first+n of the part lie at `at`. */
typedef struct lcomm_ef_shard {
  uint64_t first, n, at;
} lcomm_ef_shard;

/* The shard in `feedback` (NULL: none) of the `count` elements from `offset` of the vector on. */
lcomm_ef_shard lcomm_ef_shard_of(const lcomm_feedback_state *feedback, uint64_t offset,
                                 uint64_t count);

/* Leaves it all zero. velocity and carried lie at `location`. For this and what follows see
 * ef_memory.h: memory of a device is got and freed without the turn of `comm`. */
void lcomm_ef_state_free(lcomm_comm *comm, lcomm_memory_location location, lcomm_ef_state *state);
void lcomm_ef_parked_free(lcomm_comm *comm, lcomm_memory_location location, lcomm_ef_parked *state);

/* State for the data of `plan`; *feedback is NULL when it keeps none. Or for `count` elements from
 * `first` on. MEMORY. Free with lcomm_feedback_free (NULL ok). */
lcomm_status lcomm_feedback_create(lcomm_comm *comm, const lcomm_plan *plan, double momentum,
                                   lcomm_feedback_state **feedback);
lcomm_status lcomm_feedback_make(lcomm_comm *comm, lcomm_memory_location location, lcomm_span kept,
                                 double momentum, lcomm_feedback_state **feedback);
void lcomm_feedback_free(lcomm_comm *comm, lcomm_feedback_state *feedback);

/* Does the state belong to the same elements that `plan` wants it for? */
bool lcomm_feedback_fits(const lcomm_feedback_state *feedback, const lcomm_plan *plan);

#endif
