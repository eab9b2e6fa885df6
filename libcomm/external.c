/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/external.h"

#include "libcomm/base/clock.h"

static const double PAUSE_LEAST_S = 20e-6, PAUSE_MOST_S = 1e-3;

/* Progress that finds nothing takes about 1 us. */
static const double MOVED_S = 5e-6;

/* Short waits that follow each other pay for it once in PAUSE_MOST_S. */
void lcomm_external_begin(lcomm_external_pace *pace, double now_s) {
  double soon_s = now_s + PAUSE_LEAST_S, latest_s = pace->last_s + PAUSE_MOST_S;
  pace->pause_s = PAUSE_LEAST_S;
  pace->next_s = latest_s < soon_s ? latest_s : soon_s;
}

void lcomm_external_progress(lcomm_external_pace *pace, lcomm_origin *origin, double now_s) {
  if (!origin->progress || now_s < pace->next_s) {
    return;
  }
  origin->progress(origin);
  double end_s = lcomm_clock_s();
  bool moved = end_s - now_s > MOVED_S;
  double longer_s = 2 * pace->pause_s < PAUSE_MOST_S ? 2 * pace->pause_s : PAUSE_MOST_S;
  pace->pause_s = moved || longer_s < PAUSE_LEAST_S ? PAUSE_LEAST_S : longer_s;
  pace->last_s = end_s;
  pace->next_s = end_s + pace->pause_s;
}

double lcomm_external_limit_s(const lcomm_external_pace *pace, const lcomm_origin *origin,
                              double now_s, double limit_s) {
  double left_s = pace->next_s - now_s;
  if (!origin->progress || left_s > limit_s) {
    return limit_s;
  }
  return left_s > 0 ? left_s : 0;
}
