/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_POLICY_MATCH_H
#define LCOMM_PLAN_POLICY_MATCH_H

/* Which plain calls are the policy's (the rules of match=), and which data has a codec of its own
 * (the patterns of net[...]); libcomm.h, POLICY. */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/policy.h"

/* A call, or a tensor, as rules see it. Its values are ones that exist, and its elements fit into
 * memory. */
typedef struct lcomm_match_call {
  lcomm_call_kind kind;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;            /* of data that is moved: LCOMM_SUM */
  int ranks;              /* of its communicator */
  const char *name;       /* of the tensor, or of the residual; NULL: none */
  uint64_t rows, columns; /* of a tensor with a shape; 0: it has none. No rule asks for them */
} lcomm_match_call;

/* The rules and patterns for which a communicator has the right name, a bit for each. Globs are
 * slow, so this is found out once for a name, and not for every call. */
uint64_t lcomm_match_named(const lcomm_policy *policy, const char *name);

/* Does any of the rules `named` fit? */
bool lcomm_match_fits(const lcomm_policy *policy, uint64_t named, const lcomm_match_call *call);

/* The first of the patterns `named` that fits; NULL: none does. A view into the policy. */
const lcomm_codec_pattern *lcomm_match_pattern(const lcomm_policy *policy, uint64_t named,
                                               const lcomm_match_call *call);

/* Does a rule or pattern ask for the name of the communicator? */
bool lcomm_match_uses_names(const lcomm_policy *policy);

#endif
