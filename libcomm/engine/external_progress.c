/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/engine/external_progress.h"

#include "libcomm/base/clock.h"

static const double PAUSE_LEAST_S = 20e-6, PAUSE_MOST_S = 8e-3;

/* Progress that finds nothing takes about 1 us, and more on a machine that is busy. */
static const double MOVED_S = 20e-6, MOVED_TIMES = 4;

static double within(double pause_s) {
  pause_s = pause_s > PAUSE_LEAST_S ? pause_s : PAUSE_LEAST_S;
  return pause_s < PAUSE_MOST_S ? pause_s : PAUSE_MOST_S;
}

/* The pause goes on from wait to wait: where MPI moves nothing, waits soon look seldom, and
 * where it does, soon. Short waits that follow each other pay for it once in PAUSE_MOST_S. */
void lcomm_external_begin(lcomm_external_pace *pace, double now_s) {
  pace->pause_s = within(pace->pause_s);
  double soon_s = now_s + pace->pause_s, latest_s = pace->last_s + PAUSE_MOST_S;
  pace->next_s = latest_s < soon_s ? latest_s : soon_s;
}

static bool has_moved(lcomm_external_pace *pace, double took_s) {
  if (pace->shortest_s <= 0 || took_s < pace->shortest_s) {
    pace->shortest_s = took_s;
  }
  return took_s > MOVED_S && took_s > MOVED_TIMES * pace->shortest_s;
}

/* By halves, so that one look that was interrupted does not count for much. */
void lcomm_external_progress(lcomm_external_pace *pace, lcomm_bootstrap_object *bootstrap,
                             double now_s) {
  if (!bootstrap->progress || now_s < pace->next_s) {
    return;
  }
  bootstrap->progress(bootstrap);
  double end_s = lcomm_clock_s();
  pace->pause_s = within(has_moved(pace, end_s - now_s) ? pace->pause_s / 2 : pace->pause_s * 2);
  pace->last_s = end_s;
  pace->next_s = end_s + pace->pause_s;
}

double lcomm_external_limit_s(const lcomm_external_pace *pace,
                              const lcomm_bootstrap_object *bootstrap, double now_s,
                              double limit_s) {
  double left_s = pace->next_s - now_s;
  if (!bootstrap->progress || left_s > limit_s) {
    return limit_s;
  }
  return left_s > 0 ? left_s : 0;
}
