/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_H
#define LCOMM_FEEDBACK_EF_H

/* Error feedback of one vector, from operation to operation: its runs, what they keep, and
 * how that changes. A bucket of tensors owns one, and so does a residual of calls; what is
 * in here knows neither.
 *
 * One operation: lcomm_ef_take_run says which run it takes; the contribution is clipped
 * (lcomm_ef_clip), a flush adds what is kept to it (lcomm_ef_flush); the sum is finished
 * (lcomm_ef_finish); lcomm_ef_end frees what has been paid out.
 *
 * ef.c has plans, life and policy, ef_run.c the run of a step, ef_apply.c the arithmetic over
 * the operations of a backend.
 */

#include "libcomm/engine/operation.h"
#include "libcomm/feedback/ef_state.h"

typedef struct lcomm_ef {
  lcomm_comm *comm;
  /* Of its plans; `location` is where runs and state are. What it points to is the owner's. */
  lcomm_plan_request request;
  lcomm_span result;    /* elements of the sum that this rank has: of velocity and carried */
  double momentum;      /* of the policy; 0: none */
  double clip;          /* largest L2 norm of this rank's contribution; 0: any */
  bool exact;           /* never compressed */
  bool background;      /* a step is nobody's call: without a plan the communicator fails */
  bool flushes;         /* the next run, which is exact: the policy has changed */
  lcomm_run *run;       /* as the policy says */
  double density;       /* that it was made for, see lcomm_plan_request */
  lcomm_run *exact_run; /* of exact data, warm-up steps and flushes */
  lcomm_ef_state state;
  lcomm_ef_state spent; /* of a device: is freed when no stream is held */
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

/* Scale `count` values of a contribution down to the norm of the policy. */
lcomm_status lcomm_ef_clip(const lcomm_ef *ef, lcomm_run *run, float *values, uint64_t count);

/* Add what this rank keeps to its contribution, so that the sum is complete; nothing stays. */
lcomm_status lcomm_ef_flush(lcomm_ef *ef, lcomm_run *run);

/* Add momentum and what is carried to this rank's part of the sum. */
lcomm_status lcomm_ef_finish(lcomm_ef *ef, lcomm_run *run, void *result);

/* An operation with `run` has ended well: what it has paid out is gone. */
void lcomm_ef_end(lcomm_ef *ef, const lcomm_run *run);

/* ---------------------------------------------------------- life, policy */

/* Put another state in the place of this one, which is freed; *state is empty then. Runs are made
 * again by the next step. */
void lcomm_ef_replace(lcomm_ef *ef, lcomm_ef_state *state);

/* The policy is another one, momentum, clip and exact are set to it, and nothing is in flight.
 * *leaves: what is kept here cannot stay. */
lcomm_status lcomm_ef_follow_policy(lcomm_ef *ef, bool *leaves);

/* Between operations; lcomm_device_quiesce first where memory of a device is in use. */
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

/* Inside: does the sum of such a plan get its momentum after it was made? */
bool lcomm_ef_needs_velocity(const lcomm_ef *ef, const lcomm_plan *plan);

/* Inside: a plan by the policy, or an exact one; memory is short. */
lcomm_status lcomm_ef_make_plan(const lcomm_ef *ef, bool exact, double density, lcomm_plan **plan);
lcomm_status lcomm_ef_out_of_memory(const lcomm_ef *ef);

/* Inside: until resume, which follows even a failure, memory of its device can be made and freed.
 */
lcomm_status lcomm_ef_quiesce(const lcomm_ef *ef);
void lcomm_ef_resume(const lcomm_ef *ef);

#endif
