/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Figures of a check, and what follows from them. All ranks have the same numbers, and float64
 * arithmetic in one order gives them the same figures. */

#include <math.h>

#include "libcomm/tensor/guard.h"

bool lcomm_guard_compare(const float *sums, const float *residuals, const float *results,
                         uint64_t count, lcomm_guard_figures *figures) {
  double exact = 0, made = 0, both = 0, apart = 0, late = 0;
  for (uint64_t i = 0; i < count; i++) {
    double sum = (double)sums[i], result = (double)results[i];
    double left = sum + (residuals ? (double)residuals[i] : 0) - result;
    exact += sum * sum;
    made += result * result;
    both += sum * result;
    apart += (result - sum) * (result - sum);
    late += left * left;
  }
  if (!(exact > 0) || !isfinite(exact) || !isfinite(made) || !isfinite(apart) || !isfinite(late)) {
    return false;
  }
  figures->samples = count;
  figures->error = sqrt(apart / exact);
  figures->cosine = made > 0 ? both / sqrt(exact * made) : 0;
  figures->residual = residuals ? sqrt(late / exact) : 0;
  return true;
}

static lcomm_guard_verdict fall(lcomm_guarded *guarded) {
  if (guarded->came_back) {
    guarded->patience *= guarded->patience < UINT64_MAX / 2 ? 2 : 1;
  }
  guarded->came_back = false;
  guarded->rungs++;
  return LCOMM_GUARD_FALL;
}

lcomm_guard_verdict lcomm_guard_evaluate(const lcomm_guard_policy *policy, bool has_residual,
                                         bool has_milder, lcomm_guarded *guarded) {
  lcomm_guard_figures *figures = &guarded->figures;
  bool beyond =
      has_residual ? figures->residual > policy->residual : figures->error > policy->limit;
  figures->beyond = beyond;
  guarded->good = beyond ? 0 : guarded->good + 1;
  if (policy->report) {
    return LCOMM_GUARD_STAY;
  }
  if (beyond && has_milder) {
    return fall(guarded);
  }
  if (guarded->rungs == 0 || guarded->good < guarded->patience) {
    return LCOMM_GUARD_STAY;
  }
  guarded->good = 0;
  guarded->came_back = true;
  guarded->rungs--;
  return LCOMM_GUARD_RETURN;
}
