/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_H

/* The MPI interposer, libcomm-mpi.so: a library that is preloaded before MPI. It gives libcomm
 * those collective calls that the policy chooses, and passes all others to the PMPI_ function of
 * their name with the arguments that the program gave. All files of the interposer share this
 * header.
 *
 * Whether a call is eligible depends only on what MPI requires to be equal on all ranks: the
 * communicator, the kind of call, count, type, operation, and how many such calls the
 * communicator has seen. It never depends on an address or on time.
 */

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libcomm/interpose/interpose_ef_by_pattern.h"
#include "libcomm/interpose/mpi/interpose_handshake.h"
#include "libcomm_interpose.h"
#include "libcomm_mpi.h"

/* MPI functions are exported; the library hides everything else. */
#define LCOMM_INTERPOSE_API __attribute__((visibility("default")))

/* -------------------------------------------------------------- the process */

/* An lcomm_interpose_mode. MPI_Init and MPI_Finalize write it, every call reads it. */
extern atomic_int lcomm_interpose_mode_now;

static inline bool lcomm_interpose_is_off(void) {
  return atomic_load_explicit(&lcomm_interpose_mode_now, memory_order_relaxed) ==
         LCOMM_INTERPOSE_OFF;
}

/* No policy of this run chooses a shorter call; 0: not known. Set before the first call. */
extern uint64_t lcomm_interpose_min_bytes;

/* Why MPI makes a call in mode LCOMM_INTERPOSE_BLOCKING. */
extern const char lcomm_interpose_not_blocking[];

/* --------------------------------------------------------- a communicator */

/* The libcomm communicator that carries the calls of one MPI communicator. */
typedef struct lcomm_interpose_backing {
  lcomm_comm *comm; /* NULL: not created yet */
  uint64_t number;  /* unique among the backing communicators with the same rank 0 */
  int channel;      /* interpose_rendezvous.h */
} lcomm_interpose_backing;

/* The policy in force on a communicator. interpose_comm.c writes it. */
typedef struct lcomm_interpose_policy {
  lcomm_preview *preview;
  lcomm_policy_facts facts;
  uint64_t candidate_bytes; /* the least min= so far: blocking sums from here on are candidates */
  uint64_t candidates;      /* how many such sums there were */
  char control[LCOMM_INTERPOSE_CONTROL_MAX]; /* the last command of the control file */
  bool replaced;                             /* the control file has replaced LCOMM_POLICY */
  bool off;                                  /* the control file has switched libcomm off */
} lcomm_interpose_policy;

/* The backing communicator and how its creation went. interpose_context.c writes it. */
typedef struct lcomm_interpose_context {
  lcomm_interpose_backing backing;
  struct lcomm_interpose_init_context *init; /* creation in progress, of a non-blocking call */
  lcomm_status init_status;                  /* why there is none: all further calls fail */
  bool plain_mpi;                            /* there is none on any rank: MPI makes all calls */
  char *sentence;                            /* what failed; NULL: nothing has */
} lcomm_interpose_context;

/* What is left to the program's threads (interpose_left.h). */
typedef struct lcomm_interpose_left {
  lcomm_comm *comm;                  /* that awaits a payload on a device; NULL: none does */
  struct lcomm_interpose_call *call; /* that is to be begun; NULL: none */
  double since_s;
  struct lcomm_interpose_comm *next; /* of which that is so, too */
} lcomm_interpose_left;

/* The state of one MPI communicator. It is an attribute of the communicator, and lives longer
 * while calls are in flight. */
