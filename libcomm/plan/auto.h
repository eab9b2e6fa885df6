/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_AUTO_H
#define LCOMM_PLAN_AUTO_H

/* The choice of a codec by predicted time (net=auto:CLASS). A plan is made for each candidate
 * (policy.h), lcomm_plan_predict() says how long it would take on these links with these codecs,
 * and a coarser codec wins only by a twentieth of the time. The inputs are equal on all ranks (the
 * costs come from rank 0), and so is the choice. */

#include "libcomm/plan/cost.h"

/* The time of a candidate's plan in microseconds. Of the lossless stage, whose sizes depend on the
 * data, the size is that of recorded gradients. */
double lcomm_auto_predict_us(const lcomm_plan *plan, const lcomm_topo *topo, int candidate);

/* Is `us` so much less than `milder_us`, the time of a milder codec, that it pays? */
bool lcomm_auto_pays(double us, double milder_us);

/* The predicted times of the candidates of one choice, for people. */
typedef struct lcomm_auto_times {
  double us[LCOMM_AUTO_CODECS]; /* 0: not allowed, or the policy does not let it act */
} lcomm_auto_times;

/* Put "predicted none 1.95 ms, int8 412 us" before the reason of the plan. */
void lcomm_auto_explain(lcomm_plan *plan, const lcomm_auto_times *times);

#endif
