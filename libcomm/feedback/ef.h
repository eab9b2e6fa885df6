/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_H
#define LCOMM_FEEDBACK_EF_H

/* Error feedback of one vector, from operation to operation: its runs, what they keep, and
 * how that changes. A bucket of tensors owns one, and so does a residual of calls; what is
 * in here knows neither.
 *
 * One operation: lcomm_ef_take_run says which run it takes, lcomm_ef_begin that it begins; the
 * contribution is clipped (lcomm_ef_clip), a flush adds what is kept to it (lcomm_ef_flush); the
 * sum is finished (lcomm_ef_finish); lcomm_ef_end frees what was flushed. With undo= of the policy
 * the operation leaves what it found as it was, in second arrays, and lcomm_ef_discard() goes back
 * to it until the next one takes its run.
 *
 * Where the vector is one of matrices that travel by low rank, an operation is two sums, see
 * ef_lowrank.h.
 *
 * ef.c has plans, life and policy, ef_run.c the run of a step, ef_undo.c the way back, ef_apply.c
 * the arithmetic over the operations of a backend, ef_lowrank.c that of low rank.
 */

#include "libcomm/engine/operation.h"
#include "libcomm/feedback/ef_lowrank.h"
#include "libcomm/feedback/ef_state.h"

/* What an operation has found, to go back to. */
typedef struct lcomm_ef_past {
  bool exists;
  bool flushes;
  lcomm_ef_state state;
  lcomm_feedback_state feedback; /* content of state.feedback */
} lcomm_ef_past;

typedef struct lcomm_ef {
  lcomm_comm *comm;
  /* Of its plans; `location` is where runs and state are. What it points to is the owner's. */
  lcomm_plan_request request;
  lcomm_span result;    /* elements of the sum that this rank has: of velocity and carried */
  double momentum;      /* of the policy; 0: none */
  double beta1;         /* of compressed momentum, adam= of the policy; 0: none */
  bool sends_momentum;  /* in the run that was taken last */
  double clip;          /* largest L2 norm of this rank's contribution; 0: any */
  bool exact;           /* never compressed */
  bool keeps_all;       /* each rank keeps a residual of the whole vector, exact or not */
  bool undo;            /* operations can be undone */
  bool background;      /* a step is nobody's call: without a plan the communicator fails */
  bool flushes;         /* the next run, which is exact: the policy has changed */
  lcomm_run *run;       /* as the policy says */
  double density;       /* that it was made for, see lcomm_plan_request */
  lcomm_run *exact_run; /* of exact data, warm-up steps and flushes */
  lcomm_ef_state state;
  lcomm_ef_state spent; /* of the last operation: is freed when no stream is held, and when the
                           operation cannot be undone any more */
  lcomm_ef_past past;

  /* What it travels by instead of the codec of request.net or node=; where it does not, the codec
   * is NULL. */
  lcomm_codec_spec milder;

  lcomm_ef_lowrank lowrank; /* its operations where the vector is one of matrices */
} lcomm_ef;

/* ------------------------------------------------------------------ runs */

/* The run of step number `step`, which counts the stages of warmup= and ramp=; of an exact one
 * that leaves nothing behind. What it needs is made. MEMORY and what a plan can fail with. */
lcomm_status lcomm_ef_take_run(lcomm_ef *ef, uint64_t step, lcomm_run **run);
lcomm_status lcomm_ef_take_flush_run(lcomm_ef *ef, lcomm_run **run);

/* The next runs are for data at `location`: what is kept moves.
 * MEMORY, sticky. */
lcomm_status lcomm_ef_move(lcomm_ef *ef, lcomm_memory_location location);

/* The state as the first lossy step would make it, all zero; *feedback is NULL when this rank
 * keeps none. MEMORY and what a plan can fail with. */
lcomm_status lcomm_ef_feedback(const lcomm_ef *ef, lcomm_feedback_state **feedback);

/* How many ranks keep a residual of one element, where they keep any. Errors likewise. */
lcomm_status lcomm_ef_holders(const lcomm_ef *ef, int *holders);

/* --------------------------------------------------------------- a step */

/* Each of these works by operations of the run's backend, between lcomm_run_enter and
 * lcomm_run_leave. Errors are the communicator's. */

/* Scale `count` values of a contribution, elements of lcomm_sum_dtype(dtype), down to the norm of
 * the policy. */
