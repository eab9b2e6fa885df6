/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The calls with a residual. */

#include "libcomm/api/on_stream.h"
#include "libcomm/engine/entry.h"
#include "libcomm/tensor/residual.h"

/* What a function is for, in which sentences name it. */
typedef struct function {
  const char *name;
  lcomm_collective collective;
  lcomm_op_kind op_kind;
} function;

static const function allreduce_ef = {"lcomm_allreduce_ef", LCOMM_COLLECTIVE_ALLREDUCE,
                                      LCOMM_OP_KIND_EF};
static const function allreduce_on_stream = {"lcomm_allreduce_ef_on_stream",
                                             LCOMM_COLLECTIVE_ALLREDUCE, LCOMM_OP_KIND_EF};
static const function allreduce_flush = {"lcomm_allreduce_flush", LCOMM_COLLECTIVE_ALLREDUCE,
                                         LCOMM_OP_KIND_FLUSH};
static const function flush_on_stream = {"lcomm_allreduce_flush_on_stream",
                                         LCOMM_COLLECTIVE_ALLREDUCE, LCOMM_OP_KIND_FLUSH};
static const function scatter_ef = {"lcomm_reduce_scatter_ef", LCOMM_COLLECTIVE_REDUCE_SCATTERV,
                                    LCOMM_OP_KIND_EF};
static const function scatter_on_stream = {"lcomm_reduce_scatter_ef_on_stream",
                                           LCOMM_COLLECTIVE_REDUCE_SCATTERV, LCOMM_OP_KIND_EF};
static const function scatter_flush = {"lcomm_reduce_scatter_flush",
                                       LCOMM_COLLECTIVE_REDUCE_SCATTERV, LCOMM_OP_KIND_FLUSH};

static const function scatter_flush_on_stream = {
    "lcomm_reduce_scatter_flush_on_stream", LCOMM_COLLECTIVE_REDUCE_SCATTERV, LCOMM_OP_KIND_FLUSH};

static lcomm_status call_of(lcomm_residual *residual, const function *it, const void *send,
                            void *receive, lcomm_call *call) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, it->name));
  LCOMM_TRY(lcomm_residual_join(residual));
  LCOMM_TRY(lcomm_residual_prepare_use(residual->ef.comm));
  bool scatters = it->collective != LCOMM_COLLECTIVE_ALLREDUCE;
  if (scatters != (residual->part_counts != NULL)) {
    return lcomm_refuse(residual->ef.comm, LCOMM_ERR_ARGUMENT,
                        "%s: residual %llu of %llu elements was made for %s", it->name,
                        (unsigned long long)residual->number,
                        (unsigned long long)residual->ef.request.count,
                        scatters ? "all-reduces; make one with lcomm_residual_create_scatter"
                                 : "reduce-scatters; make one with lcomm_residual_create");
  }
  *call = lcomm_call_of(it->collective, send, receive, residual->ef.request.count, LCOMM_FLOAT32,
                        residual->ef.request.op);
  call->request.part_counts = residual->part_counts;
  call->request.error_feedback = true;
  call->request.net = residual->ef.request.net;
  call->op_kind = it->op_kind;
  call->keeper = &lcomm_residual_keeper;
  call->owner = residual;
  call->residual_number = residual->number;
  return LCOMM_OK;
}

static lcomm_status start(lcomm_residual *residual, const function *it, const void *send,
                          void *receive, lcomm_request *request) {
  lcomm_call call;
  LCOMM_TRY(call_of(residual, it, send, receive, &call));
  return lcomm_call_start(residual->ef.comm, &call, request);
}

static lcomm_status make(lcomm_residual *residual, const function *it, const void *send,
                         void *receive) {
  lcomm_call call;
  LCOMM_TRY(call_of(residual, it, send, receive, &call));
  return lcomm_call_make(residual->ef.comm, &call);
}

static lcomm_status make_on_stream(lcomm_residual *residual, const function *it, const void *send,
                                   void *receive, void *stream) {
  lcomm_call call;
  LCOMM_TRY(call_of(residual, it, send, receive, &call));
  return lcomm_call_on_stream(residual->ef.comm, &call, stream, &residual->left);
}

static lcomm_status scatter(lcomm_residual *residual, const function *it, const void *send,
                            void *receive) {
  LCOMM_TRY(make(residual, it, send, receive));
  return lcomm_residual_settle(residual);
}

static lcomm_status scatter_on_a_stream(lcomm_residual *residual, const function *it,
                                        const void *send, void *receive, void *stream) {
  LCOMM_TRY(make_on_stream(residual, it, send, receive, stream));
  return lcomm_residual_settle(residual);
}

