/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/auto_revise.h"

#include <math.h>
#include <stdio.h>

#include "libcomm/base/clock.h"
#include "libcomm/call/call.h"
#include "libcomm/plan/auto_figures.h"
#include "libcomm/plan/warmup.h"
#include "libcomm/tensor/bucket.h"

static const double WINDOW_USED = 0.9; /* of the window, as much may be filled */

/* What rank 0 tells the others; travels as whole words. */
typedef struct revision {
  lcomm_auto_figures figures;
  int32_t hidden_from;
  uint32_t changed;
} revision;

_Static_assert(sizeof(revision) % sizeof(float) == 0, "a revision is whole words");

/* ------------------------------------------------------------------ watching */

static bool watches(const lcomm_comm *comm) {
  return comm->runs.watch != NULL; /* where net=auto acts on calls, it acts on tensors, too */
}

void lcomm_auto_watch_begin(lcomm_comm *comm) {
  lcomm_auto_watch *watch = &comm->tensors->watch;
  if (!watches(comm)) {
    return;
  }
  double now_s = lcomm_clock_s();
  watch->begun_s = watch->begun_s > 0 ? watch->begun_s : now_s;
  if (watch->in_flight++ == 0) {
    watch->busy_since_s = now_s;
  }
}

void lcomm_auto_watch_end(lcomm_comm *comm) {
  lcomm_auto_watch *watch = &comm->tensors->watch;
  if (!watches(comm)) {
    return;
  }
  if (--watch->in_flight == 0) {
    watch->busy_s += lcomm_clock_s() - watch->busy_since_s;
  }
}

void lcomm_auto_watch_wait(lcomm_comm *comm) {
  lcomm_auto_watch *watch = &comm->tensors->watch;
  if (!watches(comm)) {
    return;
  }
  watch->window_s = watch->begun_s > 0 ? lcomm_clock_s() - watch->begun_s : 0;
}

/* The first step of new plans opens connections, and compares tensors before its sums. Without a
 * progress thread a sum that began before the wait was in flight without moving. The least time
 * counts: late ranks make others longer. */
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

/* ----------------------------------------------------------------- predicting */

static void add(lcomm_plan_time *sum, const lcomm_plan_time *time) {
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    sum->link_us[link] += time->link_us[link];
  }
  sum->codec_us += time->codec_us;
  sum->message_us += time->message_us;
  sum->latency_us += time->latency_us;
  sum->total_us += time->total_us;
}

static void add_run(lcomm_plan_time *sum, const lcomm_run *run, const lcomm_topo *topo) {
  if (run) {
    lcomm_plan_time time = lcomm_auto_predict(run->plan, topo, run->plan->automatic.candidate);
    add(sum, &time);
  }
}

/* Those of low rank are two, and products are in flight with them, but for the first ones. */
static void add_sums(lcomm_plan_time *sum, const lcomm_bucket *bucket, const lcomm_topo *topo) {
  const lcomm_ef *ef = &bucket->ef;
  const lcomm_ef_lowrank *lowrank = &ef->lowrank;
  const lcomm_run *run = ef->run ? ef->run : ef->exact_run;
  add_run(sum, lowrank->left.run ? lowrank->left.run : run, topo);
  add_run(sum, lowrank->right.run, topo);
  if (lowrank->right.run) {
    lcomm_lowrank_sizes sizes = lcomm_bucket_lowrank_sizes(bucket);
    double product_us = lcomm_lowrank_later_us(topo, &sizes);
    sum->codec_us += product_us;
    sum->total_us += product_us;
  }
}

/* Of the sums that were measured, one after the other. */
static lcomm_plan_time predict_measured(const void *context, const lcomm_topo *topo) {
  const lcomm_tensor_set *tensors = context;
  lcomm_plan_time sum = {0};
  for (size_t i = 0; i < tensors->bucket_count; i++) {
    add_sums(&sum, &tensors->buckets[i], topo);
  }
  return sum;
}

