/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CALL_CALL_H
#define LCOMM_CALL_CALL_H

/* A collective call: its arguments, how they are checked (call_check.c), how data is staged in
 * and out (call_stage.c, call_stage_device.c), and its start. request.c waits for its end. */

#include "libcomm/engine/operation.h"

struct lcomm_call;

/* Who keeps a run, and more, from call to call: a residual. */
typedef struct lcomm_call_keeper {
  /* The run for this call; errors as lcomm_run_find. */
  lcomm_status (*run)(void *owner, const struct lcomm_call *call, lcomm_run **run);
  /* An operation of it has been started, and nothing was sent yet. */
  void (*begin)(void *owner, lcomm_operation *operation);
} lcomm_call_keeper;

typedef struct lcomm_call {
  /* op is as the caller gave it. lcomm_call_check fills in the communicator's name, the
   * location of the buffers and, of uneven parts, `count`. */
  lcomm_plan_request request;
  const void *send;
  void *receive;
  bool scaled; /* with the factors below; they are 1 otherwise */
  double before, after;
  bool waits;     /* the caller waits for the end: it may be tried in one go */
  bool on_stream; /* in order with `stream` of the device that the buffers are on */
  void *stream;
  lcomm_op_kind op_kind;
  const lcomm_call_keeper *keeper; /* NULL: the run is kept for the next call of its shape */
  void *owner;                     /* for the keeper */
  uint64_t residual_number;        /* by which ranks know the owner, 0: none */
} lcomm_call;

/* A call without factors; one that moves data has the operation SUM. */
lcomm_call lcomm_call_of(lcomm_collective collective, const void *send, void *receive,
                         uint64_t count, lcomm_dtype dtype, lcomm_op op);

/* Start it; start it and wait for its end. */
lcomm_status lcomm_call_start(lcomm_comm *comm, lcomm_call *call, lcomm_request *handle);
lcomm_status lcomm_call_make(lcomm_comm *comm, lcomm_call *call);

/* Calls of the library's own on host memory, of whole words: `size` is a multiple of 4. Blocking;
 * errors as of a call. */
lcomm_status lcomm_call_allgather_bytes(lcomm_comm *comm, const void *send, void *receive,
                                        size_t size);
lcomm_status lcomm_call_broadcast_bytes(lcomm_comm *comm, void *bytes, size_t size, int root);

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

/* What follows the last step in the stream of such a run. The number of a call of the device that
 * failed, or 0. */
int lcomm_call_stage_out_device(const lcomm_run *run);

/* The same for a call that was done in one go, without an operation. */
void lcomm_call_finish(const lcomm_run *run, const lcomm_call *call);

#endif
