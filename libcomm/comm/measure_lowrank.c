/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/comm/measure_lowrank.h"

#include <stdlib.h>

#include "libcomm/base/clock.h"
#include "libcomm/comm/measure_codecs.h"

enum { SIDE = 512, SHORT_SIDE = 32, REPETITIONS = 3 };

/* A square matrix with its memory. */
typedef struct trial {
  const lcomm_kernels_lowrank *kernels;
  size_t side, rank;
  double until_s; /* by the clock: no second trial after that */
  float *m, *gradient, *p, *q;
  lcomm_codec_trial before, after; /* the first sum */
} trial;

static bool make(trial *t) {
  size_t count = t->side * t->side, values = t->side * t->rank;
  t->m = malloc(count * sizeof *t->m);
  t->gradient = malloc(count * sizeof *t->gradient);
  t->p = malloc(values * sizeof *t->p);
  t->q = malloc(values * sizeof *t->q);
  return t->m && t->gradient && t->p && t->q;
}

static void discard(trial *t) {
  free(t->m);
  free(t->gradient);
  free(t->p);
  free(t->q);
}

static void fill(trial *t) {
  uint32_t state = 1;
  for (size_t i = 0; i < t->side * t->side; i++) {
    state = state * 1664525u + 1013904223u;
    t->gradient[i] = (float)(int32_t)state / 2147483648.0f;
    t->m[i] = 0;
  }
  lcomm_lowrank_start(t->q, t->side, t->rank, 0);
}

static void take_less(lcomm_codec_trial *it, bool first, double us) {
  it->us = first || us < it->us ? us : it->us;
}

static void step(trial *t, bool first) {
  fill(t);
  double begun_s = lcomm_clock_s();
  t->kernels->project(t->p, t->m, t->gradient, t->q, t->side, t->side, t->rank);
  double summed_s = lcomm_clock_s();
  lcomm_lowrank_orthonormalise(t->p, t->side, t->rank);
  t->kernels->project_back(t->q, t->m, t->p, t->side, t->side, t->rank);
  t->kernels->expand(t->gradient, t->m, t->p, t->q, t->side, t->side, t->rank, 1.0f);
  lcomm_lowrank_orthonormalise(t->q, t->side, t->rank);
  take_less(&t->before, first, (summed_s - begun_s) * 1e6);
  take_less(&t->after, first, (lcomm_clock_s() - summed_s) * 1e6);
}

/* The fastest of some, for others may use the processor. False without memory for it. */
static bool try(trial *t, size_t side) {
  t->side = side;
  t->before.count = t->after.count = side * side;
  bool made = make(t);
  uint32_t environment = lcomm_fp_enter();
  for (int i = 0; made && i < REPETITIONS && (i == 0 || lcomm_clock_s() < t->until_s); i++) {
    step(t, i == 0);
  }
  lcomm_fp_leave(environment);
  discard(t);
  return made;
}

lcomm_codec_cost lcomm_lowrank_cost_measure(const lcomm_kernels *kernels, unsigned rank,
                                            double within_s) {
  lcomm_codec_cost cost = {0};
  trial little = {
      .kernels = &kernels->lowrank, .rank = rank, .until_s = lcomm_clock_s() + within_s};
  trial much = little;
  if (try(&little, SHORT_SIDE) && try(&much, SIDE)) {
    lcomm_codec_cost_fit(little.before, much.before, &cost.encode_gb_s, &cost.encode_us);
    lcomm_codec_cost_fit(little.after, much.after, &cost.decode_gb_s, &cost.decode_us);
  }
  return cost;
}
