/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_RESIDUAL_H
#define LCOMM_TENSOR_RESIDUAL_H

/* Residuals: what gives a call that has no name error feedback. A call with one is a
 * plain call in all but this: its run, and what is kept from call to call, are those of
 * the residual's lcomm_ef, as a bucket's steps are of the bucket's. Data may lie on the host
 * or on a device; what is kept goes where the data of a call is. residual.c has their
 * lives, residual_run.c what a call begins and ends with, residual_policy.c what another policy
 * changes; the calls are api/residual_calls.c.
 *
 * A residual with a name is to calls what a tensor is to steps: exempt=, momentum= and clip=
 * of the policy act on it, and lcomm_state_save() saves it. One without is of a library that
 * guesses which buffer is which (libcomm-mpi.so): what replaces an optimiser's momentum must
 * not depend on a guess. match= never acts, because whoever made the residual has chosen the
 * call. warmup= and ramp= count the calls of each residual; those that flush it are not
 * among them.
 */

#include "libcomm/call/call.h"
#include "libcomm/feedback/ef.h"
#include "libcomm/tensor/guard.h"

enum {
  LCOMM_RESIDUAL_NAME_MAX = 128, /* with the terminator */
  LCOMM_RESIDUAL_KEY_MAX = 24
};

struct lcomm_residual {
  lcomm_ef ef;                        /* .request has the vector, .result the part of this rank */
  lcomm_residual *previous, *next;    /* in lcomm_comm.residuals */
  char name[LCOMM_RESIDUAL_NAME_MAX]; /* "": none */
  uint64_t number;                    /* by which ranks know it */
  uint64_t *part_counts; /* of reduce-scatters: elements of each rank; NULL: all-reduces */
  uint64_t calls;        /* with error feedback, so far */
  uint64_t ended;        /* calls, flushes too, that have ended well and were not undone */
  char key[LCOMM_RESIDUAL_KEY_MAX]; /* its number, as a name where it is carried over */
  bool in_flight;                   /* a request of it was not waited for yet */
  bool broken;                    /* its last call has failed: what it has begun is to be undone */
  bool apart;                     /* not all ranks that went on had it (residual_carry.h) */
  lcomm_operation *operation;     /* of the call in flight, or NULL */
  lcomm_request left;             /* of its last call, which was left to a stream */
  bool counted;                   /* the last call is among `calls` */
  bool discarded;                 /* the last call was undone */
  uint64_t not_finite;            /* in what this rank received of it */
  uint64_t revisions;             /* of net=auto, whose plans it has */
  lcomm_guarded guarded;          /* what the guard knows of its calls */
  struct lcomm_call_guard *guard; /* residual_guard.h, NULL: its calls are not checked */
  struct lcomm_residual_quorum *quorum;   /* residual_quorum.h, NULL: before its first call, too */
  struct lcomm_residual_staging *staging; /* residual_staging.h, NULL: no call needed it so far */
};

/* What a residual has left to the communicator that it was of, until that goes. */
typedef struct lcomm_residual_left {
  lcomm_ef ef;
  uint64_t *part_counts; /* that ef.request points to, or NULL */
  struct lcomm_residual_left *next;
} lcomm_residual_left;

/* All residuals of a communicator. */
typedef struct lcomm_residual_set {
  lcomm_residual *first;                 /* the newest */
  uint64_t made;                         /* so far, those that are gone included */
  lcomm_residual_left *left;             /* of those that have gone to another communicator */
  struct lcomm_residual_quorum *retired; /* of those that were destroyed while others were behind */
} lcomm_residual_set;

/* Part of making and freeing a communicator. MEMORY. */
lcomm_status lcomm_residual_set_make(lcomm_comm *comm);
void lcomm_residual_set_free(lcomm_comm *comm);

/* A residual without anything in it, of `comm`, as it is when it is made; part_counts as in the
 * struct, which owns them. */
void lcomm_residual_place(lcomm_residual *residual, lcomm_comm *comm, uint64_t *part_counts);

/* Ranks know it by this number from here on. */
void lcomm_residual_set_number(lcomm_residual *residual, uint64_t number);

/* A residual of `comm` is about to be used: where newcomers have joined since tensors and residuals
 * were used last, what ranks remember is shared out first. Collective then; errors as
 * lcomm_carry_resume. */
lcomm_status lcomm_residual_prepare_use(lcomm_comm *comm);

/* The function that makes a call with it, for sentences. */
const char *lcomm_residual_call_name(const lcomm_residual *residual, const lcomm_call *call);

/* Of calls with a residual. The run: STATE while another call is in flight, and as
 * lcomm_ef_take_run. */
extern const lcomm_call_keeper lcomm_residual_keeper;

/* Undo its last call, if it can be undone; ranks do so by what they agree on. */
bool lcomm_residual_undo(lcomm_residual *residual);

/* The communicator has failed, and no operation is in flight: a call that was not waited for is
 * over here, and what one that has failed had begun is undone. Its request is the program's still.
 */
void lcomm_residual_break_off(lcomm_residual *residual);

/* A reduce-scatter that returns when its result is there has ended well: with nonfinite=discard the
 * ranks, each of which has a part, agree whether it is undone. Collective; as an all-reduce. */
lcomm_status lcomm_residual_settle(lcomm_residual *residual);

/* What the policy asks of it: momentum, clip, exact and undo of its lcomm_ef. */
void lcomm_residual_set_policy(lcomm_residual *residual);

/* ARGUMENT for one that does not live, NULL, too; `call` is named. */
lcomm_status lcomm_residual_check_lives(const lcomm_residual *residual, const char *call);

/* Wait for the call that was left to a stream, which has no other request; so every function that
 * uses the residual begins. The result of that call, if there is one. */
lcomm_status lcomm_residual_join(const lcomm_residual *residual);

/* The same of all residuals. */
lcomm_status lcomm_residuals_join(const lcomm_comm *comm);

/* STATE while an operation of it is in flight; `call` is named. */
lcomm_status lcomm_residual_check_idle(const lcomm_residual *residual, const char *call);

/* Has none a call in flight, or a request that was not waited for? */
bool lcomm_residuals_idle(const lcomm_comm *comm);

/* A call is about to take its run: where net=auto has other figures by now its plan is made anew.
 * What is kept stays where only chunks differ; else the call is exact and flushes. MEMORY, and what
 * a plan can fail with. */
lcomm_status lcomm_residual_follow_auto(lcomm_residual *residual);

/* The policy is another one; none has a call in flight. What is kept stays where every rank
 * keeps the same elements by the new policy; the next call with another residual is exact and
 * flushes it. Collective; MEMORY and transport errors, sticky. */
lcomm_status lcomm_residuals_follow_policy(lcomm_comm *comm);

#endif
