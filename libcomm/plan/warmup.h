/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_WARMUP_H
#define LCOMM_PLAN_WARMUP_H

/* The stages of a policy: exact steps at first (warmup=), then densities of top-k that
 * fall (ramp=), then what net= says. For buckets a step is one of the tensors, for a
 * residual one of its own calls. */

#include "libcomm/plan/policy.h"

bool lcomm_warmup_is_exact(const lcomm_policy *policy, uint64_t step);

/* Of tensors later ones are, too, with adam= of the policy: where the optimiser refreshes its
 * variance. */
bool lcomm_warmup_tensors_are_exact(const lcomm_policy *policy, uint64_t step);

/* With adam= of the policy: are contributions to this step momentum, not gradients? */
bool lcomm_warmup_sends_momentum(const lcomm_policy *policy, uint64_t step);

/* The density of a step, as lcomm_plan_request has it: 0 after the last stage. */
double lcomm_warmup_density(const lcomm_policy *policy, uint64_t step);

#endif
