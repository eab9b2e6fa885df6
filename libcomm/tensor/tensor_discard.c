/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Undoing the step that was finished last: residuals, momentum, the step counter and the seeds of
 * stochastic rounding are again what they were before it. The feedback of each bucket knows the way
 * back (feedback/ef_undo.c). */

#include "libcomm/call/call.h"
#include "libcomm/engine/entry.h"
#include "libcomm/plan/warmup.h"
#include "libcomm/tensor/bucket.h"

/* What seeds the next bucket, see lcomm_run_seed(). */
static uint32_t seed_of(const lcomm_comm *comm) {
  return comm->operations.next[LCOMM_SEQUENCE_SPACE_BUCKETS] + comm->operations.seed_shift;
}

void lcomm_step_begin(lcomm_comm *comm) {
  comm->tensors->past = (lcomm_step_past){.seed = seed_of(comm), .begun = true};
  atomic_store(&comm->tensors->sends_momentum,
               lcomm_warmup_sends_momentum(&comm->settings.policy, comm->deferred.step));
}

static void discard_step(lcomm_comm *comm) {
  lcomm_tensor_set *tensors = comm->tensors;
  for (size_t i = 0; i < tensors->bucket_count; i++) {
    (void)lcomm_ef_discard(&tensors->buckets[i].ef); /* each has taken part in the step */
  }
  comm->operations.seed_shift -= seed_of(comm) - tensors->past.seed;
  comm->deferred.step--;
  comm->stats.discarded++;
  tensors->past.discarded = true;
}

/* All buckets have taken their runs, and some have begun. The others begin, which changes no value,
 * so that all have the same way back. */
void lcomm_step_undo(lcomm_comm *comm) {
  lcomm_tensor_set *tensors = comm->tensors;
  for (size_t i = 0; tensors->past.begun && i < tensors->bucket_count; i++) {
    lcomm_ef *ef = &tensors->buckets[i].ef;
    if (!ef->past.exists) {
      lcomm_ef_begin(ef, tensors->buckets[i].run);
    }
    (void)lcomm_ef_discard(ef);
  }
  if (tensors->past.begun) {
    comm->operations.seed_shift -= seed_of(comm) - tensors->past.seed;
  }
  tensors->past = (lcomm_step_past){.exists = false};
}

/* Results have the same bits on all ranks, so all come to the same verdict. */
void lcomm_step_end(lcomm_comm *comm) {
  const lcomm_policy *policy = &comm->settings.policy;
  if (comm->tensors->bucket_count == 0) { /* all tensors are frozen */
    lcomm_step_begin(comm);
  }
  comm->tensors->past.exists = policy->undo;
  comm->tensors->past.begun = false;
  if (policy->discard_not_finite && comm->tensors->not_finite.last > 0) {
    discard_step(comm);
  }
}

/* ------------------------------------------------------------ public call */

static lcomm_status check_step(lcomm_comm *comm) {
  if (!comm->settings.policy.undo) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensors_discard: the policy does not keep what a step has found; "
                        "add undo=on to it");
  }
  if (atomic_load(&comm->deferred.open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensors_discard: a step is in flight; call it after "
                        "lcomm_tensors_wait");
  }
  if (!comm->tensors->past.exists) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensors_discard: there is no finished step to undo: none was made, "
                        "or a state was loaded, the policy set, or codecs were chosen anew "
                        "since; call it right after the lcomm_tensors_wait of the step");
  }
  return LCOMM_OK;
}

/* A rank that goes on to its next step instead differs in this operation, and one that has made
 * another number of steps in the number. */
static lcomm_status compare_step(lcomm_comm *comm) {
  uint64_t step = comm->deferred.step;
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, &step, &step,
                                  sizeof(step) / sizeof(float), LCOMM_FLOAT32, LCOMM_SUM);
  call.op_kind = LCOMM_OP_KIND_DISCARD_STEP;
  LCOMM_TRY(lcomm_tensors_call(comm, &call));
  if (step == comm->deferred.step) {
    return LCOMM_OK;
  }
  return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                    "lcomm_tensors_discard: %llu steps were made here, but %llu on rank 0; all "
                    "ranks must discard the same steps",
                    (unsigned long long)comm->deferred.step, (unsigned long long)step);
}

static lcomm_status discard(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_control_receive(comm));
  LCOMM_TRY(check_step(comm));
  LCOMM_TRY(compare_step(comm));
  if (!comm->tensors->past.discarded) {
    discard_step(comm);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_tensors_discard(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_tensors_discard"));
  lcomm_status status = discard(comm);
  lcomm_exit(comm);
  return status;
}
