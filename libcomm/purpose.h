/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PURPOSE_H
#define LCOMM_PURPOSE_H

/* What an operation is made for. Ranks that mean different things by it must find out,
 * so messages and tickets compare it. Whether a plan keeps error feedback is another
 * matter (lcomm_plan.lasting): calls with a residual have it, and are calls all the same.
 */

#include <stdint.h>

enum { LCOMM_PURPOSE_TEXT_MAX = 64 };

typedef enum lcomm_purpose {
  LCOMM_PURPOSE_CALL,    /* a plain call */
  LCOMM_PURPOSE_LASTING, /* a call with a residual, as the policy says */
  LCOMM_PURPOSE_FLUSH,   /* the exact call that pays what a residual holds */
  LCOMM_PURPOSE_BUCKET   /* tensors of a step */
} lcomm_purpose;

/* For sentences, behind the name of the collective: "" for a plain call, else words such as
 * " with residual 3" or " of a bucket". Any value is allowed. Returns text. */
const char *lcomm_purpose_text(lcomm_purpose purpose, uint64_t residual,
                               char text[LCOMM_PURPOSE_TEXT_MAX]);

/* Operations are numbered in series, see lcomm_comm.next: what a program calls is in
 * the same order on all ranks, buckets are so among themselves. */
typedef enum lcomm_series {
  LCOMM_SERIES_CALLS,   /* even numbers */
  LCOMM_SERIES_BUCKETS, /* odd ones */
  LCOMM_SERIES_COUNT
} lcomm_series;

static inline lcomm_series lcomm_purpose_series(lcomm_purpose purpose) {
  return purpose == LCOMM_PURPOSE_BUCKET ? LCOMM_SERIES_BUCKETS : LCOMM_SERIES_CALLS;
}

#endif
