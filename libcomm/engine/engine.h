/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_ENGINE_H
#define LCOMM_ENGINE_ENGINE_H

/* The engine's part of a communicator, for this folder and the rooms above. */

#include <pthread.h>
#include <stdatomic.h>

#include "libcomm/base/error.h"
#include "libcomm/base/turn.h"
#include "libcomm/engine/external_progress.h"
#include "libcomm/engine/fault.h"
#include "libcomm/engine/fingerprint.h"
#include "libcomm/engine/probe.h"
#include "libcomm/engine/run_cache.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/observe/summary.h"
#include "libcomm/observe/trace.h"
#include "libcomm/plan/plan.h"
#include "libcomm/transport/bootstrap_object.h"
#include "libcomm/transport/links.h"

typedef struct lcomm_run lcomm_run;             /* exec.h */
typedef struct lcomm_operation lcomm_operation; /* operation.h */

/* The process that is a rank. */
typedef struct lcomm_process {
  uint64_t host_hash, pid;
} lcomm_process;

enum { LCOMM_COMM_NAME_MAX = 128, LCOMM_TRANSPORT_NAMES_MAX = 64 }; /* with the terminator */

/* Which communicator this is, and of whom. */
typedef struct lcomm_comm_identity {
  unsigned fork_generation;       /* of the process that made it, see base/fork.h */
  long process;                   /* its number, for people */
  unsigned number;                /* of this communicator in its process, from 1, for people */
  lcomm_process *processes;       /* per rank */
  char name[LCOMM_COMM_NAME_MAX]; /* lcomm_name_set() */
  _Atomic uint64_t named_rules;   /* lcomm_match_named() of both */
} lcomm_comm_identity;

/* What its creator asked for. */
typedef struct lcomm_comm_settings {
  lcomm_policy policy;
  char policy_text[LCOMM_POLICY_MAX];
  char transport[LCOMM_TRANSPORT_NAMES_MAX]; /* e.g. "auto" or "shm,mpi" */
  lcomm_progress_mode progress;              /* never DEFAULT */
  bool poses;                                /* as nodes that it was told */
  double timeout_s;
} lcomm_comm_settings;

/* The state of waiting (wait.c). */
typedef struct lcomm_waiting {
  lcomm_external_pace external; /* of the bootstrap's progress function */
  const bool *awaited_done;     /* of the operation that the program waits for; NULL: it does not */
  double network_seen_s;        /* when check_network() last looked */
  double awake_s;               /* how long a rank that waits stays awake */
  uint32_t quiet_moves;         /* moves without any movement, all told */
  uint64_t looks;               /* at messages in flight, all told */
  uint32_t alarms_seen;         /* of those of all transports */
  bool overslept;               /* the last sleep ran to its limit: nothing woke it */
  bool crowded;                 /* a rank of this machine has no processor to itself */
  bool long_wait;               /* other communicators know of it, see other_waits.h */
} lcomm_waiting;

/* The other communicators of the process without a progress thread (siblings.h). */
typedef struct lcomm_sibling {
  lcomm_comm *next, *previous;
  bool is_listed;
} lcomm_sibling;

/* Errors. status is sticky; lock guards text, which other threads may write. */
typedef struct lcomm_comm_errors {
  pthread_mutex_t lock;
  _Atomic int status;
  char text[LCOMM_ERROR_MAX];
  atomic_bool abort_asked; /* lcomm_abort() was called, peers do not know yet */
  lcomm_agreement agreement;
  lcomm_probes probes;
} lcomm_comm_errors;

/* Operations in flight, in the order in which they were started (operation.c). */
typedef struct lcomm_operations {
  lcomm_operation *first, *last;
  lcomm_operation *idle; /* finished ones, for reuse */
  lcomm_operation *made; /* all ever made, for freeing */
  atomic_uint in_flight; /* how many, for a look from outside */
  lcomm_op_kind inside;  /* of the plain operations that a call makes for its own ends */
  /* Calls have even numbers, buckets odd ones: buckets start when their tensors are
   * ready, on every rank at another place between the calls. Of each sequence space: the
   * number of the next operation, and a hash of those before it. */
  uint32_t next[LCOMM_SEQUENCE_SPACE_COUNT], history[LCOMM_SEQUENCE_SPACE_COUNT];
  /* What a loaded checkpoint adds to the numbers of buckets where they seed stochastic
   * rounding: that goes on as before, but the numbers themselves only grow. */
  uint32_t seed_shift;
} lcomm_operations;

/* Deferred operations start when their data are ready: those of tensors. The room above sets the
 * hook, the engine calls it. */
