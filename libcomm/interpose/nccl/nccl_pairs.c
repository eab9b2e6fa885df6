/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Messages between two ranks, and what is made of them: gather and scatter. */

#include "libcomm/interpose/nccl/nccl_comm.h"

static ncclResult_t make_send(const lcomm_nccl_call *it) {
  LCOMM_NCCL_MAKE(it, lcomm_send_on_stream, it->send, it->count, it->type, it->root, it->stream);
}

static ncclResult_t make_receive(const lcomm_nccl_call *it) {
  LCOMM_NCCL_MAKE(it, lcomm_receive_on_stream, it->receive, it->count, it->type, it->root,
                  it->stream);
}

static ncclResult_t make_copy(const lcomm_nccl_call *it) {
  return lcomm_nccl_ended(NULL, lcomm_device_copy_on_stream(it->receive, it->send,
                                                            it->count * lcomm_dtype_size(it->type),
                                                            it->stream));
}

/* --------------------------------------------------------- send and receive */

static ncclResult_t submit(const char *name, lcomm_nccl_call call, ncclDataType_t type, int peer,
                           cudaStream_t stream) {
  call.root = peer;
  call.stream = stream;
  return lcomm_nccl_submit_move(name, call, type);
}

static ncclResult_t send_to(const char *name, const void *data, size_t count, ncclDataType_t type,
                            int peer, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {make_send, comm, data, NULL, count, .turn = LCOMM_NCCL_TURN_SENDS};
  return submit(name, call, type, peer, stream);
}

static ncclResult_t receive_from(const char *name, void *data, size_t count, ncclDataType_t type,
                                 int peer, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {make_receive, comm, NULL, data, count, .turn = LCOMM_NCCL_TURN_RECEIVES};
  return submit(name, call, type, peer, stream);
}

static ncclResult_t send(const void *data, size_t count, ncclDataType_t type, int peer,
                         ncclComm_t comm, cudaStream_t stream) {
  return send_to("ncclSend", data, count, type, peer, comm, stream);
}

static ncclResult_t receive(void *data, size_t count, ncclDataType_t type, int peer,
                            ncclComm_t comm, cudaStream_t stream) {
  return receive_from("ncclRecv", data, count, type, peer, comm, stream);
}

/* -------------------------------------------------------- gather and scatter */

static ncclResult_t copy_own(const char *name, const void *from, void *to, size_t count,
                             ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {
      make_copy, comm, from, to, count, .stream = stream, .turn = LCOMM_NCCL_TURN_CALLS};
  return from == to ? ncclSuccess : lcomm_nccl_submit_move(name, call, type);
}

static ncclResult_t check_rooted(const char *name, ncclDataType_t type, int root, ncclComm_t comm,
                                 size_t *element) {
  lcomm_dtype as;
  ncclResult_t result = lcomm_nccl_check(name, comm);
  if (result != ncclSuccess) {
    return result;
  }
  if (!lcomm_nccl_moved_type(type, &as) || root < 0 || root >= comm->size) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: there is no type %d, or no root %d", name,
                           (int)type, root);
  }
  *element = lcomm_dtype_size(as);
  return ncclSuccess;
}

/* The calls of one, as a group. */
static ncclResult_t end_with(ncclResult_t result) {
  if (result != ncclSuccess) {
    lcomm_nccl_group_drop();
    return result;
  }
  return lcomm_nccl_group_end();
}

static ncclResult_t gather(const void *send_data, void *receive_data, size_t count,
                           ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  static const char name[] = "ncclGather";
  size_t element = 0;
  ncclResult_t result = check_rooted(name, type, root, comm, &element);
  if (result != ncclSuccess || comm->rank != root) {
    return result != ncclSuccess ? result
                                 : send_to(name, send_data, count, type, root, comm, stream);
  }
  result = lcomm_nccl_group_start();
  if (result != ncclSuccess) {
    return result;
  }
  for (int rank = 0; rank < comm->size && result == ncclSuccess; rank++) {
    char *part = (char *)receive_data + (size_t)rank * count * element;
    result = rank == root ? copy_own(name, send_data, part, count, type, comm, stream)
                          : receive_from(name, part, count, type, rank, comm, stream);
  }
  return end_with(result);
}

static ncclResult_t scatter(const void *send_data, void *receive_data, size_t count,
                            ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream) {
  static const char name[] = "ncclScatter";
  size_t element = 0;
  ncclResult_t result = check_rooted(name, type, root, comm, &element);
  if (result != ncclSuccess || comm->rank != root) {
    return result != ncclSuccess
               ? result
               : receive_from(name, receive_data, count, type, root, comm, stream);
  }
  result = lcomm_nccl_group_start();
  if (result != ncclSuccess) {
    return result;
  }
  for (int rank = 0; rank < comm->size && result == ncclSuccess; rank++) {
    const char *part = (const char *)send_data + (size_t)rank * count * element;
    result = rank == root ? copy_own(name, part, receive_data, count, type, comm, stream)
                          : send_to(name, part, count, type, rank, comm, stream);
  }
  return end_with(result);
}

void lcomm_nccl_take_pairs(lcomm_nccl_calls *calls) {
  calls->Send = send;
  calls->Recv = receive;
  calls->Gather = gather;
  calls->Scatter = scatter;
}
