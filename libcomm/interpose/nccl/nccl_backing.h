/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_BACKING_H
#define LCOMM_INTERPOSE_NCCL_BACKING_H

/* Over another NCCL, with a policy: a communicator of NCCL has a backing, libcomm's communicator of
 * the same ranks, which makes the sums that the policy chooses. */

#include <pthread.h>

#include "libcomm/interpose/nccl/nccl_comm.h"
#include "libcomm/interpose/nccl/nccl_control.h"
#include "libcomm/interpose/nccl/nccl_feedback.h"

/* How sums are made. */
typedef enum lcomm_nccl_manner {
  LCOMM_NCCL_IN_STREAMS, /* a call returns at once */
  LCOMM_NCCL_HOST_WAITS  /* it returns when the result is there: a process has several ranks */
} lcomm_nccl_manner;

/* What the policy has said of sums of one shape. */
enum { LCOMM_NCCL_ANSWERS = 64 };
typedef struct lcomm_nccl_answer {
  uint64_t count;
  unsigned shape; /* kind, type and operation; 0: nothing yet */
  lcomm_selection choice;
  const char *why;
} lcomm_nccl_answer;

/* Per rank: where those that are left may meet, when ranks are lost. nccl_backing_place.c */
typedef struct lcomm_nccl_places {
  ncclUniqueId *at;
  int count;  /* 0: none are known, or they have met */
  int socket; /* keeps this rank's place free; 0: none */
} lcomm_nccl_places;

typedef struct lcomm_nccl_backing {
  struct lcomm_nccl_backing *next; /* in the table */
  ncclComm_t of;
  int rank;
  int device;                  /* of NCCL's communicator; -1: none */
  lcomm_nccl_manner manner;    /* equal on all ranks, and of all its policies */
  pthread_mutex_t lock;        /* guards what follows; held in libcomm's calls on `comm` */
  pthread_cond_t changed;      /* it is made, or changed, or the next turn has come */
  int users;                   /* the table, and threads that make something of it */
  bool is_making, is_changing; /* a thread makes `comm`, or another one */
  uint64_t turns, turn;        /* of parts that are made of it: given, and whose it is */
  lcomm_nccl_made now; /* without a communicator NCCL makes all calls. lcomm_nccl_backing_set() */
  lcomm_nccl_made former; /* of the policy before, whose residuals are to be flushed; else empty */
  struct lcomm_nccl_captured *captured; /* of policies before, that graphs may replay */
  uint64_t pass;                        /* nccl_over_groups.c */
  lcomm_nccl_places places;
  const char *given_up;           /* why it is aborted, a constant; else NULL */
  const char *why;                /* ... because of this, a constant */
  char *failure;                  /* ... and this sentence, where libcomm failed; else NULL */
  uint64_t min_bytes;             /* the least of its policies so far: shorter sums are NCCL's */
  char name[LCOMM_NCCL_NAME_MAX]; /* as the ranks agree; "" */
  lcomm_nccl_control control;
  lcomm_nccl_answer answers[LCOMM_NCCL_ANSWERS]; /* of `now`, by a hash */
} lcomm_nccl_backing;

/* --------------------------------------------------------- nccl_backing.c */

/* NULL: NCCL has this communicator to itself. Any thread. */
lcomm_nccl_backing *lcomm_nccl_backing_find(ncclComm_t comm);

/* A new one, whose `is_making` is set, with one user, the caller. NULL: there is no memory. */
lcomm_nccl_backing *lcomm_nccl_backing_new(int device);

/* It is that of `comm` from here on. The table is its user in the caller's place. */
void lcomm_nccl_backing_list(lcomm_nccl_backing *backing, ncclComm_t comm);

/* One user more, or less; the last one ends it: by a thread, because that waits for all ranks. */
void lcomm_nccl_backing_retain(lcomm_nccl_backing *backing);
void lcomm_nccl_backing_release(lcomm_nccl_backing *backing);