typedef struct lcomm_interpose_comm {
  MPI_Comm comm;          /* the program's; MPI_COMM_NULL: freed */
  MPI_Errhandler handler; /* of a freed communicator with calls in flight */
  int rank, size;
  int *members; /* world ranks */
  lcomm_interpose_policy policy;
  lcomm_interpose_context context;
  lcomm_interpose_ef *ef;                 /* NULL: no error feedback */
  lcomm_interpose_ef *former_ef;          /* of the policy before, to be flushed; NULL: none */
  lcomm_interpose_backing former_backing; /* where former_ef lives */
  uint64_t *parts;                        /* `size` counts, for calls of uneven parts */
  bool failed;                            /* the log has its failure */
  pthread_mutex_t lock;                   /* held inside libcomm calls on the backing */
  atomic_int pending;                     /* non-blocking and persistent calls in flight */
  atomic_int waiting;                     /* of those, how many have not begun */
  atomic_int users;                       /* see lcomm_interpose_comm_retain() */
  lcomm_interpose_left left;
  char name[MPI_MAX_OBJECT_NAME]; /* as agreed by the ranks */
  bool name_agreed;
  struct lcomm_interpose_comm *next, *previous; /* in the table of communicators */
} lcomm_interpose_comm;

/* ------------------------------------------------------------------ a call */

/* A collective call in libcomm's terms. The caller of lcomm_interpose_take() sets kind, count and
 * root, and the buffers afterwards; interpose_eligibility.c and interpose_call.c set the rest. */
typedef struct lcomm_interpose_call {
  lcomm_call_kind kind;
  const void *send; /* the receive buffer, or its part, where the program gave MPI_IN_PLACE */
  void *receive;
  uint64_t count;              /* as the libcomm call of this kind counts */
  const uint64_t *part_counts; /* of uneven parts, else NULL */
  int root;                    /* LCOMM_CALL_BROADCAST, else 0 */
  lcomm_dtype dtype;
  lcomm_op op;
  lcomm_interpose_comm *at;
  lcomm_comm *comm; /* where it runs; NULL: the backing of `at` */
  lcomm_interpose_feedback feedback;
  lcomm_interpose_ef *ef;   /* unless feedback is PLAIN: which residuals; NULL: a persistent call */
  uint32_t site;            /* of `ef` */
  lcomm_residual *residual; /* looked up when the call begins */
  lcomm_status status;      /* of taking it, or of its begin; the call fails with it */
  bool begun;   /* by a thread of the program, with `request`; else the queue begins it */
  bool is_left; /* to such a thread: the queue does not (interpose_left.h) */
  lcomm_request request;
  struct lcomm_interpose_staging *staging; /* over memory of the host in place of a device's; NULL:
                                              as the program gave it */
} lcomm_interpose_call;

static inline bool lcomm_interpose_call_is_sum(const lcomm_interpose_call *call) {
  return call->kind == LCOMM_CALL_ALLREDUCE || call->kind == LCOMM_CALL_REDUCE_SCATTER;
}

/* -------------------------------------------------- interpose_eligibility.c */

/* libcomm's type and operation for MPI's; false: libcomm has none. */
bool lcomm_interpose_dtype(MPI_Datatype type, lcomm_dtype *dtype);
bool lcomm_interpose_op(MPI_Op op, lcomm_op *own);

/* What the policy says of the call, with a sentence that says why not: error feedback is for
 * all-reduces here. */
lcomm_selection lcomm_interpose_query(const lcomm_interpose_call *call, const char **why);

/* True: libcomm makes this call. False: MPI makes it. Needs kind, count and root; sets dtype, op,
 * at, feedback, ef, site and status. op: MPI_OP_NULL for calls that move data. Counts the call in
 * both cases.
 * A blocking call may agree with the other ranks first, and creates the backing; no call is
 * pending on the communicator when it returns. A non-blocking call is pending until
 * lcomm_interpose_call_done(). */
bool lcomm_interpose_take(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call);
bool lcomm_interpose_take_nonblocking(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                                      lcomm_interpose_call *call);

/* False: MPI refuses these buffers, so MPI makes the call. */
static inline bool lcomm_interpose_buffers_differ(const void *send, const void *receive) {
  return receive != MPI_IN_PLACE && send != receive;
}

