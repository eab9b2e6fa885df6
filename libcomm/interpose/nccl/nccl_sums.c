/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums of NCCL, each one of libcomm in order with its stream. */

#include <string.h>

#include "libcomm/interpose/nccl/nccl_choice.h"
#include "libcomm/interpose/nccl/nccl_numbers.h"

/* ------------------------------------------------------ types and operations */

bool lcomm_nccl_moved_type(ncclDataType_t type, lcomm_dtype *as) {
  static const lcomm_dtype types[] = {
      [ncclInt8] = LCOMM_INT8,        [ncclUint8] = LCOMM_UINT8,
      [ncclInt32] = LCOMM_INT32,      [ncclUint32] = LCOMM_INT32,
      [ncclInt64] = LCOMM_INT64,      [ncclUint64] = LCOMM_INT64,
      [ncclFloat16] = LCOMM_FLOAT16,  [ncclFloat32] = LCOMM_FLOAT32,
      [ncclFloat64] = LCOMM_FLOAT64,  [ncclBfloat16] = LCOMM_BFLOAT16,
      [ncclFloat8e4m3] = LCOMM_UINT8, [ncclFloat8e5m2] = LCOMM_UINT8};
  if ((unsigned)type >= sizeof(types) / sizeof *types) {
    return false;
  }
  *as = types[type];
  return true;
}

/* Does libcomm have it? It sums unsigned numbers of 32 and 64 bits as signed ones, which gives the
 * same bits. */
static bool has(ncclDataType_t type, ncclRedOp_t op, bool has_factor) {
  bool is_wide_unsigned = type == ncclUint32 || type == ncclUint64;
  bool is_float8 = type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
  return op != ncclProd && !is_float8 && !(is_wide_unsigned && op != ncclSum) &&
         !(has_factor && !lcomm_nccl_is_float(type));
}

/* Takes the operation of a program, if it is one. */
static ncclResult_t check(const char *name, ncclDataType_t type, ncclRedOp_t op,
                          lcomm_nccl_call *call) {
  bool is_made = (unsigned)op >= ncclNumOps && (unsigned)op < ncclMaxRedOp;
  bool is_there = (unsigned)op < ncclNumOps ||
                  (is_made && lcomm_nccl_factor_find(call->comm, op, &call->factor));
  if (!lcomm_nccl_moved_type(type, &call->type) || !is_there) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%s: there is no type %d, or no operation %d", name,
                           (int)type, (int)op);
  }
  return !is_made || call->factor.type == type
             ? ncclSuccess
             : lcomm_nccl_fail(ncclInvalidArgument,
                               "%s: operation %d was made for type %d, the call has type %d", name,
                               (int)op, (int)call->factor.type, (int)type);
}

/* ------------------------------------------------------------------- making */

/* With the communicator's lock. */
static lcomm_status all_reduce_of(const lcomm_nccl_call *it, double factor) {
  lcomm_comm *comm = it->comm->now.comm;
  return it->factor.is_used
             ? lcomm_allreduce_weighted_on_stream(comm, it->send, it->receive, it->count, it->type,
                                                  factor, it->stream)
             : lcomm_allreduce_on_stream(comm, it->send, it->receive, it->count, it->type, it->op,
                                         it->stream);
}

/* Parts of the sum for all ranks alike, or, for one root, all of it. */
static lcomm_status scatter_of(const lcomm_nccl_call *it, double factor) {
  struct ncclComm *comm = it->comm;
  bool is_even = it->root < 0;
  if (is_even && !it->factor.is_used) {
    return lcomm_reduce_scatter_on_stream(comm->now.comm, it->send, it->receive, it->count,
                                          it->type, it->op, it->stream);
  }
  for (int rank = 0; rank < comm->size; rank++) {
    comm->counts[rank] = is_even || rank == it->root ? it->count : 0;
  }
  return it->factor.is_used
             ? lcomm_reduce_scatterv_weighted_on_stream(comm->now.comm, it->send, it->receive,
                                                        comm->counts, it->type, factor, it->stream)
             : lcomm_reduce_scatterv_on_stream(comm->now.comm, it->send, it->receive, comm->counts,
                                               it->type, it->op, it->stream);
}

