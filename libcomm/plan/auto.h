/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_AUTO_H
#define LCOMM_PLAN_AUTO_H

/* The predicted times by which net=auto:CLASS chooses (auto_choose.h): what lcomm_plan_predict()
 * says of a plan with the speeds of its codec, and how much of it another choice must gain. The
 * inputs are equal on all ranks (the costs come from rank 0), and so is the choice. */

#include "libcomm/plan/cost.h"

/* What the codecs of a candidate's plan cost: as measured, else a guess. */
lcomm_codec_speeds lcomm_auto_speeds(const lcomm_topo *topo, int candidate);

/* The time of a candidate's plan in microseconds. Of the lossless stage, whose sizes depend on the
 * data, the size is that of recorded gradients. */
double lcomm_auto_predict_us(const lcomm_plan *plan, const lcomm_topo *topo, int candidate);

/* The same in its parts. */
lcomm_plan_time lcomm_auto_predict(const lcomm_plan *plan, const lcomm_topo *topo, int candidate);

/* Is `us` so much less than `milder_us`, the time of a milder codec, that it pays? */
bool lcomm_auto_pays(double us, double milder_us);

/* Is `us` so much less than `ruled_us`, the time of the plan that the rules make with the same
 * codec, that another exchange or other chunks pay? */
bool lcomm_auto_shape_pays(double us, double ruled_us);

#endif