typedef struct lcomm_deferred {
  atomic_bool open;                        /* there may be something to start */
  lcomm_status (*start)(lcomm_comm *comm); /* what is ready; when `open` is set */
  /* The progress thread starts them, too, and so do waits in other communicators; else only calls
   * of the program on this one. */
  bool for_others;
  double due_s;                /* when to start again although nothing has moved; 0: then only */
  struct lcomm_shards *shards; /* shards/shards.h; NULL: sums wait for all ranks */
  bool counts_steps; /* `step` is that of the program; else each operation is one, for traces */
  uint64_t step;
} lcomm_deferred;

/* Flow control (flow.h). */
typedef struct lcomm_flow {
  struct lcomm_flow_pair **pairs; /* per peer, or NULL; NULL: not needed so far */
  uint32_t due;                   /* credits that have not left yet */
} lcomm_flow;

/* Memory of running plans that outlives an operation. */
typedef struct lcomm_runs {
  lcomm_run_cache cache;       /* of plain calls */
  lcomm_run *spent;            /* to be destroyed by a call that has the device's turn */
  lcomm_run *abandoned;        /* destroyed, but messages may still read their slots */
  unsigned played;             /* operations in flight whose tapes are played */
  pthread_mutex_t device_turn; /* device_turn.h */
  struct lcomm_lanes *lanes;   /* lanes.h */
  uint8_t *tiles;    /* scratch of one sum: LCOMM_GET_SIZE bytes of each source that is got */
  size_t tile_count; /* as many as any run so far has needed */
  struct lcomm_peer_memory *peer_memory; /* peer_memory.h: of peers' devices, */
  struct lcomm_run_share *shares;        /* and of runs here */
  uint64_t stayed;        /* payloads that were read where they were, on devices of peers */
  unsigned reads_awaited; /* there that threads of the program are to read, see device_zcopy.h */
  unsigned device_works;  /* in flight on devices: nobody wakes us when they are done */
  struct lcomm_call_watch *watch; /* call/call_watch.h, which revises net=auto by plain calls; NULL:
                                   * it does not act */
  const lcomm_topo *topo;         /* with what plain calls are planned from then; else NULL */
} lcomm_runs;

/* Calls that were captured into graphs (recording.h), and messages between two ranks
 * (pair_recording.h). */
typedef struct lcomm_recordings {
  struct lcomm_recording *first;
  struct lcomm_pair_recording *pairs;
  struct lcomm_lanes *lanes, *pair_lanes; /* for captures */
  uint32_t channels;                      /* of calls, given so far */
  double moved_s;                         /* when one was made, or a replay last began or ended */
} lcomm_recordings;

/* Who moves operations. */
typedef struct lcomm_comm_progress {
  struct lcomm_progress_thread *_Atomic thread; /* NULL: calls alone make progress */
  bool wants_thread;  /* one is started by the first call that does not block */
  bool allows_thread; /* the transports let other threads move messages */
} lcomm_comm_progress;

typedef struct lcomm_comm_observers {
  lcomm_summary summary;
  lcomm_trace *trace;            /* NULL: off */
  struct lcomm_capture *capture; /* NULL: off */
  lcomm_rack_stats in_rack;      /* without the number of racks */
} lcomm_comm_observers;

/* Who asks to leave an elastic communicator, and who waits to join it (bootstrap/elastic/). */
typedef struct lcomm_comm_changes {
  atomic_bool asked;             /* this rank asks to leave */
  bool leaves;                   /* the others knew that at the end of the last step */
  int32_t leaving, waiting;      /* ranks that asked, and newcomers, then */
  bool over;                     /* its ranks have gone on in another one, */
  bool parted;                   /* and nobody reads here any more */
  struct lcomm_carry_held *held; /* of tensors, until newcomers have theirs (tensor_carry.h) */
  lcomm_comm *next_left;         /* after its end: another one that is kept (comm/comm_left.h) */
} lcomm_comm_changes;

struct lcomm_comm {
  lcomm_turn turn; /* without a progress thread: who is inside; first, beside what all calls read */
  int rank, size;
  lcomm_comm_identity identity;
  lcomm_comm_settings settings;
  lcomm_topo topo;
  const lcomm_kernels *kernels;
  lcomm_links links;
  lcomm_bootstrap_object bootstrap;
  lcomm_waiting waiting;
  lcomm_sibling sibling;
  lcomm_operations operations;
  struct lcomm_pairs *pairs; /* pair.h; NULL: no message between two ranks so far */
  lcomm_deferred deferred;
  lcomm_flow flow;
  lcomm_fingerprint_book fingerprints;
  lcomm_runs runs;
  lcomm_recordings recordings;
  lcomm_comm_errors errors;
  lcomm_comm_progress progress;
  lcomm_stats stats;
  lcomm_comm_observers observers;
  lcomm_comm_changes changes;

  /* What the rooms above keep here; the engine does not look inside. */
  struct lcomm_tensor_set *tensors;     /* tensor/bucket.h */
  struct lcomm_residual_set *residuals; /* tensor/residual.h */
};