/* What a residual cannot be used for, a call that is captured into a graph say, is refused before
 * anything is sent: it is an exact sum, on all ranks alike. */
static ncclResult_t make_chosen(const lcomm_nccl_call *it,
                                lcomm_status (*sum)(const lcomm_nccl_call *it, double factor),
                                double factor) {
  lcomm_nccl_site site;
  lcomm_nccl_choose(it, &site);
  if (site.feedback) {
    lcomm_status status = lcomm_nccl_feedback_sum(&site, it->send, it->receive, it->stream);
    if (status != LCOMM_ERR_ARGUMENT) {
      return lcomm_nccl_ended(lcomm_nccl_feedback_comm(site.feedback), status);
    }
  }
  return lcomm_nccl_ended(it->comm->now.comm, sum(it, factor));
}

static ncclResult_t make(const lcomm_nccl_call *it,
                         lcomm_status (*sum)(const lcomm_nccl_call *it, double factor)) {
  unsigned char bytes[LCOMM_NCCL_ELEMENT_MAX];
  double factor = 1;
  if (it->factor.is_used) {
    ncclResult_t result = lcomm_nccl_factor_read(&it->factor, it->stream, bytes);
    if (result != ncclSuccess) {
      return result;
    }
    factor = lcomm_nccl_float_read(it->factor.type, bytes);
  }
  pthread_mutex_lock(&it->comm->lock);
  lcomm_nccl_control_sum(it);
  ncclResult_t result = make_chosen(it, sum, factor);
  pthread_mutex_unlock(&it->comm->lock);
  return result;
}

static ncclResult_t make_all_reduce(const lcomm_nccl_call *it) {
  return make(it, all_reduce_of);
}

static ncclResult_t make_scatter(const lcomm_nccl_call *it) {
  return make(it, scatter_of);
}

/* ---------------------------------------------------------- NCCL's functions */

static ncclResult_t submit(const char *name, lcomm_nccl_call call, ncclDataType_t type,
                           ncclRedOp_t op) {
  static const lcomm_op ops[] = {
      [ncclSum] = LCOMM_SUM, [ncclMax] = LCOMM_MAX, [ncclMin] = LCOMM_MIN, [ncclAvg] = LCOMM_AVG};
  ncclResult_t result = lcomm_nccl_check(name, call.comm);
  result = result == ncclSuccess ? check(name, type, op, &call) : result;
  if (result != ncclSuccess) {
    return result;
  }
  bool has_factor = call.factor.is_used;
  call.name = name;
  call.given_type = type;
  call.given_op = op;
  if (!has(type, op, has_factor)) {
    return lcomm_nccl_gathered_submit(&call, call.root < 0, type, op);
  }
  call.op = has_factor ? LCOMM_SUM : ops[op];
  call.turn = LCOMM_NCCL_TURN_CALLS;
  return lcomm_nccl_submit(&call);
}

static ncclResult_t all_reduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {make_all_reduce, comm, send, receive, count, .stream = stream};
  return submit("ncclAllReduce", call, type, op);
}

static ncclResult_t reduce_scatter(const void *send, void *receive, size_t count,
                                   ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                   cudaStream_t stream) {
  lcomm_nccl_call call = {make_scatter, comm, send, receive, count, .root = -1, .stream = stream};
  call.kind = LCOMM_CALL_REDUCE_SCATTER;
  return submit("ncclReduceScatter", call, type, op);
}

/* Where the result is nobody's, `receive` may be anything. */
static ncclResult_t reduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, int root, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_call call = {make_scatter, comm, send, receive, count, .root = root, .stream = stream};
  call.kind = LCOMM_CALL_REDUCE_SCATTER;
  if (comm && atomic_load(&comm->state) == LCOMM_NCCL_READY) {
    if (root < 0 || root >= comm->size) {
      return lcomm_nccl_fail(ncclInvalidArgument, "ncclReduce: root %d is not a rank of 0 to %d",
                             root, comm->size - 1);
    }
    call.receive = comm->rank == root ? receive : NULL;
  }
  return submit("ncclReduce", call, type, op);
}

void lcomm_nccl_take_sums(lcomm_nccl_calls *calls) {
  calls->AllReduce = all_reduce;
  calls->ReduceScatter = reduce_scatter;
  calls->Reduce = reduce;
}
