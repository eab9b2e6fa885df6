/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <math.h>

#include "libcomm/comm/measure_links.h"

static lcomm_plan_request request_of(uint64_t count, const lcomm_allreduce_shape *shape) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = count,
                              .dtype = LCOMM_FLOAT32,
                              .op = LCOMM_SUM,
                              .exact = true,
                              .shape = shape};
}

static double predict_s(const lcomm_plan *plan, const lcomm_topo *topo, lcomm_link_cost cost) {
  lcomm_topo other = *topo; /* lends its lists */
  other.cost[LCOMM_LINK_NET] = cost;
  return lcomm_plan_predict(plan, &other, NULL).total_us * 1e-6;
}

/* Of an exact sum of so many elements. */
static lcomm_status plan_of(lcomm_comm *comm, uint64_t count, const lcomm_allreduce_shape *shape,
                            lcomm_plan **plan) {
  lcomm_plan_request request = request_of(count, shape);
  lcomm_why why;
  lcomm_status status =
      lcomm_plan_create(&request, &comm->settings.policy, &comm->topo, comm->rank, plan, &why);
  if (status != LCOMM_OK) {
    return lcomm_fail(comm, status, "measuring for net=auto: %s", why.text);
  }
  return LCOMM_OK;
}

static const double FAST_GB_S = 1e6, LEAST_US = 0.01, MOST_US = 1e6;

/* Of the rank, both ways. */
static lcomm_status count_messages(lcomm_comm *comm, uint32_t chunks, double *messages) {
  lcomm_plan *plan = NULL;
  lcomm_allreduce_shape shape = lcomm_measure_shape(comm, chunks);
  LCOMM_TRY(plan_of(comm, lcomm_measure_count(comm, chunks), &shape, &plan));
  *messages = lcomm_plan_predict(plan, &comm->topo, NULL).message_us /
              lcomm_message_cost_us(&comm->topo.cost[LCOMM_LINK_NET]);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

/* Nothing but messages is more in many chunks. */
static lcomm_status fit_message(lcomm_comm *comm, double few_s, double many_s, double *message_us) {
  double few = 0, many = 0;
  LCOMM_TRY(count_messages(comm, LCOMM_MEASURE_FEW, &few));
  LCOMM_TRY(count_messages(comm, LCOMM_MEASURE_MANY, &many));
  double us = many > few ? (many_s - few_s) * 1e6 / (many - few) : 0;
  *message_us = fmin(fmax(us, LEAST_US), MOST_US);
  return LCOMM_OK;
}

/* The prediction is a line in the latency. */
static lcomm_status fit_latency(lcomm_comm *comm, double taken_s, lcomm_link_cost *cost) {
  lcomm_plan *plan = NULL;
  LCOMM_TRY(plan_of(comm, LCOMM_MEASURE_SHORT, NULL, &plan));
  lcomm_link_cost none = {.bandwidth_gb_s = FAST_GB_S, .message_us = cost->message_us}, one = none;
  one.latency_us = 1;
  double none_s = predict_s(plan, &comm->topo, none);
  double each_s = predict_s(plan, &comm->topo, one) - none_s;
  double us = each_s > 0 ? (taken_s - none_s) / each_s : LEAST_US;
  cost->latency_us = fmin(fmax(us, LEAST_US), MOST_US);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

/* The prediction falls with the bandwidth: by halving the interval of its logarithm. */
static lcomm_status fit_bandwidth(lcomm_comm *comm, uint64_t count, double taken_s,
                                  lcomm_link_cost *cost) {
  enum { HALVINGS = 40 };
  double low = 1e-4, high = 1e4;
  lcomm_plan *plan = NULL;
  LCOMM_TRY(plan_of(comm, count, NULL, &plan));
  for (int i = 0; i < HALVINGS; i++) {
    cost->bandwidth_gb_s = sqrt(low * high);
    bool slower = predict_s(plan, &comm->topo, *cost) > taken_s;
    low = slower ? cost->bandwidth_gb_s : low;
    high = slower ? high : cost->bandwidth_gb_s;
  }
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

lcomm_status lcomm_links_fit(lcomm_comm *comm, const lcomm_sum_times *times,
                             lcomm_auto_figures *figures) {
  lcomm_link_cost cost = {0};
  LCOMM_TRY(fit_message(comm, times->few_s, times->many_s, &cost.message_us));
  LCOMM_TRY(fit_latency(comm, times->short_s, &cost));
  LCOMM_TRY(fit_bandwidth(comm, times->long_count, times->long_s, &cost));
  figures->latency_us = cost.latency_us;
  figures->message_us = cost.message_us;
  figures->bandwidth_gb_s = cost.bandwidth_gb_s;
  return LCOMM_OK;
}
