/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/auto_revise.h"

#include <math.h>
#include <stdio.h>

#include "libcomm/base/clock.h"
#include "libcomm/call/call.h"
#include "libcomm/plan/auto.h"
#include "libcomm/plan/warmup.h"
#include "libcomm/tensor/bucket.h"

/* The least time counts: late ranks make others longer. */
enum { FIRST_STEPS = 4, MOST_STEPS = 256 };

static const double OFF = 1.5;         /* a prediction that differs by half is wrong */
static const double WINDOW_USED = 0.9; /* of the window, as much may be filled */

/* What rank 0 tells the others; travels as whole words. */
typedef struct revision {
  double bandwidth_gb_s;
  int32_t hidden_from;
  uint32_t changed;
} revision;

_Static_assert(sizeof(revision) % sizeof(float) == 0, "a revision is whole words");

/* ------------------------------------------------------------------ watching */

void lcomm_auto_watch_begin(lcomm_auto_watch *watch) {
  double now_s = lcomm_clock_s();
  watch->begun_s = watch->begun_s > 0 ? watch->begun_s : now_s;
  if (watch->in_flight++ == 0) {
    watch->busy_since_s = now_s;
  }
}

void lcomm_auto_watch_end(lcomm_auto_watch *watch) {
  if (--watch->in_flight == 0) {
    watch->busy_s += lcomm_clock_s() - watch->busy_since_s;
  }
}

void lcomm_auto_watch_wait(lcomm_auto_watch *watch) {
  watch->window_s = watch->begun_s > 0 ? lcomm_clock_s() - watch->begun_s : 0;
}

/* The first step of new plans opens connections, and compares tensors before its sums. Without a
 * progress thread a sum that began before the wait was in flight without moving. */
static void count_step(lcomm_auto_watch *watch, bool moves) {
  if (!watch->counts || (watch->window_s > 0 && !moves)) {
    watch->counts = true;
    watch->begun_s = watch->busy_s = watch->window_s = 0;
    return;
  }
  bool first = watch->least_busy_s == 0;
  watch->least_busy_s = first ? watch->busy_s : fmin(watch->least_busy_s, watch->busy_s);
  watch->least_window_s = first ? watch->window_s : fmin(watch->least_window_s, watch->window_s);
  watch->begun_s = watch->busy_s = watch->window_s = 0;
}

/* The steps 4, 16, 64, and from 256 on every 256th. */
static bool is_agreed(uint64_t step) {
  uint64_t at = FIRST_STEPS;
  while (at < step && at < MOST_STEPS) {
    at *= 4;
  }
  return step > 0 && (step == at || (at == MOST_STEPS && step % MOST_STEPS == 0));
}

/* ----------------------------------------------------------------- predicting */

static double predict_run_s(const lcomm_comm *comm, const lcomm_bucket *bucket) {
  const lcomm_run *run = bucket->ef.run ? bucket->ef.run : bucket->ef.exact_run;
  return run ? lcomm_auto_predict_us(run->plan, &comm->topo, run->plan->automatic.candidate) * 1e-6
             : 0;
}

/* Of the sums that were measured, one after the other. */
static double predict_measured_s(const lcomm_comm *comm) {
  double sum_s = 0;
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    sum_s += predict_run_s(comm, &comm->tensors->buckets[i]);
  }
  return sum_s;
}

