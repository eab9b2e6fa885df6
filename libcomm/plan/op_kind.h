/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_OP_KIND_H
#define LCOMM_PLAN_OP_KIND_H

/* Op kinds: what an operation is made for. Messages and fingerprints carry the op kind, so that
 * ranks whose operations serve different calls find out. Whether a plan keeps error feedback is
 * another matter (lcomm_plan.error_feedback): calls with a residual have it, and are calls all the
 * same.
 */

#include <stdint.h>

enum { LCOMM_OP_KIND_TEXT_MAX = 64 };

/* X(id, call): the public call that makes the operation for its own ends, or NULL where the
 * operation is what the program asked for. */
#define LCOMM_OP_KIND_LIST(X)                                                                      \
  X(LCOMM_OP_KIND_CALL, NULL)  /* a plain call */                                                  \
  X(LCOMM_OP_KIND_EF, NULL)    /* a call with a residual, as the policy says */                    \
  X(LCOMM_OP_KIND_FLUSH, NULL) /* the exact call that flushes a residual */                        \
  X(LCOMM_OP_KIND_DESTROY, "lcomm_destroy")                                                        \
  X(LCOMM_OP_KIND_SPLIT, "lcomm_split")                                                            \
  X(LCOMM_OP_KIND_LOAD, "lcomm_state_load")                                                        \
  X(LCOMM_OP_KIND_COMPARE, "lcomm_tensors_wait") /* the first one compares the tensors */          \
  X(LCOMM_OP_KIND_BUCKET, NULL)                  /* tensors of a step */                           \
  X(LCOMM_OP_KIND_TENSORS, NULL) /* later: which tensors there are now, and their state */         \
  X(LCOMM_OP_KIND_POLICY, "lcomm_policy_set")                                                      \
  X(LCOMM_OP_KIND_DISCARD_STEP, "lcomm_tensors_discard")                                           \
  X(LCOMM_OP_KIND_DISCARD_CALL, "lcomm_residual_discard")                                          \
  X(LCOMM_OP_KIND_MEASURE, "lcomm_create") /* what links cost, for net=auto */                     \
  X(LCOMM_OP_KIND_GUARD, NULL)             /* the exact sum of samples of tensors */               \
  X(LCOMM_OP_KIND_REVISE, NULL)            /* what net=auto takes from the plain calls so far */   \
  X(LCOMM_OP_KIND_GUARD_CALL, NULL)        /* the exact sum of samples of a residual's call */     \
  X(LCOMM_OP_KIND_CAPTURE, "a call that is captured into a graph") /* ranks agree on it */         \
  X(LCOMM_OP_KIND_REPLAY, NULL) /* of a call that is in a graph */                                 \
  X(LCOMM_OP_KIND_REGROUP, "lcomm_regroup")                                                        \
  X(LCOMM_OP_KIND_SERVE, "lcomm_server_run and lcomm_server_end")                                  \
  X(LCOMM_OP_KIND_SYNC, "lcomm_tensors_sync")                                                      \
  X(LCOMM_OP_KIND_BARRIER, "lcomm_barrier") /* of an elastic communicator, which counts */

typedef enum lcomm_op_kind {
#define LCOMM_OP_KIND_ENUM(id, call) id,
  LCOMM_OP_KIND_LIST(LCOMM_OP_KIND_ENUM)
#undef LCOMM_OP_KIND_ENUM
      LCOMM_OP_KIND_COUNT
} lcomm_op_kind;

/* "lcomm_destroy", ...; NULL for an operation that the program asked for. Any value is allowed. */
const char *lcomm_op_kind_call(lcomm_op_kind op_kind);

/* For sentences, behind the name of the collective: "" for a plain call, else words such as
 * " with residual 3" or " of a bucket". Any value is allowed. Returns text. */
const char *lcomm_op_kind_text(lcomm_op_kind op_kind, uint64_t residual,
                               char text[LCOMM_OP_KIND_TEXT_MAX]);

/* What all ranks must do alike, for sentences that end with it. */
const char *lcomm_op_kind_remedy(lcomm_op_kind op_kind);

/* Sequence spaces: operations are numbered in two of them, see lcomm_operations.next. The calls of
 * a program come in the same order on all ranks; so do, among themselves, buckets and what prepares
 * them. */
typedef enum lcomm_sequence_space {
  LCOMM_SEQUENCE_SPACE_CALLS,   /* even numbers */
  LCOMM_SEQUENCE_SPACE_BUCKETS, /* odd ones */
  LCOMM_SEQUENCE_SPACE_COUNT
} lcomm_sequence_space;

static inline lcomm_sequence_space lcomm_op_kind_sequence_space(lcomm_op_kind op_kind) {
  return op_kind == LCOMM_OP_KIND_BUCKET || op_kind == LCOMM_OP_KIND_TENSORS ||
                 op_kind == LCOMM_OP_KIND_MEASURE || op_kind == LCOMM_OP_KIND_DISCARD_STEP ||
                 op_kind == LCOMM_OP_KIND_GUARD || op_kind == LCOMM_OP_KIND_SYNC
             ? LCOMM_SEQUENCE_SPACE_BUCKETS
             : LCOMM_SEQUENCE_SPACE_CALLS;
}

#endif
