/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/info/info_speeds.h"

#include <stdlib.h>

#include "kernels/kernels.h"
#include "libcomm/base/clock.h"
#include "libcomm/base/env.h"
#include "tools/codec/codec_under_test.h"

enum {
  COUNT = 1 << 20, /* values: more than a second-level cache holds */
  REPETITIONS = 3,
  KNOWN_MAX = 2 * LCOMM_STAGE_COUNT + LCOMM_AUTO_CODECS
};

typedef struct known {
  lcomm_codec_choice choice;
  double encode_gb_s, decode_gb_s;
} known;

static const lcomm_kernels *kernels_in_use(void) {
  const char *isa = lcomm_env_get(LCOMM_ENV_ISA);
  const lcomm_kernels *named = isa ? lcomm_kernels_by_name(isa, NULL) : NULL;
  return named ? named : lcomm_kernels_best();
}

/* The fastest of some, for others may use the processor. */
static double fastest_gb_s(lcomm_under_test *tested, float *values, bool encodes) {
  const lcomm_kernels *kernels = kernels_in_use();
  double best_s = 0;
  for (int i = 0; i <= REPETITIONS; i++) { /* the first warms up */
    double begun_s = lcomm_clock_s();
    if (encodes) {
      lcomm_under_test_encode(tested, kernels, values, (uint64_t)i);
    } else {
      (void)lcomm_under_test_decode(tested, kernels, values);
    }
    double taken_s = lcomm_clock_s() - begun_s;
    best_s = i == 1 || (i > 1 && taken_s < best_s) ? taken_s : best_s;
  }
  return best_s > 0 ? COUNT * sizeof(float) / best_s / 1e9 : 0;
}

/* Values like those of a gradient: small ones are many. */
static void fill(float *values) {
  uint32_t state = 1;
  for (int i = 0; i < COUNT; i++) {
    state = state * 1664525u + 1013904223u;
    float uniform = (float)(int32_t)state / 2147483648.0f;
    values[i] = uniform * uniform * uniform * 1e-2f;
  }
}

static void measure(known *it) {
  lcomm_under_test_shape shape = {.choice = &it->choice, .count = COUNT};
  lcomm_under_test *tested = NULL;
  float *values = malloc(COUNT * sizeof *values);
  if (values && lcomm_under_test_create(&shape, &tested) == LCOMM_OK) {
    fill(values);
    uint32_t environment = lcomm_fp_enter();
    it->encode_gb_s = fastest_gb_s(tested, values, true);
    it->decode_gb_s = fastest_gb_s(tested, values, false);
    lcomm_fp_leave(environment);
  }
  lcomm_under_test_destroy(tested);
  free(values);
}

static const known *find(const lcomm_codec_choice *choice) {
  static known all[KNOWN_MAX];
  static int count;
  for (int i = 0; i < count; i++) {
    if (lcomm_format_equal(&all[i].choice.format, &choice->format) &&
        all[i].choice.error_feedback == choice->error_feedback) {
      return &all[i];
    }
  }
  known *made = &all[count < KNOWN_MAX ? count++ : KNOWN_MAX - 1];
  *made = (known){.choice = *choice};
  measure(made);
  return made;
}

lcomm_codec_speeds info_codec_speeds(const lcomm_plan *plan) {
  lcomm_codec_speeds speeds = {0};
  for (int i = 0; !plan->plain && i < LCOMM_STAGE_COUNT; i++) {
    const lcomm_format *format = &plan->stages[i].format;
    if (format->codec->id != LCOMM_CODEC_NONE || format->zstd) {
      const known *it = find(&plan->stages[i]);
      speeds.encode_gb_s[i] = it->encode_gb_s;
      speeds.decode_gb_s[i] = it->decode_gb_s;
    }
  }
  return speeds;
}

void info_codec_costs(lcomm_topo *topo) {
  for (int i = 1; i < LCOMM_AUTO_CODECS; i++) {
    lcomm_codec_choice choice = lcomm_auto_candidate(i);
    const known *it = find(&choice);
    topo->codec_cost[i] = (lcomm_codec_cost){it->encode_gb_s, it->decode_gb_s};
  }
}
