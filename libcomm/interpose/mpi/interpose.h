/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_INTERPOSE_H
#define LCOMM_INTERPOSE_MPI_INTERPOSE_H

/* The MPI interposer, libcomm-mpi.so: a library that is preloaded before MPI and takes
 * over those collective calls that the policy chooses. All others go to the
 * PMPI_ function of their name with the arguments that the program gave. This
 * header is between the parts of the interposer.
 *
 * Whether a call is taken depends only on what MPI requires to be equal on all
 * ranks: the communicator, the kind of the call, count, type, operation, and how
 * many such calls were made on the communicator before. Never on an address, never on time.
 */

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "libcomm/interpose/mpi/interpose_mode.h"
#include "libcomm/interpose/mpi/lasting.h"
#include "libcomm/interpose/mpi/words.h"
#include "libcomm_interpose.h"
#include "libcomm_mpi.h"

/* What MPI looks up must be visible; everything else in the library is not. */
#define LCOMM_INTERPOSE_API __attribute__((visibility("default")))

/* ------------------------------------------------------------ the whole interposer */

/* Written while MPI starts and ends, read by every call. */
extern atomic_int lcomm_interpose_mode_now;

static inline bool lcomm_interpose_is_shut(void) {
  return atomic_load_explicit(&lcomm_interpose_mode_now, memory_order_relaxed) ==
         LCOMM_INTERPOSE_SHUT;
}

/* No policy of this run ever chooses a shorter call; 0 where that is not known. Set before the
 * first call. */
extern uint64_t lcomm_interpose_least_bytes;

/* Why calls are left to MPI with LCOMM_INTERPOSE_BLOCKING. */
extern const char lcomm_interpose_not_blocking[];

/* One line on standard error: "libcomm-mpi: ..." */
__attribute__((format(printf, 1, 2))) void lcomm_interpose_say(const char *format, ...);

/* --------------------------------------------------------- a communicator */

/* A communicator of libcomm, and its number among those of its rank 0 (making.h). */
typedef struct lcomm_interpose_home {
  lcomm_comm *comm; /* NULL: not made yet */
  uint64_t number;
  int slot; /* slots.h */
} lcomm_interpose_home;

/* What is known of one communicator of the program; it lives as an attribute of it, and
 * longer while calls are under way. */
typedef struct lcomm_interpose_comm {
  MPI_Comm comm;          /* the program's; MPI_COMM_NULL once it is freed */
  MPI_Errhandler handler; /* of one that was freed while calls were under way */
  int rank, size;
  int *members;              /* world ranks */
  lcomm_preview *preview;    /* what the policy says */
  lcomm_policy_facts facts;  /* likewise */
  lcomm_interpose_home home; /* libcomm's over the same ranks, made with the first chosen call */
  struct lcomm_interpose_making *making;
  lcomm_status unmade;            /* why there is none, found in a call that does not block */
  bool stays_mpi;                 /* there is none, as all ranks found in a blocking call */
  char *sentence;                 /* of that, or of what failed; NULL: nothing has */
  uint64_t *parts;                /* size of them, for the counts of uneven parts */
  bool off;                       /* switched off while the program runs, on all ranks */
  bool failed;                    /* its failure was told */
  pthread_mutex_t lock;           /* held by who is inside libcomm with `home` */
  atomic_int pending;             /* non-blocking and persistent operations that are not over */
  atomic_int users;               /* see lcomm_interpose_use() */
  char name[MPI_MAX_OBJECT_NAME]; /* as agreed among the ranks; "" before that */
  bool name_agreed;
  uint64_t candidate_bytes; /* sums of this length are looked at: the least min= so far */
  uint64_t candidates;      /* blocking sums so far that were long enough */
  char control[LCOMM_INTERPOSE_WORDS_MAX]; /* what the control file said last, see control.h */
  bool other_policy;                       /* than LCOMM_POLICY, by the control file */
  lcomm_interpose_lasting *lasting;        /* NULL: no error feedback */
  /* Of the policy before: residuals that are still to be paid. NULL: none. */
  lcomm_interpose_home owing;
  lcomm_interpose_lasting *owed;
  struct lcomm_interpose_comm *next, *previous; /* all of them */
} lcomm_interpose_comm;

