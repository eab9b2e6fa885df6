/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sums that libcomm's collectives do not have: products, 8-bit floats, unsigned types, factors of
 * whole numbers. Each rank gets what all have given, in order with the stream, waits for that, and
 * combines it on the host in the order of the ranks: the same bits on all of them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_choice.h"
#include "libcomm/interpose/nccl/nccl_numbers.h"

/* The call in its two parts: begun where calls are, ended when all of a group are begun. */
struct lcomm_nccl_gathered {
  bool is_scatter; /* else the sum is for all, or for `root` */
  ncclDataType_t type;
  ncclRedOp_t op; /* ncclSum where there is a factor */
  /* On the device parts of all ranks, then, at the next multiple of 8 bytes, this rank's factor and
   * those of all; on the host the same. The result becomes the first part. */
  void *there, *here;
};

static size_t parts_size(const lcomm_nccl_call *call) {
  size_t size = call->count * lcomm_dtype_size(call->type) * (size_t)call->comm->size;
  return (size + LCOMM_NCCL_ELEMENT_MAX - 1) / LCOMM_NCCL_ELEMENT_MAX * LCOMM_NCCL_ELEMENT_MAX;
}

static size_t factors_size(const lcomm_nccl_call *call) {
  return call->factor.is_used ? ((size_t)call->comm->size + 1) * LCOMM_NCCL_ELEMENT_MAX : 0;
}

/* Factors may differ from rank to rank. */
static const unsigned char *factor_of(const lcomm_nccl_call *call, int rank) {
  const unsigned char *own = (const unsigned char *)call->gathered->here + parts_size(call);
  return own + ((size_t)rank + 1) * LCOMM_NCCL_ELEMENT_MAX;
}

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
static double float_of(const lcomm_nccl_call *call, int rank, const unsigned char *value) {
  double read = lcomm_nccl_float_read(call->gathered->type, value);
  const lcomm_nccl_factor *factor = &call->factor;
  return factor->is_used ? lcomm_nccl_float_read(factor->type, factor_of(call, rank)) * read : read;
}

static void combine_float(const lcomm_nccl_call *call, size_t i, size_t element) {
  const lcomm_nccl_gathered *it = call->gathered;
  unsigned char *first = (unsigned char *)it->here + i * element;
  double value = float_of(call, 0, first);
  for (int rank = 1; rank < call->comm->size; rank++) {
    const unsigned char *other = first + (size_t)rank * call->count * element;
    value = combine_floats(it->op, value, float_of(call, rank, other));
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

static uint64_t whole_of(const lcomm_nccl_call *call, int rank, const unsigned char *value) {
  uint64_t read = lcomm_nccl_whole_read(call->gathered->type, value);
  const lcomm_nccl_factor *factor = &call->factor;
  return factor->is_used ? lcomm_nccl_whole_read(factor->type, factor_of(call, rank)) * read : read;
}

static void combine_whole(const lcomm_nccl_call *call, size_t i, size_t element) {
  const lcomm_nccl_gathered *it = call->gathered;
  unsigned char *first = (unsigned char *)it->here + i * element;
  uint64_t value = whole_of(call, 0, first);
  for (int rank = 1; rank < call->comm->size; rank++) {
    const unsigned char *other = first + (size_t)rank * call->count * element;
    value = combine_wholes(it->type, it->op, value, whole_of(call, rank, other));
  }
  value = it->op == ncclAvg ? divide(it->type, value, call->comm->size) : value;
  lcomm_nccl_whole_write(it->type, value, first);
}

static void combine(const lcomm_nccl_call *call, size_t element) {
  bool is_float = lcomm_nccl_is_float(call->gathered->type);
  for (size_t i = 0; i < call->count; i++) {
    if (is_float) {
      combine_float(call, i, element);
    } else {
      combine_whole(call, i, element);
    }
  }
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

/* A factor on the device is read in order with the stream. */
static lcomm_status gather_factors(const lcomm_nccl_call *call) {
  const lcomm_nccl_factor *factor = &call->factor;
  unsigned char *own = (unsigned char *)call->gathered->there + parts_size(call);
  lcomm_dtype type = LCOMM_UINT8;
  if (!factor->is_used) {
    return LCOMM_OK;
  }
  (void)lcomm_nccl_moved_type(factor->type, &type);
  const void *from = factor->there ? factor->there : factor->bytes;
  lcomm_status status =
      lcomm_device_copy_on_stream(own, from, lcomm_dtype_size(type), call->stream);
  return status != LCOMM_OK
             ? status
             : lcomm_allgather_on_stream(call->comm->comm, own, own + LCOMM_NCCL_ELEMENT_MAX,
                                         LCOMM_NCCL_ELEMENT_MAX, LCOMM_UINT8, call->stream);
}

static lcomm_status gather_all(const lcomm_nccl_call *call) {
  lcomm_status status = gather(call);
  return status == LCOMM_OK ? gather_factors(call) : status;
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
    lcomm_nccl_count_gathered(call);
    result = lcomm_nccl_ended(call->comm->comm, gather_all(call));
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
  size_t all = parts_size(call) + factors_size(call);
  ncclResult_t result =
      lcomm_nccl_ended(NULL, lcomm_device_read(it->here, it->there, all, call->stream));
  if (result != ncclSuccess) {
    return result;
  }
  combine(call, element);
  lcomm_status status = lcomm_device_copy_on_stream(call->receive, it->here, size, call->stream);
  status = status == LCOMM_OK ? lcomm_device_finish(call->receive, call->stream) : status;
  return lcomm_nccl_ended(NULL, status);
}

/* ---------------------------------------------------------------- submitting */

/* Memory of the communicator's device and of the host for the parts of all ranks. */
static ncclResult_t get_memory(const lcomm_nccl_call *call, lcomm_nccl_gathered *it) {
  size_t ranks = (size_t)call->comm->size;
  int before = -1;
  if (call->count > SIZE_MAX / LCOMM_NCCL_ELEMENT_MAX / ranks - 2) {
    return lcomm_nccl_fail(ncclInvalidArgument, "%zu elements of each rank are too many",
                           call->count);
  }
  size_t size = parts_size(call) + factors_size(call);
  size = size > 0 ? size : 1;
  it->here = malloc(size);
  if (!it->here) {
    return lcomm_nccl_fail(ncclSystemError, "there is no memory for %zu bytes", size);
  }
  lcomm_status status = lcomm_device_current(&before);
  if (status == LCOMM_OK && call->comm->device >= 0) {
    status = lcomm_device_use(call->comm->device);
  }
  status = status == LCOMM_OK ? lcomm_device_memory_alloc(size, &it->there) : status;
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
