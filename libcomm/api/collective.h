/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_API_COLLECTIVE_H
#define LCOMM_API_COLLECTIVE_H

/* A collective call: its arguments, and how data comes in and out. */

#include "libcomm/engine/operation.h"

typedef struct lcomm_call {
  /* op is as the caller gave it. lcomm_call_check fills in the communicator's name, the
   * place of the buffers and, of uneven parts, `count`. */
  lcomm_plan_request request;
  const void *send;
  void *receive;
  bool scaled; /* with the factors below; they are 1 otherwise */
  double before, after;
  bool waits;     /* the caller waits for the end: it may be tried in one go */
  bool on_stream; /* in order with `stream` of the device that the buffers are on */
  void *stream;
  lcomm_op_kind op_kind;
  lcomm_residual *residual; /* of a call with one, else NULL */
} lcomm_call;

/* A call without factors; one that moves data has the operation SUM. */
lcomm_call lcomm_call_of(lcomm_collective collective, const void *send, void *receive,
                         uint64_t count, lcomm_dtype dtype, lcomm_op op);

/* Start it; start it and wait for its end. */
lcomm_status lcomm_call_start(lcomm_comm *comm, lcomm_call *call, lcomm_request *handle);
lcomm_status lcomm_call_make(lcomm_comm *comm, lcomm_call *call);

/* Is it one that can be made? If not, the sentence says why; nothing has been
 * written to. ARGUMENT, or the sticky error. */
lcomm_status lcomm_call_check(lcomm_comm *comm, lcomm_call *call, const lcomm_request *handle);

/* Bring this rank's data to where `run` works, and say in `data` where that is. */
void lcomm_call_stage_in(lcomm_comm *comm, const lcomm_run *run, const lcomm_call *call,
                         lcomm_operation_data *data);

/* What remains to be done at the end of an operation; NULL when the result is in
 * its place. */
lcomm_operation_end lcomm_call_end(lcomm_collective collective);

/* Both for a run on a device. On failure the communicator has failed. */
lcomm_status lcomm_call_stage_in_device(lcomm_run *run, const lcomm_call *call,
                                        lcomm_operation_data *data);
void lcomm_call_end_device(lcomm_operation *operation);

/* The same for a call that was done in one go, without an operation. */
void lcomm_call_finish(const lcomm_run *run, const lcomm_call *call);

#endif
