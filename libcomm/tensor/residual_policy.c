/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Residuals and the policy: what it asks of them, and what another one (policy_set.c) changes. */

#include <math.h>
#include <stdlib.h>

#include "libcomm/tensor/residual.h"

bool lcomm_residuals_idle(const lcomm_comm *comm) {
  const lcomm_residual *it = comm->residuals->first;
  while (it && !it->in_flight) {
    it = it->next;
  }
  return !it;
}

/* Calls are clipped that are compressed, in their warm-up, too. */
void lcomm_residual_set_policy(lcomm_residual *residual) {
  lcomm_ef *ef = &residual->ef;
  const lcomm_policy *policy = &ef->comm->settings.policy;
  uint64_t parts = (uint64_t)lcomm_ef_part_count(ef);
  uint64_t mean = (ef->request.count + parts - 1) / parts;
  bool named = residual->name[0] != '\0';
  ef->exact = named && lcomm_policy_exempts(policy, residual->name);
  ef->momentum = named ? policy->momentum : 0;
  ef->clip = named && !ef->exact && mean * sizeof(float) >= policy->min_bytes
                 ? policy->clip / sqrt((double)ef->comm->size)
                 : 0;
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
    status = lcomm_ef_follow_policy(&it->ef, &here);
    leaves[it->number] = here;
  }
  if (status == LCOMM_OK && most > 0) {
    lcomm_call call =
        lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, leaves, leaves, most + 1, LCOMM_INT32, LCOMM_MAX);
    status = lcomm_call_make(comm, &call);
  }
  for (lcomm_residual *it = comm->residuals->first; status == LCOMM_OK && it; it = it->next) {
    it->ef.flushes |= leaves[it->number] != 0;
  }
  free(leaves);
  return status;
}
