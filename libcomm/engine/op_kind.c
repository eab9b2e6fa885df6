/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/op_kind.h"

#include <stdio.h>

const char *lcomm_purpose_call(lcomm_purpose purpose) {
  static const char *const calls[] = {
#define LCOMM_PURPOSE_NAME(id, call) [id] = call,
      LCOMM_PURPOSE_LIST(LCOMM_PURPOSE_NAME)
#undef LCOMM_PURPOSE_NAME
  };
  return (unsigned)purpose < LCOMM_PURPOSE_COUNT ? calls[purpose] : NULL;
}

const char *lcomm_purpose_text(lcomm_purpose purpose, uint64_t residual,
                               char text[LCOMM_PURPOSE_TEXT_MAX]) {
  unsigned long long number = residual;
  text[0] = '\0';
  if (purpose == LCOMM_PURPOSE_LASTING) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " with residual %llu", number);
  } else if (purpose == LCOMM_PURPOSE_FLUSH) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " that flushes residual %llu", number);
  } else if (purpose == LCOMM_PURPOSE_BUCKET) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " of a bucket");
  } else if (purpose == LCOMM_PURPOSE_TENSORS) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " that compares or plans tensors");
  } else if (purpose == LCOMM_PURPOSE_POLICY) {
    snprintf(text, LCOMM_PURPOSE_TEXT_MAX, " that agrees on a policy");
  }
  return text;
}

const char *lcomm_purpose_remedy(lcomm_purpose purpose) {
  return lcomm_purpose_series(purpose) == LCOMM_SERIES_BUCKETS
             ? "add, freeze and unfreeze the same tensors between the same steps."
             : "call the same collective with the same count, type and policy.";
}
