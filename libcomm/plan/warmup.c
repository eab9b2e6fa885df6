/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/warmup.h"

bool lcomm_warmup_is_exact(const lcomm_policy *policy, uint64_t step) {
  return step < policy->warmup_steps;
}

double lcomm_warmup_density(const lcomm_policy *policy, uint64_t step) {
  uint64_t end = policy->warmup_steps;
  for (unsigned i = 0; i < policy->ramp_count; i++) {
    end += policy->ramp[i].steps;
    if (step < end) {
      return policy->ramp[i].density;
    }
  }
  return 0;
}
