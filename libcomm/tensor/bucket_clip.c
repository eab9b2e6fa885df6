/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* clip=NORM:global: one factor for all gradients of this rank in a step, by the norm of all of them
 * together. It is known when the last of them is in the vector of its bucket. */

#include <math.h>

#include "libcomm/engine/backend.h"
#include "libcomm/tensor/bucket.h"

bool lcomm_step_clips_globally(const lcomm_comm *comm) {
  const lcomm_policy *policy = &comm->settings.policy;
  return policy->clip.norm > 0 && policy->clip.scope == LCOMM_CLIP_GLOBAL;
}

static bool is_clipped(const lcomm_buffer *all) {
  return all->count > 0 && !LCOMM_DTYPE_IS_WHOLE(all->dtype);
}

lcomm_status lcomm_step_clip_count(lcomm_comm *comm, lcomm_run *run, const lcomm_buffer *all) {
  lcomm_tensor_set *tensors = comm->tensors;
  if (!is_clipped(all)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(run->backend->vectors->squares(run, all, tensors->counted));
  tensors->counted = run;
  return LCOMM_OK;
}

lcomm_status lcomm_step_clip(lcomm_comm *comm, lcomm_run *run, const lcomm_buffer *all) {
  double limit = comm->settings.policy.clip.norm / sqrt((double)comm->size);
  return is_clipped(all) ? run->backend->vectors->clip_to(run, all, comm->tensors->counted, limit)
                         : LCOMM_OK;
}
