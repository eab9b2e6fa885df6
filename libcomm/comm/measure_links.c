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
#include "libcomm/call/call.h"
#include "libcomm/comm/measure.h"
#include "libcomm/plan/auto.h"

enum {
  SHORT_COUNT = 1,
  SHORT_TIMES = 8,
  FIRST_COUNT = 16 << 10, /* elements of the first long sum; each one is four times longer */
  LAST_COUNT = 1 << 20

};

/* Longer sums follow while the last one took less than this. */
static const double ENOUGH_S = 10e-3;

typedef struct measuring {
  lcomm_comm *comm;
  float *vector;
} measuring;

/* What rank 0 tells the others; travels as whole words. */
typedef struct figures {
  double latency_us, bandwidth_gb_s;
  lcomm_codec_cost codec[LCOMM_AUTO_CODECS];
} figures;

_Static_assert(sizeof(figures) % sizeof(float) == 0, "figures are whole words");

/* ------------------------------------------------------------------ the sums */

static lcomm_plan_request request_of(uint64_t count) {
  return (lcomm_plan_request){.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                              .count = count,
                              .dtype = LCOMM_FLOAT32,
                              .op = LCOMM_SUM,
                              .exact = true};
}

static lcomm_status make_call(lcomm_comm *comm, lcomm_call *call) {
  call->op_kind = LCOMM_OP_KIND_MEASURE;
  return lcomm_call_make(comm, call);
}

static lcomm_status time_sum(const measuring *m, uint64_t count, double *taken_s) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, m->vector, m->vector, count,
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.request.exact = true;
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
static lcomm_status time_short(const measuring *m, double *best_s) {
  for (int i = 0; i < SHORT_TIMES; i++) {
    double taken_s = 0;
    LCOMM_TRY(time_sum(m, SHORT_COUNT, &taken_s));
    *best_s = i == 0 || taken_s < *best_s ? taken_s : *best_s;
  }
  return LCOMM_OK;
}

/* A link that is limited in rate may let the first bytes pass at once, so each length is summed
 * twice and the second time counts. */
static lcomm_status time_long(const measuring *m, uint64_t *count, double *taken_s) {
  double go_on = 1;
  *count = FIRST_COUNT;
  for (;;) {
    LCOMM_TRY(time_sum(m, *count, taken_s));
    LCOMM_TRY(time_sum(m, *count, taken_s));
    go_on = *taken_s < ENOUGH_S && *count < LAST_COUNT;
    LCOMM_TRY(tell(m, &go_on, sizeof go_on));
    if (go_on == 0 || *count >= LAST_COUNT) { /* rank 0 may say anything */
      return LCOMM_OK;
    }
    *count *= 4;
  }
}

/* ----------------------------------------------------------------- the model */

static double predict_s(const lcomm_plan *plan, lcomm_topo *topo, double latency_us,
                        double bandwidth_gb_s) {
  lcomm_link_cost given = topo->cost[LCOMM_LINK_NET];
  topo->cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = latency_us, .bandwidth_gb_s = bandwidth_gb_s};
  double us = lcomm_plan_predict(plan, topo, NULL).total_us;
  topo->cost[LCOMM_LINK_NET] = given;
  return us * 1e-6;
}

/* Of an exact sum of so many elements. */
static lcomm_status plan_of(lcomm_comm *comm, uint64_t count, lcomm_plan **plan) {
  lcomm_plan_request request = request_of(count);
  lcomm_why why;
  lcomm_status status =
      lcomm_plan_create(&request, &comm->settings.policy, &comm->topo, comm->rank, plan, &why);
  return status == LCOMM_OK ? LCOMM_OK
                            : lcomm_fail(comm, status, "measuring for net=auto: %s", why.text);
}

