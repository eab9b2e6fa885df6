/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_ELASTIC_MODEL_H
#define LCOMM_TESTS_TENSOR_ELASTIC_MODEL_H

/* A training of three tensors on an elastic communicator, whose ranks die: gradients are known
 * functions of rank, step and element, weights follow the results. After each step it is checked
 * that nothing was lost but what error feedback keeps. Included after elastic_crew.h. */

#include <math.h>

#include "libcomm/tensor/bucket.h"
#include "tests/tensor/elastic_memory.h"

enum { TENSORS = 3, LONGEST = 30000 };

static const uint64_t tensor_counts[TENSORS] = {20000, 300, LONGEST};
static const uint64_t tensor_rows[TENSORS] = {100, 1, 120};
static const lcomm_op tensor_ops[TENSORS] = {LCOMM_AVG, LCOMM_AVG, LCOMM_SUM};

typedef struct training {
  lcomm_comm *comm;
  int seat;
  int step; /* that is made next */
  int lost, finished;
  double lost_residual, lost_norm;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS], *weights[TENSORS];
  float *kept[TENSORS]; /* residuals after the last step that this rank knows to be finished */
  report *mine;
} training;

static inline bool wrong(training *t, const char *what) {
  snprintf(t->mine->sentence, sizeof(t->mine->sentence), "step %d: %s: %.600s", t->step, what,
           t->comm ? lcomm_last_error(t->comm) : lcomm_last_error(NULL));
  return false;
}

static inline float gradient_of(int seat, int step, int tensor, uint64_t i) {
  uint32_t mixed =
      ((uint32_t)i * 2654435761u) ^ ((uint32_t)(seat * 31 + step * 7 + tensor) * 40503u);
  mixed ^= mixed >> 13;
  return (float)((int)(mixed % 2001) - 1000) / 64;
}

static inline bool add_tensors(training *t) {
  static const char *const names[TENSORS] = {"first", "small", "last"};
  bool good = t->comm != NULL;
  for (int k = 0; good && k < TENSORS; k++) {
    t->data[k] = elastic_memory_get(tensor_counts[k] * sizeof(float));
    t->weights[k] = calloc(tensor_counts[k], sizeof(float));
    t->kept[k] = calloc(tensor_counts[k], sizeof(float));
    good = lcomm_tensor_add_shaped(t->comm, names[k], t->data[k], tensor_rows[k],
                                   tensor_counts[k] / tensor_rows[k], LCOMM_FLOAT32, tensor_ops[k],
                                   &t->tensors[k]) == LCOMM_OK;
  }
  return good;
}

static inline bool begin_training(training *t, const crew *c, int rank, const char *policy,
                                  report *mine) {
  *t = (training){.seat = rank, .mine = mine, .comm = create_elastic(c, rank, policy, mine)};
  return add_tensors(t);
}

static inline void end_training(training *t) {
  lcomm_destroy(t->comm);
  for (int k = 0; k < TENSORS; k++) {
    elastic_memory_free(t->data[k]);
    free(t->weights[k]);
    free(t->kept[k]);
  }
}

/* ------------------------------------------------------------------- steps */

static inline bool is_frozen(const training *t, int k) {
  return t->tensors[k]->frozen;
}

static inline void make_gradients(training *t) {
  for (int k = 0; k < TENSORS; k++) {
    for (uint64_t i = 0; !is_frozen(t, k) && i < tensor_counts[k]; i++) {
      t->data[k][i] = gradient_of(t->seat, t->step, k, i);
    }
  }
}

static inline lcomm_status report_ready(training *t) {
  lcomm_status status = LCOMM_OK;
  for (int k = 0; k < TENSORS && status == LCOMM_OK; k++) {
    status = is_frozen(t, k) ? LCOMM_OK : lcomm_tensor_ready(t->comm, t->tensors[k]);
  }
  return status;
}

static inline void take_results(training *t) {
  for (int k = 0; k < TENSORS; k++) {
    for (uint64_t i = 0; !is_frozen(t, k) && i < tensor_counts[k]; i++) {
      t->weights[k][i] -= 0.125f * t->data[k][i];
    }
  }
  t->step++;
}

static inline bool keep_residuals(training *t) {
  for (int k = 0; k < TENSORS; k++) {
    if (lcomm_tensor_residual(t->comm, t->tensors[k], t->kept[k]) != LCOMM_OK) {
      return wrong(t, "the residual");
    }
  }
  return true;
}

/* ------------------------------------------------------------ conservation */

/* The largest |value - other| of what the ranks have of a tensor in common, as a share of the
 * largest |value|; below 0 where a rank was lost meanwhile. */
static inline double compare_sums(training *t, const double *value, const double *other,
                                  uint64_t count) {
  double *sums = malloc(2 * count * sizeof *sums), largest = 1, difference = 0;
  memcpy(sums, value, count * sizeof *sums);
  memcpy(sums + count, other, count * sizeof *sums);
  bool good = lcomm_allreduce(t->comm, sums, sums, 2 * count, LCOMM_FLOAT64, LCOMM_SUM) == LCOMM_OK;
  for (uint64_t i = 0; i < count; i++) {
    largest = fabs(sums[i]) > largest ? fabs(sums[i]) : largest;
    difference = fmax(difference, fabs(sums[i] - sums[count + i]));
  }
  free(sums);
  return good ? difference / largest : -1;
}

