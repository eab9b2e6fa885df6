/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Calls of NCCL that move data to all ranks. */

#include "libcomm/interpose/nccl/nccl_comm.h"

static ncclResult_t make_all_gather(const lcomm_nccl_call *it) {
  LCOMM_NCCL_MAKE(it, lcomm_allgather_on_stream, it->send, it->receive, it->count, it->type,
                  it->stream);
}

static ncclResult_t make_all_to_all(const lcomm_nccl_call *it) {
  LCOMM_NCCL_MAKE(it, lcomm_alltoall_on_stream, it->send, it->receive, it->count, it->type,
                  it->stream);
}

static ncclResult_t make_broadcast(const lcomm_nccl_call *it) {
  LCOMM_NCCL_MAKE(it, lcomm_broadcast_on_stream, it->receive, it->count, it->type, it->root,
                  it->stream);
}

/* Data of the root goes to its `receive` first: libcomm broadcasts in place. */
static ncclResult_t make_copy_and_broadcast(const lcomm_nccl_call *it) {
  bool is_root = it->comm->rank == it->root;
  ncclResult_t result = ncclSuccess;
  if (is_root && it->send != it->receive) {
    result = lcomm_nccl_ended(
        NULL, lcomm_device_copy_on_stream(it->receive, it->send,
                                          it->count * lcomm_dtype_size(it->type), it->stream));
  }
  return result == ncclSuccess ? make_broadcast(it) : result;
}

/* ---------------------------------------------------------- NCCL's functions */

ncclResult_t lcomm_nccl_submit_move(const char *name, lcomm_nccl_call call, ncclDataType_t type) {
  ncclResult_t result = lcomm_nccl_check(name, call.comm);
  if (result == ncclSuccess && !lcomm_nccl_moved_type(type, &call.type)) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: there is no type %d", name, (int)type);
  }
  return result == ncclSuccess ? lcomm_nccl_submit(&call) : result;
}

static ncclResult_t all_gather(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {
      make_all_gather, comm, send, receive, count, .stream = stream, .turn = LCOMM_NCCL_TURN_CALLS};
  return lcomm_nccl_submit_move("ncclAllGather", call, type);
}

static ncclResult_t all_to_all(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {
      make_all_to_all, comm, send, receive, count, .stream = stream, .turn = LCOMM_NCCL_TURN_CALLS};
  return lcomm_nccl_submit_move("ncclAlltoAll", call, type);
}

static ncclResult_t bcast(void *buffer, size_t count, ncclDataType_t type, int root,
                          ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {
      make_broadcast, comm,         buffer,           buffer,
      count,          .root = root, .stream = stream, .turn = LCOMM_NCCL_TURN_CALLS};
  return lcomm_nccl_submit_move("ncclBcast", call, type);
}

static ncclResult_t broadcast(const void *send, void *receive, size_t count, ncclDataType_t type,
                              int root, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {
      make_copy_and_broadcast,      comm, send, receive, count, .root = root, .stream = stream,
      .turn = LCOMM_NCCL_TURN_CALLS};
  return lcomm_nccl_submit_move("ncclBroadcast", call, type);
}

void lcomm_nccl_take_moves(lcomm_nccl_calls *calls) {
  calls->AllGather = all_gather;
  calls->AlltoAll = all_to_all;
  calls->Bcast = bcast;
  calls->Broadcast = broadcast;
}
