/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Undoing an operation. Arrays that it writes have two buffers, whose roles change when it begins
 * (lcomm_ef_array); what it makes or flushes as a whole is in `spent` until the next one takes its
 * run. So going back copies nothing. */

#include "libcomm/feedback/ef.h"
#include "libcomm/feedback/ef_memory.h"

static bool is_single(lcomm_ef_array array) {
  return array.now && !array.before;
}

bool lcomm_ef_can_undo(const lcomm_ef *ef) {
  const lcomm_feedback_state *feedback = ef->state.feedback;
  if (!ef->undo) {
    return true;
  }
  return !is_single(ef->state.velocity) && !is_single(ef->state.basis) &&
         !(feedback && (is_single(feedback->residual) || is_single(feedback->momentum)));
}

lcomm_status lcomm_ef_prepare_undo(lcomm_ef *ef) {
  lcomm_feedback_state *feedback = ef->state.feedback;
  lcomm_memory_location location = ef->request.location;
  if (!ef->undo) {
    return LCOMM_OK;
  }
  bool whole = lcomm_ef_array_double(ef->comm, location, ef->result.count, &ef->state.velocity) &&
               lcomm_ef_array_double(ef->comm, location, ef->lowrank.right.count, &ef->state.basis);
  if (feedback) {
    whole = whole &&
            lcomm_ef_array_double(ef->comm, location, feedback->count, &feedback->residual) &&
            lcomm_ef_array_double(ef->comm, location, feedback->count, &feedback->momentum);
  }
  return whole ? LCOMM_OK : lcomm_ef_out_of_memory(ef);
}

void lcomm_ef_remember(lcomm_ef *ef) {
  ef->past = (lcomm_ef_past){.flushes = ef->flushes, .state = ef->state};
}

void lcomm_ef_begin(lcomm_ef *ef, const lcomm_run *run) {
  lcomm_ef_past *past = &ef->past;
  lcomm_feedback_state *feedback = ef->state.feedback;
  bool flush = run->terms.op_kind == LCOMM_OP_KIND_FLUSH;
  if (!ef->undo) {
    return;
  }
  if (past->state.feedback) {
    past->feedback = *past->state.feedback;
  }
  if (past->state.velocity.now && ef->state.velocity.now) {
    past->state.velocity = ef->state.velocity;
  }
  if (past->state.basis.now && ef->state.basis.now) {
    past->state.basis = ef->state.basis;
  }
  past->exists = true;
  if (feedback && (lcomm_ef_works_with(ef, run) || ef->flushes || flush)) {
    lcomm_ef_array_turn(&feedback->residual);
    lcomm_ef_array_turn(&feedback->momentum);
  }
  if (flush || lcomm_ef_needs_velocity(ef, run->plan)) {
    lcomm_ef_array_turn(&ef->state.velocity);
  }
  if (lcomm_ef_lowrank_is_first(ef, run)) {
    lcomm_ef_array_turn(&ef->state.basis);
  }
}

/* What the operation has made is freed like what another one has spent. */
bool lcomm_ef_discard(lcomm_ef *ef) {
  lcomm_ef_past past = ef->past;
  lcomm_ef_state made = ef->state;
  if (!past.exists) {
    return false;
  }
  ef->past = (lcomm_ef_past){.exists = false};
  ef->state = past.state;
  ef->flushes = past.flushes;
  ef->spent = (lcomm_ef_state){.carried = NULL};
  if (past.state.feedback) {
    *ef->state.feedback = past.feedback;
  } else if (made.feedback) { /* the run works with it */
    lcomm_run_retire(ef->comm, ef->run);
    ef->run = NULL;
    ef->spent.feedback = made.feedback;
  }
  if (!past.state.velocity.now) {
    ef->spent.velocity = made.velocity;
  }
  if (!past.state.basis.now) {
    ef->spent.basis = made.basis;
  }
  if (!lcomm_memory_is_on_device(ef->request.location)) {
    lcomm_ef_state_free(ef->comm, ef->request.location, &ef->spent);
  }
  return true;
}

void lcomm_ef_forget_past(lcomm_ef *ef) {
  lcomm_feedback_state *feedback = ef->state.feedback;
  lcomm_memory_location location = ef->request.location;
  ef->past = (lcomm_ef_past){.exists = false};
  if (ef->undo) {
    return;
  }
  lcomm_ef_array_single(ef->comm, location, &ef->state.velocity);
  lcomm_ef_array_single(ef->comm, location, &ef->state.basis);
  if (feedback) {
    lcomm_ef_array_single(ef->comm, location, &feedback->residual);
    lcomm_ef_array_single(ef->comm, location, &feedback->momentum);
  }
}
