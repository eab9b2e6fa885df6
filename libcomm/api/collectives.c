/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective calls of the public interface. */

#include "libcomm/call/call_changes.h"
#include "libcomm/engine/entry.h"

/* ------------------------------------------------------------------ sums */

lcomm_status lcomm_iallreduce(lcomm_comm *comm, const void *send, void *receive, uint64_t count,
                              lcomm_dtype dtype, lcomm_op op, lcomm_request *request) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, op);
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_allreduce(lcomm_comm *comm, const void *send, void *receive, uint64_t count,
                             lcomm_dtype dtype, lcomm_op op) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, op);
  return lcomm_call_make(comm, &call);
}

static void scale(lcomm_call *call, double before, double after) {
  call->scaled = true;
  call->before = before;
  call->after = after;
}

lcomm_status lcomm_iallreduce_scaled(lcomm_comm *comm, const void *send, void *receive,
                                     uint64_t count, lcomm_dtype dtype, lcomm_op op, double before,
                                     double after, lcomm_request *request) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, op);
  scale(&call, before, after);
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_allreduce_scaled(lcomm_comm *comm, const void *send, void *receive,
                                    uint64_t count, lcomm_dtype dtype, lcomm_op op, double before,
                                    double after) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, count, dtype, op);
  scale(&call, before, after);
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_ireduce_scatter(lcomm_comm *comm, const void *send, void *receive,
                                   uint64_t receive_count, lcomm_dtype dtype, lcomm_op op,
                                   lcomm_request *request) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTER, send, receive, receive_count, dtype, op);
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_reduce_scatter(lcomm_comm *comm, const void *send, void *receive,
                                  uint64_t receive_count, lcomm_dtype dtype, lcomm_op op) {
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTER, send, receive, receive_count, dtype, op);
  return lcomm_call_make(comm, &call);
}

static lcomm_call uneven_sum_of(const void *send, void *receive, const uint64_t *counts,
                                lcomm_dtype dtype, lcomm_op op) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_REDUCE_SCATTERV, send, receive, 0, dtype, op);
  call.request.part_counts = counts;
  return call;
}

lcomm_status lcomm_ireduce_scatterv(lcomm_comm *comm, const void *send, void *receive,
                                    const uint64_t *counts, lcomm_dtype dtype, lcomm_op op,
                                    lcomm_request *request) {
  lcomm_call call = uneven_sum_of(send, receive, counts, dtype, op);
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_reduce_scatterv(lcomm_comm *comm, const void *send, void *receive,
                                   const uint64_t *counts, lcomm_dtype dtype, lcomm_op op) {
  lcomm_call call = uneven_sum_of(send, receive, counts, dtype, op);
  return lcomm_call_make(comm, &call);
}

/* ----------------------------------------------------------------- moves */

static lcomm_call move_of(lcomm_collective collective, const void *send, void *receive,
                          uint64_t count, lcomm_dtype dtype) {
  return lcomm_call_of(collective, send, receive, count, dtype, LCOMM_SUM);
}

lcomm_status lcomm_iallgather(lcomm_comm *comm, const void *send, void *receive,
                              uint64_t send_count, lcomm_dtype dtype, lcomm_request *request) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_ALLGATHER, send, receive, send_count, dtype);
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_allgather(lcomm_comm *comm, const void *send, void *receive, uint64_t send_count,
                             lcomm_dtype dtype) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_ALLGATHER, send, receive, send_count, dtype);
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_iallgatherv(lcomm_comm *comm, const void *send, void *receive,
                               const uint64_t *counts, lcomm_dtype dtype, lcomm_request *request) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_ALLGATHERV, send, receive, 0, dtype);
  call.request.part_counts = counts;
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_allgatherv(lcomm_comm *comm, const void *send, void *receive,
                              const uint64_t *counts, lcomm_dtype dtype) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_ALLGATHERV, send, receive, 0, dtype);
  call.request.part_counts = counts;
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_ialltoall(lcomm_comm *comm, const void *send, void *receive, uint64_t count,
                             lcomm_dtype dtype, lcomm_request *request) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_ALLTOALL, send, receive, count, dtype);
  call.request.in_place = send == receive;
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_alltoall(lcomm_comm *comm, const void *send, void *receive, uint64_t count,
                            lcomm_dtype dtype) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_ALLTOALL, send, receive, count, dtype);
  call.request.in_place = send == receive;
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_ibroadcast(lcomm_comm *comm, void *buffer, uint64_t count, lcomm_dtype dtype,
                              int root, lcomm_request *request) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_BROADCAST, buffer, buffer, count, dtype);
  call.request.root = root;
  return lcomm_call_start(comm, &call, request);
}

lcomm_status lcomm_broadcast(lcomm_comm *comm, void *buffer, uint64_t count, lcomm_dtype dtype,
                             int root) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_BROADCAST, buffer, buffer, count, dtype);
  call.request.root = root;
  return lcomm_call_make(comm, &call);
}

lcomm_status lcomm_ibarrier(lcomm_comm *comm, lcomm_request *request) {
  lcomm_call call = move_of(LCOMM_COLLECTIVE_BARRIER, NULL, NULL, 0, LCOMM_FLOAT32);
  return lcomm_call_start(comm, &call, request);
}

/* Where ranks may leave and join it says who wants to. */
static lcomm_status barrier_of_changes(lcomm_comm *comm) {
  lcomm_changes_barrier changes;
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_call call = lcomm_changes_begin(comm, &changes);
  call.op_kind = LCOMM_OP_KIND_BARRIER;
  lcomm_status status = lcomm_call_make(comm, &call);
  if (status == LCOMM_OK) {
    lcomm_changes_end(comm, &changes);
  }
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_barrier(lcomm_comm *comm) {
  return comm && comm->bootstrap.elastic ? barrier_of_changes(comm) : lcomm_call_barrier(comm);
}
