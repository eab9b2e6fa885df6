/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums that libcomm's collectives do not have: products, 8-bit floats, unsigned types, factors of
 * whole numbers. Each rank gets what all have given, in order with the stream, waits for that, and
 * combines it on the host in the order of the ranks: the same bits on all of them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_comm.h"
#include "libcomm/interpose/nccl/nccl_numbers.h"

/* The call in its two parts: begun where calls are, ended when all of a group are begun. */
struct lcomm_nccl_gathered {
  bool is_scatter; /* else the sum is for all, or for `root` */
  ncclDataType_t type;
  ncclRedOp_t op; /* ncclSum where there is a factor */
  void *there;    /* parts of all ranks on the device */
  void *here;     /* the same on the host; the result becomes the first */
};

void lcomm_nccl_gathered_free(lcomm_nccl_gathered *it) {
  (void)lcomm_device_memory_free(it->there);
  free(it->here);
  free(it);
}

/* ----------------------------------------------------------------- combining */

/* Of NaN and a number NaN, as in libcomm. */
static bool is_chosen(ncclRedOp_t op, double candidate, double best) {
  return !isnan(best) &&
         (isnan(candidate) || (op == ncclMin ? candidate < best : candidate > best));
}

static double combine_floats(ncclRedOp_t op, double a, double b) {
  switch (op) {
  case ncclProd:
    return a * b;
  case ncclMin:
  case ncclMax:
    return is_chosen(op, b, a) ? b : a;
  default:
    return a + b;
  }
}

static uint64_t combine_wholes(ncclDataType_t type, ncclRedOp_t op, uint64_t a, uint64_t b) {
  bool is_less = lcomm_nccl_is_signed(type) ? (int64_t)b < (int64_t)a : b < a;
  switch (op) {
  case ncclProd:
    return a * b;
  case ncclMin:
    return is_less ? b : a;
  case ncclMax:
    return is_less ? a : b;
  default:
    return a + b;
  }
}

/* Element i of the parts, in double precision, rounded once. */
static void combine_float(const lcomm_nccl_call *call, double factor, size_t i, size_t element) {
  const lcomm_nccl_gathered *it = call->gathered;
  unsigned char *first = (unsigned char *)it->here + i * element;
  double value = factor * lcomm_nccl_float_read(it->type, first);
  for (int rank = 1; rank < call->comm->size; rank++) {
    const unsigned char *other = first + (size_t)rank * call->count * element;
    value = combine_floats(it->op, value, factor * lcomm_nccl_float_read(it->type, other));
  }
  value = it->op == ncclAvg ? value / call->comm->size : value;
  lcomm_nccl_float_write(it->type, value, first);
}

/* The sum of an average wraps around in its type before it is divided, as in NCCL. */
static uint64_t divide(ncclDataType_t type, uint64_t sum, int ranks) {
  lcomm_nccl_whole_write(type, sum, &sum);
  sum = lcomm_nccl_whole_read(type, &sum);
  return lcomm_nccl_is_signed(type) ? (uint64_t)((int64_t)sum / ranks) : sum / (uint64_t)ranks;
}

static void combine_whole(const lcomm_nccl_call *call, uint64_t factor, size_t i, size_t element) {
  const lcomm_nccl_gathered *it = call->gathered;
  unsigned char *first = (unsigned char *)it->here + i * element;
  uint64_t value = factor * lcomm_nccl_whole_read(it->type, first);
  for (int rank = 1; rank < call->comm->size; rank++) {
    const unsigned char *other = first + (size_t)rank * call->count * element;
    value =
        combine_wholes(it->type, it->op, value, factor * lcomm_nccl_whole_read(it->type, other));
  }
  value = it->op == ncclAvg ? divide(it->type, value, call->comm->size) : value;
  lcomm_nccl_whole_write(it->type, value, first);
}

static ncclResult_t combine(const lcomm_nccl_call *call, size_t element) {
  unsigned char bytes[LCOMM_NCCL_ELEMENT_MAX];
  bool is_float = lcomm_nccl_is_float(call->gathered->type), has_factor = call->factor.is_used;
  if (has_factor) {
    ncclResult_t result = lcomm_nccl_factor_read(&call->factor, call->stream, bytes);
    if (result != ncclSuccess) {
      return result;
    }
  }
  double real = is_float && has_factor ? lcomm_nccl_float_read(call->factor.type, bytes) : 1;
  uint64_t whole = !is_float && has_factor ? lcomm_nccl_whole_read(call->factor.type, bytes) : 1;
  for (size_t i = 0; i < call->count; i++) {
    if (is_float) {
      combine_float(call, real, i, element);
    } else {
      combine_whole(call, whole, i, element);
    }
  }
  return ncclSuccess;
}

/* ------------------------------------------------------------------- making */

