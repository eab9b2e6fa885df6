/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_ENGINE_H
#define LCOMM_ENGINE_ENGINE_H

/* The inside of a communicator, shared by the files of this folder only. */

#include <pthread.h>
#include <stdatomic.h>

#include "libcomm/base/error.h"
#include "libcomm/base/turn.h"
#include "libcomm/bootstrap/bootstrap.h"
#include "libcomm/engine/external_progress.h"
#include "libcomm/engine/fault.h"
#include "libcomm/engine/fingerprint.h"
#include "libcomm/engine/probe.h"
#include "libcomm/engine/run_cache.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/observe/summary.h"
#include "libcomm/observe/trace.h"
#include "libcomm/plan/plan.h"
#include "libcomm/transport/links.h"

typedef struct lcomm_run lcomm_run;             /* exec.h */
typedef struct lcomm_operation lcomm_operation; /* op.h */
typedef struct lcomm_bucket lcomm_bucket;       /* bucket.h */

/* The process that is a rank. */
typedef struct lcomm_process {
  uint64_t host_hash, pid;
} lcomm_process;

enum { LCOMM_COMM_NAME_MAX = 128, LCOMM_TRANSPORT_NAMES_MAX = 64 }; /* with the terminator */

struct lcomm_comm {
  lcomm_turn turn; /* without a progress thread: who is inside; first, beside what all calls read */
  int rank, size;
  unsigned fork_generation; /* of the process that made it, see base/fork.h */
  long process;             /* its number, for people */
  unsigned number;          /* of this communicator in its process, from 1, for people */
  lcomm_topo topo;
  lcomm_process *processes; /* per rank */
  lcomm_policy policy;
  char policy_text[LCOMM_POLICY_MAX];
  char name[LCOMM_COMM_NAME_MAX]; /* lcomm_name_set() */
  _Atomic uint32_t named_rules;   /* of match=, those that ask for no other name */
  double timeout_s;
  double network_seen_s;                     /* when check_network() of op_wait.c last looked */
  char transport[LCOMM_TRANSPORT_NAMES_MAX]; /* as asked for, e.g. "auto" or "shm,mpi" */
  lcomm_progress_mode progress;              /* likewise, never DEFAULT */
  bool poses;                                /* as nodes that it was told */
  const lcomm_kernels *kernels;
  lcomm_links links;
  lcomm_bootstrap_object bootstrap;
  lcomm_external_pace external; /* of origin.progress */
  bool crowded;                 /* a rank of this machine has no processor to itself */
  lcomm_stats stats;
  lcomm_summary summary;
  struct lcomm_capture *capture; /* capture.h; NULL: off */
  lcomm_trace *trace;            /* NULL: off */
  struct lcomm_progress_thread
      *_Atomic progress_thread; /* progress_thread.h; NULL: calls alone make progress */
  bool wants_progress_thread;   /* one is started by the first call that does not block */

  /* The others of the process without a progress thread (siblings.h). */
  lcomm_comm *sibling_next, *sibling_previous;
  bool is_sibling;
  atomic_uint in_flight; /* operations, for a look from outside */

  /* Errors. status is sticky; lock guards error and the abort text, which
   * other threads may write. */
  pthread_mutex_t lock;
  _Atomic int status;
  char error[LCOMM_ERROR_MAX];
  atomic_bool abort_asked; /* lcomm_abort() was called, peers not told yet */
  lcomm_agreement agreement;
  lcomm_probes probes;

  /* Operations in flight, in the order in which they were started. */
  lcomm_operation *first, *last;
  lcomm_operation *idle; /* finished ones, for reuse */
  lcomm_operation *made; /* all ever made, for freeing */
  /* Calls have even numbers, buckets odd ones: buckets start when their tensors are
   * ready, on every rank at another place between the calls. Of each series: the
   * number of the next operation, and a hash of those before it. */
  uint32_t next[LCOMM_SEQUENCE_SPACE_COUNT], history[LCOMM_SEQUENCE_SPACE_COUNT];
  /* What a loaded state adds to the numbers of buckets where they seed stochastic
   * rounding: that goes on as before, but the numbers themselves only grow. */
  uint32_t seed_shift;
  struct lcomm_flow_pair **flow_pairs; /* flow.h: per peer, or NULL; NULL: not needed so far */
  uint32_t flow_owed;                  /* credits that are due and have not left */
  bool long_wait;                      /* told of to others, see elsewhere.h */
  double awake_s;                      /* how long a rank that waits stays awake */
  uint32_t quiet_polls;                /* polls in a row that moved nothing */
  uint32_t quiet_moves;                /* moves without any movement, all told */
  bool overslept;                      /* the last sleep ran to its limit: nothing rang */
  lcomm_fingerprint_book fingerprints;
  lcomm_op_kind inside; /* of the plain operations that a call makes for its own ends */
  const bool
      *awaited_over; /* of the operation that the program waits for; NULL: it does not wait */

