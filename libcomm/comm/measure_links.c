/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the links between nodes cost, by the time that exact sums take. The latency and the
 * bandwidth are those with which lcomm_plan_predict() gives these times. So they hold what the
 * model leaves out, too: processors that ranks share, and several senders at one receiver. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/call/call_watch.h"
#include "libcomm/comm/measure.h"
#include "libcomm/comm/measure_codecs.h"
#include "libcomm/plan/auto_figures.h"

enum {
  SHORT_COUNT = 1,
  SHORT_TIMES = 8,
  FEW_CHUNKS = 2, /* one alone goes another way through the engine */
  MANY_CHUNKS = 16,
  FIRST_COUNT = 1 << 10, /* elements of the first long sums; the next ones are four times longer */
  LAST_COUNT = 1 << 20,
  LONG_TIMES = 3

};

/* Long sums end when one took so long, or all of them together: on slow links with the first that
 * is long enough, however short. */
static const double ENOUGH_S = 10e-3, BUDGET_S = 25e-3;

typedef struct measuring {
  lcomm_comm *comm;
  float *vector;
} measuring;

/* ------------------------------------------------------------------ the sums */

static lcomm_plan_request request_of(uint64_t count, const lcomm_allreduce_shape *shape) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = count,
                              .dtype = LCOMM_FLOAT32,
                              .op = LCOMM_SUM,
                              .exact = true,
                              .shape = shape};
}

static lcomm_status make_call(lcomm_comm *comm, lcomm_call *call) {
  call->op_kind = LCOMM_OP_KIND_MEASURE;
  return lcomm_call_make(comm, call);
}

/* shape: NULL for that of the rules. */
static lcomm_status time_sum(const measuring *m, uint64_t count, const lcomm_allreduce_shape *shape,
                             double *taken_s) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, m->vector, m->vector, count,
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.request.exact = true;
  call.request.shape = shape;
  double begun_s = lcomm_clock_s();
  lcomm_status status = make_call(m->comm, &call);
  *taken_s = lcomm_clock_s() - begun_s;
  return status;
}

/* Rank 0's number, on all. */
static lcomm_status tell(const measuring *m, void *bytes, size_t size) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, bytes, bytes, size / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  return make_call(m->comm, &call);
}

/* The first ones open connections. */
static lcomm_status time_short(const measuring *m, uint64_t count,
                               const lcomm_allreduce_shape *shape, double *best_s) {
  for (int i = 0; i < SHORT_TIMES; i++) {
    double taken_s = 0;
    LCOMM_TRY(time_sum(m, count, shape, &taken_s));
    *best_s = i == 0 || taken_s < *best_s ? taken_s : *best_s;
  }
  return LCOMM_OK;
}

/* A sum in many chunks of an element for each rank; with one element more for each number of
 * chunks, by which the runs are told apart. */
static lcomm_allreduce_shape shape_in_chunks(const lcomm_comm *comm, uint32_t chunks) {
  return (lcomm_allreduce_shape){.exchange = LCOMM_EXCHANGE_GATHER,
                                 .hierarchical = comm->topo.nodes < comm->topo.size,
                                 .chunks = chunks};
}

static uint64_t count_in_chunks(const lcomm_comm *comm, uint32_t chunks) {
  return (uint64_t)MANY_CHUNKS * (uint64_t)comm->size + chunks;
}

static lcomm_status time_chunks(const measuring *m, uint32_t chunks, double *best_s) {
  lcomm_allreduce_shape shape = shape_in_chunks(m->comm, chunks);
  return time_short(m, count_in_chunks(m->comm, chunks), &shape, best_s);
}

/* What long sums have shown so far. */
typedef struct long_times {
  double spent_s; /* of all of them */
  double best_s;  /* of this length */
} long_times;

/* A link that is limited in rate may let the first bytes pass at once, so the first time does not
 * count where there is another; and others may use the processor, so the shorter one of those does.
 * Stops where rank 0's time is used up. */
static lcomm_status time_again(const measuring *m, uint64_t count, long_times *times) {
  for (int i = 0; i < LONG_TIMES; i++) {
    double taken_s = 0, go_on = 1;
    LCOMM_TRY(time_sum(m, count, NULL, &taken_s));
    times->spent_s += taken_s;
    times->best_s = i < 2 ? taken_s : fmin(times->best_s, taken_s);
    go_on = times->spent_s < BUDGET_S;
    LCOMM_TRY(tell(m, &go_on, sizeof go_on));
    if (go_on == 0) {
      return LCOMM_OK;
    }
  }
  return LCOMM_OK;
}

static lcomm_status time_long(const measuring *m, uint64_t *count, double *taken_s) {
  long_times times = {0, 0};
  double go_on = 1;
  *count = FIRST_COUNT;
  for (;;) {
    LCOMM_TRY(time_again(m, *count, &times));
    *taken_s = times.best_s;
    go_on = times.best_s < ENOUGH_S && times.spent_s < BUDGET_S && *count < LAST_COUNT;
    LCOMM_TRY(tell(m, &go_on, sizeof go_on));
    if (go_on == 0 || *count >= LAST_COUNT) { /* rank 0 may say anything */
      return LCOMM_OK;
    }
    *count *= 4;
  }
}

