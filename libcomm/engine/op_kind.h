/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_OP_KIND_H
#define LCOMM_ENGINE_OP_KIND_H

/* What an operation is made for. Ranks that mean different things by it must find out,
 * so messages and tickets compare it. Whether a plan keeps error feedback is another
 * matter (lcomm_plan.lasting): calls with a residual have it, and are calls all the same.
 */

#include <stdint.h>

enum { LCOMM_PURPOSE_TEXT_MAX = 64 };

/* X(id, call): the public call that makes the operation for its own ends, or NULL where the
 * operation is what the program asked for. */
#define LCOMM_PURPOSE_LIST(X)                                                                      \
  X(LCOMM_PURPOSE_CALL, NULL)    /* a plain call */                                                \
  X(LCOMM_PURPOSE_LASTING, NULL) /* a call with a residual, as the policy says */                  \
  X(LCOMM_PURPOSE_FLUSH, NULL)   /* the exact call that pays what a residual holds */              \
  X(LCOMM_PURPOSE_DESTROY, "lcomm_destroy")                                                        \
  X(LCOMM_PURPOSE_SPLIT, "lcomm_split")                                                            \
  X(LCOMM_PURPOSE_LOAD, "lcomm_state_load")                                                        \
  X(LCOMM_PURPOSE_COMPARE, "lcomm_tensors_wait") /* the first one compares the tensors */          \
  X(LCOMM_PURPOSE_BUCKET, NULL)                  /* tensors of a step */                           \
  X(LCOMM_PURPOSE_TENSORS, NULL) /* later: which tensors there are now, and their state */         \
  X(LCOMM_PURPOSE_POLICY, "lcomm_policy_set")

typedef enum lcomm_purpose {
#define LCOMM_PURPOSE_ENUM(id, call) id,
  LCOMM_PURPOSE_LIST(LCOMM_PURPOSE_ENUM)
#undef LCOMM_PURPOSE_ENUM
      LCOMM_PURPOSE_COUNT
} lcomm_purpose;

/* "lcomm_destroy", ...; NULL for an operation that the program asked for. Any value is allowed. */
const char *lcomm_purpose_call(lcomm_purpose purpose);

/* For sentences, behind the name of the collective: "" for a plain call, else words such as
 * " with residual 3" or " of a bucket". Any value is allowed. Returns text. */
const char *lcomm_purpose_text(lcomm_purpose purpose, uint64_t residual,
                               char text[LCOMM_PURPOSE_TEXT_MAX]);

/* What all ranks must do alike, for sentences that end with it. */
const char *lcomm_purpose_remedy(lcomm_purpose purpose);

/* Operations are numbered in series, see lcomm_comm.next: what a program calls is in
 * the same order on all ranks, buckets and what prepares them are so among themselves. */
typedef enum lcomm_series {
  LCOMM_SERIES_CALLS,   /* even numbers */
  LCOMM_SERIES_BUCKETS, /* odd ones */
  LCOMM_SERIES_COUNT
} lcomm_series;

static inline lcomm_series lcomm_purpose_series(lcomm_purpose purpose) {
  return purpose == LCOMM_PURPOSE_BUCKET || purpose == LCOMM_PURPOSE_TENSORS ? LCOMM_SERIES_BUCKETS
                                                                             : LCOMM_SERIES_CALLS;
}

#endif
