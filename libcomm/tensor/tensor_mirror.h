/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_TENSOR_MIRROR_H
#define LCOMM_TENSOR_TENSOR_MIRROR_H

/* Tensors on a device that are summed on the host (quorum= of the policy): each has a mirror in
 * pinned memory, made with it, and buckets know that alone. A gradient comes when the tensor is
 * reported, a result goes back when the tensor is waited for: in calls of the program, which wait
 * for the device. Nobody else calls CUDA. */

#include "libcomm/tensor/bucket.h"

/* Where a tensor is summed. */
static inline void *lcomm_tensor_memory(const lcomm_tensor *tensor) {
  return tensor->mirror ? tensor->mirror : tensor->data;
}

/* Give a new tensor on a device a mirror, where it needs one. False without memory. */
bool lcomm_tensor_mirror_make(lcomm_comm *comm, lcomm_tensor *tensor);

/* Free that of one tensor, if it has one; all of them, and what they need. */
void lcomm_tensor_mirror_free(lcomm_tensor *tensor);
void lcomm_tensor_mirrors_free(lcomm_comm *comm);

/* The gradient into the mirror, when it is there; any thread, outside the communicator. Does
 * nothing without one. SYSTEM, sticky. */
lcomm_status lcomm_tensor_mirror_bring(lcomm_tensor *tensor);

/* Inside: the result of a tensor, or of all that were not returned in this step, from the mirror.
 * SYSTEM, sticky. */
lcomm_status lcomm_tensor_mirror_return(lcomm_tensor *tensor);
lcomm_status lcomm_tensor_mirrors_return(lcomm_comm *comm);

#endif
