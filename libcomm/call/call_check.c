/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The arguments of collective calls. Every check comes before the first byte of
 * a buffer is touched. */

#include <math.h>

#include "libcomm/call/call.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/device_turn.h"

/* ------------------------------------------------------------------ kinds */

static const char *name_of(const lcomm_call *call) {
  return lcomm_collective_name(call->request.collective);
}

static bool is_sum(const lcomm_call *call) {
  return call->request.collective == LCOMM_COLLECTIVE_ALLREDUCE ||
         lcomm_collective_scatters(call->request.collective);
}

static lcomm_status check_type(lcomm_comm *comm, const lcomm_call *call) {
  const lcomm_plan_request *request = &call->request;
  if (lcomm_dtype_size(request->dtype) == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is no data type", name_of(call),
                        (int)request->dtype);
  }
  if ((unsigned)request->op > LCOMM_MAX) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s: %d is no operation; use LCOMM_SUM, LCOMM_AVG, LCOMM_MIN or LCOMM_MAX",
                        name_of(call), (int)request->op);
  }
  if (request->root < 0 || request->root >= comm->size) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: root %d is not a rank of 0 to %d",
                        name_of(call), request->root, comm->size - 1);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- factors */

static lcomm_status check_factor(lcomm_comm *comm, const lcomm_call *call, const char *which,
                                 double factor) {
  bool wide = call->request.dtype == LCOMM_FLOAT64;
  double used = wide ? factor : (double)(float)factor;
  if (isfinite(used) && (used < 0 || used > 0)) {
    return LCOMM_OK;
  }
  return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                      "%s: the factor `%s` is %g; in %s it must be finite and not 0", name_of(call),
                      which, factor, wide ? "float64" : "float32");
}

static lcomm_status check_factors(lcomm_comm *comm, const lcomm_call *call) {
  const lcomm_plan_request *request = &call->request;
  if (!call->scaled) {
    return LCOMM_OK;
  }
  if (request->op == LCOMM_MIN || request->op == LCOMM_MAX) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s with factors: only sums and averages have factors", name_of(call));
  }
  if (LCOMM_DTYPE_IS_WHOLE(request->dtype)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s with factors: %s elements cannot be multiplied by a factor; use a "
                        "floating-point type",
                        name_of(call), lcomm_dtype_name(request->dtype));
  }
  if (call->weighted) {
    return LCOMM_OK;
  }
  LCOMM_TRY(check_factor(comm, call, "before", call->before));
  return check_factor(comm, call, "after", call->after);
}

/* ------------------------------------------------------------------ sizes */

static lcomm_status check_counts(lcomm_comm *comm, lcomm_call *call) {
  lcomm_plan_request *request = &call->request;
  if (lcomm_collective_has_parts(request->collective)) {
    if (!request->part_counts) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no counts were given", name_of(call));
    }
    request->count = 0;
    for (int i = 0; i < comm->size; i++) {
      uint64_t room = UINT64_MAX - request->count, part = request->part_counts[i];
      request->count += part < room ? part : room;
    }
  }
  if (!lcomm_plan_fits_memory(request, comm->size)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu %s elements on %d ranks: more than fits into memory",
                        name_of(call), (unsigned long long)request->count,
                        lcomm_dtype_name(request->dtype), comm->size);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- buffers */

/* In elements: what is sent, what is received, and how far inside the other one each of them lies
 * in place. */
typedef struct extent {
  uint64_t send, receive, send_inside, receive_inside;
} extent;

static extent extent_of(const lcomm_comm *comm, const lcomm_plan_request *request) {
  uint64_t count = request->count, before = 0, mine = 0;
  uint64_t ranks = (uint64_t)comm->size, rank = (uint64_t)comm->rank;
  if (lcomm_collective_has_parts(request->collective)) {
    for (uint64_t i = 0; i < rank; i++) {
      before += request->part_counts[i];
    }
    mine = request->part_counts[rank];
  }
  switch (request->collective) {
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
    return (extent){count * ranks, count, 0, count * rank};
  case LCOMM_COLLECTIVE_ALLGATHER:
    return (extent){count, count * ranks, count * rank, 0};
  case LCOMM_COLLECTIVE_ALLTOALL:
    return (extent){count * ranks, count * ranks, 0, 0};
  case LCOMM_COLLECTIVE_BARRIER:
    return (extent){0, 0, 0, 0};
  case LCOMM_COLLECTIVE_ALLGATHERV:
    return (extent){mine, count, before, 0};
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    return (extent){count, mine, 0, before};
  default:
    return (extent){count, count, 0, 0};
  }
}

static bool overlap(uintptr_t a, uint64_t a_size, uintptr_t b, uint64_t b_size) {
  if (a_size == 0 || b_size == 0) {
    return false;
  }
  return a <= b ? b - a < a_size : a - b < b_size;
}