/* The prediction is a line in the latency. */
static lcomm_status fit_latency(lcomm_comm *comm, double taken_s, double *latency_us) {
  static const double FAST_GB_S = 1e6, LEAST_US = 0.1, MOST_US = 1e6;
  lcomm_plan *plan = NULL;
  LCOMM_TRY(plan_of(comm, SHORT_COUNT, &plan));
  double none_s = predict_s(plan, &comm->topo, 0, FAST_GB_S);
  double each_s = predict_s(plan, &comm->topo, 1, FAST_GB_S) - none_s;
  double us = each_s > 0 ? (taken_s - none_s) / each_s : LEAST_US;
  us = us < LEAST_US ? LEAST_US : us;
  *latency_us = us > MOST_US ? MOST_US : us;
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

/* The prediction falls with the bandwidth: by halving the interval of its logarithm. */
static lcomm_status fit_bandwidth(lcomm_comm *comm, uint64_t count, double taken_s,
                                  double latency_us, double *bandwidth_gb_s) {
  enum { HALVINGS = 40 };
  double low = 1e-4, high = 1e4;
  lcomm_plan *plan = NULL;
  LCOMM_TRY(plan_of(comm, count, &plan));
  for (int i = 0; i < HALVINGS; i++) {
    double middle = sqrt(low * high);
    bool slower = predict_s(plan, &comm->topo, latency_us, middle) > taken_s;
    low = slower ? middle : low;
    high = slower ? high : middle;
  }
  *bandwidth_gb_s = low;
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

/* --------------------------------------------------------------------- all */

static lcomm_status measure_links(const measuring *m, figures *it) {
  double short_s = 0, long_s = 0;
  uint64_t count = 0;
  LCOMM_TRY(time_short(m, &short_s));
  LCOMM_TRY(time_long(m, &count, &long_s));
  LCOMM_TRY(fit_latency(m->comm, short_s, &it->latency_us));
  return fit_bandwidth(m->comm, count, long_s, it->latency_us, &it->bandwidth_gb_s);
}

/* Of all codecs, whatever the class: another policy may come. All ranks do this together,
 * because they will encode together. */
static void measure_codecs(const lcomm_comm *comm, figures *it) {
  for (int i = 1; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_codec_choice choice = lcomm_auto_candidate(i);
    it->codec[i] = lcomm_codec_cost_measure(comm->kernels, &choice.format);
  }
}

/* Figures of a peer may be anything. */
static bool are_possible(const figures *it) {
  bool possible = it->latency_us > 0 && it->latency_us < 1e9 && it->bandwidth_gb_s > 0 &&
                  it->bandwidth_gb_s < 1e9;
  for (int i = 1; i < LCOMM_AUTO_CODECS; i++) {
    possible &= it->codec[i].encode_gb_s >= 0 && it->codec[i].encode_gb_s < 1e9 &&
                it->codec[i].decode_gb_s >= 0 && it->codec[i].decode_gb_s < 1e9;
  }
  return possible;
}

static lcomm_status take(lcomm_comm *comm, const figures *it) {
  char text[160];
  if (!are_possible(it)) {
    return lcomm_fail_peer(comm, LCOMM_ERR_WIRE, 0,
                           "measuring for net=auto: rank 0 tells figures that cannot be");
  }
  comm->topo.cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = it->latency_us, .bandwidth_gb_s = it->bandwidth_gb_s};
  memcpy(comm->topo.codec_cost, it->codec, sizeof(comm->topo.codec_cost));
  if (comm->rank == 0) {
    snprintf(text, sizeof(text),
             "net=auto: between nodes %.3g us and %.3g GB/s were measured; int8 encodes %.3g GB/s",
             it->latency_us, it->bandwidth_gb_s, it->codec[LCOMM_AUTO_INT8].encode_gb_s);
    lcomm_log_info(text);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_costs_measure(lcomm_comm *comm) {
  const lcomm_link_cost *given = &comm->topo.cost[LCOMM_LINK_NET];
  measuring m = {.comm = comm};
  figures it = {.latency_us = given->latency_us, .bandwidth_gb_s = given->bandwidth_gb_s};
  if (comm->topo.nodes < 2 || !lcomm_policy_is_automatic(&comm->settings.policy) ||
      comm->topo.codec_cost[LCOMM_AUTO_INT8].encode_gb_s > 0) {
    return LCOMM_OK;
  }
  m.vector = calloc(LAST_COUNT, sizeof *m.vector);
  if (!m.vector) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "measuring for net=auto: out of memory");
  }
  lcomm_status status = given->assumed ? measure_links(&m, &it) : LCOMM_OK;
  measure_codecs(comm, &it);
  if (status == LCOMM_OK) {
    status = tell(&m, &it, sizeof it);
  }
  free(m.vector);
  lcomm_run_cache_clear(&comm->runs.cache);
  return status == LCOMM_OK ? take(comm, &it) : status;
}

void lcomm_costs_inherit(lcomm_comm *part, const lcomm_comm *whole) {
  memcpy(part->topo.cost, whole->topo.cost, sizeof(part->topo.cost));
  memcpy(part->topo.codec_cost, whole->topo.codec_cost, sizeof(part->topo.codec_cost));
}
