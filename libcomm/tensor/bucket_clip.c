/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* clip=NORM:global: one factor for all gradients of this rank in a step, by the norm of all of them
 * together. It is known when the last of them is ready. */

#include <math.h>

#include "codecs/clip.h"
#include "codecs/codec.h"
#include "libcomm/tensor/bucket.h"

bool lcomm_step_clips_globally(const lcomm_comm *comm) {
  const lcomm_policy *policy = &comm->settings.policy;
  return policy->clip > 0 && policy->clip_scope == LCOMM_CLIP_GLOBAL;
}

/* `n` values of a gradient as they join its sum, from `first` on. */
static void load(const lcomm_tensor *tensor, uint64_t first, uint64_t n, double *values) {
  const double *wide = (const double *)tensor->data + first;
  if (tensor->dtype != LCOMM_FLOAT64) {
    lcomm_format format = lcomm_format_exact(tensor->dtype);
    const uint8_t *codes = (const uint8_t *)tensor->data + first * lcomm_dtype_size(tensor->dtype);
    lcomm_decode(&format, tensor->comm->kernels, codes, lcomm_range_whole(n), (float)tensor->before,
                 (float *)values);
    return;
  }
  for (uint64_t i = 0; i < n; i++) {
    values[i] = tensor->before * wide[i];
  }
}

static double norm_of(const lcomm_tensor *tensor) {
  enum { PIECE = 4096 };
  double piece[PIECE]; /* or as many float32 */
  double norm = 0;
  for (uint64_t at = 0; at < tensor->count; at += PIECE) {
    uint64_t left = tensor->count - at, n = left < PIECE ? left : PIECE;
    load(tensor, at, n, piece);
    norm = hypot(norm, lcomm_clip_norm(piece, tensor->dtype, n));
  }
  return norm;
}

void lcomm_step_clip(lcomm_comm *comm) {
  const lcomm_tensor_set *tensors = comm->tensors;
  double norm = 0, limit = comm->settings.policy.clip / sqrt((double)comm->size);
  uint32_t environment = lcomm_fp_enter();
  for (size_t i = 0; i < tensors->count; i++) {
    const lcomm_tensor *tensor = tensors->list[i];
    if (tensor->planned && !LCOMM_DTYPE_IS_WHOLE(tensor->dtype)) {
      norm = hypot(norm, norm_of(tensor));
    }
  }
  lcomm_fp_leave(environment);
  comm->tensors->clip_factor = lcomm_clip_factor(norm, limit);
}
