/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/warmup.h"

/* After `interval` steps of momentum comes one of gradients, and the interval doubles. */
static bool refreshes(uint64_t interval, uint64_t step) {
  while (interval > 0 && step > interval) {
    step -= interval + 1;
    interval = interval > UINT64_MAX / 4 ? UINT64_MAX / 2 : 2 * interval;
  }
  return interval > 0 && step == interval;
}

bool lcomm_warmup_sends_momentum(const lcomm_policy *policy, uint64_t step) {
  return policy->adam.onebit && step >= policy->warmup_steps &&
         !refreshes(policy->adam.refresh, step - policy->warmup_steps);
}

bool lcomm_warmup_is_exact(const lcomm_policy *policy, uint64_t step) {
  return step < policy->warmup_steps;
}

bool lcomm_warmup_tensors_are_exact(const lcomm_policy *policy, uint64_t step) {
  return policy->adam.onebit ? !lcomm_warmup_sends_momentum(policy, step)
                             : lcomm_warmup_is_exact(policy, step);
}

double lcomm_warmup_density(const lcomm_policy *policy, uint64_t step) {
  uint64_t end = policy->warmup_steps;
  for (unsigned i = 0; i < policy->ramp.count; i++) {
    end += policy->ramp.stages[i].steps;
    if (step < end) {
      return policy->ramp.stages[i].density;
    }
  }
  return 0;
}
