/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_summary.h"

#include <math.h>
#include <string.h>

fidelity_spread fidelity_spread_of(const double *values, size_t count) {
  fidelity_spread made = {.count = count};
  double squares = 0.0;
  for (size_t i = 0; i < count; i++) {
    made.mean += values[i] / (double)count;
  }
  for (size_t i = 0; i < count; i++) {
    squares += (values[i] - made.mean) * (values[i] - made.mean);
  }
  made.deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : 0.0;
  return made;
}

const char *fidelity_verdict_text(fidelity_verdict verdict) {
  static const char *const texts[] = {
      [FIDELITY_UNKNOWN] = "-", [FIDELITY_WITHIN] = "within", [FIDELITY_BELOW] = "below"};
  return texts[verdict];
}

/* The outcomes of a case by seed, NULL where there is none. */
static void find_outcomes(const fidelity_grid *grid, size_t number, const fidelity_store *store,
                          const fidelity_outcome **outcomes) {
  for (uint64_t i = 0; i < grid->seeds; i++) {
    fidelity_cell cell = fidelity_cell_at(grid, number * grid->seeds + i);
    outcomes[i] = fidelity_store_find(store, &cell);
  }
}

static void summarise_own(const fidelity_outcome *const *own, uint64_t seeds,
                          fidelity_summary *made) {
  double accuracies[FIDELITY_SEEDS_MAX];
  size_t count = 0;
  for (uint64_t i = 0; i < seeds; i++) {
    if (own[i]) {
      accuracies[count++] = 100.0 * own[i]->accuracy;
      made->bytes += own[i]->bytes;
      made->steps = own[i]->steps;
      made->curve_count = own[i]->curve_count;
    }
  }
  made->accuracy = fidelity_spread_of(accuracies, count);
  made->bytes = count > 0 ? made->bytes / (double)count : 0.0;
  made->bytes_per_step = made->steps > 0 ? made->bytes / made->steps : 0.0;
}

static void summarise_curve(const fidelity_outcome *const *own, uint64_t seeds,
                            fidelity_summary *made) {
  double losses[FIDELITY_SEEDS_MAX];
  for (size_t part = 0; part < made->curve_count; part++) {
    size_t count = 0;
    for (uint64_t i = 0; i < seeds; i++) {
      if (own[i] && part < own[i]->curve_count) {
        losses[count++] = (double)own[i]->curve[part];
      }
    }
    fidelity_spread spread = fidelity_spread_of(losses, count);
    made->curve[part] = (float)spread.mean;
    made->curve_deviation[part] = (float)spread.deviation;
  }
}

/* Where both have a result. */
static void compare(const fidelity_outcome *const *own, const fidelity_outcome *const *reference,
                    uint64_t seeds, fidelity_summary *made) {
  double differences[FIDELITY_SEEDS_MAX], references[FIDELITY_SEEDS_MAX];
  double own_bytes = 0.0, reference_bytes = 0.0;
  size_t count = 0;
  for (uint64_t i = 0; i < seeds; i++) {
    if (own[i] && reference[i]) {
      references[count] = 100.0 * reference[i]->accuracy;
      differences[count++] = 100.0 * (own[i]->accuracy - reference[i]->accuracy);
      own_bytes += own[i]->bytes;
      reference_bytes += reference[i]->bytes;
    }
  }
  made->difference = fidelity_spread_of(differences, count);
  made->reference_deviation = fidelity_spread_of(references, count).deviation;
  made->ratio = own_bytes > 0.0 ? reference_bytes / own_bytes : 0.0;
  if (count > 1) {
    made->verdict =
        made->difference.mean < -made->reference_deviation ? FIDELITY_BELOW : FIDELITY_WITHIN;
  }
}

void fidelity_summarise(const fidelity_grid *grid, size_t number, const fidelity_store *store,
                        fidelity_summary *made) {
  const fidelity_outcome *own[FIDELITY_SEEDS_MAX], *reference[FIDELITY_SEEDS_MAX];
  memset(made, 0, sizeof *made);
  made->of = fidelity_case_at(grid, number);
  find_outcomes(grid, number, store, own);
  find_outcomes(grid, number - number % grid->preset_count, store, reference);
  summarise_own(own, grid->seeds, made);
  summarise_curve(own, grid->seeds, made);
  compare(own, reference, grid->seeds, made);
}
