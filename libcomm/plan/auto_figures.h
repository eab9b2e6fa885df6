/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_AUTO_FIGURES_H
#define LCOMM_PLAN_AUTO_FIGURES_H

/* The figures from which net=auto predicts: what links between nodes and codecs cost. Rank 0
 * measures and corrects them, all ranks take its. */

#include "libcomm/plan/auto.h"

/* What rank 0 tells the others; travels as whole words. */
typedef struct lcomm_auto_figures {
  double latency_us, bandwidth_gb_s, message_us;
  lcomm_codec_cost codec[LCOMM_AUTO_CODECS];
} lcomm_auto_figures;

lcomm_auto_figures lcomm_auto_figures_of(const lcomm_topo *topo);

/* Can these be figures? Those of a peer may be anything. */
bool lcomm_auto_figures_are_possible(const lcomm_auto_figures *figures);

/* Into a topology, from which plans are made. */
void lcomm_auto_figures_put(const lcomm_auto_figures *figures, lcomm_topo *topo);

/* ---------------------------------------------------------------- correcting */

/* How far to believe that links are faster than their figures. A link may carry a burst at a higher
 * rate than what follows (a token bucket), so what was measured of a few bytes may be wrong of
 * many: each time that a correction upwards had to be taken back, twice as many findings are wanted
 * for the next one. Zero in the beginning. */
typedef struct lcomm_auto_trust {
  unsigned doubts; /* corrections upwards that were taken back, up to a limit */
  unsigned faster; /* findings, one after the other, that something is faster */
  bool raised;     /* the last correction was upwards */
} lcomm_auto_trust;

/* The time of what was measured, with the figures of `topo`; parts and total. */
typedef lcomm_plan_time (*lcomm_auto_predictor)(const void *context, const lcomm_topo *topo);

/* Correct the figures of `topo` where the measured time differs by half from the predicted one: of
 * bytes, messages and codecs that on which the prediction spends most, if that can explain it.
 * A link is not taken for faster because of fewer bytes than may pass at once (256 KiB). False:
 * they stay. */
bool lcomm_auto_correct(lcomm_topo *topo, lcomm_auto_trust *trust, lcomm_auto_predictor predict,
                        const void *context, double measured_s);

/* Is that one of the agreed steps, or calls of a shape: the 4th, 16th, 64th, and each 256th? */
bool lcomm_auto_is_agreed(uint64_t number);

/* "20 us and 0.125 GB/s, codecs for 1.2 GB/s (int8)": what is taken for what. Returns text. */
enum { LCOMM_AUTO_FIGURES_TEXT_MAX = 128 };
const char *lcomm_auto_figures_format(const lcomm_topo *topo,
                                      char text[LCOMM_AUTO_FIGURES_TEXT_MAX]);

#endif
