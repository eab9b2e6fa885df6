/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The arguments of collective calls. Every check comes before the first byte of
 * a buffer is touched. */

#include <math.h>

#include "libcomm/call/call.h"
#include "libcomm/device/memory_location.h"

/* ------------------------------------------------------------------ kinds */

static bool is_sum(const lcomm_call *call) {
  return call->request.collective == LCOMM_COLLECTIVE_ALLREDUCE ||
         lcomm_collective_scatters(call->request.collective);
}

static lcomm_status check_type(lcomm_comm *comm, const lcomm_call *call) {
  const lcomm_plan_request *request = &call->request;
  const char *name = lcomm_collective_name(request->collective);
  if (lcomm_dtype_size(request->dtype) == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is no data type", name,
                        (int)request->dtype);
  }
  if ((unsigned)request->op > LCOMM_MAX) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s: %d is no operation; use LCOMM_SUM, LCOMM_AVG, LCOMM_MIN or LCOMM_MAX",
                        name, (int)request->op);
  }
  if (request->root < 0 || request->root >= comm->size) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: root %d is not a rank of 0 to %d", name,
                        request->root, comm->size - 1);
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
  return lcomm_refuse(
      comm, LCOMM_ERR_ARGUMENT, "%s: the factor `%s` is %g; in %s it must be finite and not 0",
      lcomm_collective_name(call->request.collective), which, factor, wide ? "float64" : "float32");
}

static lcomm_status check_factors(lcomm_comm *comm, const lcomm_call *call) {
  const lcomm_plan_request *request = &call->request;
  const char *name = lcomm_collective_name(request->collective);
  if (!call->scaled) {
    return LCOMM_OK;
  }
  if (request->op == LCOMM_MIN || request->op == LCOMM_MAX) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s with factors: only sums and averages have factors", name);
  }
  if (LCOMM_DTYPE_IS_WHOLE(request->dtype)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s with factors: %s elements cannot be multiplied by a factor; use a "
                        "floating-point type",
                        name, lcomm_dtype_name(request->dtype));
  }
  LCOMM_TRY(check_factor(comm, call, "before", call->before));
  return check_factor(comm, call, "after", call->after);
}

/* ------------------------------------------------------------------ sizes */

