/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_SUMMARY_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_SUMMARY_H

/* What the seeds of a case say together, and how it compares with the reference: the first preset
 * of the grid in the same place of it. */

#include "tools/fidelity/fidelity_store.h"

typedef struct fidelity_spread {
  size_t count;
  double mean, deviation; /* of a sample, by count-1; 0 of fewer than 2 */
} fidelity_spread;

fidelity_spread fidelity_spread_of(const double *values, size_t count);

typedef enum fidelity_verdict {
  FIDELITY_UNKNOWN, /* fewer than 2 seeds of it and the reference */
  FIDELITY_WITHIN,  /* at most one standard deviation of the reference below its mean */
  FIDELITY_BELOW
} fidelity_verdict;

typedef struct fidelity_summary {
  fidelity_case of;
  fidelity_spread accuracy;   /* percent */
  fidelity_spread difference; /* percentage points to the reference, at equal seeds */
  double reference_deviation; /* of the reference at these seeds, points */
  fidelity_verdict verdict;
  double steps;
  double bytes_per_step, bytes; /* between nodes, of all nodes together */
  double ratio;                 /* bytes of the reference over its own; 0: unknown */
  float curve[FIDELITY_CURVE_MAX], curve_deviation[FIDELITY_CURVE_MAX]; /* of the seeds */
  size_t curve_count;
} fidelity_summary;

/* Case `number` of the grid, from the cells that are in the store. */
void fidelity_summarise(const fidelity_grid *grid, size_t number, const fidelity_store *store,
                        fidelity_summary *made);

const char *fidelity_verdict_text(fidelity_verdict verdict);

#endif