/* What is left of tensor k after a step, from what it was before: gradient + residual before is
 * size * average + residual after, or sum + residual after. Momentum is not in it. */
static inline bool conserves_step(training *t, int k) {
  uint64_t count = tensor_counts[k];
  double *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
  float *after = malloc(count * sizeof *after);
  double share = tensor_ops[k] == LCOMM_AVG ? 1 : 1.0 / lcomm_size(t->comm);
  bool good = lcomm_tensor_residual(t->comm, t->tensors[k], after) == LCOMM_OK;
  for (uint64_t i = 0; i < count; i++) {
    in[i] = (double)gradient_of(t->seat, t->step, k, i) + (double)t->kept[k][i];
    out[i] = share * (double)t->data[k][i] + (double)after[i];
  }
  double difference = compare_sums(t, in, out, count);
  free(in);
  free(out);
  free(after);
  if (!good || difference > 1e-5) {
    return wrong(t, "the step has lost something");
  }
  return true;
}

/* Across a shrink that has undone the step: residuals of averages weigh by the ranks. */
static inline bool conserves_shrink(training *t, int size_before) {
  bool good = true;
  for (int k = 0; good && k < TENSORS; k++) {
    uint64_t count = tensor_counts[k];
    double *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
    float *after = malloc(count * sizeof *after);
    double weight =
        tensor_ops[k] == LCOMM_AVG ? (double)lcomm_size(t->comm) / (double)size_before : 1;
    good = lcomm_tensor_residual(t->comm, t->tensors[k], after) == LCOMM_OK;
    for (uint64_t i = 0; i < count; i++) {
      in[i] = weight * (double)t->kept[k][i];
      out[i] = (double)after[i];
    }
    good = good && compare_sums(t, in, out, count) <= 1e-5;
    free(in);
    free(out);
    free(after);
  }
  return good || wrong(t, "the shrink has lost something of what survivors keep");
}

/* All ranks have the same weights, bit for bit, and stand at the same step. */
static inline bool is_equal_everywhere(training *t) {
  int64_t low[2] = {t->step, 0}, high[2];
  for (int k = 0; k < TENSORS; k++) {
    for (uint64_t i = 0; i < tensor_counts[k]; i++) {
      uint32_t bits;
      memcpy(&bits, &t->weights[k][i], sizeof(bits));
      low[1] = (int64_t)((uint64_t)low[1] * 1000003u ^ bits);
    }
  }
  memcpy(high, low, sizeof(high));
  if (lcomm_allreduce(t->comm, low, low, 2, LCOMM_INT64, LCOMM_MIN) != LCOMM_OK ||
      lcomm_allreduce(t->comm, high, high, 2, LCOMM_INT64, LCOMM_MAX) != LCOMM_OK) {
    return wrong(t, "comparing the weights");
  }
  return memcmp(low, high, sizeof(low)) == 0 || wrong(t, "ranks have different weights");
}

/* ------------------------------------------------------------------- losses */

/* Go on without those that were lost; what is finished is taken. */
static inline bool go_on_without(training *t) {
  lcomm_shrunk shrunk = {0};
  lcomm_comm *next = NULL;
  int before = lcomm_size(t->comm);
  if (lcomm_shrink(t->comm, &next) != LCOMM_OK) {
    return wrong(t, "lcomm_shrink");
  }
  lcomm_destroy(t->comm);
  t->comm = next;
  if (lcomm_shrunk_get(next, &shrunk) != LCOMM_OK || shrunk.ranks_before != before ||
      shrunk.lost != before - lcomm_size(next)) {
    return wrong(t, "lcomm_shrunk_get");
  }
  t->lost += shrunk.lost;
  t->finished += shrunk.finished;
  t->lost_residual = shrunk.lost_residual;
  t->lost_norm = shrunk.lost_norm;
  if (shrunk.finished) {
    take_results(t);
  }
  return shrunk.steps == (uint64_t)t->step || wrong(t, "the number of steps");
}

/* One step; a rank that was lost meanwhile is left behind, and the step is made again where it was
 * undone. checks: that nothing is lost, which momentum= does not let us see. */
static inline bool make_step(training *t, bool checks) {
  make_gradients(t);
  lcomm_status status = report_ready(t);
  status = status == LCOMM_OK ? lcomm_tensors_wait(t->comm) : status;
  if (status == LCOMM_OK) {
    for (int k = 0; checks && k < TENSORS; k++) {
      if (!is_frozen(t, k) && !conserves_step(t, k)) {
        return false;
      }
    }
    take_results(t);
    return keep_residuals(t);
  }
  int size_before = lcomm_size(t->comm), finished = t->finished;
  if (!go_on_without(t)) {
    return false;
  }
  return (t->finished > finished || conserves_shrink(t, size_before)) && keep_residuals(t);
}

#endif