  lcomm_run_cache run_cache;            /* of plain calls */
  lcomm_run *retired_runs;              /* to be destroyed, see lcomm_run_retire */
  struct lcomm_device_map *device_maps; /* memory of peers' devices, see device_loan.h */
  unsigned device_works;                /* in flight on devices: nobody rings when they are over */

  /* Residuals of calls, see residual.h. */
  lcomm_residual *residuals;
  uint64_t residuals_made; /* so far, those that are gone included */

  /* Tensors and their buckets, in order of lcomm_tensor_add. */
  lcomm_tensor **tensors;
  size_t tensor_count, tensor_room;
  lcomm_bucket *buckets;
  size_t bucket_count;
  size_t buckets_started; /* in this step */
  uint64_t step;
  uint64_t step_not_finite, last_not_finite; /* in the results of this step and of the last */
  atomic_bool step_open;                     /* a tensor was reported ready since the last wait */
  bool tensors_compared;                     /* between the ranks */
  bool tensors_grouped;                      /* once at least: there may be state to move */
  size_t tensors_pending;                    /* added or (un)frozen here, not agreed on yet */
  int tensor_location;                       /* of all tensors, see lcomm_plan_request */
};

/* Name of a rank for people: "rank 3 (host n1)". Returns text. */
const char *lcomm_comm_who(const lcomm_comm *comm, int rank, char *text, size_t size);

/* A communicator for people: "communicator 2 (rank 0 of 4)", with its name. */
const char *lcomm_comm_which(const lcomm_comm *comm, char *text, size_t size);

/* `object` (a request, a tensor) belongs to `owner`. ARGUMENT, with a sentence that
 * names both communicators, where that is not `comm`. */
lcomm_status lcomm_check_owner(lcomm_comm *comm, const lcomm_comm *owner, const char *call,
                               const char *object);

/* Is it this rank that says what concerns its host? The lowest one there does, so
 * rank 0 always. */
bool lcomm_comm_speaks(const lcomm_comm *comm);

/* A mistake of the caller: write the sentence, nothing sticks. Returns status. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_refuse(lcomm_comm *comm, lcomm_status status, const char *format, ...);

/* A pointer that a call needs is NULL: `argument` names it. The sentence is the
 * communicator's, or the thread's where `comm` itself is NULL. Returns ARGUMENT, STATE in a
 * forked child. */
lcomm_status lcomm_refuse_null(const lcomm_comm *comm, const char *call, const char *argument);

/* A failure of an operation: tell all peers, agree with them on what is reported
 * (fault.h), make that sticky and log it. The sentence is prefixed with who we are.
 * The first failure wins. The caller has the communicator's turn (progress_thread.h). Returns
 * the status in force. */
__attribute__((format(printf, 3, 4))) lcomm_status lcomm_fail(lcomm_comm *comm, lcomm_status status,
                                                              const char *format, ...);

/* The same of what two ranks find alike: `author` is one of them, the same on both. */
__attribute__((format(printf, 4, 5))) lcomm_status
lcomm_fail_for(lcomm_comm *comm, lcomm_status status, int author, const char *format, ...);

/* The same where a peer is the cause. */
__attribute__((format(printf, 4, 5))) lcomm_status
lcomm_fail_peer(lcomm_comm *comm, lcomm_status status, int peer, const char *format, ...);

/* Make an error sticky; false when there was one before. Any thread may call it. */
bool lcomm_comm_stick(lcomm_comm *comm, lcomm_status status, const char *sentence);

/* Tell one peer something that is no error: a control message of `size` bytes, at most
 * LCOMM_CONTROL_SIZE. */
void lcomm_control_send(lcomm_comm *comm, int peer, const void *notice, size_t size);

/* The same of an error; the first one to a peer is never lost. */
void lcomm_control_send_error(lcomm_comm *comm, int peer, const void *notice, size_t size);

/* Hear what peers have to say, and tell them of an abort asked for by another
 * thread. Returns the status in force. */
lcomm_status lcomm_control_receive(lcomm_comm *comm);

/* What is kept per rank for the case of a failure; false without memory for all of it. */
bool lcomm_failure_state_make(lcomm_comm *comm);
void lcomm_failure_state_free(lcomm_comm *comm);

/* Free everything, also what was made only in part. orderly: no peer waits. */
void lcomm_comm_free(lcomm_comm *comm, bool orderly);

/* Measure for the trace how far rank 0's clock is ahead. elsewhere: per rank,
 * whether it has another clock than rank 0. Collective; between the making of
 * the links and the first operation, when all ranks trace. */
void lcomm_clock_align(lcomm_comm *comm, const bool *elsewhere);

/* The transport of a peer. */
static inline lcomm_transport *lcomm_comm_link(const lcomm_comm *comm, int peer) {
  return comm->links.of[peer];
}

#endif
