/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_POLICY_MATCH_H
#define LCOMM_PLAN_POLICY_MATCH_H

/* Which plain calls are the policy's: the rules of match= (libcomm.h, POLICY). */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/policy.h"

/* A call as rules see it. Its values are ones that exist, and its elements fit into
 * memory. */
typedef struct lcomm_match_call {
  lcomm_call_kind kind;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op; /* of data that is moved: LCOMM_SUM */
  int ranks;   /* of its communicator */
} lcomm_match_call;

/* The rules for which a communicator has the right name, a bit for each. Patterns are slow,
 * so this is found out once for a name, and not for every call. */
uint32_t lcomm_match_named(const lcomm_policy *policy, const char *name);

/* Does any of the rules `named` fit? */
bool lcomm_match_fits(const lcomm_policy *policy, uint32_t named, const lcomm_match_call *call);

/* Does a rule ask for the name of the communicator? */
bool lcomm_match_uses_names(const lcomm_policy *policy);

#endif
