/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_ELIGIBILITY_H
#define LCOMM_PLAN_ELIGIBILITY_H

/* What the policy says of one call: whether a codec acts on it, and if not, why. Plans and
 * lcomm_policy_query() ask here, so that they say the same. */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/plan.h"

/* A call and its policy. */
typedef struct lcomm_eligibility {
  const lcomm_plan_request *request;
  const lcomm_policy *policy;
  int ranks;             /* of the communicator */
  const char *unmatched; /* no rule of match= fits it; NULL: one does, or none is needed */
} lcomm_eligibility;

/* Begin with a call on a communicator of so many ranks; `named` as lcomm_match_named() says.
 * What lasts has been chosen by its caller. */
lcomm_eligibility lcomm_eligibility_begin(const lcomm_plan_request *request,
                                          const lcomm_policy *policy, int ranks, uint32_t named);

/* Why a codec of the policy does not act on the call; NULL when it does. */
const char *lcomm_eligibility_why_exact(const lcomm_eligibility *judged,
                                        const lcomm_codec_choice *choice);

/* The same for a whole plan: of the codec between nodes, or on one node of the codec inside it. A
 * policy for links between nodes that finds none is told so. */
const char *lcomm_eligibility_why_plan_exact(const lcomm_eligibility *judged,
                                             const lcomm_topo *topo);

/* What becomes of a codec of the policy: itself, or that of exact elements. */
lcomm_codec_choice lcomm_eligibility_codec(const lcomm_eligibility *judged,
                                           const lcomm_codec_choice *choice);

/* Does the format carry elements of this type exactly? */
bool lcomm_eligibility_is_exact(const lcomm_format *format, lcomm_dtype dtype);

/* The operations, a bit for each lcomm_op, for which the policy says the same as for the one
 * of the request. */
unsigned lcomm_eligibility_equal_ops(const lcomm_plan_request *request, const lcomm_policy *policy,
                                     int ranks, uint32_t named);

/* lcomm_policy_query(): the request is of a plain call whose values exist, *why is written. */
lcomm_selection lcomm_eligibility_select(const lcomm_plan_request *request,
                                         const lcomm_policy *policy, const lcomm_topo *topo,
                                         uint32_t named, const char **why);

#endif