/* Of a bucket as it would be planned now. */
static lcomm_status predict_bucket_us(const lcomm_bucket *bucket, double *us) {
  const lcomm_topo *topo = &bucket->comm->topo;
  lcomm_plan *plan = NULL;
  if (lcomm_bucket_may_choose_lowrank(bucket)) {
    lcomm_lowrank_rating rating = {.us = 0};
    LCOMM_TRY(lcomm_bucket_rate_lowrank(bucket, &rating));
    *us = rating.taken ? rating.us : rating.whole_us;
    return LCOMM_OK;
  }
  if (bucket->ef.lowrank.rank > 0) { /* in its own way whatever links cost */
    lcomm_plan_time time = {0};
    add_sums(&time, bucket, topo);
    *us = time.total_us;
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_ef_make_plan(&bucket->ef, false, 0, &plan));
  *us = lcomm_auto_predict_us(plan, topo, plan->automatic.candidate);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

static lcomm_status predict_planned_s(const lcomm_comm *comm, double *sum_s) {
  *sum_s = 0;
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    double us = 0;
    LCOMM_TRY(predict_bucket_us(&comm->tensors->buckets[i], &us));
    *sum_s += us * 1e-6;
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ revising */

/* Do the sums of a step, planned with this limit, fit into the window? */
static lcomm_status is_hidden(lcomm_comm *comm, int from, double window_s, bool *hidden) {
  double sum_s = 0;
  comm->topo.hidden_from = from;
  LCOMM_TRY(predict_planned_s(comm, &sum_s));
  *hidden = sum_s < WINDOW_USED * window_s;
  return LCOMM_OK;
}

/* The mildest limit with which they do; none where not even the coarsest codecs help. */
static lcomm_status find_hidden(lcomm_comm *comm, double window_s) {
  bool hidden = false;
  LCOMM_TRY(is_hidden(comm, LCOMM_AUTO_CODECS, window_s, &hidden));
  for (int from = 0; hidden && from < LCOMM_AUTO_CODECS - 1; from++) {
    bool enough = false;
    LCOMM_TRY(is_hidden(comm, from, window_s, &enough));
    if (enough) {
      return LCOMM_OK;
    }
  }
  comm->topo.hidden_from = LCOMM_AUTO_CODECS;
  return LCOMM_OK;
}

static void tell_change(const lcomm_comm *comm, double busy_s, double predicted_s) {
  char figures[LCOMM_AUTO_FIGURES_TEXT_MAX], text[LCOMM_AUTO_FIGURES_TEXT_MAX + 192];
  snprintf(text, sizeof(text),
           "net=auto: in step %llu sums were in flight for %.3g ms where %.3g ms were predicted; "
           "for tensors links between nodes are taken for %s from here on",
           (unsigned long long)comm->deferred.step, busy_s * 1e3, predicted_s * 1e3,
           lcomm_auto_figures_format(&comm->topo, figures));
  lcomm_log_info(text);
}

/* Rank 0: what all ranks shall take. */
static lcomm_status revise(lcomm_comm *comm, const lcomm_auto_watch *watch, revision *it) {
  int hidden_from = comm->topo.hidden_from;
  double predicted_s = predict_measured(comm->tensors, &comm->topo).total_us * 1e-6;
  bool corrected = lcomm_auto_correct(&comm->topo, &comm->tensors->trust, predict_measured,
                                      comm->tensors, watch->least_busy_s);
  if (corrected) {
    tell_change(comm, watch->least_busy_s, predicted_s);
  }
  LCOMM_TRY(find_hidden(comm, watch->least_window_s));
  *it = (revision){.figures = lcomm_auto_figures_of(&comm->topo),
                   .hidden_from = comm->topo.hidden_from,
                   .changed = corrected || hidden_from != comm->topo.hidden_from};
  return LCOMM_OK;
}

static lcomm_status take(lcomm_comm *comm, const revision *it) {
  if (!lcomm_auto_figures_are_possible(&it->figures) || it->hidden_from < 0 ||
      it->hidden_from > LCOMM_AUTO_CODECS) {
    return lcomm_fail_peer(comm, LCOMM_ERR_WIRE, 0, "net=auto: rank 0 tells what cannot be");
  }
  if (it->changed == 0) {
    return LCOMM_OK;
  }
  lcomm_auto_figures_put(&it->figures, &comm->topo);
  comm->topo.hidden_from = it->hidden_from;
  comm->tensors->watch = (lcomm_auto_watch){0};
  LCOMM_TRY(lcomm_buckets_dissolve(comm));
  return lcomm_buckets_plan(comm);
}

lcomm_status lcomm_auto_step_over(lcomm_comm *comm) {
  lcomm_auto_watch *watch = &comm->tensors->watch;
  const lcomm_policy *policy = &comm->settings.policy;
  uint64_t step = comm->deferred.step;
  revision it = {0};
  if (!watches(comm)) {
    return LCOMM_OK;
  }
  count_step(watch, comm->progress.thread != NULL);
  if (lcomm_warmup_tensors_are_exact(policy, step > 0 ? step - 1 : 0) ||
      !lcomm_auto_is_agreed(step)) {
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
