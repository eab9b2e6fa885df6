/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_AUTO_CHOOSE_H
#define LCOMM_PLAN_AUTO_CHOOSE_H

/* The choice of net=auto. For each codec that is allowed, the plan of the rules and, of an
 * all-reduce, plans of other shapes are predicted (auto.h), with the figures that all ranks share,
 * for rank 0; so all ranks choose alike. */

#include "libcomm/plan/plan.h"

/* *plan is the exact one by the rules; it is replaced by the one that is predicted to be the
 * fastest, and its reason says by which times. Another shape than that of the rules must gain a
 * tenth, a coarser codec a twentieth. policy: algo= other than auto keeps its algorithm. Errors as
 * of lcomm_plan_create; *plan stays the caller's. */
lcomm_status lcomm_auto_choose(const lcomm_plan_request *request, const lcomm_policy *policy,
                               const lcomm_topo *topo, int rank, lcomm_plan **plan, lcomm_why *why);

#endif
