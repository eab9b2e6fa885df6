/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The collective calls of the public interface: check the arguments, bring the
 * caller's data into the vector and back.
 */

#include <string.h>

#include "libcomm/bucket.h"
#include "libcomm/capture.h"

/* ------------------------------------------------------------------ data */

/* Elements the caller sends and receives. */
static uint64_t whole_count(const lcomm_comm *comm, const lcomm_plan *plan) {
  return plan->count * (uint64_t)comm->size;
}

/* Where segment `rank` of an all-gather lies in a vector of words. */
static uint8_t *segment_of(const lcomm_comm *comm, const lcomm_plan *plan, float *vector,
                           int rank) {
  return (uint8_t *)(vector + plan->vector_count / (uint64_t)comm->size * (uint64_t)rank);
}

static void bring_in(lcomm_comm *comm, const lcomm_run *run, const void *send, float *vector) {
  const lcomm_plan *plan = run->plan;
  size_t size = plan->count * lcomm_dtype_size(plan->dtype);
  uint64_t count = plan->count;
  if (!send) {
    return; /* a barrier, or nothing to bring */
  }
  if (plan->collective == LCOMM_COLLECTIVE_ALLGATHER) {
    uint8_t *segment = segment_of(comm, plan, vector, comm->rank);
    if (segment != send) {
      memmove(segment, send, size);
    }
    return;
  }
  if (plan->collective == LCOMM_COLLECTIVE_BROADCAST) {
    if ((const void *)vector != send) {
      memcpy(vector, send, size);
    }
    return;
  }
  if (plan->collective == LCOMM_COLLECTIVE_REDUCE_SCATTER) {
    count = whole_count(comm, plan);
  }
  if ((const void *)vector != send && count > 0) {
    lcomm_copy_in(comm, send, plan->dtype, count, vector);
  }
}

/* Did the sum go through a codec that does not carry the buffer exactly? */
static bool is_lossy(const lcomm_plan *plan) {
  lcomm_format exact = lcomm_format_exact(plan->dtype);
  for (int i = 0; i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &plan->stages[i].format;
    if (format->codec != exact.codec || format->variant != exact.variant) {
      return true;
    }
  }
  return false;
}

static void look_through(lcomm_operation *operation, const float *result) {
  const lcomm_run *run = operation->run;
  if (is_lossy(run->plan)) {
    operation->not_finite = run->comm->kernels->f32_count_not_finite(result, run->plan->count);
    run->comm->stats.not_finite += operation->not_finite;
  }
}

/* Ends of operations: from the vector to the caller's buffer. */
static void end_allreduce(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  const lcomm_plan *plan = run->plan;
  if (operation->status != LCOMM_OK) {
    return;
  }
  look_through(operation, run->vector);
  if (run->own_vector) {
    lcomm_copy_out(run->comm, run->own_vector, plan->dtype, plan->count, operation->receive);
  }
}

static void end_reduce_scatter(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  const lcomm_plan *plan = run->plan;
  if (operation->status == LCOMM_OK) {
    const float *mine = run->own_vector + plan->count * (uint64_t)run->comm->rank;
    look_through(operation, mine);
    lcomm_copy_out(run->comm, mine, plan->dtype, plan->count, operation->receive);
  }
}

static void end_allgather(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  size_t size = run->plan->count * lcomm_dtype_size(run->plan->dtype);
  for (int rank = 0; operation->status == LCOMM_OK && run->own_vector && rank < run->comm->size;
       rank++) {
    memcpy((uint8_t *)operation->receive + (size_t)rank * size,
           segment_of(run->comm, run->plan, run->own_vector, rank), size);
  }
}

static void end_broadcast(lcomm_operation *operation) {
  const lcomm_run *run = operation->run;
  if (operation->status == LCOMM_OK && run->own_vector) {
    memcpy(operation->receive, run->own_vector,
           run->plan->count * lcomm_dtype_size(run->plan->dtype));
  }
}

static const lcomm_operation_end ends[] = {
    [LCOMM_COLLECTIVE_ALLREDUCE] = end_allreduce,
    [LCOMM_COLLECTIVE_REDUCE_SCATTER] = end_reduce_scatter,
    [LCOMM_COLLECTIVE_ALLGATHER] = end_allgather,
    [LCOMM_COLLECTIVE_BROADCAST] = end_broadcast,
    [LCOMM_COLLECTIVE_BARRIER] = NULL,
};

/* ----------------------------------------------------------------- calls */

static lcomm_status check_call(lcomm_comm *comm, const lcomm_plan_request *request,
                               const void *send, const void *receive, lcomm_op op,
                               const lcomm_request *handle) {
  const char *name = lcomm_collective_name(request->collective);
  if (!comm) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no communicator was given", name);
  }
  lcomm_status status = lcomm_comm_listen(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  if (!handle) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: no request was given", name);
  }
  if (lcomm_dtype_size(request->dtype) == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is no data type", name,
                        (int)request->dtype);
  }
  if (op != LCOMM_SUM && op != LCOMM_AVG) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: %d is no operation; use sum or average",
                        name, (int)op);
  }
  if (request->root < 0 || request->root >= comm->size) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s: root %d is not a rank of 0 to %d", name,
                        request->root, comm->size - 1);
  }
  if (request->count > 0 && request->collective != LCOMM_COLLECTIVE_BARRIER &&
      (!send || !receive)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "%s of %llu elements: a buffer is NULL", name,
                        (unsigned long long)request->count);
  }
  return LCOMM_OK;
}

