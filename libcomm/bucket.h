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
#include "libcomm/trace.h"

struct lcomm_tensor {
  lcomm_comm *comm;
  char name[128];
  void *data;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  double before, after; /* factors of the gradient and of the result */
  lcomm_bucket *bucket; /* once buckets are made */
  uint64_t offset;      /* in the bucket's vector */
  atomic_bool ready;
  void *event;           /* of its device: a stream has made the gradient; made once */
  atomic_bool on_stream; /* in this step the gradient is there when the event is over */
};

struct lcomm_bucket {
  lcomm_comm *comm;
  lcomm_tensor **tensors; /* tensor_count of them, owned array of views */
  size_t tensor_count;
  char name[LCOMM_TRACE_NAME_MAX]; /* of the first tensor, "and 63 more"; for traces */
  size_t last_tensor;              /* index of the last one in lcomm_comm.tensors */
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  bool exact;           /* never compressed */
  size_t element_size;  /* of the vector: its elements are lcomm_sum_dtype(dtype) */
  uint8_t *vector;      /* the tensors one after the other; NULL: the one tensor itself */
  lcomm_run *run;       /* as the policy says */
  double density;       /* that it was made for, see lcomm_plan_request */
  lcomm_run *exact_run; /* exact tensors and warm-up steps */
  lcomm_feedback_state
      *feedback;   /* NULL when the policy keeps none, or before the first lossy step */
  float *velocity; /* momentum of the applied sums of exact steps, or NULL */
  float *owed;     /* added to the next result, or NULL: a residual that was loaded and
                      that nobody keeps; the same on all ranks */
  bool over;       /* in this step */
};

/* Group the tensors; once, before the first step. MEMORY, sticky. */
lcomm_status lcomm_buckets_make(lcomm_comm *comm);

/* Start every bucket whose turn it is and whose tensors are ready. */
lcomm_status lcomm_buckets_start(lcomm_comm *comm);

/* The state as the first lossy step would make it, all zero; *feedback is NULL
 * when this rank keeps none. The bucket does not change. MEMORY and what a plan
 * can fail with, sticky. */
lcomm_status lcomm_bucket_feedback(lcomm_bucket *bucket, lcomm_feedback_state **feedback);

/* Bring the tensors of a step in, multiplied and clipped, and the results out.
 * velocity: momentum is still to be added to the sums. */
void lcomm_bucket_bring_in(lcomm_bucket *bucket);
void lcomm_bucket_bring_out(lcomm_bucket *bucket, bool velocity);

/* The same on a device, in the stream of `run`, which starts or ends. bring_in
 * fails the communicator; the others give the number of a call that failed. */
lcomm_status lcomm_bucket_bring_in_device(lcomm_bucket *bucket, lcomm_run *run);
int lcomm_bucket_bring_out_device(const lcomm_run *run);
void lcomm_bucket_end_device(lcomm_bucket *bucket, const lcomm_run *run);

/* Sums without error feedback get their momentum after the sum. What is never
 * compressed (minima, integers) has none. */
bool lcomm_bucket_needs_velocity(const lcomm_bucket *bucket, const lcomm_run *run);

/* Where a tensor of the bucket is in its vector. */
void *lcomm_bucket_place(const lcomm_bucket *bucket, size_t index);

/* Where the bucket is worked on. */
void *lcomm_bucket_vector(const lcomm_bucket *bucket);

/* One number for the factors of all tensors, so that ranks compare them: 1 when
 * all are 1, else one between 1 and 2 made of a hash of them. */
double lcomm_bucket_factors(const lcomm_bucket *bucket);

/* Compare the tensors between the ranks, if that was not done yet. Collective;
 * MISMATCH and transport errors, sticky. */
lcomm_status lcomm_tensors_compare(lcomm_comm *comm);

/* The part of a tensor whose residual is in `feedback` (NULL: none): elements
 * first .. first+n of the tensor lie at `at` of the residual. */
typedef struct lcomm_kept {
  uint64_t first, n, at;
} lcomm_kept;
lcomm_kept lcomm_tensor_kept(const lcomm_tensor *tensor, const lcomm_feedback_state *feedback);

/* What is owed to a tensor, as a residual of this rank: writes `count` values.
 * One rank answers for all; false on the others, and when nothing is owed. */
bool lcomm_tensor_owed(const lcomm_tensor *tensor, float *residual);

/* Called by lcomm_destroy. */
void lcomm_buckets_free(lcomm_comm *comm);

#endif
