/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What a call with a residual begins and ends with. */

#include <string.h>
#include <xxhash.h>

#include "libcomm/engine/backend.h"
#include "libcomm/engine/entry.h"
#include "libcomm/tensor/residual_guard.h"
#include "libcomm/tensor/residual_quorum.h"
#include "libcomm/tensor/residual_staging.h"

const char *lcomm_residual_call_name(const lcomm_residual *residual, const lcomm_call *call) {
  bool flush = call->op_kind == LCOMM_OP_KIND_FLUSH;
  if (residual->part_counts) {
    return flush ? "lcomm_reduce_scatter_flush" : "lcomm_reduce_scatter_ef";
  }
  return flush ? "lcomm_allreduce_flush" : "lcomm_allreduce_ef";
}

/* Its run sums the first time, and stages later. */
static lcomm_status find_quorum_run(lcomm_residual *residual, const lcomm_call *call,
                                    lcomm_run **run) {
  bool flush = call->op_kind == LCOMM_OP_KIND_FLUSH;
  lcomm_residual_staging_begin(residual, call);
  LCOMM_TRY(flush ? LCOMM_OK : lcomm_residual_quorum_prepare(residual));
  return lcomm_ef_take_flush_run(&residual->ef, run);
}

static lcomm_status find_run(void *owner, const lcomm_call *call, lcomm_run **run) {
  lcomm_residual *residual = owner;
  bool flush = call->op_kind == LCOMM_OP_KIND_FLUSH;
  LCOMM_TRY(lcomm_residual_check_idle(residual, lcomm_residual_call_name(residual, call)));
  if (lcomm_residual_has_quorum(residual)) {
    return find_quorum_run(residual, call, run);
  }
  LCOMM_TRY(lcomm_ef_move(&residual->ef, call->request.location));
  LCOMM_TRY(lcomm_residual_follow_auto(residual));
  LCOMM_TRY(lcomm_residual_guard_prepare(residual));
  return flush ? lcomm_ef_take_flush_run(&residual->ef, run)
               : lcomm_ef_take_run(&residual->ef, residual->calls, run);
}

/* Stochastic rounding depends on the name and on how many calls came before, so that a
 * restored run goes on with the same bits. */
static void seed(const lcomm_residual *residual, lcomm_run *run) {
  uint64_t hash = XXH3_64bits(residual->name, strlen(residual->name));
  uint32_t number = (uint32_t)(hash ^ hash >> 32) + (uint32_t)residual->calls;
  run->series.seed_shift = residual->name[0] ? number - run->sequence : 0;
}

static lcomm_status amend(void *owner, lcomm_run *run) {
  lcomm_residual *residual = owner;
  lcomm_ef *ef = &residual->ef;
  LCOMM_TRY(lcomm_ef_clip(ef, run, lcomm_run_floats(run, 0), ef->request.count));
  LCOMM_TRY(lcomm_residual_guard_take(residual, run));
  return lcomm_ef_flush(ef, run);
}

static lcomm_status stage_out(lcomm_run *run) {
  lcomm_residual *residual = run->data.owner;
  lcomm_ef *ef = &residual->ef;
  LCOMM_TRY(lcomm_residual_guard_keep(residual, run));
  LCOMM_TRY(lcomm_ef_finish(ef, run, lcomm_run_floats(run, ef->result.first)));
  return lcomm_call_stage_out(run);
}

bool lcomm_residual_undo(lcomm_residual *residual) {
  if (!lcomm_ef_discard(&residual->ef)) {
    return false;
  }
  residual->calls -= residual->counted;
  residual->ended--;
  residual->discarded = true;
  lcomm_residual_guard_discard(residual);
  residual->ef.comm->stats.discarded++;
  return true;
}

/* The result of an all-reduce has the same bits on all ranks, so all come to the same verdict; of a
 * reduce-scatter each sees a part, and a call that ends when its result is there asks the others
 * (lcomm_residual_settle). */
static bool is_discarded(const lcomm_residual *residual, const lcomm_operation *operation) {
  return residual->ef.comm->settings.policy.discard_not_finite && operation->not_finite > 0 &&
         !lcomm_ef_scatters(&residual->ef);
}

static lcomm_status agree_on_discard(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  LCOMM_TRY(lcomm_residual_join(residual));
  int32_t found = residual->not_finite > 0;
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, &found, &found, 1, LCOMM_INT32, LCOMM_MAX);
  call.op_kind = LCOMM_OP_KIND_DISCARD_CALL;
  call.residual_number = residual->number;
  LCOMM_TRY(lcomm_call_make(comm, &call));
  if (found) {
    (void)lcomm_residual_undo(residual);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_residual_settle(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status =
      comm->settings.policy.discard_not_finite ? agree_on_discard(residual) : LCOMM_OK;
  lcomm_exit(comm);
  return status;
}

static void collected(lcomm_operation *operation) {
  lcomm_residual *residual = operation->owner;
  residual->in_flight = false;
  residual->operation = NULL;
  if (operation->status == LCOMM_OK) {
    operation->status = lcomm_residual_from_host(residual);
  }
  residual->broken = operation->status != LCOMM_OK;
  if (residual->broken) {
    return;
  }
  residual->ended++;
  lcomm_ef_end(&residual->ef, operation->run);
  if (residual->counted) {
    lcomm_residual_quorum_open(residual);
  }
  residual->not_finite = operation->not_finite;
  lcomm_residual_guard_collect(residual);
  if (is_discarded(residual, operation)) {
    (void)lcomm_residual_undo(residual);
  }
}

static void collect_nothing(lcomm_operation *operation) {
  (void)operation;
}

void lcomm_residual_break_off(lcomm_residual *residual) {
  lcomm_operation *operation = residual->operation;
  if (operation) {
    lcomm_residual_guard_free(residual); /* the sum of its samples may have failed */
    collected(operation);
    operation->owner = NULL;
    operation->beside = NULL;
    operation->collected = collect_nothing;
  }
  if (residual->broken) {
    residual->broken = false;
    residual->calls -= residual->counted;
    residual->discarded = lcomm_ef_discard(&residual->ef);
  }
}

/* What is flushed here is lost if the operation fails, because the communicator has failed then and
 * nothing could be sent any more; but where ranks go on without a lost one, it is undone. */
static void begin(void *owner, lcomm_operation *operation) {
  lcomm_residual *residual = owner;
  lcomm_run *run = operation->run;
  operation->owner = residual;
  operation->collected = collected;
  residual->operation = operation;
  residual->in_flight = true;
  residual->counted = run->terms.op_kind != LCOMM_OP_KIND_FLUSH;
  residual->discarded = false;
  lcomm_ef_begin(&residual->ef, run);
  run->data.owner = residual;
  run->data.stage_out = stage_out;
  lcomm_residual_guard_sum(residual, operation);
  if (residual->counted) {
    seed(residual, run);
    residual->calls++;
  }
}

const lcomm_call_keeper lcomm_residual_keeper = {.run = find_run,
                                                 .begin = begin,
                                                 .amend = amend,
                                                 .is_apart = lcomm_residual_quorum_is_apart,
                                                 .start = lcomm_residual_quorum_start,
                                                 .to_host = lcomm_residual_to_host};
