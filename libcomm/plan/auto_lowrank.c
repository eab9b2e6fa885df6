/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/plan/auto_lowrank.h"

#include "libcomm/base/writer.h"
#include "libcomm/plan/plan_make.h"

void lcomm_lowrank_sizes_add(lcomm_lowrank_sizes *sizes, uint64_t rows, uint64_t columns) {
  sizes->count += rows * columns;
  sizes->rows += rows;
  sizes->columns += columns;
  sizes->matrices++;
}

lcomm_plan_request lcomm_lowrank_request(const lcomm_plan_request *request,
                                         const lcomm_codec_spec *values, uint64_t count) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = count,
                              .dtype = LCOMM_FLOAT32,
                              .op = request->op,
                              .location = request->location,
                              .error_feedback = true,
                              .net = {.format = values->format}};
}

/* --------------------------------------------------------------- products */

static double part_us(const lcomm_lowrank_sizes *sizes, double gb_s, double each_us) {
  double bytes = (double)sizes->count * sizeof(float);
  return bytes / gb_s / 1e3 + (double)sizes->matrices * each_us;
}

/* Encoding is P = M Q, decoding all that follows the sum of P. */
double lcomm_lowrank_later_us(const lcomm_topo *topo, const lcomm_lowrank_sizes *sizes) {
  lcomm_codec_speeds speeds = lcomm_auto_speeds(topo, LCOMM_AUTO_LOWRANK);
  return part_us(sizes, speeds.decode_gb_s[LCOMM_STAGE_NET], speeds.decode_us[LCOMM_STAGE_NET]);
}

double lcomm_lowrank_product_us(const lcomm_topo *topo, const lcomm_lowrank_sizes *sizes) {
  lcomm_codec_speeds speeds = lcomm_auto_speeds(topo, LCOMM_AUTO_LOWRANK);
  return part_us(sizes, speeds.encode_gb_s[LCOMM_STAGE_NET], speeds.encode_us[LCOMM_STAGE_NET]) +
         lcomm_lowrank_later_us(topo, sizes);
}

/* ----------------------------------------------------------------- rating */

/* Of a factor with vectors of this length, which travels as exact float32. */
static lcomm_status add_sum(const lcomm_plan_request *request, const lcomm_policy *policy,
                            const lcomm_topo *topo, uint64_t length, double *us, lcomm_why *why) {
  lcomm_codec_spec by = lcomm_auto_candidate(LCOMM_AUTO_LOWRANK);
  lcomm_plan_request of = lcomm_lowrank_request(request, &by, by.rank * length);
  lcomm_plan *plan = NULL;
  LCOMM_TRY(lcomm_plan_outline(&of, policy, topo, 0, 0, &plan, why));
  *us += lcomm_auto_predict_us(plan, topo, 0);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

static lcomm_status rate_whole(const lcomm_plan_request *request, const lcomm_policy *policy,
                               const lcomm_topo *topo, lcomm_lowrank_rating *it, lcomm_why *why) {
  lcomm_plan *plan = NULL;
  LCOMM_TRY(lcomm_plan_create(request, policy, topo, 0, &plan, why));
  it->candidate = plan->automatic.candidate;
  it->whole_us = lcomm_auto_predict_us(plan, topo, it->candidate);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

static bool pays(const lcomm_lowrank_rating *it) {
  bool coarser = it->candidate > LCOMM_AUTO_LOWRANK;
  return coarser ? !lcomm_auto_pays(it->whole_us, it->us) : lcomm_auto_pays(it->us, it->whole_us);
}

lcomm_status lcomm_lowrank_rate(const lcomm_plan_request *request, const lcomm_policy *policy,
                                const lcomm_topo *topo, const lcomm_lowrank_sizes *sizes,
                                lcomm_lowrank_rating *rating, lcomm_why *why) {
  lcomm_lowrank_rating it = {.product_us = lcomm_lowrank_product_us(topo, sizes)};
  it.us = it.product_us;
  LCOMM_TRY(rate_whole(request, policy, topo, &it, why));
  LCOMM_TRY(add_sum(request, policy, topo, sizes->rows, &it.us, why));
  LCOMM_TRY(add_sum(request, policy, topo, sizes->columns, &it.us, why));
  it.taken = topo->hidden_from >= LCOMM_AUTO_LOWRANK && pays(&it);
  *rating = it;
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ words */

static void write_factors(lcomm_writer *w, const lcomm_lowrank_rating *rating) {
  lcomm_plan_write_us(w, rating->us);
  lcomm_write(w, ", ");
  lcomm_plan_write_us(w, rating->product_us);
  lcomm_write(w, " of it for products");
}

const char *lcomm_lowrank_rating_format(const lcomm_lowrank_rating *rating,
                                        char text[LCOMM_LOWRANK_RATING_TEXT_MAX]) {
  lcomm_writer w = lcomm_writer_begin(text, LCOMM_LOWRANK_RATING_TEXT_MAX);
  lcomm_codec_spec factors = lcomm_auto_candidate(LCOMM_AUTO_LOWRANK);
  lcomm_codec_spec whole = lcomm_auto_candidate(rating->candidate);
  char by[64], other[64];
  lcomm_codec_spec_format(&factors, by, sizeof by);
  lcomm_codec_spec_format(&whole, other, sizeof other);
  lcomm_write(&w, "%s, for ", rating->taken ? by : other);
  lcomm_write(&w, "two sums by %s are predicted to take ", by);
  write_factors(&w, rating);
  lcomm_write(&w, ", one by %s ", other);
  lcomm_plan_write_us(&w, rating->whole_us);
  return text;
}
