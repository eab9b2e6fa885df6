/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_ELASTIC_REGROUP_H
#define LCOMM_TESTS_TENSOR_ELASTIC_REGROUP_H

/* The training of elastic_model.h, whose ranks leave and join: what all ranks together remember is
 * the same before and after. Included after elastic_model.h. */

/* What ranks remember of all tensors, summed over them: residuals, then momentum. */
typedef struct memory_sums {
  double *values;
  int ranks;
} memory_sums;

enum { ELEMENTS = 20000 + 300 + LONGEST };

/* That of results is the same on all ranks: rank 0 counts it. */
static inline void add_momentum(const lcomm_tensor *tensor, double *values) {
  const lcomm_comm *comm = tensor->comm;
  const lcomm_feedback_state *feedback = tensor->bucket ? tensor->bucket->ef.state.feedback : NULL;
  const float *velocity = tensor->bucket ? tensor->bucket->ef.state.velocity.now : NULL;
  double units = tensor->op == LCOMM_AVG ? comm->size : 1;
  lcomm_ef_shard kept = lcomm_tensor_shard(tensor, feedback);
  for (uint64_t i = 0; feedback && feedback->momentum.now && i < kept.n; i++) {
    values[kept.first + i] = (double)feedback->momentum.now[kept.at + i];
  }
  for (uint64_t i = 0; velocity && comm->rank == 0 && i < tensor->count; i++) {
    values[i] += units * (double)velocity[tensor->offset + i];
  }
}

static inline bool sum_memory(training *t, memory_sums *sums) {
  static float residual[LONGEST];
  bool good = true;
  *sums =
      (memory_sums){.values = calloc(2 * ELEMENTS, sizeof(double)), .ranks = lcomm_size(t->comm)};
  uint64_t at = 0;
  for (int k = 0; good && k < TENSORS; k++) {
    good = lcomm_tensor_residual(t->comm, t->tensors[k], residual) == LCOMM_OK;
    for (uint64_t i = 0; i < tensor_counts[k]; i++) {
      sums->values[at + i] = (double)residual[i];
    }
    add_momentum(t->tensors[k], sums->values + ELEMENTS + at);
    at += tensor_counts[k];
  }
  return good && lcomm_allreduce(t->comm, sums->values, sums->values, 2 * ELEMENTS, LCOMM_FLOAT64,
                                 LCOMM_SUM) == LCOMM_OK;
}

static inline double largest_of(const double *values, uint64_t count) {
  double largest = 0;
  for (uint64_t i = 0; i < count; i++) {
    largest = fmax(largest, fabs(values[i]));
  }
  return largest;
}

/* Of averages sums weigh by the ranks. Both are freed. */
static inline bool is_conserved(training *t, memory_sums *before, memory_sums *after) {
  bool good = true;
  uint64_t at = 0;
  for (int part = 0; good && part < 2 * TENSORS; part++) {
    int k = part % TENSORS;
    double weight = tensor_ops[k] == LCOMM_AVG ? (double)after->ranks / before->ranks : 1;
    double largest = largest_of(before->values + at, tensor_counts[k]);
    for (uint64_t i = at; good && i < at + tensor_counts[k]; i++) {
      good = fabs(weight * before->values[i] - after->values[i]) <= 1e-5 * weight * largest;
    }
    at += tensor_counts[k];
  }
  free(before->values);
  free(after->values);
  return good || wrong(t, "what ranks remember has changed on its way");
}

/* Go on with others; false, without a communicator, on a rank that has left. */
static inline bool regroup(training *t) {
  lcomm_comm *next = NULL;
  if (lcomm_regroup(t->comm, &next) != LCOMM_OK) {
    return wrong(t, "lcomm_regroup");
  }
  if (lcomm_destroy(t->comm) != LCOMM_OK) {
    return wrong(t, "lcomm_destroy after lcomm_regroup");
  }
  t->comm = next;
  return next != NULL;
}

/* Of rank 0, after newcomers have come. */
static inline bool share_weights(training *t) {
  bool good = true;
  for (int k = 0; good && k < TENSORS; k++) {
    good = lcomm_broadcast(t->comm, t->weights[k], tensor_counts[k], LCOMM_FLOAT32, 0) == LCOMM_OK;
  }
  return good || wrong(t, "the weights");
}

/* Join one that is under way, at its step. */
static inline bool join_training(training *t, const crew *c, int seat, report *mine) {
  lcomm_regrouped told = {0};
  *t = (training){.seat = seat, .mine = mine, .comm = join_elastic(c, mine)};
  bool good = add_tensors(t) && lcomm_regrouped_get(t->comm, &told) == LCOMM_OK &&
              told.is_newcomer && told.joined > 0;
  t->step = (int)told.steps;
  return good || wrong(t, "joining");
}

#endif
