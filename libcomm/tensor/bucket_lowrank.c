/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Buckets of matrices that travel by low rank. */

#include <stdlib.h>

#include "libcomm/tensor/bucket.h"

/* Without links between nodes there is nothing for it to act on, and the guard may have chosen a
 * milder codec. */
static bool acts(const lcomm_bucket *bucket) {
  const lcomm_ef *ef = &bucket->ef;
  return !ef->exact && ef->request.net.rank > 0 && bucket->rungs == 0 &&
         bucket->comm->topo.nodes > 1;
}

lcomm_status lcomm_bucket_make_lowrank(lcomm_bucket *bucket) {
  if (!acts(bucket)) {
    return LCOMM_OK;
  }
  lcomm_ef_matrix *matrices = calloc(bucket->tensor_count, sizeof *matrices);
  if (!matrices) {
    return LCOMM_ERR_MEMORY;
  }
  for (size_t i = 0; i < bucket->tensor_count; i++) {
    const lcomm_tensor *tensor = bucket->tensors[i];
    matrices[i] =
        (lcomm_ef_matrix){.rows = tensor->rows, .columns = tensor->columns, .at = tensor->offset};
  }
  return lcomm_ef_lowrank_make(&bucket->ef, &bucket->ef.request.net, matrices,
                               bucket->tensor_count);
}