static lcomm_status gather(const lcomm_nccl_call *call) {
  lcomm_comm *comm = call->comm->comm;
  void *there = call->gathered->there;
  return call->gathered->is_scatter
             ? lcomm_alltoall_on_stream(comm, call->send, there, call->count, call->type,
                                        call->stream)
             : lcomm_allgather_on_stream(comm, call->send, there, call->count, call->type,
                                         call->stream);
}

static ncclResult_t begin(const lcomm_nccl_call *call) {
  int is_captured = 0;
  ncclResult_t result = lcomm_nccl_ended(NULL, lcomm_device_captured(call->stream, &is_captured));
  if (result == ncclSuccess && is_captured) {
    return lcomm_nccl_fail(ncclInvalidArgument,
                           "operation %d of NCCL on its type %d, on a stream that is captured into "
                           "a graph: the host combines what all ranks give, so it cannot be "
                           "replayed; end the capture before, and begin another one behind it",
                           (int)call->gathered->op, (int)call->gathered->type);
  }
  if (result == ncclSuccess) {
    pthread_mutex_lock(&call->comm->lock);
    result = lcomm_nccl_ended(call->comm->comm, gather(call));
    pthread_mutex_unlock(&call->comm->lock);
  }
  return result;
}

static ncclResult_t end(const lcomm_nccl_call *call) {
  lcomm_nccl_gathered *it = call->gathered;
  size_t element = lcomm_dtype_size(call->type), size = call->count * element;
  if (size == 0 || !call->receive) {
    return lcomm_nccl_ended(NULL, lcomm_device_finish(it->there, call->stream));
  }
  ncclResult_t result = lcomm_nccl_ended(
      NULL, lcomm_device_read(it->here, it->there, size * (size_t)call->comm->size, call->stream));
  result = result == ncclSuccess ? combine(call, element) : result;
  if (result != ncclSuccess) {
    return result;
  }
  lcomm_status status = lcomm_device_copy_on_stream(call->receive, it->here, size, call->stream);
  status = status == LCOMM_OK ? lcomm_device_finish(call->receive, call->stream) : status;
  return lcomm_nccl_ended(NULL, status);
}

/* ---------------------------------------------------------------- submitting */

/* Memory of the communicator's device and of the host for the parts of all ranks. */
static ncclResult_t get_memory(const lcomm_nccl_call *call, lcomm_nccl_gathered *it) {
  size_t part = call->count * lcomm_dtype_size(call->type), ranks = (size_t)call->comm->size;
  int before = -1;
  if (call->count > SIZE_MAX / LCOMM_NCCL_ELEMENT_MAX / ranks) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%zu elements of each rank are too many",
                           call->count);
  }
  it->here = malloc(part > 0 ? part * ranks : 1);
  if (!it->here) {
    return lcomm_nccl_fail(ncclSystemError, "there is no memory for %zu bytes of each rank", part);
  }
  lcomm_status status = lcomm_device_current(&before);
  if (status == LCOMM_OK && call->comm->device >= 0) {
    status = lcomm_device_use(call->comm->device);
  }
  status = status == LCOMM_OK ? lcomm_device_memory_alloc(part > 0 ? part * ranks : 1, &it->there)
                              : status;
  ncclResult_t result = lcomm_nccl_ended(NULL, status);
  if (before >= 0) {
    (void)lcomm_device_use(before);
  }
  return result;
}

/* Both parts, in a group of their own where the program has none. */
static ncclResult_t submit_parts(lcomm_nccl_call *call) {
  ncclResult_t result = lcomm_nccl_group_start();
  if (result != ncclSuccess) {
    lcomm_nccl_gathered_free(call->gathered);
    return result;
  }
  call->make = end;
  call->turn = LCOMM_NCCL_TURN_ENDS; /* the group frees what is gathered */
  result = lcomm_nccl_submit(call);
  if (result != ncclSuccess) {
    lcomm_nccl_gathered_free(call->gathered);
    lcomm_nccl_group_drop();
    return result;
  }
  call->make = begin;
  call->turn = LCOMM_NCCL_TURN_CALLS;
  result = lcomm_nccl_submit(call);
  if (result != ncclSuccess) {
    lcomm_nccl_group_drop();
    return result;
  }
  return lcomm_nccl_group_end();
}

ncclResult_t lcomm_nccl_gathered_submit(lcomm_nccl_call *call, bool is_scatter, ncclDataType_t type,
                                        ncclRedOp_t op) {
  lcomm_nccl_gathered *it = calloc(1, sizeof *it);
  if (!it) {
    return lcomm_nccl_fail(ncclSystemError, "there is no memory for a sum");
  }
  it->is_scatter = is_scatter;
  it->type = type;
  it->op = call->factor.is_used ? ncclSum : op;
  ncclResult_t result = get_memory(call, it);
  if (result != ncclSuccess) {
    lcomm_nccl_gathered_free(it);
    return result;
  }
  call->gathered = it;
  return submit_parts(call);
}
