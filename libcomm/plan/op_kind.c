/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/op_kind.h"

#include <stdio.h>

const char *lcomm_op_kind_call(lcomm_op_kind op_kind) {
  static const char *const calls[] = {
#define LCOMM_OP_KIND_NAME(id, call) [id] = call,
      LCOMM_OP_KIND_LIST(LCOMM_OP_KIND_NAME)
#undef LCOMM_OP_KIND_NAME
  };
  return (unsigned)op_kind < LCOMM_OP_KIND_COUNT ? calls[op_kind] : NULL;
}

const char *lcomm_op_kind_text(lcomm_op_kind op_kind, uint64_t residual,
                               char text[LCOMM_OP_KIND_TEXT_MAX]) {
  unsigned long long number = residual;
  text[0] = '\0';
  if (op_kind == LCOMM_OP_KIND_EF) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " with residual %llu", number);
  } else if (op_kind == LCOMM_OP_KIND_FLUSH) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that flushes residual %llu", number);
  } else if (op_kind == LCOMM_OP_KIND_BUCKET) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " of a bucket");
  } else if (op_kind == LCOMM_OP_KIND_TENSORS) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that compares or plans tensors");
  } else if (op_kind == LCOMM_OP_KIND_POLICY) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that agrees on a policy");
  } else if (op_kind == LCOMM_OP_KIND_MEASURE) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that measures for net=auto");
  } else if (op_kind == LCOMM_OP_KIND_DISCARD_STEP) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that discards a step");
  } else if (op_kind == LCOMM_OP_KIND_DISCARD_CALL) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that discards a call with residual %llu", number);
  } else if (op_kind == LCOMM_OP_KIND_GUARD) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " of the guard's samples");
  } else if (op_kind == LCOMM_OP_KIND_GUARD_CALL) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " of the guard's samples of residual %llu", number);
  } else if (op_kind == LCOMM_OP_KIND_REPLAY) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " of a graph");
  } else if (op_kind == LCOMM_OP_KIND_REVISE) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that revises net=auto");
  } else if (op_kind == LCOMM_OP_KIND_SYNC) {
    snprintf(text, LCOMM_OP_KIND_TEXT_MAX, " that compares results");
  }
  return text;
}

const char *lcomm_op_kind_remedy(lcomm_op_kind op_kind) {
  return lcomm_op_kind_sequence_space(op_kind) == LCOMM_SEQUENCE_SPACE_BUCKETS
             ? "add, freeze and unfreeze the same tensors between the same steps, and discard the "
               "same steps."
             : "call the same collective with the same count, type and policy.";
}
