/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TENSOR_ELASTIC_CALLS_H
#define LCOMM_TESTS_TENSOR_ELASTIC_CALLS_H

/* Calls with residuals on an elastic communicator, whose ranks die, leave and join: two of
 * all-reduces, of which one has no name, and one of reduce-scatters. After each call it is checked
 * that nothing was lost but what the residuals keep. Included after elastic_crew.h. */

#include <math.h>

#include "libcomm/tensor/residual_carry.h"
#include "tests/tensor/elastic_memory.h"

enum { LAYERS = 3, SCATTERED = 2, WIDEST = 20000 };

static const uint64_t layer_counts[LAYERS] = {WIDEST, 5000, 12001};
static const lcomm_op layer_ops[LAYERS] = {LCOMM_AVG, LCOMM_SUM, LCOMM_SUM};

/* One buffer whose gradients go through a residual. */
typedef struct layer {
  lcomm_residual *residual;
  uint64_t count;
  lcomm_op op;
  int made; /* calls that count, as far as this rank knows */
  float gradient[WIDEST];
  float result[WIDEST];              /* of a reduce-scatter this rank's part */
  float now[WIDEST], before[WIDEST]; /* what it keeps: after the last call, after the one before */
} layer;

typedef struct calls {
  lcomm_comm *comm;
  int seat, lost;
  layer *layers;
  report *mine;
} calls;

static inline bool wrong(calls *c, const char *what) {
  snprintf(c->mine->sentence, sizeof(c->mine->sentence), "calls %d, %d, %d: %s: %.600s",
           c->layers[0].made, c->layers[1].made, c->layers[2].made, what,
           lcomm_last_error(c->comm));
  return false;
}

/* Of founders the parts of a reduce-scatter are uneven; of newcomers as the others have them. */
static inline uint64_t part_of(uint64_t count, int size, int rank, bool is_even) {
  uint64_t even = count / (uint64_t)size + ((uint64_t)rank < count % (uint64_t)size);
  return is_even || size < 2 || rank > 1 ? even : rank == 0 ? even - 7 : even + 7;
}

static inline bool make_residuals(calls *c, bool are_even) {
  uint64_t parts[CREW_MAX];
  int size = lcomm_size(c->comm);
  for (int rank = 0; rank < size; rank++) {
    parts[rank] = part_of(layer_counts[SCATTERED], size, rank, are_even);
  }
  for (int k = 0; k < LAYERS; k++) {
    c->layers[k].count = layer_counts[k];
    c->layers[k].op = layer_ops[k];
  }
  return (lcomm_residual_create_named(c->comm, "layer", layer_counts[0], LCOMM_AVG,
                                      &c->layers[0].residual) == LCOMM_OK &&
          lcomm_residual_create(c->comm, layer_counts[1], LCOMM_SUM, &c->layers[1].residual) ==
              LCOMM_OK &&
          lcomm_residual_create_scatter(c->comm, "parts", parts, LCOMM_SUM,
                                        &c->layers[2].residual) == LCOMM_OK) ||
         wrong(c, "making residuals");
}

static inline bool begin_calls(calls *c, const crew *all, int seat, const char *policy,
                               report *mine) {
  *c = (calls){.seat = seat, .mine = mine, .layers = elastic_memory_get(LAYERS * sizeof(layer))};
  c->comm = create_elastic(all, seat, policy, mine);
  return c->comm && make_residuals(c, false);
}

static inline void end_calls(calls *c) {
  lcomm_destroy(c->comm);
  elastic_memory_free(c->layers);
}

/* ------------------------------------------------------------------ a call */

static inline float slope_of(int seat, int call, int k, uint64_t i) {
  uint32_t mixed = ((uint32_t)i * 2654435761u) ^ ((uint32_t)(seat * 31 + call * 7 + k) * 40503u);
  mixed ^= mixed >> 13;
  return (float)((int)(mixed % 2001) - 1000) / 64;
}

static inline void make_gradient(calls *c, int k) {
  layer *l = &c->layers[k];
  for (uint64_t i = 0; i < l->count; i++) {
    l->gradient[i] = slope_of(c->seat, l->made, k, i);
  }
}

/* Of a residual, on success. */
static inline lcomm_status make_call(calls *c, int k) {
  layer *l = &c->layers[k];
  make_gradient(c, k);
  LCOMM_TRY(k == SCATTERED ? lcomm_reduce_scatter_ef(l->residual, l->gradient, l->result)
                           : lcomm_allreduce_ef(l->residual, l->gradient, l->result));
  l->made++;
  memcpy(l->before, l->now, sizeof(l->now));
  return lcomm_residual_get(l->residual, l->now);
}

/* --------------------------------------------------------------- conservation */

/* Are the sums over the ranks of two vectors the same? They are freed. */
static inline bool sums_agree(calls *c, double *one, double *other, uint64_t count) {
  double largest = 1e-300, difference = 0;
  bool good = lcomm_allreduce(c->comm, one, one, count, LCOMM_FLOAT64, LCOMM_SUM) == LCOMM_OK &&
              lcomm_allreduce(c->comm, other, other, count, LCOMM_FLOAT64, LCOMM_SUM) == LCOMM_OK;
  for (uint64_t i = 0; good && i < count; i++) {
    largest = fmax(largest, fabs(one[i]));
    difference = fmax(difference, fabs(one[i] - other[i]));
  }
  free(one);
  free(other);
  return good && difference <= 1e-5 * largest;
}