/* ---------------------------------------------------------- interpose_call.c */

/* Make a blocking call that was taken. Returns MPI_SUCCESS or what the communicator's error
 * handler made of the failure. */
int lcomm_interpose_call_run(lcomm_interpose_call *call);

/* Start a call that was taken: sets comm and residual. Needs at->lock and the backing. */
lcomm_status lcomm_interpose_call_begin(lcomm_interpose_call *call, lcomm_request *request);

/* The communicator was aborted: if the call has begun, its operation is over, and goes. Takes
 * at->lock. */
void lcomm_interpose_call_collect(lcomm_interpose_call *call);

/* A non-blocking call is no longer pending. */
void lcomm_interpose_call_done(const lcomm_interpose_call *call);

/* Log a warning, once, when several buffers share the call site of a call that was just taken: a
 * pattern that is too short mixes their residuals. Call it before the next take. */
void lcomm_interpose_call_check_alias(const lcomm_interpose_call *call);

/* ------------------------------------------------------- interpose_record.c */

/* Count a call for the report (interpose_report.h). call->at may be NULL; call->dtype is not read
 * where libcomm does not have the type. taken: libcomm makes the call, or would with
 * LCOMM_INTERPOSE=report. */
void lcomm_interpose_record_call(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                                 const lcomm_interpose_call *call, lcomm_selection choice,
                                 bool taken, const char *why);

/* --------------------------------------------------------- interpose_error.c */

/* Write one line to standard error: "libcomm-mpi: ..." */
__attribute__((format(printf, 1, 2))) void lcomm_interpose_log(const char *format, ...);

/* A call has failed: log the sentence once per communicator, call the communicator's error handler
 * with MPI_ERR_OTHER, return what it returns. */
int lcomm_interpose_call_fail(const lcomm_interpose_call *call, lcomm_status status);

/* The program is about to free its communicator: keep the error handler. */
void lcomm_interpose_comm_detach(lcomm_interpose_comm *at);

/* The error-handler guard. Open MPI calls the error handler of MPI_COMM_WORLD when a generalized
 * request fails, which ends the job by default. The handler of the call's communicator has decided
 * by then, so the guard absorbs this one error. Arm it before the calling thread returns the error
 * code of a generalized request to MPI. */
void lcomm_interpose_error_guard_arm(void);

/* Create and free what calls the error handlers of freed communicators. */
void lcomm_interpose_error_open(void);
void lcomm_interpose_error_close(void);

/* --------------------------------------------------------- interpose_queue.c */

/* Give a taken non-blocking call to the queue's thread. *request is a generalized request.
 * Returns an MPI error code. interpose_request.c */
int lcomm_interpose_enqueue(lcomm_interpose_call *call, MPI_Request *request);

/* Wait until no call of `at` is pending; NULL: of any communicator. */
void lcomm_interpose_drain(lcomm_interpose_comm *at);

/* End the thread, if there is one; no call is pending. */
void lcomm_interpose_queue_stop(void);

/* ------------------------------------------------------- interpose_start.c */

/* The interposer starts when MPI has started, and stops before MPI ends. */

/* The thread level to ask MPI for: MPI_THREAD_MULTIPLE where libcomm may make calls, because a
 * thread makes the non-blocking ones; else that of the program. */
int lcomm_interpose_thread_level_to_ask(int wanted);

/* The level that the program gets, which wanted one and was granted another. */
int lcomm_interpose_thread_level_to_tell(int wanted, int granted);

/* The level that the program got; -1: MPI was not initialised through this library. */
int lcomm_interpose_thread_level(void);

/* MPI has started. Returns the result of MPI_Init, which is not MPI_SUCCESS only with
 * LCOMM_INTERPOSE=require. Does nothing without a policy, else is collective over the ranks that
 * have one. */
int lcomm_interpose_start(void);

/* Before MPI ends; once. */
void lcomm_interpose_stop(void);

#endif
