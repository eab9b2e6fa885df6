/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_OBSERVE_CAPTURE_H
#define LCOMM_OBSERVE_CAPTURE_H

/* Captures, the gradients of a run: with LCOMM_CAPTURE=FOLDER this rank's contributions
 * to the steps of LCOMM_CAPTURE_STEPS go into files, as they came: before
 * clipping, momentum and codecs. One file per rank, step and bucket,
 * stepSSSSSS-bucketBBB-rankRRRR.lcg, little-endian:
 *
 *   offset size
 *        0    4 magic, the bytes 'L' 'C' 'M' 'G'
 *        4    4 version, 2
 *        8    8 step
 *       16    4 rank
 *       20    4 ranks
 *       24    4 nodes
 *       28    4 tensors, 1 to 65536
 *       32      for each tensor: u32 length of its name (1 to 127), the name,
 *               u64 count, u64 rows, u64 columns of one that was added as a matrix, row by row;
 *               0, 0 of others (version 1 has no rows and columns)
 *               zeros up to a multiple of 64 from the start of the file
 *               the values of all tensors, float32, one after the other
 *             8 XXH3-64 of every byte before
 *
 * Plain all-reduces and reduce-scatters of at least the policy's `min` are
 * captured, too: calls of one shape are a bucket from number 900 on with one
 * tensor, "allreduce-COUNT" or "reduce-scatter-COUNT" after the count of the
 * call, and the step is how many such calls came before. What is never compressed,
 * minima, maxima, float64 and integers, is not captured. Factors have been
 * applied to what is (lcomm_allreduce_scaled, lcomm_tensor_scale). What is on a device is
 * copied to the host for that, and whoever starts its sum waits for the copy; calls that are put
 * into graphs, and sums that go step by step there, are not captured.
 *
 * Capturing never fails an operation: the first file that cannot be written is
 * told as a warning, by one rank of each host, and this rank captures nothing more. Files that
 * exist are replaced, so communicators that live side by side need folders of their own. Off, it
 * costs one branch. The thread that makes progress does the writing.
 */

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"
#include "libcomm/plan/plan.h"

typedef struct lcomm_capture lcomm_capture;

/* As the environment says; *capture is NULL when it does not ask for any.
 * ARGUMENT for a list of steps that is none, MEMORY; the sentence is in `why`. Free with
 * lcomm_capture_free (NULL ok). */
lcomm_status lcomm_capture_create(lcomm_capture **capture, lcomm_why *why);
void lcomm_capture_free(lcomm_capture *capture);

/* Set whose gradients these are; before the first of the two calls below. who: for sentences,
 * copied. speaks: this rank logs what concerns its host. */
void lcomm_capture_describe(lcomm_capture *capture, int rank, int ranks, int nodes, const char *who,
                            bool speaks);

/* Where values are on the host; asked once, and only when they are captured. NULL: they could not
 * be had, and nothing is captured. */
typedef const void *(*lcomm_captured_values)(void *owner);

/* One tensor of a bucket; 0 rows: it has no shape. */
typedef struct lcomm_captured_tensor {
  const char *name;
  uint64_t count, rows, columns;
} lcomm_captured_tensor;

/* A bucket whose tensors have just been staged in. Everything is a view. */
typedef struct lcomm_captured_bucket {
  uint64_t step;
  size_t number, tensor_count;
  lcomm_dtype dtype;
  lcomm_op op;
  uint64_t count; /* of float32 elements at `values` */
  lcomm_captured_values values;
  void *owner; /* of the values */
  lcomm_captured_tensor (*tensor)(const void *bucket, size_t index);
  const void *bucket;
} lcomm_captured_bucket;
void lcomm_capture_bucket(lcomm_capture *capture, const lcomm_captured_bucket *it);

/* The vector of a plain call; one of fewer than min_bytes is left out. */
void lcomm_capture_call(lcomm_capture *capture, const lcomm_plan *plan, uint64_t min_bytes,
                        lcomm_captured_values values, void *owner);

#endif