lcomm_status lcomm_ef_clip(const lcomm_ef *ef, lcomm_run *run, void *values, uint64_t count);

/* With compressed momentum: the `count` gradients of all the vector become the momentum that is
 * sent, in a run that sends it. */
lcomm_status lcomm_ef_contribute(const lcomm_ef *ef, lcomm_run *run, float *values, uint64_t count);

/* Add what this rank keeps to its contribution, so that the sum is complete; nothing stays. */
lcomm_status lcomm_ef_flush(lcomm_ef *ef, lcomm_run *run);

/* Add momentum and what is carried to this rank's part of the sum. Compressed momentum is taken
 * from it. */
lcomm_status lcomm_ef_finish(lcomm_ef *ef, lcomm_run *run, void *result);

/* An operation with `run` has ended well: what it has flushed is gone. */
void lcomm_ef_end(lcomm_ef *ef, const lcomm_run *run);

/* ---------------------------------------------------------------- undoing */

/* An operation with `run`, which was taken last, begins: nothing of it was computed yet. The terms
 * of a flush say so. */
void lcomm_ef_begin(lcomm_ef *ef, const lcomm_run *run);

/* The last operation, which has ended well, never was. False where there is none to undo: without
 * undo=, after another policy, a loaded state or a move. Nothing is in flight. */
bool lcomm_ef_discard(lcomm_ef *ef);

/* Inside: a run is about to be taken; the second arrays are there; make them (MEMORY); there is no
 * way back any more. */
void lcomm_ef_remember(lcomm_ef *ef);
bool lcomm_ef_can_undo(const lcomm_ef *ef);
lcomm_status lcomm_ef_prepare_undo(lcomm_ef *ef);
void lcomm_ef_forget_past(lcomm_ef *ef);

/* ---------------------------------------------------------- life, policy */

/* Put another state in the place of this one, which is freed; *state is empty then. Runs are made
 * again by the next step. */
void lcomm_ef_replace(lcomm_ef *ef, lcomm_ef_state *state);

/* The policy is another one, momentum, clip and exact are set to it, and nothing is in flight.
 * *leaves: what is kept here cannot stay. */
lcomm_status lcomm_ef_follow_policy(lcomm_ef *ef, bool *leaves);

/* Between operations. */
void lcomm_ef_free(lcomm_ef *ef);

/* ----------------------------------------------------------------- parts */

/* Part `index` of what a rank keeps in `feedback` (NULL: nothing): of an all-reduce all of it,
 * of a reduce-scatter the segments whose contributions of its node it sums. Elements between
 * them are not its own, and are never touched. */
int lcomm_ef_part_count(const lcomm_ef *ef);
lcomm_span lcomm_ef_part(const lcomm_ef *ef, const lcomm_feedback_state *feedback, int index);

/* Does it have uneven parts, as of a reduce-scatter? */
static inline bool lcomm_ef_scatters(const lcomm_ef *ef) {
  return ef->request.part_counts != NULL;
}

/* What one unit of a result is in units of contributions: an average is of all ranks. */
static inline float lcomm_ef_units(const lcomm_ef *ef) {
  return ef->request.op == LCOMM_AVG ? (float)ef->comm->size : 1.0f;
}

/* The residual that an operation works with. That of low rank is nothing to the run, whose vector
 * is another one. */
static inline lcomm_feedback_state *lcomm_ef_works_with(const lcomm_ef *ef, const lcomm_run *run) {
  return lcomm_ef_lowrank_is_first(ef, run) ? ef->state.feedback : run->feedback;
}

/* Inside: does the sum of such a plan get its momentum after it was made? Does it need that of the
 * sums before, then or as compressed momentum? Does it take up what is carried? */
bool lcomm_ef_corrects_sum(const lcomm_ef *ef, const lcomm_plan *plan);
bool lcomm_ef_needs_velocity(const lcomm_ef *ef, const lcomm_plan *plan);
static inline bool lcomm_ef_takes_carried(const lcomm_ef *ef) {
  return !(ef->beta1 > 0) || ef->sends_momentum;
}

/* Inside: a plan by the policy, or an exact one, and its run; memory is short. */
lcomm_status lcomm_ef_make_plan(const lcomm_ef *ef, bool exact, double density, lcomm_plan **plan);
lcomm_status lcomm_ef_make_run(const lcomm_ef *ef, bool exact, double density, lcomm_run **run);
lcomm_status lcomm_ef_out_of_memory(const lcomm_ef *ef);

#endif
