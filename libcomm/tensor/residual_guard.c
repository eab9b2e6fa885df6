/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/residual_guard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/plan/milder.h"

/* -------------------------------------------------------------------- life */

static bool is_wanted(const lcomm_residual *residual) {
  const lcomm_ef *ef = &residual->ef;
  const lcomm_comm *comm = ef->comm;
  lcomm_codec_spec codec = lcomm_guard_policy_codec(ef);
  return comm->settings.policy.guard.steps > 0 && comm->size > 1 && !ef->exact &&
         ef->request.count > 0 && !lcomm_codec_spec_is_exact(&codec) && codec.rank == 0;
}

static void name_guard(lcomm_residual *residual) {
  lcomm_call_guard *guard = residual->guard;
  if (residual->name[0]) {
    memcpy(guard->name, residual->name, sizeof(guard->name));
  } else {
    snprintf(guard->name, sizeof(guard->name), "%llu of %llu elements",
             (unsigned long long)residual->number, (unsigned long long)residual->ef.request.count);
  }
  residual->guarded.figures.tensor = guard->name;
}

static lcomm_status make_shares(lcomm_residual *residual) {
  lcomm_guard *all = &residual->guard->all;
  uint64_t count = residual->ef.request.count;
  all->shares = calloc(1, sizeof *all->shares);
  if (!all->shares) {
    return LCOMM_ERR_MEMORY;
  }
  *all->shares = (lcomm_guard_share){.guarded = &residual->guarded, .ef = &residual->ef};
  lcomm_guard_share_out(all->shares, count, count, 1);
  all->share_count = 1;
  return lcomm_guard_complete(all);
}

static lcomm_status make(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  residual->guard = calloc(1, sizeof *residual->guard);
  if (residual->guard) {
    residual->guard->all.comm = comm;
    residual->guard->all.location = residual->ef.request.location;
    name_guard(residual);
  }
  lcomm_status status = residual->guard ? make_shares(residual) : LCOMM_ERR_MEMORY;
  if (status != LCOMM_ERR_MEMORY) {
    return status;
  }
  return lcomm_fail(comm, status, "out of memory for the guard of residual %llu of %llu elements",
                    (unsigned long long)residual->number,
                    (unsigned long long)residual->ef.request.count);
}

void lcomm_residual_guard_free(lcomm_residual *residual) {
  lcomm_call_guard *guard = residual->guard;
  if (!guard) {
    return;
  }
  lcomm_guard_free_memory(&guard->all);
  free(guard->all.shares);
  free(guard);
  residual->guard = NULL;
  residual->guarded.figures.tensor = NULL;
}

void lcomm_residual_guard_forget(lcomm_residual *residual) {
  lcomm_residual_guard_free(residual);
  lcomm_guarded_forget(&residual->guarded);
  lcomm_residual_guard_soften(residual);
}

void lcomm_residual_guard_soften(lcomm_residual *residual) {
  lcomm_ef *ef = &residual->ef;
  ef->milder = (lcomm_codec_spec){.format = {.codec = NULL}};
  if (residual->guarded.rungs > 0) {
    ef->milder = lcomm_guard_codec(ef, residual->guarded.rungs);
  }
}

/* ---------------------------------------------------------------- preparing */

/* Ranks keep other elements, or none, so each flushes what it has without asking. */
static lcomm_status change(lcomm_residual *residual) {
  lcomm_ef *ef = &residual->ef;
  bool leaves = false;
  lcomm_residual_guard_free(residual);
  lcomm_residual_guard_soften(residual);
  LCOMM_TRY(lcomm_ef_follow_policy(ef, &leaves));
  ef->flushes = true;
  return LCOMM_OK;
}

static lcomm_status move(lcomm_residual *residual) {
  lcomm_ef *ef = &residual->ef;
  return lcomm_guard_move(&residual->guard->all, ef->request.location)
             ? LCOMM_OK
             : lcomm_fail(ef->comm, LCOMM_ERR_MEMORY,
                          "out of memory for the guard of residual %llu",
                          (unsigned long long)residual->number);
}

