/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_SHRINK_H
#define LCOMM_BOOTSTRAP_SHRINK_H

/* lcomm_shrink(), inside: rounds of meeting, making a communicator, and confirming it. */

#include "libcomm/bootstrap/elastic/reunion.h"
#include "libcomm/engine/engine.h"
#include "libcomm/tensor/tensor_carry.h"

/* A communicator that is whole, with all that it takes over, but not confirmed so far as this rank
 * knows. */
typedef struct lcomm_shrink_prepared {
  lcomm_comm *comm; /* NULL: none */
  uint32_t generation;
  int *members, count; /* seats, ascending; room for all */
  int newcomers;       /* the last of them */
  lcomm_carry carry;   /* its tensors, which go back where it is dropped */
  double kept;         /* share of what the caller's communicator kept that it has */
  double lost_squares; /* of the rest, the sum of its squares (lcomm_remembered_lost) */
} lcomm_shrink_prepared;

typedef struct lcomm_shrinking {
  const char *call; /* lcomm_shrink or lcomm_regroup */
  lcomm_comm *comm; /* of the caller; NULL: a newcomer, without a base */
  lcomm_comm *base; /* of the generation that was confirmed last; most often the caller's */
  lcomm_reunion *reunion;
  double timeout_s, until_s;
  lcomm_survivors found;
  lcomm_shrink_prepared prepared;
  uint32_t generation;              /* that is being made */
  bool finished;                    /* this rank has finished a step meanwhile */
  double kept, lost_squares;        /* as of what is prepared, of the base */
  bool holds;                       /* what tensors remember waits for newcomers on some rank */
  bool empty;                       /* it cannot be carried over, ... */
  double carried;                   /* ... or this share of it, from the base */
  double losing;                    /* with that, as in lost_squares */
  uint32_t *blocks;                 /* that each of the survivors brings of it */
  int left;                         /* ranks of the caller's communicator that left in order */
  uint64_t steps;                   /* that are finished on all */
  lcomm_reunion_introduction first; /* what rank 0 says where there are newcomers */
} lcomm_shrinking;

/* Ranks of what is being made. */
static inline int lcomm_shrink_count(const lcomm_shrinking *it) {
  return it->found.list.survivors + it->found.list.newcomers;
}

/* Where there are newcomers: all learn of rank 0 what they make, and of all where these can be met.
 * Not where the store failed: *met becomes false. */
lcomm_status lcomm_shrink_introduce(lcomm_shrinking *it, const int *ranks, bool *met);

/* All is as in the base; with newcomers as rank 0 says. The texts are those of `it`. */
lcomm_config lcomm_shrink_config(const lcomm_shrinking *it, const int *ranks);

/* The round of a newcomer, which has the list: `it` has no communicator, and a base where it is
 * over. Errors likewise. */
lcomm_status lcomm_shrink_arrive(lcomm_shrinking *it, bool *over);

/* May this communicator go on as another one? `call` is named. UNSUPPORTED, with its sentence. */
lcomm_status lcomm_shrink_check(lcomm_comm *comm, const char *call);

/* Those that live make the next communicator. The caller has the turn of comm, in which nothing is
 * in flight. Errors as lcomm_shrink(). */
lcomm_status lcomm_shrink_make(lcomm_comm *comm, const char *call, lcomm_comm **next);

/* Does the list of this round hold the seat? */
bool lcomm_shrink_lists(const lcomm_shrinking *it, int seat);

/* At how many finished steps all can stand, from where they stand: one more than the least where
 * some rank has finished that, or all have its results. False: they are too far apart. */
bool lcomm_shrink_decide(const lcomm_standing *all, int count, uint64_t *steps);

/* All that live stand at the same step. Not where the store failed: *met becomes false. */
lcomm_status lcomm_shrink_settle(lcomm_shrinking *it, bool *met);

/* A part of it: they have made the same calls with each residual. `all` is of the survivors. */
lcomm_status lcomm_shrink_settle_calls(lcomm_shrinking *it, const lcomm_standing *all, bool *met);

/* The tensors and residuals of the base go over into the communicator that is prepared. Its status.
 * With newcomers, who have none yet, what is remembered of them is held there until the first step.
 */
lcomm_status lcomm_shrink_carry(lcomm_shrinking *it);
lcomm_status lcomm_shrink_hold(lcomm_shrinking *it);

/* The survivors say what they have confirmed and prepared, and have the same base then. Not where
 * the store failed: *met becomes false. Errors are those of a round. */
lcomm_status lcomm_shrink_vote(lcomm_shrinking *it, bool *met);

/* The communicator that this rank has prepared was confirmed: it takes the place of the base. */
void lcomm_shrink_take_over(lcomm_shrinking *it);

/* One round. *over: `base` is confirmed and was not before. Else, without an error, the ranks meet
 * again: somebody has died meanwhile. Errors are final, with the thread's sentence. */
lcomm_status lcomm_shrink_round(lcomm_shrinking *it, bool *over);

/* Free the communicator that is prepared, if there is one. */
void lcomm_shrink_drop(lcomm_shrink_prepared *prepared);

/* For tests: called at these moments; where it returns false, the connections of this rank with the
 * others are lost there. NULL: nobody is called. */
typedef enum lcomm_shrink_moment {
  LCOMM_SHRINK_BEGUN,    /* before the meeting */
  LCOMM_SHRINK_MET,      /* the list is known */
  LCOMM_SHRINK_VOTED,    /* the votes are known */
  LCOMM_SHRINK_SETTLED,  /* all stand at one step, and newcomers are introduced */
  LCOMM_SHRINK_MADE,     /* the communicator has no tensors yet */
  LCOMM_SHRINK_PREPARED, /* the communicator is whole */
  LCOMM_SHRINK_CONFIRMED /* all have said so */
} lcomm_shrink_moment;

extern bool (*lcomm_shrink_watch)(lcomm_shrink_moment moment);

#endif
