/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/residual_quorum.h"

#include <math.h>
#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/backend.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual_staging.h"

struct lcomm_residual_quorum {
  lcomm_call_sum sum; /* first: what its request knows */
  lcomm_residual *residual;
  lcomm_shard_vector **lanes;         /* one of them, as there is no stale= */
  lcomm_run *run;                     /* of the call in flight: it stages */
  bool is_open;                       /* all ranks have the vector */
  double looked_s;                    /* when a test first found the sum under way, 0: never */
  struct lcomm_residual_quorum *next; /* of those whose residual is gone */
};

typedef struct lcomm_residual_quorum quorum;

/* --------------------------------------------------------------------- life */

static void free_quorum(lcomm_comm *comm, quorum *it) {
  lcomm_shard_lanes_free(comm, it->lanes);
  free(it);
}

/* Those whose results all ranks have. */
static void free_settled(lcomm_comm *comm) {
  quorum **place = &comm->residuals->retired;
  while (*place) {
    quorum *it = *place;
    if (lcomm_shard_lanes_are_settled(comm, it->lanes)) {
      *place = it->next;
      free_quorum(comm, it);
    } else {
      place = &it->next;
    }
  }
}

/* In bounds that hold for all elements, as of one tensor. */
static lcomm_status make_lanes(lcomm_residual *residual, lcomm_shard_vector ***lanes) {
  lcomm_comm *comm = residual->ef.comm;
  const uint64_t end = residual->ef.request.count;
  lcomm_shard_request request = {.count = end,
                                 .op = residual->ef.request.op,
                                 .segment_ends = &end,
                                 .segments = 1,
                                 .space = LCOMM_SEQUENCE_SPACE_CALLS};
  LCOMM_TRY(lcomm_quorum_choose_format(&residual->ef, &request.format));
  if (lcomm_shard_lanes_make(comm, &request, lanes) != LCOMM_OK) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for the pieces of %llu elements",
                      (unsigned long long)end);
  }
  return LCOMM_OK;
}

static lcomm_status make(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  quorum *made = calloc(1, sizeof *made);
  free_settled(comm);
  if (!made) {
    return lcomm_ef_out_of_memory(&residual->ef);
  }
  lcomm_status status = make_lanes(residual, &made->lanes);
  if (status != LCOMM_OK) {
    free(made);
    return status;
  }
  made->residual = residual;
  residual->quorum = made;
  return LCOMM_OK;
}

lcomm_status lcomm_residual_quorum_prepare(lcomm_residual *residual) {
  lcomm_ef *ef = &residual->ef;
  LCOMM_TRY(residual->quorum ? LCOMM_OK : make(residual));
  return ef->state.feedback ? LCOMM_OK : lcomm_ef_feedback(ef, &ef->state.feedback);
}

void lcomm_residual_quorum_open(lcomm_residual *residual) {
  if (residual->quorum) {
    residual->quorum->is_open = true;
  }
}

void lcomm_residual_quorum_retire(lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  quorum *it = residual->quorum;
  residual->quorum = NULL;
  if (it) {
    lcomm_shard_lanes_retire(it->lanes);
    it->next = comm->residuals->retired;
    comm->residuals->retired = it;
    free_settled(comm);
  }
}

void lcomm_residual_quorum_free(lcomm_residual *residual) {
  if (residual->quorum) {
    free_quorum(residual->ef.comm, residual->quorum);
    residual->quorum = NULL;
  }
}

void lcomm_residual_quorums_free_retired(lcomm_comm *comm) {
  while (comm->residuals->retired) {
    quorum *it = comm->residuals->retired;
    comm->residuals->retired = it->next;
    free_quorum(comm, it);
  }
}

/* -------------------------------------------------------------------- calls */

static lcomm_shard_vector *vector_of(const quorum *it) {
  return it->lanes[0];
}

bool lcomm_residual_quorums_are_busy(const lcomm_comm *comm) {
  for (const lcomm_residual *it = comm->residuals->first; it; it = it->next) {
    bool sums = it->in_flight && it->quorum && it->quorum->run;
    if (sums && !lcomm_shard_sum_is_here(vector_of(it->quorum))) {
      return true;
    }
  }
  return false;
}

