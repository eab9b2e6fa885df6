/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/residual.h"

#include <stdlib.h>
#include <string.h>

#include "codecs/residual.h"
#include "libcomm/entry.h"
#include "libcomm/exec_internal.h"
#include "libcomm/warmup.h"

struct lcomm_residual {
  lcomm_comm *comm;
  lcomm_residual *previous, *next; /* in lcomm_comm.residuals */
  uint64_t number, count;
  lcomm_op op;
  uint64_t calls;       /* with error feedback, so far */
  lcomm_run *run;       /* as the policy says */
  double density;       /* that it was made for, see lcomm_plan_request */
  lcomm_run *exact_run; /* of warm-up calls, and of flushes */
  lcomm_feedback_state
      *feedback;  /* NULL when the policy keeps none, or before the first lossy call */
  bool under_way; /* a request of it was not waited for yet */
};

/* ---------------------------------------------------------- life cycle */

static lcomm_status check_new(lcomm_comm *comm, uint64_t count, lcomm_op op) {
  lcomm_status status = lcomm_comm_listen(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  if (op != LCOMM_SUM && op != LCOMM_AVG) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_create: %d is no operation with error feedback; use "
                        "LCOMM_SUM or LCOMM_AVG",
                        (int)op);
  }
  if (count > LCOMM_VECTOR_SIZE_MAX / sizeof(float)) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT,
                        "lcomm_residual_create: %llu float32 elements are more than fits into "
                        "memory",
                        (unsigned long long)count);
  }
  return LCOMM_OK;
}

static lcomm_status create(lcomm_comm *comm, uint64_t count, lcomm_op op,
                           lcomm_residual **residual) {
  lcomm_status status = check_new(comm, count, op);
  lcomm_residual *made = status == LCOMM_OK ? calloc(1, sizeof(*made)) : NULL;
  if (!made) {
    return status != LCOMM_OK ? status
                              : lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for a residual");
  }
  made->comm = comm;
  made->number = ++comm->residuals_made;
  made->count = count;
  made->op = op;
  made->next = comm->residuals;
  if (made->next) {
    made->next->previous = made;
  }
  comm->residuals = made;
  *residual = made;
  return LCOMM_OK;
}

lcomm_status lcomm_residual_create(lcomm_comm *comm, uint64_t count, lcomm_op op,
                                   lcomm_residual **residual) {
  if (!comm || !residual) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_residual_create: a pointer is NULL");
  }
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = create(comm, count, op, residual);
  lcomm_leave(comm);
  return status;
}

static void free_residual(lcomm_residual *residual) {
  lcomm_comm *comm = residual->comm;
  if (residual->previous) {
    residual->previous->next = residual->next;
  } else {
    comm->residuals = residual->next;
  }
  if (residual->next) {
    residual->next->previous = residual->previous;
  }
  lcomm_run_destroy(residual->run);
  lcomm_run_destroy(residual->exact_run);
  lcomm_feedback_free(residual->feedback);
  free(residual);
}

void lcomm_residuals_free(lcomm_comm *comm) {
  while (comm->residuals) {
    free_residual(comm->residuals);
  }
}

static lcomm_status check_idle(const lcomm_residual *residual, const char *call) {
  if (!residual->under_way) {
    return LCOMM_OK;
  }
  return lcomm_refuse(residual->comm, LCOMM_ERR_STATE,
                      "%s: residual %llu of %llu elements has a call under way; wait for its "
                      "request first",
                      call, (unsigned long long)residual->number,
                      (unsigned long long)residual->count);
}

lcomm_status lcomm_residual_destroy(lcomm_residual *residual) {
  if (!residual) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_residual_destroy: no residual was given");
  }
  lcomm_comm *comm = residual->comm;
  lcomm_status status = lcomm_enter(comm);
  if (status != LCOMM_OK) {
    return status;
  }
  status = check_idle(residual, "lcomm_residual_destroy");
  if (status == LCOMM_OK) {
    free_residual(residual);
  }
  lcomm_leave(comm);
  return status;
}

/* ------------------------------------------------------------------ runs */

static lcomm_status make_run(const lcomm_residual *residual, bool exact, double density,
                             lcomm_run **run) {
  lcomm_plan_request request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                .count = residual->count,
                                .dtype = LCOMM_FLOAT32,
                                .op = residual->op,
                                .lasting = true,
                                .exact = exact,
                                .density = density};
  return lcomm_run_make(residual->comm, &request, run);
}

/* Before the first lossy call; other stages of a density warm-up keep it. */
static lcomm_status prepare_feedback(lcomm_residual *residual, lcomm_run *run) {
  if (!residual->feedback && lcomm_feedback_create(run->plan, 0, &residual->feedback) != LCOMM_OK) {
    return lcomm_fail(residual->comm, LCOMM_ERR_MEMORY,
                      "out of memory for what a residual of %llu elements holds",
                      (unsigned long long)residual->count);
  }
  if (!lcomm_feedback_fits(residual->feedback, run->plan)) {
    return lcomm_fail(residual->comm, LCOMM_ERR_INTERNAL,
                      "what a residual holds does not fit its plan");
  }
  run->feedback = residual->feedback;
  return LCOMM_OK;
}