lcomm_status lcomm_residual_guard_prepare(lcomm_residual *residual) {
  if (residual->guard && residual->guard->all.changed) {
    LCOMM_TRY(change(residual));
  }
  if (residual->guard) {
    return move(residual);
  }
  return is_wanted(residual) ? make(residual) : LCOMM_OK;
}

/* ------------------------------------------------------------------- a check */

/* The call that has begun is counted already. */
static bool is_due(const lcomm_residual *residual) {
  uint64_t calls = residual->ef.comm->settings.policy.guard.steps;
  return residual->counted && residual->calls % calls == 0;
}

lcomm_status lcomm_residual_guard_take(lcomm_residual *residual, lcomm_run *run) {
  lcomm_call_guard *guard = residual->guard;
  if (!guard || guard->phase != LCOMM_GUARD_IDLE || !run->plan->lossy || !is_due(residual)) {
    return LCOMM_OK;
  }
  guard->phase = LCOMM_GUARD_TAKEN;
  return lcomm_guard_take_share(guard->all.shares, run, lcomm_run_floats(run, 0),
                                residual->calls - 1);
}

lcomm_status lcomm_residual_guard_keep(const lcomm_residual *residual, lcomm_run *run) {
  const lcomm_call_guard *guard = residual->guard;
  if (!guard || guard->phase != LCOMM_GUARD_TAKEN) {
    return LCOMM_OK;
  }
  *guard->all.shares->waited = (float)run->stats.topk_waited;
  return lcomm_guard_keep_share(guard->all.shares, run, lcomm_run_floats(run, 0));
}

void lcomm_residual_guard_sum(lcomm_residual *residual, lcomm_operation *operation) {
  lcomm_call_guard *guard = residual->guard;
  const lcomm_guard_sum of = {LCOMM_OP_KIND_GUARD_CALL, residual->number};
  if (!guard || guard->phase != LCOMM_GUARD_PENDING) {
    return;
  }
  if (lcomm_guard_start_sum(&guard->all, &of) == LCOMM_OK) {
    guard->phase = LCOMM_GUARD_SUMMED;
    operation->beside = &guard->all.over;
  }
}

void lcomm_residual_guard_collect(lcomm_residual *residual) {
  lcomm_call_guard *guard = residual->guard;
  if (!guard) {
    return;
  }
  if (guard->phase == LCOMM_GUARD_SUMMED) {
    lcomm_guard_evaluate_all(&guard->all);
    guard->all.shares->taken = false;
    guard->phase = LCOMM_GUARD_IDLE;
  } else if (guard->phase == LCOMM_GUARD_TAKEN) {
    lcomm_guard_fetch(guard->all.shares);
    guard->phase = LCOMM_GUARD_PENDING;
  }
}

void lcomm_residual_guard_discard(lcomm_residual *residual) {
  lcomm_call_guard *guard = residual->guard;
  if (guard && guard->phase == LCOMM_GUARD_PENDING) {
    guard->all.shares->taken = false;
    guard->phase = LCOMM_GUARD_IDLE;
  }
}

/* -------------------------------------------------------------------- public */

lcomm_status lcomm_residual_guard(const lcomm_residual *residual, lcomm_guard_figures *figures) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, "lcomm_residual_guard"));
  lcomm_comm *comm = residual->ef.comm;
  if (!figures) {
    return lcomm_refuse_null(comm, "lcomm_residual_guard", "figures");
  }
  LCOMM_TRY(lcomm_enter(comm));
  (void)lcomm_residual_join(residual); /* a failure is the communicator's */
  *figures = residual->guarded.figures;
  figures->tensor = residual->name;
  lcomm_exit(comm);
  return LCOMM_OK;
}