bool lcomm_residual_quorum_is_apart(const void *owner, const lcomm_call *call) {
  const lcomm_residual *residual = owner;
  return residual->quorum && residual->quorum->is_open && call->op_kind == LCOMM_OP_KIND_EF;
}

static quorum *quorum_of(lcomm_call_sum *sum) {
  return (quorum *)(void *)sum;
}

static lcomm_status wait_for(lcomm_call_sum *sum) {
  return lcomm_shard_sum_wait(vector_of(quorum_of(sum)), INFINITY);
}

static lcomm_status test(lcomm_call_sum *sum, bool *is_here) {
  quorum *it = quorum_of(sum);
  double now_s = lcomm_clock_s();
  it->looked_s = it->looked_s > 0 ? it->looked_s : now_s;
  *is_here = lcomm_shard_sum_is_here(vector_of(it));
  return *is_here ? LCOMM_OK : lcomm_shard_sum_check(vector_of(it), now_s - it->looked_s);
}

/* As an operation stages out, and what is not finite is always counted. */
static lcomm_status stage_out(lcomm_ef *ef, lcomm_run *run) {
  lcomm_buffer all = {lcomm_run_floats(run, 0), ef->request.count, LCOMM_FLOAT32,
                      ef->request.location};
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = lcomm_ef_finish(ef, run, all.data);
  if (status == LCOMM_OK) {
    status = lcomm_call_stage_out(run);
  }
  if (status == LCOMM_OK) {
    status = run->backend->vectors->count_not_finite(run, &all);
  }
  lcomm_run_leave(run, entry);
  return status;
}

static lcomm_status finish(lcomm_residual *residual, lcomm_run *run) {
  lcomm_ef *ef = &residual->ef;
  LCOMM_TRY(lcomm_shard_sum_end(vector_of(residual->quorum), lcomm_run_floats(run, 0),
                                ef->state.feedback->residual.now));
  LCOMM_TRY(stage_out(ef, run));
  LCOMM_TRY(lcomm_residual_from_host(residual));
  lcomm_ef_end(ef, run);
  residual->ended++;
  residual->not_finite = run->not_finite;
  ef->comm->stats.operations++;
  ef->comm->stats.not_finite += run->not_finite;
  return LCOMM_OK;
}

static lcomm_status end(lcomm_call_sum *sum, lcomm_status status, uint64_t *not_finite) {
  lcomm_residual *residual = quorum_of(sum)->residual;
  lcomm_run *run = quorum_of(sum)->run;
  residual->in_flight = false;
  quorum_of(sum)->run = NULL;
  LCOMM_TRY(status);
  LCOMM_TRY(finish(residual, run));
  *not_finite = run->not_finite;
  return LCOMM_OK;
}

static lcomm_status stage_in(const lcomm_residual *residual, const lcomm_call *call,
                             lcomm_run *run) {
  const lcomm_ef *ef = &residual->ef;
  lcomm_run_entry entry = lcomm_run_enter(run);
  lcomm_status status = lcomm_call_stage_in(run, call);
  if (status == LCOMM_OK) {
    status = lcomm_ef_clip(ef, run, lcomm_run_floats(run, 0), ef->request.count);
  }
  lcomm_run_leave(run, entry);
  return status;
}

lcomm_status lcomm_residual_quorum_start(void *owner, const lcomm_call *call, lcomm_run *run,
                                         lcomm_call_sum **sum) {
  lcomm_residual *residual = owner;
  quorum *it = residual->quorum;
  lcomm_call_describe(run, call);
  LCOMM_TRY(stage_in(residual, call, run));
  LCOMM_TRY(lcomm_shard_sum_begin(vector_of(it), lcomm_run_floats(run, 0),
                                  residual->ef.state.feedback->residual.now, 1));
  it->sum = (lcomm_call_sum){residual->ef.comm, wait_for, test, end};
  it->run = run;
  it->looked_s = 0;
  residual->in_flight = true;
  residual->counted = true;
  residual->discarded = false;
  residual->calls++;
  *sum = &it->sum;
  return LCOMM_OK;
}
