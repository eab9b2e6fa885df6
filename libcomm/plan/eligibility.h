/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_ELIGIBILITY_H
#define LCOMM_PLAN_ELIGIBILITY_H

/* What the policy says of one call: whether a codec acts on it, and if not, why. Plans and
 * lcomm_choose() ask here, so that they say the same. */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/plan.h"

/* A call and its policy. */
typedef struct lcomm_judged {
  const lcomm_plan_request *request;
  const lcomm_policy *policy;
  int ranks;             /* of the communicator */
  const char *unmatched; /* no rule of match= fits it; NULL: one does, or none is needed */
} lcomm_judged;

/* Begin with a call on a communicator of so many ranks; `named` as lcomm_match_named() says.
 * What lasts has been chosen by its caller. */
lcomm_judged lcomm_judge_begin(const lcomm_plan_request *request, const lcomm_policy *policy,
                               int ranks, uint32_t named);

/* Why a codec of the policy does not act on the call; NULL when it does. */
const char *lcomm_judge_why_exact(const lcomm_judged *judged, const lcomm_codec_choice *choice);

/* The same for a whole plan: of the codec between nodes, or on one node of the codec inside it. A
 * policy for links between nodes that finds none is told so. */
const char *lcomm_judge_why_plan_exact(const lcomm_judged *judged, const lcomm_topo *topo);

/* What becomes of a codec of the policy: itself, or that of exact elements. */
lcomm_codec_choice lcomm_judge_codec(const lcomm_judged *judged, const lcomm_codec_choice *choice);

/* Does the format carry elements of this type exactly? */
bool lcomm_judge_is_exact(const lcomm_format *format, lcomm_dtype dtype);

/* The operations, a bit for each lcomm_op, for which the policy says the same as for the one
 * of the request. */
unsigned lcomm_judge_equal_ops(const lcomm_plan_request *request, const lcomm_policy *policy,
                               int ranks, uint32_t named);

/* lcomm_choose(): the request is of a plain call whose values exist, *why is written. */
lcomm_choice lcomm_judge_choose(const lcomm_plan_request *request, const lcomm_policy *policy,
                                const lcomm_topo *topo, uint32_t named, const char **why);

#endif
