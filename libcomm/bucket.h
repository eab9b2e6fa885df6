/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BUCKET_H
#define LCOMM_BUCKET_H

/* Buckets: tensors that travel together, and the error-feedback state that
 * belongs to them. A bucket holds tensors of one data type and operation that
 * are either all compressed or all exact; the tensors of a bucket follow each
 * other in the order of lcomm_tensor_add. Buckets start in the order of their
 * last tensors.
 */

#include "libcomm/op.h"

struct lcomm_tensor {
  char name[128];
  void *data;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  lcomm_bucket *bucket; /* once buckets are made */
  uint64_t offset;      /* in the bucket's vector */
  atomic_bool ready;
};

struct lcomm_bucket {
  lcomm_comm *comm;
  lcomm_tensor **tensors; /* tensor_count of them, owned array of views */
  size_t tensor_count;
  size_t last_tensor; /* index of the last one in lcomm_comm.tensors */
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  bool exact;           /* never compressed */
  float *vector;        /* the tensors one after the other; NULL: the one tensor itself */
  lcomm_run *run;       /* as the policy says, owns the residual */
  lcomm_run *exact_run; /* exact tensors and warm-up steps */
  bool over;            /* in this step */
};

/* Start every bucket whose turn it is and whose tensors are ready. */
lcomm_status lcomm_buckets_start(lcomm_comm *comm);

/* Called by lcomm_destroy. */
void lcomm_buckets_free(lcomm_comm *comm);

#endif