/* Are the buffers apart, or as in place? */
static bool lie_well(const lcomm_call *call, const extent *counts, uint64_t element) {
  uintptr_t send = (uintptr_t)call->send.data, receive = (uintptr_t)call->receive.data;
  bool in_place =
      send + counts->receive_inside * element == receive + counts->send_inside * element ||
      (lcomm_collective_scatters(call->request.collective) && send == receive);
  return in_place || !overlap(send, counts->send * element, receive, counts->receive * element);
}

/* Sizes of types are powers of 2. */
static bool is_aligned(const lcomm_call *call, uint64_t element) {
  uintptr_t both = (uintptr_t)call->send.data | (uintptr_t)call->receive.data;
  return !is_sum(call) || (both & (element - 1)) == 0;
}

static lcomm_status check_buffers(lcomm_comm *comm, const lcomm_call *call, const extent *counts) {
  const lcomm_plan_request *request = &call->request;
  uint64_t element = lcomm_dtype_size(request->dtype);
  unsigned long long count = request->count;
  if ((!call->send.data && counts->send > 0) || (!call->receive.data && counts->receive > 0)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s of %llu elements: a buffer is NULL",
                        name_of(call), count);
  }
  if (!is_aligned(call, element)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the address of a buffer is no multiple of the %llu "
                        "bytes of a %s",
                        name_of(call), count, (unsigned long long)element,
                        lcomm_dtype_name(request->dtype));
  }
  if (!lie_well(call, counts, element)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the buffers overlap, but not as in place; give two "
                        "that have nothing in common, or the place that libcomm.h names",
                        name_of(call), count);
  }
  return LCOMM_OK;
}

/* --------------------------------------------------------------- locations */

/* A driver that is asked may wait for what this communicator's thread moves. */
static void locate(lcomm_comm *comm, lcomm_call *call) {
  unsigned depth = lcomm_device_in_use() ? lcomm_turn_give(comm) : 0;
  lcomm_buffers_locate(&call->send, &call->receive);
  lcomm_turn_take(comm, depth);
}

static lcomm_status check_locations(lcomm_comm *comm, lcomm_call *call, const extent *counts) {
  char one[LCOMM_MEMORY_LOCATION_NAME_MAX], other[LCOMM_MEMORY_LOCATION_NAME_MAX];
  call->send.count = counts->send;
  call->receive.count = counts->receive;
  locate(comm, call);
  lcomm_memory_location send = call->send.location, receive = call->receive.location;
  if (counts->send > 0 && counts->receive > 0 && !lcomm_memory_is_beside(send, receive)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the send buffer is %s, the receive buffer %s; put "
                        "both into one place",
                        name_of(call), (unsigned long long)call->request.count,
                        lcomm_memory_location_name(send, one),
                        lcomm_memory_location_name(receive, other));
  }
  call->request.location = lcomm_memory_is_on_device(send) ? send : receive;
  if (call->on_stream && !lcomm_memory_is_on_device(call->request.location) &&
      (counts->send > 0 || counts->receive > 0)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements on a stream: the buffers are in host memory, which no "
                        "stream is about; give buffers of a device, or leave the stream out",
                        name_of(call), (unsigned long long)call->request.count);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_call_check(lcomm_comm *comm, lcomm_call *call, const lcomm_request *handle) {
  LCOMM_TRY(lcomm_control_receive(comm));
  if (!handle) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no request was given", name_of(call));
  }
  call->request.name = comm->identity.name;
  LCOMM_TRY(check_type(comm, call));
  LCOMM_TRY(check_factors(comm, call));
  LCOMM_TRY(check_counts(comm, call));
  extent counts = extent_of(comm, &call->request);
  LCOMM_TRY(check_buffers(comm, call, &counts));
  return check_locations(comm, call, &counts);
}

lcomm_status lcomm_call_find_capture(lcomm_comm *comm, const char *what, void *stream,
                                     uint64_t *capture) {
  const lcomm_device_table *table = lcomm_device_in_use();
  *capture = 0;
  if (!table || table->stream.captured(stream, capture) != 0) {
    return LCOMM_OK; /* what is no stream, others find out */
  }
  return *capture != LCOMM_DEVICE_CAPTURE_OTHER
             ? LCOMM_OK
             : lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                            "%s on the legacy default stream while another stream is captured "
                            "into a graph: CUDA allows nothing there then; use another stream",
                            what);
}

lcomm_status lcomm_call_refuse_capture(lcomm_comm *comm, const char *what, void *stream,
                                       const char *why) {
  uint64_t capture = 0;
  LCOMM_TRY(lcomm_call_find_capture(comm, what, stream, &capture));
  return capture == 0 ? LCOMM_OK
                      : lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                                     "%s on a stream that is captured into a graph: %s, so it "
                                     "cannot be replayed; end the capture before, and begin "
                                     "another after it",
                                     what, why);
}
