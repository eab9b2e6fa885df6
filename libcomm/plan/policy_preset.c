/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Presets, net=CODEC:NAME: words of a policy that were found to go together.
 * tools/bench/RESULTS.md has the trainings. */

#include "libcomm/plan/policy_internal.h"

/* What is small but not tiny: left exact, it could be half of all bytes. */
#define SMALL "net[size>=4K&size<=64K]=int8"

static const lcomm_policy_preset presets[] = {
    {"topk:safe", {SMALL, "net=topk:0.25,values=int8+ef+zstd"}},
    {"topk:fast", {SMALL, "net=topk:0.08,values=int8+ef+zstd", "ramp=0.25@150"}},
    {"int4:safe", {SMALL, "net=int4:block=128+ef+zstd"}},
};

const lcomm_policy_preset *lcomm_policy_find_preset(lcomm_span value) {
  for (size_t i = 0; i < sizeof presets / sizeof presets[0]; i++) {
    if (lcomm_span_is(value, presets[i].name)) {
      return &presets[i];
    }
  }
  return NULL;
}