/* Count a message with its headers, if it stays in this rank's rack. */
static inline void lcomm_comm_count_in_rack(lcomm_comm *comm, int peer, uint64_t bytes) {
  if (lcomm_topo_shares_rack(&comm->topo, comm->rank, peer)) {
    comm->observers.in_rack.sent_bytes += bytes;
    comm->observers.in_rack.sent_messages++;
  }
}

/* Name of a rank for people: "rank 3 (host n1)". Returns text. */
const char *lcomm_comm_who(const lcomm_comm *comm, int rank, char *text, size_t size);

/* `object` (a request, a tensor) belongs to `owner`. ARGUMENT, with a sentence that
 * names both communicators, where that is not `comm`. */
lcomm_status lcomm_check_owner(lcomm_comm *comm, const lcomm_comm *owner, const char *call,
                               const char *object);

/* Does this rank log what concerns its host? The lowest rank of each host does. */
bool lcomm_comm_speaks(const lcomm_comm *comm);

/* Refuse a call for a mistake of the caller: write the sentence; not sticky. Returns status. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_refuse(lcomm_comm *comm, lcomm_status status, const char *format, ...);

/* A pointer that a call needs is NULL: `argument` names it. The sentence is the
 * communicator's, or the thread's where `comm` itself is NULL. Returns ARGUMENT, STATE in a
 * forked child. */
lcomm_status lcomm_refuse_null(const lcomm_comm *comm, const char *call, const char *argument);

/* Fail an operation: tell all peers, agree with them on the fault (fault.h), make it sticky and log
 * it. The sentence begins with the author's rank and host. The first failure wins. The caller has
 * the communicator's turn (progress_thread.h). Returns the status in force. */
__attribute__((format(printf, 5, 6))) lcomm_status lcomm_fail_as(lcomm_comm *comm,
                                                                 lcomm_status status, int author,
                                                                 int culprit, const char *format,
                                                                 ...);

/* lcomm_fail(comm, status, format, ...): a fault that this rank has found. */
#define lcomm_fail(comm, status, ...)                                                              \
  lcomm_fail_as(comm, status, (comm)->rank, LCOMM_NO_CULPRIT, __VA_ARGS__)

/* lcomm_fail_peer(comm, status, peer, format, ...): a fault of a peer. */
#define lcomm_fail_peer(comm, status, peer, ...)                                                   \
  lcomm_fail_as(comm, status, (comm)->rank, peer, __VA_ARGS__)

/* lcomm_fail_for(comm, status, author, format, ...): a fault that two ranks find alike: `author` is
 * one of them, the same on both. */
#define lcomm_fail_for(comm, status, author, ...)                                                  \
  lcomm_fail_as(comm, status, author, LCOMM_NO_CULPRIT, __VA_ARGS__)

/* Make an error sticky; false when there was one before. Any thread may call it. */
bool lcomm_comm_stick(lcomm_comm *comm, lcomm_status status, const char *sentence);

/* Send a control message that is no error: `size` bytes, at most LCOMM_CONTROL_SIZE. */
void lcomm_control_send(lcomm_comm *comm, int peer, const void *message, size_t size);

/* Send the control message of an error; the first one to a peer is never lost. */
void lcomm_control_send_error(lcomm_comm *comm, int peer, const void *message, size_t size);

/* Receive control messages, and tell peers of an abort that another thread asked for. Returns the
 * status in force. */
lcomm_status lcomm_control_receive(lcomm_comm *comm);

/* Make the memory that a failure needs, per rank; false without memory for all of it. */
bool lcomm_failure_state_make(lcomm_comm *comm);
void lcomm_failure_state_free(lcomm_comm *comm);

/* Free a communicator, also one that was made only in part. orderly: no peer waits. */
void lcomm_comm_free(lcomm_comm *comm, bool orderly);

/* All operations of all ranks are over; nobody but the caller moves it any more. Tell the peers so,
 * and wait a while until they have, too; true when all have. */
bool lcomm_comm_part(lcomm_comm *comm);

/* Measure the offset of rank 0's clock, for the trace. elsewhere: per rank, whether it has another
 * clock than rank 0. Collective; between the making of the links and the first operation, when all
 * ranks trace. */
void lcomm_clock_align(lcomm_comm *comm, const bool *elsewhere);

/* From which plans of plain calls are made. */
static inline const lcomm_topo *lcomm_topo_of_calls(const lcomm_comm *comm) {
  return comm->runs.topo ? comm->runs.topo : &comm->topo;
}

/* The transport of a peer. */
static inline lcomm_transport *lcomm_comm_link(const lcomm_comm *comm, int peer) {
  return comm->links.of[peer];
}

#endif
