/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Residuals and the policy: what it asks of them, and what another one (policy_set.c) changes. */

#include <math.h>
#include <stdlib.h>

#include "libcomm/call/call_watch.h"
#include "libcomm/plan/eligibility.h"
#include "libcomm/tensor/residual_guard.h"
#include "libcomm/tensor/residual_quorum.h"

bool lcomm_residuals_idle(const lcomm_comm *comm) {
  const lcomm_residual *it = comm->residuals->first;
  while (it && !it->in_flight) {
    it = it->next;
  }
  return !it;
}

static lcomm_named_data policy_of(const lcomm_residual *residual) {
  const lcomm_comm *comm = residual->ef.comm;
  const lcomm_plan_request *request = &residual->ef.request;
  uint64_t parts = (uint64_t)lcomm_ef_part_count(&residual->ef);
  lcomm_match_call call = {.kind = residual->part_counts ? LCOMM_CALL_REDUCE_SCATTER
                                                         : LCOMM_CALL_ALLREDUCE,
                           .count = (request->count + parts - 1) / parts,
                           .dtype = request->dtype,
                           .op = request->op,
                           .ranks = comm->size,
                           .name = residual->name};
  return lcomm_eligibility_of_name(&comm->settings.policy, atomic_load(&comm->identity.named_rules),
                                   &call);
}

/* What is asked of one without a name is asked of each of its calls. */
void lcomm_residual_set_policy(lcomm_residual *residual) {
  lcomm_ef *ef = &residual->ef;
  const lcomm_policy *policy = &ef->comm->settings.policy;
  bool named = residual->name[0] != '\0';
  lcomm_named_data data = named ? policy_of(residual) : (lcomm_named_data){.exact = false};
  ef->exact = data.exact;
  ef->request.net = data.net;
  ef->momentum = named ? policy->momentum : 0;
  ef->clip = named ? policy->clip.norm / sqrt((double)ef->comm->size) : 0;
  ef->undo = policy->undo;
}

/* Does each rank keep the same elements by both plans? */
static bool keeps_alike(const lcomm_plan *before, const lcomm_plan *now) {
  const lcomm_codec_spec *one = &before->stages[LCOMM_STAGE_NET];
  const lcomm_codec_spec *other = &now->stages[LCOMM_STAGE_NET];
  return lcomm_codec_spec_equal(one, other) && before->shape.exchange == now->shape.exchange &&
         before->shape.hierarchical == now->shape.hierarchical;
}

/* Plans are equal on all ranks, so all find the same. */
static lcomm_status plan_anew(lcomm_ef *ef) {
  lcomm_plan *plan = NULL;
  bool leaves = false;
  LCOMM_TRY(lcomm_ef_make_plan(ef, false, ef->density, &plan));
  bool same = plan->hash == ef->run->plan->hash, alike = keeps_alike(ef->run->plan, plan);
  bool kept = ef->run->plan->stages[LCOMM_STAGE_NET].error_feedback;
  lcomm_plan_destroy(plan);
  if (same) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_ef_follow_policy(ef, &leaves));
  ef->flushes |= kept && !alike;
  return LCOMM_OK;
}

lcomm_status lcomm_residual_follow_auto(lcomm_residual *residual) {
  const lcomm_call_watch *watch = residual->ef.comm->runs.watch;
  const lcomm_run *run = residual->ef.run;
  uint64_t before = residual->revisions;
  residual->revisions = watch ? watch->revisions : 0;
  bool automatic = run && run->plan->automatic.allowed;
  return automatic && residual->revisions != before ? plan_anew(&residual->ef) : LCOMM_OK;
}

/* Ranks know residuals by their numbers, which lie close together. */
lcomm_status lcomm_residuals_follow_policy(lcomm_comm *comm) {
  uint64_t most = comm->residuals->made;
  int32_t *leaves = calloc(most + 1, sizeof *leaves);
  lcomm_status status = leaves
                            ? LCOMM_OK
                            : lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory for %llu residuals",
                                         (unsigned long long)most);
  for (lcomm_residual *it = comm->residuals->first; status == LCOMM_OK && it; it = it->next) {
    bool here = false;
    lcomm_residual_set_policy(it);
    lcomm_residual_guard_forget(it);
    lcomm_residual_quorum_free(it); /* all ranks have ended their calls */
    status = lcomm_ef_follow_policy(&it->ef, &here);
    leaves[it->number] = here;
  }
  bool any = most > 0 && !comm->changes.held; /* else none has anything in it so far */
  if (status == LCOMM_OK && any) {
    lcomm_call call =
        lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, leaves, leaves, most + 1, LCOMM_INT32, LCOMM_MAX);
    status = lcomm_call_make(comm, &call);
  }
  for (lcomm_residual *it = comm->residuals->first; status == LCOMM_OK && any && it;
       it = it->next) {
    it->ef.flushes |= leaves[it->number] != 0;
  }
  free(leaves);
  return status;
}