/* ----------------------------------------------------------------- the model */

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
  lcomm_allreduce_shape shape = shape_in_chunks(comm, chunks);
  LCOMM_TRY(plan_of(comm, count_in_chunks(comm, chunks), &shape, &plan));
  *messages = lcomm_plan_predict(plan, &comm->topo, NULL).message_us /
              lcomm_message_cost_us(&comm->topo.cost[LCOMM_LINK_NET]);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

/* Nothing but messages is more in many chunks. */
static lcomm_status fit_message(lcomm_comm *comm, double few_s, double many_s, double *message_us) {
  double few = 0, many = 0;
  LCOMM_TRY(count_messages(comm, FEW_CHUNKS, &few));
  LCOMM_TRY(count_messages(comm, MANY_CHUNKS, &many));
  double us = many > few ? (many_s - few_s) * 1e6 / (many - few) : 0;
  *message_us = fmin(fmax(us, LEAST_US), MOST_US);
  return LCOMM_OK;
}

/* The prediction is a line in the latency. */
static lcomm_status fit_latency(lcomm_comm *comm, double taken_s, lcomm_link_cost *cost) {
  lcomm_plan *plan = NULL;
  LCOMM_TRY(plan_of(comm, SHORT_COUNT, NULL, &plan));
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

/* --------------------------------------------------------------------- all */

static lcomm_status measure_links(const measuring *m, lcomm_auto_figures *it) {
  double short_s = 0, few_s = 0, many_s = 0, long_s = 0;
  uint64_t count = 0;
  lcomm_link_cost cost = {0};
  LCOMM_TRY(time_short(m, SHORT_COUNT, NULL, &short_s));
  LCOMM_TRY(time_chunks(m, FEW_CHUNKS, &few_s));
  LCOMM_TRY(time_chunks(m, MANY_CHUNKS, &many_s));
  LCOMM_TRY(time_long(m, &count, &long_s));
  LCOMM_TRY(fit_message(m->comm, few_s, many_s, &cost.message_us));
  LCOMM_TRY(fit_latency(m->comm, short_s, &cost));
  LCOMM_TRY(fit_bandwidth(m->comm, count, long_s, &cost));
  it->latency_us = cost.latency_us;
  it->message_us = cost.message_us;
  it->bandwidth_gb_s = cost.bandwidth_gb_s;
  return LCOMM_OK;
}

/* Of all codecs, whatever the class: another policy may come. All ranks do this together,
 * because they will encode together. */
static void measure_codecs(const lcomm_comm *comm, lcomm_auto_figures *it) {
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_codec_spec choice = lcomm_auto_candidate(i);
    it->codec[i] = lcomm_codec_cost_measure(comm->kernels, &choice.format);
  }
}

static lcomm_status take(lcomm_comm *comm, const lcomm_auto_figures *it) {
  char figures[LCOMM_AUTO_FIGURES_TEXT_MAX], text[LCOMM_AUTO_FIGURES_TEXT_MAX + 64];
  if (!lcomm_auto_figures_are_possible(it)) {
    return lcomm_fail_peer(comm, LCOMM_ERR_WIRE, 0,
                           "measuring for net=auto: rank 0 tells figures that cannot be");
  }
  lcomm_auto_figures_put(it, &comm->topo);
  if (comm->rank == 0) {
    snprintf(text, sizeof(text), "net=auto: between nodes were measured %s",
             lcomm_auto_figures_format(&comm->topo, figures));
    lcomm_log_info(text);
  }
  return LCOMM_OK;
}

static lcomm_status measure(lcomm_comm *comm) {
  measuring m = {.comm = comm, .vector = calloc(LAST_COUNT, sizeof *m.vector)};
  lcomm_auto_figures it = lcomm_auto_figures_of(&comm->topo);
  if (!m.vector) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "measuring for net=auto: out of memory");
  }
  lcomm_status status = comm->topo.cost[LCOMM_LINK_NET].assumed ? measure_links(&m, &it) : LCOMM_OK;
  measure_codecs(comm, &it);
  if (status == LCOMM_OK) {
    status = tell(&m, &it, sizeof it);
  }
  free(m.vector);
  lcomm_run_cache_clear(&comm->runs.cache);
  LCOMM_TRY(status);
  return take(comm, &it);
}

lcomm_status lcomm_costs_measure(lcomm_comm *comm) {
  bool acts = comm->topo.nodes > 1 && lcomm_policy_is_automatic(&comm->settings.policy);
  bool known = comm->topo.codec_cost[LCOMM_AUTO_INT8].encode_gb_s > 0;
  LCOMM_TRY(acts && !known ? measure(comm) : LCOMM_OK);
  return lcomm_call_watch_renew(comm);
}

void lcomm_costs_inherit(lcomm_comm *part, const lcomm_comm *whole) {
  const lcomm_topo *topo = lcomm_topo_of_calls(whole);
  memcpy(part->topo.cost, topo->cost, sizeof(part->topo.cost));
  memcpy(part->topo.codec_cost, topo->codec_cost, sizeof(part->topo.codec_cost));
  (void)lcomm_call_watch_renew(part); /* sticky */
}
