/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_ELIGIBILITY_H
#define LCOMM_PLAN_ELIGIBILITY_H

/* Eligibility: whether a codec of the policy acts on a call, and if not, why. Plans and
 * lcomm_policy_query() use the same functions, so they give the same answer. */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/plan.h"
#include "libcomm/plan/policy_match.h"

/* A call and its policy. */
typedef struct lcomm_eligibility {
  const lcomm_plan_request *request;
  const lcomm_policy *policy;
  int ranks;                          /* of the communicator */
  lcomm_codec_spec net;               /* between nodes, if it acts */
  const lcomm_codec_pattern *pattern; /* that says so; NULL: net=, or the request */
  const char *unmatched;              /* no rule of match= fits it; NULL: one does, or none is
                                         needed */
} lcomm_eligibility;

/* What a policy says of data that has a name: of a tensor, or of calls with a residual. Patterns
 * come before min=, exempt= before both. */
typedef struct lcomm_named_data {
  bool exact;
  lcomm_codec_spec net; /* else */
} lcomm_named_data;

/* `named` as lcomm_match_named() says; `call` has the name. Of low rank a matrix that does not gain
 * by it has no codec. */
lcomm_named_data lcomm_eligibility_of_name(const lcomm_policy *policy, uint64_t named,
                                           const lcomm_match_call *call);

/* Begin with a call on a communicator of so many ranks; `named` as lcomm_match_named() says. match=
 * does not act on tensors and residuals, which their caller has selected. */
lcomm_eligibility lcomm_eligibility_begin(const lcomm_plan_request *request,
                                          const lcomm_policy *policy, int ranks, uint64_t named);

/* Why a codec of the policy does not act on the call; NULL when it does. */
const char *lcomm_eligibility_why_exact(const lcomm_eligibility *eligibility,
                                        const lcomm_codec_spec *choice);

/* The same for a whole plan: of the codec between nodes, or on one node of the codec inside it.
 * Where a policy for links between nodes finds no such link, that is the reason. */
const char *lcomm_eligibility_why_plan_exact(const lcomm_eligibility *eligibility,
                                             const lcomm_topo *topo);

/* The codec that is used: the policy's, or the exact one. */
lcomm_codec_spec lcomm_eligibility_codec(const lcomm_eligibility *eligibility,
                                         const lcomm_codec_spec *choice);

/* Does the format carry elements of this type exactly? */
bool lcomm_eligibility_is_exact(const lcomm_format *format, lcomm_dtype dtype);

/* The operations, a bit for each lcomm_op, for which the policy says the same as for the one
 * of the request. */
unsigned lcomm_eligibility_equal_ops(const lcomm_plan_request *request, const lcomm_policy *policy,
                                     int ranks, uint64_t named);

/* lcomm_policy_query(): the request is of a plain call whose values exist, *why is written. */
lcomm_selection lcomm_eligibility_select(const lcomm_plan_request *request,
                                         const lcomm_policy *policy, const lcomm_topo *topo,
                                         uint64_t named, const char **why);

#endif