static lcomm_status prepare_lossy(lcomm_residual *residual) {
  double density = lcomm_warmup_density(&residual->comm->policy, residual->calls);
  if (residual->run && !(density < residual->density || density > residual->density)) {
    return LCOMM_OK;
  }
  lcomm_run *made = NULL;
  lcomm_status status = make_run(residual, false, density, &made);
  status = status == LCOMM_OK ? prepare_feedback(residual, made) : status;
  if (status != LCOMM_OK) {
    lcomm_run_destroy(made);
    return status;
  }
  lcomm_run_destroy(residual->run);
  residual->run = made;
  residual->density = density;
  return LCOMM_OK;
}

static lcomm_status prepare_exact(lcomm_residual *residual) {
  return residual->exact_run ? LCOMM_OK : make_run(residual, true, 0, &residual->exact_run);
}

static const char *name_of(lcomm_purpose purpose) {
  return purpose == LCOMM_PURPOSE_FLUSH ? "lcomm_allreduce_flush" : "lcomm_allreduce_ef";
}

lcomm_status lcomm_residual_run(lcomm_residual *residual, const lcomm_call *call, lcomm_run **run) {
  lcomm_status status = check_idle(residual, name_of(call->purpose));
  if (status != LCOMM_OK) {
    return status;
  }
  if (call->request.place > 0) {
    return lcomm_refuse(residual->comm, LCOMM_ERR_ARGUMENT,
                        "%s of %llu elements: the buffers are on device %d, and residuals are for "
                        "host memory only; give buffers on the host, or make it a tensor",
                        name_of(call->purpose), (unsigned long long)residual->count,
                        call->request.place - 1);
  }
  bool exact = call->purpose == LCOMM_PURPOSE_FLUSH ||
               lcomm_warmup_is_exact(&residual->comm->policy, residual->calls);
  status = exact ? prepare_exact(residual) : prepare_lossy(residual);
  *run = exact ? residual->exact_run : residual->run;
  return status;
}

uint64_t lcomm_residual_number(const lcomm_residual *residual) {
  return residual->number;
}

/* Each rank adds what it keeps to its contribution, so the sum is complete. The unit of
 * a residual is that of a contribution, of averages too. */
static void pay(lcomm_residual *residual, lcomm_run *run) {
  lcomm_feedback_state *feedback = residual->feedback;
  if (!feedback) {
    return;
  }
  uint32_t environment = lcomm_fp_enter();
  lcomm_residual_fold(residual->comm->kernels, lcomm_run_floats(run, feedback->first),
                      feedback->residual, feedback->count);
  lcomm_fp_leave(environment);
}

/* What is paid here is lost if the operation fails: the communicator has failed then,
 * and nothing could be sent any more. */
void lcomm_residual_begin(lcomm_residual *residual, lcomm_operation *operation) {
  operation->residual = residual;
  residual->under_way = true;
  if (operation->run->terms.purpose == LCOMM_PURPOSE_FLUSH) {
    pay(residual, operation->run);
  } else {
    residual->calls++;
  }
}

void lcomm_residual_end(lcomm_residual *residual) {
  residual->under_way = false;
}

/* ----------------------------------------------------------------- calls */

static lcomm_call call_of(lcomm_residual *residual, lcomm_purpose purpose, const void *send,
                          void *receive) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, send, receive, residual->count,
                                  LCOMM_FLOAT32, residual->op);
  call.purpose = purpose;
  call.residual = residual;
  return call;
}

static lcomm_status refuse_none(lcomm_purpose purpose) {
  return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "%s: no residual was given", name_of(purpose));
}

static lcomm_status start(lcomm_residual *residual, lcomm_purpose purpose, const void *send,
                          void *receive, lcomm_request *request) {
  if (!residual) {
    return refuse_none(purpose);
  }
  lcomm_call call = call_of(residual, purpose, send, receive);
  return lcomm_call_start(residual->comm, &call, request);
}

static lcomm_status make(lcomm_residual *residual, lcomm_purpose purpose, const void *send,
                         void *receive) {
  if (!residual) {
    return refuse_none(purpose);
  }
  lcomm_call call = call_of(residual, purpose, send, receive);
  return lcomm_call_make(residual->comm, &call);
}

lcomm_status lcomm_allreduce_ef(lcomm_residual *residual, const void *send, void *receive) {
  return make(residual, LCOMM_PURPOSE_LASTING, send, receive);
}

lcomm_status lcomm_iallreduce_ef(lcomm_residual *residual, const void *send, void *receive,
                                 lcomm_request *request) {
  return start(residual, LCOMM_PURPOSE_LASTING, send, receive, request);
}

lcomm_status lcomm_allreduce_flush(lcomm_residual *residual, const void *send, void *receive) {
  return make(residual, LCOMM_PURPOSE_FLUSH, send, receive);
}

lcomm_status lcomm_iallreduce_flush(lcomm_residual *residual, const void *send, void *receive,
                                    lcomm_request *request) {
  return start(residual, LCOMM_PURPOSE_FLUSH, send, receive, request);
}

/* --------------------------------------------------------------- looking */

lcomm_status lcomm_residual_get(const lcomm_residual *residual, float *values) {
  if (!residual || !values) {
    return lcomm_error_thread(LCOMM_ERR_ARGUMENT, "lcomm_residual_get: a pointer is NULL");
  }
  lcomm_status status = lcomm_check_process(residual->comm);
  status = status == LCOMM_OK ? check_idle(residual, "lcomm_residual_get") : status;
  if (status != LCOMM_OK) {
    return status;
  }
  const lcomm_feedback_state *feedback = residual->feedback;
  memset(values, 0, residual->count * sizeof(float));
  if (feedback) {
    memcpy(values + feedback->first, feedback->residual, feedback->count * sizeof(float));
  }
  return LCOMM_OK;
}
