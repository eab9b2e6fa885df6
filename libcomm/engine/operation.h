/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_OPERATION_H
#define LCOMM_ENGINE_OPERATION_H

/* Operations: collectives in flight. They start in the order of the calls, which must be the same
 * on all ranks, and progress together.
 */

#include "libcomm/engine/exec.h"

/* The kinds of control messages: their first word. */
enum {
  LCOMM_CONTROL_ERROR = 1,
  LCOMM_CONTROL_FINGERPRINT = 2,
  LCOMM_CONTROL_PROBE = 3,
  LCOMM_CONTROL_ANSWER = 4,
  LCOMM_CONTROL_OFFER = 5, /* peer_memory.h */
  LCOMM_CONTROL_TAKE = 6
};

/* A callback of an operation that is done. */
typedef void (*lcomm_operation_end)(lcomm_operation *operation);

struct lcomm_operation {
  lcomm_run *run;
  uint32_t sequence;
  lcomm_op op;
  bool over;
  lcomm_status status;       /* once over */
  uint64_t not_finite;       /* once over: in the result, if a codec was at work */
  double begun_s, moved_s;   /* when it began, when it last moved */
  double fingerprint_sent_s; /* when its fingerprint was sent to the next rank, 0: never */
  double tested_s;           /* when a test first found it in flight, 0: never */

  lcomm_operation_end end; /* may be NULL */
  void *owner;             /* for end and collected: a bucket or a residual, or NULL */
  const bool *awaited; /* set when what the program waits for is there: `over`, or the owner's */
  lcomm_operation_end collected; /* its request was waited for; NULL: the run is kept */
  const bool *beside; /* set when another operation is over that the request waits for, too; NULL:
                         there is none */
  /* Of calls that net=auto watches, else 0: its plan; how many operations there were when it was
   * the only one in flight; when the call that started it returned, and when it was first waited
   * for. */
  uint64_t watched_hash, watched_from;
  double returned_s, waited_s;
  bool streamed; /* a stream waits for it: the time-out counts without a call that waits */
  bool detached; /* nobody has a request of it: given back by itself when it is over */

  lcomm_operation *next, *next_idle, *next_made;
  lcomm_operation *previous;
};

/* Take an operation for `run` and start it. Allocates only when more
 * operations are in flight than ever before. On failure the run is still the
 * caller's. MEMORY, an error of the communicator. */
lcomm_status lcomm_operation_start(lcomm_comm *comm, lcomm_run *run,
                                   const lcomm_operation_data *data, lcomm_operation **operation);

/* The same for a replay (recording.h), by its number, with run->data: nobody has a request of it,
 * and it has no place in a sequence space. */
lcomm_status lcomm_operation_replay(lcomm_comm *comm, lcomm_run *run, uint32_t number);

/* Release an operation that is done, for reuse. */
void lcomm_operation_release(lcomm_comm *comm, lcomm_operation *operation);

/* Make progress on all operations once; *moved tells whether anything happened. */
lcomm_status lcomm_operations_move(lcomm_comm *comm, bool *moved);

/* After a failure nothing is waited for any more: all operations are over. */
void lcomm_operations_cancel(lcomm_comm *comm, lcomm_status status);

/* wait.c: wait until an operation in flight sets *flag. */
lcomm_status lcomm_operations_wait(lcomm_comm *comm, const bool *flag);

/* Wait for the operations that nobody has a request of, and for messages between two ranks. */
lcomm_status lcomm_operations_finish(lcomm_comm *comm);

bool lcomm_operation_waits_for_device(const lcomm_operation *operation);

/* Sleep until something may have arrived for this communicator, or for another one of
 * the process that has operations in flight, but no longer than limit_s. */
void lcomm_comm_sleep(lcomm_comm *comm, double limit_s);

/* Has a peer of an operation that a stream waits for, or that is tested now and then,
 * been silent for too long? TIMEOUT then. Is a peer's host out of reach? TRANSPORT. All
 * operations are over then. */
lcomm_status lcomm_operations_check(lcomm_comm *comm);

/* The row of the statistics to which an operation is added. */
lcomm_summary_row *lcomm_operation_row(lcomm_comm *comm, const lcomm_operation *operation);

/* Fingerprints, see fingerprint.h. begin: an operation begins; MISMATCH when the rank before has
 * sent another fingerprint already. receive: the fingerprint of the rank before has come. send:
 * tell the next rank if it is time. */
void lcomm_fingerprint_book_init(lcomm_fingerprint_book *book);
lcomm_fingerprint lcomm_fingerprint_of(const lcomm_run *run);
lcomm_status lcomm_fingerprint_begin(const lcomm_run *run);
void lcomm_fingerprint_receive(lcomm_comm *comm, const void *message);
void lcomm_fingerprint_send(lcomm_comm *comm, lcomm_operation *operation, double now_s);

/* A message of `peer` in this operation is of another call: ask it which. A difference is
 * the communicator's error then, which is returned; OK when the fingerprints are equal, or the
 * peer has not answered within a moment. */
lcomm_status lcomm_fingerprint_ask(const lcomm_run *run, int peer);

/* Send the fingerprints that are due, because nothing has moved for a while. */
void lcomm_fingerprints_send(lcomm_comm *comm);

/* The run of a plain call: one that is kept from an earlier call of its shape,
 * or a new one. On failure the sentence is written. ARGUMENT, MEMORY. */
lcomm_status lcomm_run_find(lcomm_comm *comm, const lcomm_plan_request *request, lcomm_run **run);

/* The plan of a plain call, to be destroyed. Likewise. */
lcomm_status lcomm_plan_find(lcomm_comm *comm, const lcomm_plan_request *request,
                             lcomm_plan **plan);

/* Give a run of lcomm_run_find back: it is kept for the next call of its shape. */
void lcomm_run_keep(lcomm_comm *comm, lcomm_run *run);

/* Destroy a run (NULL ok); one on a device by a later call that makes another one, or puts work
 * there while nothing is played, because CUDA waits for all that is in streams then. */
void lcomm_run_retire(lcomm_comm *comm, lcomm_run *run);

/* Destroy those. In the device's turn (device_turn.h). */
void lcomm_runs_free_spent(lcomm_comm *comm);

#endif