static lcomm_status start(lcomm_comm *comm, const lcomm_plan_request *request, const void *send,
                          void *receive, lcomm_op op, lcomm_request *handle) {
  lcomm_run *run = NULL;
  lcomm_operation *operation = NULL;
  lcomm_status status = check_call(comm, request, send, receive, op, handle);
  if (status == LCOMM_OK) {
    status = lcomm_run_find(comm, request, &run);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  float *vector = run->own_vector ? run->own_vector : receive;
  bring_in(comm, run, send, vector);
  if (comm->capture) {
    lcomm_capture_call(comm, run->plan, vector);
  }
  status = lcomm_operation_start(comm, run, vector, op, &operation);
  if (!operation) {
    lcomm_run_keep(comm, run);
    return status;
  }
  operation->receive = receive;
  operation->end = ends[request->collective];
  handle->internal = operation;
  handle->generation = 0;
  handle->not_finite = 0;
  bool moved = false;
  lcomm_operations_move(comm, &moved); /* a failure is the request's to report */
  return LCOMM_OK;
}

static lcomm_status finish(lcomm_comm *comm, lcomm_status status, lcomm_request *request) {
  return status == LCOMM_OK ? lcomm_wait(comm, request) : status;
}

lcomm_status lcomm_iallreduce(lcomm_comm *comm, const void *send, void *receive, uint64_t count,
                              lcomm_dtype dtype, lcomm_op op, lcomm_request *request) {
  lcomm_plan_request wanted = {
      .collective = LCOMM_COLLECTIVE_ALLREDUCE, .count = count, .dtype = dtype};
  return start(comm, &wanted, send, receive, op, request);
}

lcomm_status lcomm_allreduce(lcomm_comm *comm, const void *send, void *receive, uint64_t count,
                             lcomm_dtype dtype, lcomm_op op) {
  lcomm_request request = {0};
  return finish(comm, lcomm_iallreduce(comm, send, receive, count, dtype, op, &request), &request);
}

lcomm_status lcomm_ireduce_scatter(lcomm_comm *comm, const void *send, void *receive,
                                   uint64_t receive_count, lcomm_dtype dtype, lcomm_op op,
                                   lcomm_request *request) {
  lcomm_plan_request wanted = {
      .collective = LCOMM_COLLECTIVE_REDUCE_SCATTER, .count = receive_count, .dtype = dtype};
  return start(comm, &wanted, send, receive, op, request);
}

lcomm_status lcomm_reduce_scatter(lcomm_comm *comm, const void *send, void *receive,
                                  uint64_t receive_count, lcomm_dtype dtype, lcomm_op op) {
  lcomm_request request = {0};
  return finish(comm,
                lcomm_ireduce_scatter(comm, send, receive, receive_count, dtype, op, &request),
                &request);
}

lcomm_status lcomm_iallgather(lcomm_comm *comm, const void *send, void *receive,
                              uint64_t send_count, lcomm_dtype dtype, lcomm_request *request) {
  lcomm_plan_request wanted = {
      .collective = LCOMM_COLLECTIVE_ALLGATHER, .count = send_count, .dtype = dtype};
  return start(comm, &wanted, send, receive, LCOMM_SUM, request);
}

lcomm_status lcomm_allgather(lcomm_comm *comm, const void *send, void *receive, uint64_t send_count,
                             lcomm_dtype dtype) {
  lcomm_request request = {0};
  return finish(comm, lcomm_iallgather(comm, send, receive, send_count, dtype, &request), &request);
}

lcomm_status lcomm_ibroadcast(lcomm_comm *comm, void *buffer, uint64_t count, lcomm_dtype dtype,
                              int root, lcomm_request *request) {
  lcomm_plan_request wanted = {
      .collective = LCOMM_COLLECTIVE_BROADCAST, .count = count, .dtype = dtype, .root = root};
  return start(comm, &wanted, buffer, buffer, LCOMM_SUM, request);
}

lcomm_status lcomm_broadcast(lcomm_comm *comm, void *buffer, uint64_t count, lcomm_dtype dtype,
                             int root) {
  lcomm_request request = {0};
  return finish(comm, lcomm_ibroadcast(comm, buffer, count, dtype, root, &request), &request);
}

lcomm_status lcomm_ibarrier(lcomm_comm *comm, lcomm_request *request) {
  lcomm_plan_request wanted = {.collective = LCOMM_COLLECTIVE_BARRIER, .dtype = LCOMM_FLOAT32};
  return start(comm, &wanted, NULL, NULL, LCOMM_SUM, request);
}

lcomm_status lcomm_barrier(lcomm_comm *comm) {
  lcomm_request request = {0};
  return finish(comm, lcomm_ibarrier(comm, &request), &request);
}
