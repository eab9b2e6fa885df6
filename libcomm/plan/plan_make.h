/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_PLAN_MAKE_H
#define LCOMM_PLAN_PLAN_MAKE_H

/* The parts of lcomm_plan_create(), for the choice among plans. `candidate` is the codec of auto
 * (policy.h) for which the plan is made, where the policy leaves the choice. Errors and freeing as
 * of lcomm_plan_create. */

#include "libcomm/plan/plan.h"

/* As much of a plan as its time is predicted from: no hash, not verified. */
lcomm_status lcomm_plan_outline(const lcomm_plan_request *request, const lcomm_policy *policy,
                                const lcomm_topo *topo, int rank, int candidate, lcomm_plan **plan,
                                lcomm_why *why);

/* All of it. */
lcomm_status lcomm_plan_make(const lcomm_plan_request *request, const lcomm_policy *policy,
                             const lcomm_topo *topo, int rank, int candidate, lcomm_plan **plan,
                             lcomm_why *why);

#endif