/* ------------------------------------------------------------------ a call */

/* A collective call in libcomm's words. The caller fills in what the program
 * gave; lcomm_interpose_take() the rest. */
typedef struct lcomm_interpose_call {
  lcomm_call_kind kind;
  const void *send; /* the receive buffer (or its part) where the program gave MPI_IN_PLACE */
  void *receive;
  uint64_t count;              /* as the libcomm call of this kind counts */
  const uint64_t *part_counts; /* of uneven parts, else NULL */
  int root;                    /* LCOMM_CALL_BROADCAST, else 0 */
  lcomm_dtype dtype;
  lcomm_op op;
  lcomm_interpose_comm *at;
  lcomm_comm *home; /* where it runs, NULL: at->home; else what owes to a policy before */
  lcomm_interpose_feedback feedback;
  lcomm_interpose_lasting
      *of;                  /* unless feedback is PLAIN: the identities, and which one; NULL: of */
  uint32_t identity;        /* a persistent request, with `residual` already there */
  lcomm_residual *residual; /* found when the call begins */
  lcomm_status status;      /* of taking it: what cannot be done fails as the call itself would */
} lcomm_interpose_call;

/* libcomm's word for MPI's; false when there is none (derived types, operations of
 * the program, ...). */
bool lcomm_interpose_dtype(MPI_Datatype type, lcomm_dtype *dtype);
bool lcomm_interpose_op(MPI_Op op, lcomm_op *own);

/* Is this a call for libcomm? call: kind, count and root are given; on true
 * dtype, op, at, feedback and residual are filled in; the buffers are filled in by
 * the caller then. Counts the call, whatever the answer. The first for blocking
 * calls, in which the ranks may agree on something first; the second for all
 * others. op: MPI_OP_NULL for calls that move data. lcomm_interpose_take() returns when nothing
 * is pending on the communicator; after lcomm_interpose_take_nonblocking() one operation more
 * is, until lcomm_interpose_done(). */
bool lcomm_interpose_take(MPI_Comm comm, MPI_Datatype type, MPI_Op op, lcomm_interpose_call *call);
bool lcomm_interpose_take_nonblocking(MPI_Comm comm, MPI_Datatype type, MPI_Op op,
                                      lcomm_interpose_call *call);

/* Make a blocking call that was taken. MPI_SUCCESS, or what the error handler of the
 * communicator made of the failure. */
int lcomm_interpose_make(lcomm_interpose_call *call);

/* Buffers are given for a call that was just taken: warn, once, when several take turns at
 * its position, because a pattern that was found too short mixes their residuals. Before
 * the next call on the communicator is taken. */
void lcomm_interpose_suspect(const lcomm_interpose_call *call);

/* Start a call that was taken; at->lock is held, and at->home is made. Fills in home and
 * residual. */
lcomm_status lcomm_interpose_begin(lcomm_interpose_call *call, lcomm_request *request);

/* A non-blocking call is over: it is no longer pending. */
void lcomm_interpose_done(const lcomm_interpose_call *call);

/* A failure: say the sentence once per communicator, call the communicator's error
 * handler with MPI_ERR_OTHER, return what it returns. */
int lcomm_interpose_fail(const lcomm_interpose_call *call, lcomm_status status);

/* ------------------------------------------------------------ queue.c */

/* Give a taken non-blocking call to the queue's thread, which starts and completes
 * the calls of each communicator in order. *request is a generalized request.
 * Returns an MPI error code. */
int lcomm_interpose_enqueue(const lcomm_interpose_call *call, MPI_Request *request);

/* Wait until no operation of `at` is pending; of any. */
void lcomm_interpose_drain(lcomm_interpose_comm *at);

/* End the thread, if it was ever started; nothing is pending. */
void lcomm_interpose_queue_stop(void);

#endif
