/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_FEEDBACK_EF_LOWRANK_H
#define LCOMM_FEEDBACK_EF_LOWRANK_H

/* Low rank (PowerSGD, Vogels et al. 2019): a vector of matrices is summed by two operations over
 * small vectors, instead of one over all of it. With M = residual + gradient of this rank, for each
 * matrix, and Q that is kept:
 *
 *   P = M Q                            lcomm_ef_lowrank_project
 *   sum of P over the ranks            the first operation
 *   P orthonormal; Q = M' P            lcomm_ef_lowrank_turn
 *   sum of Q                           the second
 *   result = P Q'; what this rank has not brought stays: residual = M - its share of the result
 *                                      lcomm_ef_lowrank_finish
 *
 * Every rank keeps the residual of all elements, and the same Q. Sums have the same bits on all
 * ranks, so do results and Q.
 */

#include <stdbool.h>
#include <stddef.h>

#include "kernels/lowrank_step.h"
#include "libcomm/engine/operation.h"

struct lcomm_ef;
struct lcomm_ef_state;

/* One matrix, and where its factors are. */
typedef struct lcomm_ef_matrix {
  uint64_t rows, columns;
  uint64_t at;          /* of its first element in the vector; row by row */
  uint64_t left, right; /* of the first values of P and Q in the two small vectors */
} lcomm_ef_matrix;

/* What is summed of all matrices by one operation: `rank` vectors for each of them. */
typedef struct lcomm_ef_factor {
  uint64_t count;
  float *values; /* where the vector is; on the host local peers read them */
  lcomm_run *run;
} lcomm_ef_factor;

typedef struct lcomm_ef_lowrank {
  unsigned rank;             /* 0: the vector is summed as it is */
  lcomm_ef_matrix *matrices; /* `count` of them; owned */
  size_t count;
  lcomm_codec_spec values; /* by which the factors travel */
  lcomm_ef_factor left, right;
  lcomm_lowrank_matrix *work; /* of this operation, one for each matrix */
  uint32_t *lost;             /* of each, where the vector is */
  double computed_s;          /* time before an operation that computes for it */
} lcomm_ef_lowrank;

/* `matrices` have their shapes and places in the vector; taken over, also after a failure. Memory
 * of the factors is made. MEMORY. */
lcomm_status lcomm_ef_lowrank_make(struct lcomm_ef *ef, const lcomm_codec_spec *by,
                                   lcomm_ef_matrix *matrices, size_t count);
void lcomm_ef_lowrank_free(struct lcomm_ef *ef);
void lcomm_ef_lowrank_retire(struct lcomm_ef *ef); /* the runs alone */

/* Is it the run of the first, or of the second operation, or what is played of it? */
bool lcomm_ef_lowrank_is_first(const struct lcomm_ef *ef, const lcomm_run *run);
bool lcomm_ef_lowrank_is_second(const struct lcomm_ef *ef, const lcomm_run *run);

/* Part of lcomm_ef_take_run: nothing is left to be made; make runs and state. MEMORY and what a
 * plan can fail with. */
bool lcomm_ef_lowrank_is_made(const struct lcomm_ef *ef);
lcomm_status lcomm_ef_lowrank_prepare(struct lcomm_ef *ef);

/* The state as the first lossy operation makes it: see lcomm_ef_feedback. */
lcomm_status lcomm_ef_lowrank_feedback(const struct lcomm_ef *ef, lcomm_feedback_state **feedback);

/* Room for Q of all matrices in a state of `ef`; they start anew. MEMORY. One that starts so. */
lcomm_status lcomm_ef_lowrank_make_basis(const struct lcomm_ef *ef, struct lcomm_ef_state *state);
void lcomm_ef_lowrank_start(float *basis, uint64_t columns, unsigned rank);

/* Where Q of the matrix at element `at` of the vector is among those of all, and how many values it
 * has; 0 for no matrix. */
uint64_t lcomm_ef_lowrank_basis(const struct lcomm_ef *ef, uint64_t at, uint64_t *count);

/* Each of these works by the run's backend, which orders it behind what is to be there; errors are
 * the communicator's. The vector holds the gradients of this rank. What is not finite comes into P,
 * and so to all ranks. */
lcomm_status lcomm_ef_lowrank_project(struct lcomm_ef *ef, lcomm_run *run, float *vector);

/* Of the first operation, whose sum is there. A matrix whose P is not finite, or of 2^96 and more,
 * is lost: zeros are sent for its Q. */
lcomm_status lcomm_ef_lowrank_turn(struct lcomm_ef *ef, lcomm_run *run);

/* Of the second: results go into the vector, in units of a result (an average is one). A matrix
 * that was lost, or whose Q is, gets NaN in all elements; its Q stays as it was, and residual +
 * gradient stay in full but for what is not finite or of 2^96 and more, which would be lost again.
 */
lcomm_status lcomm_ef_lowrank_finish(struct lcomm_ef *ef, lcomm_run *run);

/* As a policy would name it. */
lcomm_codec_spec lcomm_ef_lowrank_codec(const struct lcomm_ef *ef);

/* What an operation with `run` sums of the matrices, if it does. */
lcomm_trace_factor lcomm_ef_lowrank_factor(const struct lcomm_ef *ef, const lcomm_run *run);

#endif