lcomm_status lcomm_allreduce_ef(lcomm_residual *residual, const void *send, void *receive) {
  return make(residual, &allreduce_ef, send, receive);
}

lcomm_status lcomm_iallreduce_ef(lcomm_residual *residual, const void *send, void *receive,
                                 lcomm_request *request) {
  return start(residual, &allreduce_ef, send, receive, request);
}

lcomm_status lcomm_allreduce_ef_on_stream(lcomm_residual *residual, const void *send, void *receive,
                                          void *stream) {
  return make_on_stream(residual, &allreduce_on_stream, send, receive, stream);
}

lcomm_status lcomm_allreduce_flush(lcomm_residual *residual, const void *send, void *receive) {
  return make(residual, &allreduce_flush, send, receive);
}

lcomm_status lcomm_allreduce_flush_on_stream(lcomm_residual *residual, const void *send,
                                             void *receive, void *stream) {
  return make_on_stream(residual, &flush_on_stream, send, receive, stream);
}

lcomm_status lcomm_iallreduce_flush(lcomm_residual *residual, const void *send, void *receive,
                                    lcomm_request *request) {
  return start(residual, &allreduce_flush, send, receive, request);
}

lcomm_status lcomm_reduce_scatter_ef(lcomm_residual *residual, const void *send, void *receive) {
  return scatter(residual, &scatter_ef, send, receive);
}

lcomm_status lcomm_ireduce_scatter_ef(lcomm_residual *residual, const void *send, void *receive,
                                      lcomm_request *request) {
  return start(residual, &scatter_ef, send, receive, request);
}

lcomm_status lcomm_reduce_scatter_ef_on_stream(lcomm_residual *residual, const void *send,
                                               void *receive, void *stream) {
  return scatter_on_a_stream(residual, &scatter_on_stream, send, receive, stream);
}

lcomm_status lcomm_reduce_scatter_flush(lcomm_residual *residual, const void *send, void *receive) {
  return scatter(residual, &scatter_flush, send, receive);
}

lcomm_status lcomm_ireduce_scatter_flush(lcomm_residual *residual, const void *send, void *receive,
                                         lcomm_request *request) {
  return start(residual, &scatter_flush, send, receive, request);
}

lcomm_status lcomm_reduce_scatter_flush_on_stream(lcomm_residual *residual, const void *send,
                                                  void *receive, void *stream) {
  return scatter_on_a_stream(residual, &scatter_flush_on_stream, send, receive, stream);
}

/* -------------------------------------------------------------- undoing */

static lcomm_status check_undo(const lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(lcomm_residual_check_idle(residual, "lcomm_residual_discard"));
  if (!residual->ef.undo) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_residual_discard: the policy does not keep what a call has found; "
                        "add undo=on to it");
  }
  if (!residual->ef.past.exists && !residual->discarded) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_residual_discard: residual %llu of %llu elements has no call to "
                        "undo: none was made, or a state was loaded or the policy set since; call "
                        "it right after the call",
                        (unsigned long long)residual->number,
                        (unsigned long long)residual->ef.request.count);
  }
  return LCOMM_OK;
}

/* A rank that makes another call instead differs in this operation, and one that has made another
 * number of calls in the number. */
static lcomm_status compare_calls(const lcomm_residual *residual) {
  lcomm_comm *comm = residual->ef.comm;
  uint64_t calls = residual->calls;
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, &calls, &calls,
                                  sizeof(calls) / sizeof(float), LCOMM_FLOAT32, LCOMM_SUM);
  call.op_kind = LCOMM_OP_KIND_DISCARD_CALL;
  call.residual_number = residual->number;
  LCOMM_TRY(lcomm_call_make(comm, &call));
  if (calls == residual->calls) {
    return LCOMM_OK;
  }
  return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                    "lcomm_residual_discard: %llu calls with residual %llu were made here, but "
                    "%llu on rank 0; all ranks must discard the same calls",
                    (unsigned long long)residual->calls, (unsigned long long)residual->number,
                    (unsigned long long)calls);
}

static lcomm_status discard(lcomm_residual *residual) {
  LCOMM_TRY(check_undo(residual));
  LCOMM_TRY(compare_calls(residual));
  if (!residual->discarded) {
    (void)lcomm_residual_undo(residual);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_residual_discard(lcomm_residual *residual) {
  LCOMM_TRY(lcomm_residual_check_lives(residual, "lcomm_residual_discard"));
  LCOMM_TRY(lcomm_residual_join(residual));
  lcomm_comm *comm = residual->ef.comm;
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = discard(residual);
  lcomm_exit(comm);
  return status;
}