static lcomm_status check_counts(lcomm_comm *comm, lcomm_call *call) {
  lcomm_plan_request *request = &call->request;
  const char *name = lcomm_collective_name(request->collective);
  if (lcomm_collective_has_parts(request->collective)) {
    if (!request->part_counts) {
      return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no counts were given", name);
    }
    request->count = 0;
    for (int i = 0; i < comm->size; i++) {
      uint64_t room = UINT64_MAX - request->count, part = request->part_counts[i];
      request->count += part < room ? part : room;
    }
  }
  if (!lcomm_plan_fits_memory(request, comm->size)) {
    return lcomm_refuse(
        comm, LCOMM_ERR_ARGUMENT, "%s of %llu %s elements on %d ranks: more than fits into memory",
        name, (unsigned long long)request->count, lcomm_dtype_name(request->dtype), comm->size);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- buffers */

/* In bytes: what is sent, what is received, and how far inside the other one
 * each of them lies in place. */
typedef struct extent {
  uint64_t send, receive, send_inside, receive_inside;
} extent;

static extent extent_of(const lcomm_comm *comm, const lcomm_plan_request *request) {
  uint64_t size = request->count * lcomm_dtype_size(request->dtype);
  uint64_t ranks = (uint64_t)comm->size, rank = (uint64_t)comm->rank, before = 0, mine = 0;
  if (lcomm_collective_has_parts(request->collective)) {
    for (uint64_t i = 0; i < rank; i++) {
      before += request->part_counts[i] * lcomm_dtype_size(request->dtype);
    }
    mine = request->part_counts[rank] * lcomm_dtype_size(request->dtype);
  }
  switch (request->collective) {
  case LCOMM_COLLECTIVE_REDUCE_SCATTER:
    return (extent){size * ranks, size, 0, size * rank};
  case LCOMM_COLLECTIVE_ALLGATHER:
    return (extent){size, size * ranks, size * rank, 0};
  case LCOMM_COLLECTIVE_ALLTOALL:
    return (extent){size * ranks, size * ranks, 0, 0};
  case LCOMM_COLLECTIVE_BARRIER:
    return (extent){0, 0, 0, 0};
  case LCOMM_COLLECTIVE_ALLGATHERV:
    return (extent){mine, size, before, 0};
  case LCOMM_COLLECTIVE_REDUCE_SCATTERV:
    return (extent){size, mine, 0, before};
  default:
    return (extent){size, size, 0, 0};
  }
}

static bool overlap(uintptr_t a, uint64_t a_size, uintptr_t b, uint64_t b_size) {
  if (a_size == 0 || b_size == 0) {
    return false;
  }
  return a <= b ? b - a < a_size : a - b < b_size;
}

static bool is_aligned(const lcomm_call *call) {
  uintptr_t both = (uintptr_t)call->send.data | (uintptr_t)call->receive.data;
  return !is_sum(call) || both % lcomm_dtype_size(call->request.dtype) == 0;
}

static lcomm_status check_buffers(lcomm_comm *comm, const lcomm_call *call) {
  const lcomm_plan_request *request = &call->request;
  const char *name = lcomm_collective_name(request->collective);
  unsigned long long count = request->count;
  extent size = extent_of(comm, request);
  uintptr_t send = (uintptr_t)call->send.data, receive = (uintptr_t)call->receive.data;
  if ((!call->send.data && size.send > 0) || (!call->receive.data && size.receive > 0)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s of %llu elements: a buffer is NULL", name,
                        count);
  }
  if (!is_aligned(call)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the address of a buffer is no multiple of the %zu "
                        "bytes of a %s",
                        name, count, lcomm_dtype_size(request->dtype),
                        lcomm_dtype_name(request->dtype));
  }
  bool in_place = send + size.receive_inside == receive + size.send_inside ||
                  (lcomm_collective_scatters(request->collective) && send == receive);
  if (!in_place && overlap(send, size.send, receive, size.receive)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the buffers overlap, but not as in place; give two "
                        "that have nothing in common, or the place that libcomm.h names",
                        name, count);
  }
  return LCOMM_OK;
}

/* --------------------------------------------------------------- locations */

static void find_buffer(lcomm_buffer *buffer, uint64_t size) {
  buffer->count = size / lcomm_dtype_size(buffer->dtype);
  buffer->location = lcomm_memory_location_of(buffer->data, size);
}

static lcomm_status check_locations(lcomm_comm *comm, lcomm_call *call) {
  const char *name = lcomm_collective_name(call->request.collective);
  extent size = extent_of(comm, &call->request);
  char one[LCOMM_MEMORY_LOCATION_NAME_MAX], other[LCOMM_MEMORY_LOCATION_NAME_MAX];
  find_buffer(&call->send, size.send);
  find_buffer(&call->receive, size.receive);
  lcomm_memory_location send = call->send.location, receive = call->receive.location;
  if (size.send > 0 && size.receive > 0 && !lcomm_memory_is_beside(send, receive)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the send buffer is %s, the receive buffer %s; put "
                        "both into one place",
                        name, (unsigned long long)call->request.count,
                        lcomm_memory_location_name(send, one),
                        lcomm_memory_location_name(receive, other));
  }
  call->request.location = lcomm_memory_is_on_device(send) ? send : receive;
  if (call->on_stream && !lcomm_memory_is_on_device(call->request.location) &&
      (size.send > 0 || size.receive > 0)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements on a stream: the buffers are in host memory, which no "
                        "stream is about; give buffers of a device, or leave the stream out",
                        name, (unsigned long long)call->request.count);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_call_check(lcomm_comm *comm, lcomm_call *call, const lcomm_request *handle) {
  LCOMM_TRY(lcomm_control_receive(comm));
  if (!handle) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no request was given",
                        lcomm_collective_name(call->request.collective));
  }
  call->request.name = comm->identity.name;
  LCOMM_TRY(check_type(comm, call));
  LCOMM_TRY(check_factors(comm, call));
  LCOMM_TRY(check_counts(comm, call));
  LCOMM_TRY(check_buffers(comm, call));
  return check_locations(comm, call);
}