/* Lock it when nobody makes it, or a part of it, any more. */
void lcomm_nccl_backing_enter(lcomm_nccl_backing *backing);
void lcomm_nccl_backing_leave(lcomm_nccl_backing *backing);

/* Give it another communicator of libcomm, with its lock. The one before is the former one. */
void lcomm_nccl_backing_set(lcomm_nccl_backing *backing, const lcomm_nccl_made *made);

/* With its lock: `former` is not needed any more. It ends, unless graphs may have sums of it: then
 * it stays as long as the backing, because they would be replayed without results. */
void lcomm_nccl_backing_drop_former(lcomm_nccl_backing *backing);

/* NCCL's communicator goes, or is given up for a reason, a constant; NULL: in order. Waits for
 * nobody, and unblocks who waits in a call when there is a reason. */
void lcomm_nccl_backing_end(ncclComm_t comm, const char *reason);

/* NCCL's communicator stays, and makes no sums any more: unblocks likewise. */
void lcomm_nccl_backing_give_up(ncclComm_t comm, const char *reason);

/* End a communicator of libcomm, or give it up for a reason, without waiting; what it has on
 * devices a later call of the program frees. May be empty. */
void lcomm_nccl_made_end(const lcomm_nccl_made *made, const char *reason);

/* Start a thread without signals that nobody joins. It calls no CUDA (lcomm_device_defer_thread),
 * and stands for `device`. False: there is none. The process waits for such threads some seconds
 * when it ends. False: some are still at work. */
bool lcomm_nccl_thread_start(int device, void (*work)(void *argument), void *argument);
bool lcomm_nccl_threads_wait(void);

/* ---------------------------------------------------- nccl_backing_make.c */

/* Of which ranks a communicator is made: they meet, or are a part of another one. */
typedef struct lcomm_nccl_origin {
  bool meets, is_split;   /* neither: no place to meet is known */
  int ranks, rank;        /* of those who meet */
  lcomm_nccl_place place; /* where they do */
  ncclComm_t whole;       /* what is split */
  int color, key;
  int device;                     /* that this rank uses, noted for threads (lcomm_device_noted) */
  char name[LCOMM_NCCL_NAME_MAX]; /* of ncclConfig_t; "" */
} lcomm_nccl_origin;

/* NCCL has made `comm` (NULL: this rank takes no part), or still makes it: begin to make its
 * backing, by a thread. */
void lcomm_nccl_backing_begin(ncclComm_t comm, const lcomm_nccl_origin *origin);

/* The same of a part whose communicator NCCL tells later. The caller lists it then, or releases it.
 * NULL: there is none. */
lcomm_nccl_backing *lcomm_nccl_backing_begin_part(const lcomm_nccl_origin *origin);

/* Is it still made? */
bool lcomm_nccl_backing_is_making(lcomm_nccl_backing *backing);

/* Make the communicator of a policy (NULL: that of `from`) over the ranks of `from` that give the
 * same color, with the patience of NCCL; NULL where this rank takes no part. All ranks of `from`
 * call this, and may wait for each other. */
lcomm_status lcomm_nccl_derive(lcomm_comm *from, int color, int key, const char *policy,
                               lcomm_nccl_manner manner, lcomm_comm **made);

/* --------------------------------------------------- nccl_backing_place.c */

/* The place to meet travels in those bytes of NCCL's ids that NCCL leaves zero. */

/* Write a new place into an id that NCCL has made. Where there is no room, or no place, the id
 * stays as it is. */
void lcomm_nccl_place_add(ncclUniqueId *id);

/* Take the place out again: the id is as NCCL made it. False: there was none. */
bool lcomm_nccl_place_take(ncclUniqueId *id, lcomm_nccl_place *place);

/* All ranks of `comm` tell each other their places. A rank that has none says so. */
lcomm_status lcomm_nccl_places_tell(lcomm_comm *comm, lcomm_nccl_places *places);
void lcomm_nccl_places_free(lcomm_nccl_places *places);

#endif
