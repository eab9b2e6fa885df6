/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A check of the guard: samples are summed over the ranks, compared with results, and evaluated. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/plan/milder.h"
#include "libcomm/tensor/bucket.h"

/* --------------------------------------------------------------- summing */

bool lcomm_guard_is_due(const lcomm_comm *comm) {
  uint64_t steps = comm->settings.policy.guard.steps;
  return steps > 0 && comm->deferred.step % steps == steps - 1;
}

static void end_sum(lcomm_operation *operation) {
  lcomm_guard *guard = operation->owner;
  guard->over = true;
  lcomm_operation_release(guard->comm, operation);
}

lcomm_status lcomm_guard_start_sum(lcomm_guard *guard, const lcomm_guard_sum *of) {
  lcomm_operation *operation = NULL;
  lcomm_operation_data data = {.vector = (uint8_t *)guard->sums,
                               .op = LCOMM_SUM,
                               .before = 1,
                               .after = 1,
                               .op_kind = of->op_kind,
                               .residual = of->residual,
                               .name = "guard"};
  guard->over = false;
  lcomm_status status = lcomm_operation_start(guard->comm, guard->ef.exact_run, &data, &operation);
  if (operation) {
    operation->owner = guard;
    operation->awaited = &guard->over;
    operation->end = end_sum;
  }
  return status;
}

/* Samples that were not taken count as zeros. The number of this operation does not count in the
 * seeds of stochastic rounding: results are those without a guard. */
static lcomm_status sum_samples(lcomm_guard *guard) {
  lcomm_comm *comm = guard->comm;
  for (size_t i = 0; i < guard->share_count; i++) {
    const lcomm_guard_share *share = &guard->shares[i];
    if (share->taken) {
      lcomm_guard_fetch(share);
    } else {
      uint64_t elements = lcomm_guard_lanes(share) * lcomm_sample_elements(&share->sample);
      memset(share->sums, 0, elements * sizeof(float));
      *share->waited = 0;
    }
  }
  uint32_t before = comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS];
  const lcomm_guard_sum of = {.op_kind = LCOMM_OP_KIND_GUARD};
  LCOMM_TRY(lcomm_guard_start_sum(guard, &of));
  lcomm_status status = lcomm_operations_wait(comm, &guard->over);
  comm->operations.seed_shift -= comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] - before;
  return status;
}

/* ------------------------------------------------------------ evaluation */

/* False where there was nothing to compare. */
static bool compare(const lcomm_guard_share *share) {
  lcomm_guarded *guarded = share->guarded;
  lcomm_guard_figures *figures = &guarded->figures;
  uint64_t elements = lcomm_sample_elements(&share->sample);
  bool fed = share->has_residual && share->by.error_feedback;
  const float *residuals = fed ? share->sums + elements : NULL;
  if (!lcomm_guard_compare(share->sums, residuals, share->results, elements, figures)) {
    return false;
  }
  lcomm_codec_spec_format(&share->by, figures->codec, sizeof(figures->codec));
  figures->step = share->step;
  figures->waited = (uint64_t)*share->waited;
  figures->checks++;
  return true;
}

/* net=auto goes to the class below that of the codec which it had chosen. */
static lcomm_codec_spec next_codec(const lcomm_guard_share *share, lcomm_guard_verdict verdict) {
  lcomm_codec_spec next = lcomm_guard_codec(share->ef, share->guarded->rungs);
  lcomm_auto_class chosen = lcomm_auto_class_of(&share->by);
  while (verdict == LCOMM_GUARD_FALL && next.automatic != LCOMM_AUTO_NONE &&
         next.automatic >= chosen) {
    next = lcomm_guard_codec(share->ef, ++share->guarded->rungs);
  }
  return next;
}

static lcomm_guard_verdict evaluate(const lcomm_guard_share *share) {
  const lcomm_policy *policy = &share->ef->comm->settings.policy;
  lcomm_guarded *guarded = share->guarded;
  lcomm_codec_spec next, first = lcomm_guard_policy_codec(share->ef);
  bool has_milder = lcomm_milder_codec(&first, guarded->rungs + 1, policy->momentum > 0, &next);
  guarded->patience += guarded->patience == 0 ? LCOMM_GUARD_PATIENCE : 0;
  lcomm_guard_verdict verdict =
      lcomm_guard_evaluate(&policy->guard, share->by.error_feedback, has_milder, guarded);
  guarded->figures.fallbacks += verdict == LCOMM_GUARD_FALL;
  next = next_codec(share, verdict);
  lcomm_codec_spec_format(&next, guarded->figures.next, sizeof(guarded->figures.next));
  return verdict;
}

static void count_news(lcomm_guard_news *news, const lcomm_guard_share *share) {
  news->first = news->first ? news->first : share;
  news->count++;
}

static void evaluate_in_turn(lcomm_guard *guard) {
  lcomm_guard_news news[LCOMM_GUARD_RETURN + 1] = {{0}};
  lcomm_guard_begin_tell(guard);
  for (size_t i = 0; i < guard->share_count; i++) {
    double begin_s = lcomm_clock_s();
    const lcomm_guard_share *share = &guard->shares[i];
    if (!share->taken || !compare(share)) {
      continue;
    }
    bool before = share->guarded->figures.beyond;
    lcomm_guard_verdict verdict = evaluate(share);
    bool beyond = share->guarded->figures.beyond;
    guard->changed |= verdict != LCOMM_GUARD_STAY;
    if (verdict != LCOMM_GUARD_STAY || (beyond && !before)) {
      count_news(&news[verdict], share);
    }
    lcomm_guard_tell(guard, share, begin_s);
  }
  for (int verdict = LCOMM_GUARD_STAY; verdict <= LCOMM_GUARD_RETURN; verdict++) {
    lcomm_guard_log(guard, (lcomm_guard_verdict)verdict, &news[verdict]);
  }
}

void lcomm_guard_evaluate_all(lcomm_guard *guard) {
  uint32_t environment = lcomm_fp_enter();
  evaluate_in_turn(guard);
  lcomm_fp_leave(environment);
}

static bool has_samples(const lcomm_guard *guard) {
  bool any = false;
  for (size_t i = 0; i < guard->share_count; i++) {
    any |= guard->shares[i].taken;
  }
  return any;
}

static lcomm_status check(lcomm_guard *guard) {
  LCOMM_TRY(sum_samples(guard));
  lcomm_guard_evaluate_all(guard);
  return LCOMM_OK;
}

/* A step that is about to be undone decides nothing; the next one has its number. */
lcomm_status lcomm_guard_check(lcomm_comm *comm) {
  lcomm_guard *guard = comm->tensors->guard;
  if (!guard || !lcomm_guard_is_due(comm) || !has_samples(guard)) {
    return LCOMM_OK;
  }
  bool lost = comm->settings.policy.discard_not_finite && comm->tensors->not_finite.step > 0;
  lcomm_status status = lost ? LCOMM_OK : check(guard);
  for (size_t i = 0; i < guard->share_count; i++) {
    guard->shares[i].taken = false;
  }
  return status;
}

lcomm_status lcomm_guard_change(lcomm_comm *comm) {
  lcomm_guard *guard = comm->tensors->guard;
  if (!guard || !guard->changed) {
    return LCOMM_OK;
  }
  guard->changed = false;
  comm->tensors->watch =
      (lcomm_auto_watch){0}; /* of net=auto: what was measured is of other plans */
  return lcomm_buckets_plan(comm);
}
