/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_INTERPOSE_EF_BY_PATTERN_H
#define LCOMM_INTERPOSE_INTERPOSE_EF_BY_PATTERN_H

/* Error feedback for calls that name no buffer. A program that trains repeats the calls of a step,
 * so on one communicator a call site is the position of a call in the repeating pattern
 * (interpose_pattern.h), its kind (all-reduce or reduce-scatter), its count and its operation. Each
 * call site has a residual. While no
 * pattern is known calls are exact, and an exact call flushes the residual of a call site with the
 * same kind, count and operation that still carries one. */

#include <stdbool.h>

#include "libcomm_interpose.h"

typedef enum lcomm_interpose_feedback {
  LCOMM_INTERPOSE_PLAIN, /* exact, without a residual */
  LCOMM_INTERPOSE_EF,    /* lossy, with error feedback */
  LCOMM_INTERPOSE_FLUSH  /* exact, plus the carried residual */
} lcomm_interpose_feedback;

/* The call sites of one communicator. */
typedef struct lcomm_interpose_ef lcomm_interpose_ef;

/* step_calls: step= of the policy; 0: found out. NULL: no memory. */
lcomm_interpose_ef *lcomm_interpose_ef_create(uint32_t step_calls);

/* No call with a residual is in flight. NULL is allowed. */
void lcomm_interpose_ef_destroy(lcomm_interpose_ef *ef);

/* Decide about the next call with error feedback on the communicator. The answer depends only on
 * the calls before, so all ranks get the same. A new call site allocates: *status is MEMORY where
 * that fails, and this rank may not make the call.
 * count  of a reduce-scatter: of each rank's part */
lcomm_interpose_feedback lcomm_interpose_ef_next(lcomm_interpose_ef *ef, lcomm_call_kind kind,
                                                 uint64_t count, lcomm_op op, lcomm_status *status);

/* The call site of the last answer. A call site keeps its number. */
uint32_t lcomm_interpose_ef_site(const lcomm_interpose_ef *ef);

/* The residual of a call site. The first call creates it in `comm`, which is always the same and
 * lives longer; the order of these calls is the same on all ranks. */
lcomm_status lcomm_interpose_ef_residual(lcomm_interpose_ef *ef, uint32_t site, lcomm_comm *comm,
                                         lcomm_residual **residual);

/* Compress no further calls; they flush the carried residuals. */
void lcomm_interpose_ef_suspend(lcomm_interpose_ef *ef);

/* Undo that: learn a pattern anew, keep the carried residuals. */
void lcomm_interpose_ef_resume(lcomm_interpose_ef *ef);

/* How many call sites carry a residual, the same on all ranks: a call site carries one from its
 * first call with error feedback until a call flushes it. */
unsigned lcomm_interpose_ef_carrying(const lcomm_interpose_ef *ef);

/* How many call sites there are, and the period of the pattern (0: none is known). */
unsigned lcomm_interpose_ef_sites(const lcomm_interpose_ef *ef);
unsigned lcomm_interpose_ef_period(const lcomm_interpose_ef *ef);

/* Tell the buffer of the call that lcomm_interpose_ef_next() answered last. True, once: several
 * buffers share a call site, so the pattern is too short (see lcomm_interpose_alias). For a warning
 * only. */
bool lcomm_interpose_ef_aliased(lcomm_interpose_ef *ef, const void *buffer);

#endif
