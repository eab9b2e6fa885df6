/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_CALL_CALL_H
#define LCOMM_CALL_CALL_H

/* A collective call: its arguments, how they are checked (call_check.c), how data is staged in
 * and out (call_stage.c), and its start. request.c waits for its end. */

#include "libcomm/engine/operation.h"

/* lcomm_request.state: of one that was waited for `internal` is NULL, `status` its result; of a
 * message between two ranks `internal` is that, of a sum that no operation makes it is a
 * lcomm_call_sum, else an operation. */
enum { LCOMM_REQUEST_OVER = 1, LCOMM_REQUEST_PAIR = 2, LCOMM_REQUEST_SUM = 3 };

struct lcomm_call;

/* A sum that no operation makes, as its request sees it: wait for its result; is that here? Then
 * the request is over, by the status of these: end it, with what is not finite in the result.
 * Inside the communicator, whose errors they return. */
typedef struct lcomm_call_sum {
  lcomm_comm *comm;
  lcomm_status (*wait)(struct lcomm_call_sum *sum);
  lcomm_status (*test)(struct lcomm_call_sum *sum, bool *is_here);
  lcomm_status (*end)(struct lcomm_call_sum *sum, lcomm_status status, uint64_t *not_finite);
} lcomm_call_sum;

/* Who keeps a run, and more, from call to call: a residual. */
typedef struct lcomm_call_keeper {
  /* The run for this call; errors as lcomm_run_find. */
  lcomm_status (*run)(void *owner, const struct lcomm_call *call, lcomm_run **run);
  /* An operation of it has been started, and nothing was sent yet; then, between lcomm_run_enter
   * and lcomm_run_leave: what is staged in is to be changed. */
  void (*begin)(void *owner, lcomm_operation *operation);
  lcomm_status (*amend)(void *owner, lcomm_run *run);
  /* Does no operation make this sum? Then start it instead of one; its run stages the data. Errors
   * of the communicator. */
  bool (*is_apart)(const void *owner, const struct lcomm_call *call);
  lcomm_status (*start)(void *owner, const struct lcomm_call *call, lcomm_run *run,
                        lcomm_call_sum **sum);
  /* The buffers are on a device. Is the sum made on the host? Then bring the data there: the call
   * has other buffers then. */
  lcomm_status (*to_host)(void *owner, struct lcomm_call *call);
} lcomm_call_keeper;

typedef struct lcomm_call {
  /* op is as the caller gave it. lcomm_call_check fills in the communicator's name, the
   * location of the buffers and, of uneven parts, `count`; and the buffers' count and location.
   * Nothing is written to `send`. */
  lcomm_plan_request request;
  lcomm_buffer send, receive;
  bool scaled; /* with the factors below; they are 1 otherwise */
  double before, after;
  bool weighted;  /* ... of which `before` is this rank's own, any number */
  bool waits;     /* the caller waits for the end: it may be tried in one go */
  bool on_stream; /* in order with `stream` of the device that the buffers are on */
  void *stream;
  lcomm_op_kind op_kind;
  const lcomm_call_keeper *keeper; /* NULL: the run is kept for the next call of its shape */
  void *owner;                     /* for the keeper */
  uint64_t residual_number;        /* by which ranks know the owner, 0: none */
  uint64_t watched_hash; /* once started: of its plan, where net=auto chose that and call_watch.h
                          * revises it; else 0 */
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
lcomm_status lcomm_call_barrier(lcomm_comm *comm);

/* Is it one that can be made? If not, the sentence says why; nothing has been
 * written to. ARGUMENT, or the sticky error. */
lcomm_status lcomm_call_check(lcomm_comm *comm, lcomm_call *call, const lcomm_request *handle);

/* The capture into a graph that a stream is in, or 0; `what` is the call. ARGUMENT for the legacy
 * default stream while another one is captured. */
lcomm_status lcomm_call_find_capture(lcomm_comm *comm, const char *what, void *stream,
                                     uint64_t *capture);

/* ARGUMENT for a stream that is being captured; `why` the call cannot be, as half a sentence. */
lcomm_status lcomm_call_refuse_capture(lcomm_comm *comm, const char *what, void *stream,
                                       const char *why);

/* Say in run->data what an operation works on; bring this rank's data there, between
 * lcomm_run_enter and lcomm_run_leave. Errors are the communicator's. */
void lcomm_call_describe(lcomm_run *run, const lcomm_call *call);
lcomm_status lcomm_call_stage_in(lcomm_run *run, const lcomm_call *call);

/* Play all of an operation on a device, from staging in on; rewound, in the device's turn. */
lcomm_status lcomm_call_play(lcomm_run *run, const lcomm_call *call);

/* Bring the result of a sum to the caller: lcomm_operation_data.stage_out. */
lcomm_status lcomm_call_stage_out(lcomm_run *run);

#endif
