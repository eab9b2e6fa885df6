/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How far the clocks of two hosts are apart. */

#include <math.h>

#include "libcomm/observe/trace.h"

bool lcomm_trace_offset(const lcomm_clock_sample *samples, size_t count, double *offset_s,
                        double *error_s) {
  double shortest_s = INFINITY;
  for (size_t i = 0; i < count; i++) {
    const lcomm_clock_sample *sample = &samples[i];
    double trip_s = sample->received_s - sample->sent_s;
    /* Comparisons with a NaN are false. */
    if (!(trip_s >= 0 && trip_s < shortest_s) || !isfinite(sample->remote_s)) {
      continue;
    }
    shortest_s = trip_s;
    /* The answer was given somewhere between both; the middle is at most half
     * of the trip away. */
    *offset_s = sample->remote_s - (sample->sent_s + 0.5 * trip_s);
    *error_s = 0.5 * trip_s;
  }
  return isfinite(shortest_s);
}
