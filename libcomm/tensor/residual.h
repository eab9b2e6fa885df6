/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_RESIDUAL_H
#define LCOMM_TENSOR_RESIDUAL_H

/* Residuals: what gives a call that has no name error feedback. A call with one is a
 * plain call in all but this: it has the residual's own run, which keeps the state
 * (feedback.h) from call to call. The residual owns both, as a bucket does. residual.c has
 * their lives, residual_calls.c the calls, residual_run.c the runs and what they leave and find,
 * residual_policy.c what another policy changes.
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

enum { LCOMM_RESIDUAL_NAME_MAX = 128 }; /* with the terminator */

struct lcomm_residual {
  lcomm_comm *comm;
  lcomm_residual *previous, *next;    /* in lcomm_comm.residuals */
  char name[LCOMM_RESIDUAL_NAME_MAX]; /* "": none */
  uint64_t number, count;             /* count: of the whole vector */
  uint64_t *part_counts; /* of reduce-scatters: elements of each rank; NULL: all-reduces */
  lcomm_span result;     /* the part of the sum that this rank receives */
  lcomm_op op;
  uint64_t calls;       /* with error feedback, so far */
  lcomm_run *run;       /* as the policy says */
  double density;       /* that it was made for, see lcomm_plan_request */
  lcomm_run *exact_run; /* of warm-up calls, and of flushes */
  /* As in lcomm_bucket; velocity and owed are of `result` only. */
  lcomm_feedback_state *feedback;
  float *velocity, *carried;
  bool in_flight; /* a request of it was not waited for yet */
  bool pays;      /* by its next call, which is exact: the policy has changed */
};

/* All residuals of a communicator. */
typedef struct lcomm_residual_set {
  lcomm_residual *first;
  uint64_t made; /* so far, those that are gone included */
} lcomm_residual_set;

/* Part of making and freeing a communicator. MEMORY. */
lcomm_status lcomm_residual_set_make(lcomm_comm *comm);
void lcomm_residual_set_free(lcomm_comm *comm);

/* Of calls with a residual. The run: STATE while another call is in flight, ARGUMENT for data
 * that is not on the host, and as lcomm_run_find. */
extern const lcomm_call_keeper lcomm_residual_keeper;

/* A run by the policy, or an exact one. As lcomm_run_make. */
lcomm_status lcomm_residual_make_run(const lcomm_residual *residual, bool exact, double density,
                                     lcomm_run **run);

/* The factor of momentum= for it, 0 without. */
double lcomm_residual_momentum(const lcomm_residual *residual);

/* The number by which ranks know it. */
uint64_t lcomm_residual_number(const lcomm_residual *residual);

/* The sum of an operation is complete: what it still needs is added to `result`, the part of this
 * rank; its request is done. */
void lcomm_residual_results(lcomm_residual *residual, const lcomm_run *run, void *result);
void lcomm_residual_end(lcomm_residual *residual);

/* ARGUMENT for one that does not live, NULL, too; `call` is named. */
lcomm_status lcomm_residual_check_lives(const lcomm_residual *residual, const char *call);

/* STATE while an operation of it is in flight; `call` is named. */
lcomm_status lcomm_residual_check_idle(const lcomm_residual *residual, const char *call);

/* The state as the first lossy call would make it, all zero; *feedback is NULL when this
 * rank keeps none. MEMORY and what a plan can fail with, sticky. */
lcomm_status lcomm_residual_feedback(const lcomm_residual *residual,
                                     lcomm_feedback_state **feedback);

/* Part `index` of what a rank keeps in `feedback` (NULL: nothing): of an all-reduce all of it,
 * of a reduce-scatter the segments whose contributions of its node it sums. Elements between
 * them are not its own, and are never touched. */
int lcomm_residual_part_count(const lcomm_residual *residual);
lcomm_span lcomm_residual_part(const lcomm_residual *residual, const lcomm_feedback_state *feedback,
                               int index);

/* Has none a call in flight, or a request that was not waited for? */
bool lcomm_residuals_idle(const lcomm_comm *comm);

/* The policy is another one; none has a call in flight. What is kept stays where every rank
 * keeps the same elements by the new policy; the next call with another residual is exact and
 * pays what it holds. Collective; MEMORY and transport errors, sticky. */
lcomm_status lcomm_residuals_follow_policy(lcomm_comm *comm);

#endif