/* The same as plans would be made now. */
static lcomm_status predict_planned_s(const lcomm_comm *comm, double *sum_s) {
  *sum_s = 0;
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    lcomm_plan *plan = NULL;
    LCOMM_TRY(lcomm_ef_make_plan(&comm->tensors->buckets[i].ef, false, 0, &plan));
    *sum_s += lcomm_auto_predict_us(plan, &comm->topo, plan->automatic.candidate) * 1e-6;
    lcomm_plan_destroy(plan);
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ revising */

/* The bandwidth with which the predictions are what was measured. */
static void fit_bandwidth(lcomm_comm *comm, double busy_s) {
  enum { HALVINGS = 40 };
  static const double RANGE = 1024;
  lcomm_link_cost *net = &comm->topo.cost[LCOMM_LINK_NET];
  double low = net->bandwidth_gb_s / RANGE, high = net->bandwidth_gb_s * RANGE;
  for (int i = 0; i < HALVINGS; i++) {
    net->bandwidth_gb_s = sqrt(low * high);
    bool slower = predict_measured_s(comm) > busy_s;
    low = slower ? net->bandwidth_gb_s : low;
    high = slower ? high : net->bandwidth_gb_s;
  }
}

/* The mildest limit with which the sums of a step fit into the window. */
static lcomm_status find_hidden(lcomm_comm *comm, double window_s) {
  int *from = &comm->topo.hidden_from;
  for (*from = 0; *from < LCOMM_AUTO_CODECS - 1; ++*from) {
    double sum_s = 0;
    LCOMM_TRY(predict_planned_s(comm, &sum_s));
    if (sum_s < WINDOW_USED * window_s) {
      return LCOMM_OK;
    }
  }
  *from = LCOMM_AUTO_CODECS;
  return LCOMM_OK;
}

static void tell_bandwidth(const lcomm_comm *comm, double busy_s, double predicted_s) {
  char text[256];
  snprintf(text, sizeof(text),
           "net=auto: in step %llu sums were in flight for %.3g ms where %.3g ms were predicted; "
           "links between nodes are taken for %.3g GB/s from here on",
           (unsigned long long)comm->deferred.step, busy_s * 1e3, predicted_s * 1e3,
           comm->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s);
  lcomm_log_info(text);
}

/* Rank 0: what all ranks shall take. */
static lcomm_status revise(lcomm_comm *comm, const lcomm_auto_watch *watch, revision *it) {
  int hidden_from = comm->topo.hidden_from;
  double predicted_s = predict_measured_s(comm), busy_s = watch->least_busy_s;
  bool off = busy_s > 0 && (busy_s > OFF * predicted_s || predicted_s > OFF * busy_s);
  if (off) {
    fit_bandwidth(comm, busy_s);
    tell_bandwidth(comm, busy_s, predicted_s);
  }
  LCOMM_TRY(find_hidden(comm, watch->least_window_s));
  *it = (revision){.bandwidth_gb_s = comm->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s,
                   .hidden_from = comm->topo.hidden_from,
                   .changed = off || hidden_from != comm->topo.hidden_from};
  return LCOMM_OK;
}

static lcomm_status take(lcomm_comm *comm, const revision *it) {
  if (!(it->bandwidth_gb_s > 0 && it->bandwidth_gb_s < 1e12) || it->hidden_from < 0 ||
      it->hidden_from > LCOMM_AUTO_CODECS) {
    return lcomm_fail_peer(comm, LCOMM_ERR_WIRE, 0, "net=auto: rank 0 tells what cannot be");
  }
  if (it->changed == 0) {
    return LCOMM_OK;
  }
  comm->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s = it->bandwidth_gb_s;
  comm->topo.hidden_from = it->hidden_from;
  comm->tensors->watch = (lcomm_auto_watch){0};
  lcomm_run_cache_clear(&comm->runs.cache);
  LCOMM_TRY(lcomm_buckets_dissolve(comm));
  return lcomm_buckets_plan(comm);
}

lcomm_status lcomm_auto_step_over(lcomm_comm *comm) {
  lcomm_auto_watch *watch = &comm->tensors->watch;
  const lcomm_policy *policy = &comm->settings.policy;
  uint64_t step = comm->deferred.step;
  revision it = {0};
  bool acts = lcomm_policy_is_automatic(policy) && comm->topo.nodes > 1 &&
              !lcomm_warmup_is_exact(policy, step > 0 ? step - 1 : 0);
  count_step(watch, comm->progress_thread != NULL);
  if (!acts || !is_agreed(step)) {
    return LCOMM_OK;
  }
  if (comm->rank == 0) {
    LCOMM_TRY(revise(comm, watch, &it));
  }
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, &it, &it, sizeof it / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.op_kind = LCOMM_OP_KIND_TENSORS;
  LCOMM_TRY(lcomm_tensors_call(comm, &call));
  watch->least_busy_s = 0;
  return take(comm, &it);
}
