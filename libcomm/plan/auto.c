/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/auto.h"

_Static_assert((int)LCOMM_AUTO_COUNT == (int)LCOMM_AUTO_CODECS, "a candidate for each class");

/* Measured on recorded gradients of float32: what the lossless stage leaves. */
static const double LOSSLESS_SHARE = 0.87;

/* The lossless stage may gain nothing on other data. It is tried where it costs less than this
 * share of the time on the wire. */
static const double LOSSLESS_RISK = 0.02;

/* A coarser codec must gain this share: predictions are not exact, and errors are not free. */
static const double GAIN = 0.05;

/* Another exchange, or other chunks, than those of the rules, which were chosen by measurements,
 * must gain this share. */
static const double SHAPE_GAIN = 0.1;

/* One core of a server of today, for plans of machines that are not there. Of exact sums only the
 * adding counts. Low rank: kernels/README.md. */
static const lcomm_codec_cost assumed[LCOMM_AUTO_CODECS] = {
    {0, 10, 0, 0},    {0.6, 1.2, 20, 10}, {12, 12, 0.1, 0.1}, {8, 8, 0.1, 0.1}, {6, 8, 0.1, 0.1},
    {6, 8, 0.1, 0.1}, {6, 8, 0.1, 0.1},   {6, 3, 1, 3},       {2, 20, 5, 1}};

/* --------------------------------------------------------------- prediction */

lcomm_codec_speeds lcomm_auto_speeds(const lcomm_topo *topo, int candidate) {
  const lcomm_codec_cost *cost = &topo->codec_cost[candidate];
  lcomm_codec_speeds speeds = {0};
  cost = cost->decode_gb_s > 0 ? cost : &assumed[candidate];
  for (int stage = LCOMM_STAGE_NET; stage <= LCOMM_STAGE_RESULT; stage++) {
    speeds.encode_gb_s[stage] = cost->encode_gb_s;
    speeds.decode_gb_s[stage] = cost->decode_gb_s;
    speeds.encode_us[stage] = cost->encode_us;
    speeds.decode_us[stage] = cost->decode_us;
  }
  return speeds;
}

lcomm_plan_time lcomm_auto_predict(const lcomm_plan *plan, const lcomm_topo *topo, int candidate) {
  lcomm_codec_speeds speeds = lcomm_auto_speeds(topo, candidate);
  lcomm_plan_time time = lcomm_plan_predict(plan, topo, &speeds);
  double gain_us = (1 - LOSSLESS_SHARE) * time.link_us[LCOMM_LINK_NET];
  bool risky = time.codec_us > LOSSLESS_RISK * time.link_us[LCOMM_LINK_NET];
  if (candidate == LCOMM_AUTO_LOSSLESS && !risky) {
    time.link_us[LCOMM_LINK_NET] -= gain_us;
    time.total_us -= gain_us;
  }
  return time;
}

double lcomm_auto_predict_us(const lcomm_plan *plan, const lcomm_topo *topo, int candidate) {
  return lcomm_auto_predict(plan, topo, candidate).total_us;
}

bool lcomm_auto_pays(double us, double milder_us) {
  return us < (1 - GAIN) * milder_us;
}

bool lcomm_auto_shape_pays(double us, double ruled_us) {
  return us < (1 - SHAPE_GAIN) * ruled_us;
}
