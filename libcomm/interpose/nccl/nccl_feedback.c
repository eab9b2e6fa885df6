/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/nccl/nccl_feedback.h"

#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_calls.h"

struct lcomm_nccl_feedback {
  lcomm_comm *comm;
  lcomm_interpose_ef *ef;
};

lcomm_nccl_feedback *lcomm_nccl_feedback_create(lcomm_comm *comm, uint32_t step_calls) {
  lcomm_nccl_feedback *mine = calloc(1, sizeof *mine);
  lcomm_interpose_ef *ef = mine ? lcomm_interpose_ef_create(step_calls) : NULL;
  if (!ef) {
    free(mine);
    return NULL;
  }
  mine->comm = comm;
  mine->ef = ef;
  return mine;
}

void lcomm_nccl_feedback_destroy(lcomm_nccl_feedback *feedback) {
  if (!feedback) {
    return;
  }
  lcomm_interpose_ef_destroy(feedback->ef);
  free(feedback);
}

lcomm_nccl_made lcomm_nccl_made_of(lcomm_comm *comm) {
  lcomm_nccl_made made = {.comm = comm};
  lcomm_policy_facts facts = {0};
  if (!comm) {
    return made;
  }
  (void)lcomm_policy_facts_get(comm, &facts);
  made.feedback = facts.error_feedback ? lcomm_nccl_feedback_create(comm, facts.step_calls) : NULL;
  if (facts.error_feedback && !made.feedback) {
    lcomm_abort(comm, "a rank has no memory for error feedback");
  }
  return made;
}

/* ------------------------------------------------------------------ deciding */

lcomm_status lcomm_nccl_feedback_next(lcomm_nccl_feedback *feedback, uint64_t count, lcomm_op op,
                                      lcomm_nccl_site *site) {
  lcomm_status status;
  site->feedback = feedback;
  site->what = lcomm_interpose_ef_next(feedback->ef, site->kind, count, op, &status);
  if (status == LCOMM_OK && site->what != LCOMM_INTERPOSE_PLAIN) {
    site->number = lcomm_interpose_ef_site(feedback->ef);
  }
  return status;
}

bool lcomm_nccl_feedback_flushes(lcomm_nccl_feedback *feedback, uint64_t count, lcomm_op op,
                                 lcomm_nccl_site *site) {
  return lcomm_nccl_feedback_carries(feedback) &&
         lcomm_nccl_feedback_next(feedback, count, op, site) == LCOMM_OK &&
         site->what == LCOMM_INTERPOSE_FLUSH;
}

void lcomm_nccl_feedback_suspend(lcomm_nccl_feedback *feedback) {
  if (feedback) {
    lcomm_interpose_ef_suspend(feedback->ef);
  }
}

void lcomm_nccl_feedback_resume(lcomm_nccl_feedback *feedback) {
  if (feedback) {
    lcomm_interpose_ef_resume(feedback->ef);
  }
}

bool lcomm_nccl_feedback_carries(const lcomm_nccl_feedback *feedback) {
  return feedback && lcomm_interpose_ef_carrying(feedback->ef) > 0;
}

void lcomm_nccl_feedback_watch(lcomm_nccl_feedback *feedback, const void *buffer, uint64_t count,
                               int rank) {
  if (lcomm_interpose_ef_aliased(feedback->ef, buffer) && rank == 0) {
    lcomm_nccl_log(
        "sums of %llu floats at one position of the step use several buffers in turn, so their "
        "error feedback is mixed; say in the policy with step=N how many compressed all-reduces "
        "make up a step (%u were found)",
        (unsigned long long)count, lcomm_interpose_ef_period(feedback->ef));
  }
}

lcomm_comm *lcomm_nccl_feedback_comm(const lcomm_nccl_feedback *feedback) {
  return feedback->comm;
}

/* ------------------------------------------------------------------- making */

/* The functions of each kind of sum. */
typedef struct ways {
  lcomm_status (*on_stream)(lcomm_residual *residual, const void *send, void *receive,
                            void *stream);
  lcomm_status (*begin)(lcomm_residual *residual, const void *send, void *receive,
                        lcomm_request *request);
} ways;

static const ways *ways_of(const lcomm_nccl_site *site) {
  static const ways all_reduce = {lcomm_allreduce_ef_on_stream, lcomm_iallreduce_ef},
                    all_reduce_flush = {lcomm_allreduce_flush_on_stream, lcomm_iallreduce_flush},
                    scatter = {lcomm_reduce_scatter_ef_on_stream, lcomm_ireduce_scatter_ef},
                    scatter_flush = {lcomm_reduce_scatter_flush_on_stream,
                                     lcomm_ireduce_scatter_flush};
  bool flushes = site->what == LCOMM_INTERPOSE_FLUSH;
  return site->kind == LCOMM_CALL_ALLREDUCE ? (flushes ? &all_reduce_flush : &all_reduce)
                                            : (flushes ? &scatter_flush : &scatter);
}

static lcomm_status find_residual(const lcomm_nccl_site *site, lcomm_residual **residual) {
  lcomm_nccl_feedback *feedback = site->feedback;
  return lcomm_interpose_ef_residual(feedback->ef, site->number, feedback->comm, residual);
}

lcomm_status lcomm_nccl_feedback_sum(const lcomm_nccl_site *site, const void *send, void *receive,
                                     void *stream) {
  lcomm_residual *residual = NULL;
  lcomm_status status = find_residual(site, &residual);
  return status == LCOMM_OK ? ways_of(site)->on_stream(residual, send, receive, stream) : status;
}

lcomm_status lcomm_nccl_feedback_begin(const lcomm_nccl_site *site, const void *send, void *receive,
                                       lcomm_request *request) {
  lcomm_residual *residual = NULL;
  lcomm_status status = find_residual(site, &residual);
  return status == LCOMM_OK ? ways_of(site)->begin(residual, send, receive, request) : status;
}
