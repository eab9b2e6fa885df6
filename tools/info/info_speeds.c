/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_speeds.h"

#include "kernels/kernels.h"
#include "libcomm/base/env.h"
#include "libcomm/comm/measure_codecs.h"
#include "libcomm/comm/measure_lowrank.h"

enum { KNOWN_MAX = 2 * LCOMM_STAGE_COUNT + LCOMM_AUTO_CODECS };

typedef struct known {
  lcomm_format format;
  lcomm_codec_cost cost;
} known;

static const double WITHIN_S = 1; /* nobody waits for it but who asked */

static const lcomm_kernels *kernels_in_use(void) {
  const char *isa = lcomm_env_get(LCOMM_ENV_ISA);
  const lcomm_kernels *named = isa ? lcomm_kernels_by_name(isa, NULL) : NULL;
  return named ? named : lcomm_kernels_best();
}

static const lcomm_codec_cost *find(const lcomm_format *format) {
  static known all[KNOWN_MAX];
  static int count;
  for (int i = 0; i < count; i++) {
    if (lcomm_format_equal(&all[i].format, format)) {
      return &all[i].cost;
    }
  }
  known *made = &all[count < KNOWN_MAX ? count++ : KNOWN_MAX - 1];
  *made = (known){*format, lcomm_codec_cost_measure(kernels_in_use(), format, WITHIN_S)};
  return &made->cost;
}

lcomm_codec_speeds info_codec_speeds(const lcomm_plan *plan) {
  lcomm_codec_speeds speeds = {0};
  for (int i = 0; !plan->plain && i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &plan->stages[i].format;
    if (format->codec->id != LCOMM_CODEC_NONE || format->zstd) {
      const lcomm_codec_cost *cost = find(format);
      speeds.encode_gb_s[i] = cost->encode_gb_s;
      speeds.decode_gb_s[i] = cost->decode_gb_s;
      speeds.encode_us[i] = cost->encode_us;
      speeds.decode_us[i] = cost->decode_us;
    }
  }
  return speeds;
}

void info_codec_costs(lcomm_topo *topo) {
  for (int i = 0; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_codec_spec choice = lcomm_auto_candidate(i);
    topo->codec_cost[i] = choice.rank > 0
                              ? lcomm_lowrank_cost_measure(kernels_in_use(), choice.rank, WITHIN_S)
                              : *find(&choice.format);
  }
}