/* What this rank has of the result, as its share of the sum. */
static inline void add_result(const calls *c, int k, double *values) {
  const layer *l = &c->layers[k];
  uint64_t parts[CREW_MAX], first = 0;
  if (k != SCATTERED) {
    double share = l->op == LCOMM_AVG ? 1 : 1.0 / lcomm_size(c->comm);
    for (uint64_t i = 0; i < l->count; i++) {
      values[i] += share * (double)l->result[i];
    }
    return;
  }
  (void)lcomm_residual_counts(l->residual, parts);
  for (int rank = 0; rank < lcomm_rank(c->comm); rank++) {
    first += parts[rank];
  }
  for (uint64_t i = 0; i < parts[lcomm_rank(c->comm)]; i++) {
    values[first + i] += (double)l->result[i];
  }
}

/* gradient + what was kept before is result + what is kept now, over all ranks. `held` is that of
 * before, of this rank. */
static inline bool conserves_call(calls *c, int k, const double *held) {
  const layer *l = &c->layers[k];
  double *in = calloc(l->count, sizeof *in), *out = calloc(l->count, sizeof *out);
  for (uint64_t i = 0; i < l->count; i++) {
    in[i] = (double)l->gradient[i] + held[i];
    out[i] = (double)l->now[i];
  }
  add_result(c, k, out);
  return sums_agree(c, in, out, l->count) || wrong(c, "a call has lost something");
}

/* A call with each residual that is behind. checks: momentum is not in the account. */
static inline bool make_calls(calls *c, int until, bool checks) {
  static double held[WIDEST];
  for (int k = 0; k < LAYERS; k++) {
    layer *l = &c->layers[k];
    for (uint64_t i = 0; i < l->count; i++) {
      held[i] = (double)l->now[i];
    }
    if (l->made < until &&
        (make_call(c, k) != LCOMM_OK || (checks && !conserves_call(c, k, held)))) {
      return wrong(c, "a call");
    }
  }
  return true;
}

/* ------------------------------------------------------------------- losses */

/* All survivors have made as many calls; what they kept then is kept still. `weight`: of averages,
 * by the ranks. */
static inline bool take_stock(calls *c, int k, double weight) {
  layer *l = &c->layers[k];
  uint64_t ended = 0;
  if (lcomm_residual_calls(l->residual, &ended) != LCOMM_OK ||
      (ended != (uint64_t)l->made && ended + 1 != (uint64_t)l->made)) {
    return wrong(c, "the number of calls");
  }
  const float *kept = ended < (uint64_t)l->made ? l->before : l->now;
  double *was = calloc(l->count, sizeof *was), *is = calloc(l->count, sizeof *is);
  for (uint64_t i = 0; i < l->count; i++) {
    was[i] = (l->op == LCOMM_AVG ? weight : 1) * (double)kept[i];
  }
  bool good = lcomm_residual_get(l->residual, l->now) == LCOMM_OK;
  for (uint64_t i = 0; i < l->count; i++) {
    is[i] = (double)l->now[i];
  }
  l->made = (int)ended;
  good = sums_agree(c, was, is, l->count) && good;
  return good || wrong(c, "what survivors keep has changed on its way");
}

/* Go on without those that were lost. */
static inline bool go_on_without(calls *c) {
  lcomm_comm *next = NULL;
  int before = lcomm_size(c->comm);
  if (lcomm_shrink(c->comm, &next) != LCOMM_OK) {
    return wrong(c, "lcomm_shrink");
  }
  lcomm_destroy(c->comm);
  c->comm = next;
  c->lost += before - lcomm_size(next);
  bool good = true;
  for (int k = 0; good && k < LAYERS; k++) {
    good = take_stock(c, k, (double)lcomm_size(next) / before);
  }
  return good;
}

/* Without checks, which would be barriers, while a rank is lost. */
static inline bool make_calls_until_lost(calls *c) {
  while (make_calls(c, c->layers[LAYERS - 1].made + 1, false)) {
  }
  return go_on_without(c);
}

static inline bool call_until(calls *c, int steps, bool checks) {
  bool good = true;
  for (int step = c->layers[LAYERS - 1].made; good && step < steps; step++) {
    good = make_calls(c, step + 1, checks);
  }
  return good;
}

/* All ranks have made as many calls, with the same bits. */
static inline bool is_equal_everywhere(calls *c) {
  int64_t low[2] = {0}, high[2];
  for (int k = 0; k < SCATTERED; k++) {
    low[0] = low[0] * 1000 + c->layers[k].made;
    for (uint64_t i = 0; i < c->layers[k].count; i++) {
      uint32_t bits;
      memcpy(&bits, &c->layers[k].result[i], sizeof(bits));
      low[1] = (int64_t)((uint64_t)low[1] * 1000003u ^ bits);
    }
  }
  memcpy(high, low, sizeof(high));
  return (lcomm_allreduce(c->comm, low, low, 2, LCOMM_INT64, LCOMM_MIN) == LCOMM_OK &&
          lcomm_allreduce(c->comm, high, high, 2, LCOMM_INT64, LCOMM_MAX) == LCOMM_OK &&
          memcmp(low, high, sizeof(low)) == 0) ||
         wrong(c, "ranks have different results");
}

#endif
