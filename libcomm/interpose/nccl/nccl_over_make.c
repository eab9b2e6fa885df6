/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: making the sums that libcomm was chosen for. In order with their streams; but where a
 * process has several ranks of the communicator, the host waits for the stream, and then for the
 * result, and nothing on a device waits for another rank. */

#include "libcomm/interpose/nccl/nccl_over.h"

static lcomm_status begin_in_stream(lcomm_nccl_sum *it) {
  lcomm_comm *comm = it->at->now.comm;
  if (it->site.feedback) {
    return lcomm_nccl_feedback_sum(&it->site, it->send, it->receive, it->stream);
  }
  return it->kind == LCOMM_CALL_ALLREDUCE
             ? lcomm_allreduce_on_stream(comm, it->send, it->receive, it->count, it->dtype, it->by,
                                         it->stream)
             : lcomm_reduce_scatter_on_stream(comm, it->send, it->receive, it->count, it->dtype,
                                              it->by, it->stream);
}

/* A graph replays it with the policy in force now, for which the control file may name another one
 * later. */
static void note_capture(const lcomm_nccl_sum *it) {
  lcomm_nccl_made *now = &it->at->now;
  int is_captured = 0;
  if (!now->was_captured && lcomm_interpose_control_wanted()) {
    (void)lcomm_device_captured(it->stream, &is_captured);
    now->was_captured = is_captured;
  }
}

static lcomm_status begin_awaited(lcomm_nccl_sum *it) {
  lcomm_comm *comm = it->at->now.comm;
  if (it->site.feedback) {
    return lcomm_nccl_feedback_begin(&it->site, it->send, it->receive, &it->request);
  }
  return it->kind == LCOMM_CALL_ALLREDUCE
             ? lcomm_iallreduce(comm, it->send, it->receive, it->count, it->dtype, it->by,
                                &it->request)
             : lcomm_ireduce_scatter(comm, it->send, it->receive, it->count, it->dtype, it->by,
                                     &it->request);
}

static lcomm_comm *comm_of(const lcomm_nccl_sum *it) {
  return it->site.feedback ? lcomm_nccl_feedback_comm(it->site.feedback) : it->at->now.comm;
}

/* An argument that libcomm does not take is refused before anything is sent. */
static ncclResult_t ended(lcomm_nccl_sum *it, const lcomm_comm *comm, lcomm_status status) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  it->is_left = status == LCOMM_ERR_ARGUMENT;
  if (!it->is_left) {
    return lcomm_nccl_ended(comm, status);
  }
  if (it->at->rank == 0 && !atomic_flag_test_and_set(&said)) {
    lcomm_nccl_log("NCCL makes such sums: %s", lcomm_last_error(comm));
  }
  return ncclSuccess;
}

ncclResult_t lcomm_nccl_sum_begin(lcomm_nccl_sum *it) {
  bool is_awaited = it->at->manner == LCOMM_NCCL_HOST_WAITS;
  if (is_awaited && it->count > 0) {
    lcomm_status there = lcomm_device_finish(it->send, it->stream);
    if (there != LCOMM_OK) {
      return ended(it, NULL, there);
    }
  }
  lcomm_nccl_backing_enter(it->at);
  note_capture(it);
  lcomm_status status = (is_awaited ? begin_awaited : begin_in_stream)(it);
  it->is_awaited = is_awaited && status == LCOMM_OK;
  ncclResult_t result = ended(it, comm_of(it), status);
  lcomm_nccl_backing_leave(it->at);
  return result;
}

ncclResult_t lcomm_nccl_sum_finish(lcomm_nccl_sum *it) {
  if (!it->is_awaited) {
    return ncclSuccess;
  }
  it->is_awaited = false;
  lcomm_nccl_backing_enter(it->at);
  lcomm_comm *comm = comm_of(it);
  ncclResult_t result = lcomm_nccl_ended(comm, lcomm_wait(comm, &it->request));
  lcomm_nccl_backing_leave(it->at);
  return result;
}

ncclResult_t lcomm_nccl_sum_forward(const lcomm_nccl_sum *it) {
  const lcomm_nccl_calls *below = lcomm_nccl_below();
  return (it->kind == LCOMM_CALL_ALLREDUCE ? below->AllReduce : below->ReduceScatter)(
      it->send, it->receive, it->count, it->type, it->op, it->comm, it->stream);
}
