/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The speed of a codec, on values like those of a gradient. */

#include "libcomm/comm/measure_codecs.h"

#include <stdlib.h>

#include "codecs/codec_topk.h"
#include "codecs/lossless.h"
#include "libcomm/base/clock.h"

enum {
  COUNT = 256 << 10,     /* a chunk of 1 MiB, as plans make them */
  SHORT_COUNT = 1 << 10, /* of this little, what a payload costs besides is seen */
  REPETITIONS = 3
};

/* A codec with its memory. */
typedef struct trial {
  const lcomm_kernels *kernels;
  const lcomm_format *format;
  uint64_t count;           /* values */
  double until_s;           /* by the clock: no second trial after that */
  lcomm_topk *topk;         /* of the sparse codec */
  lcomm_lossless *lossless; /* with the lossless stage */
  float *values;
  uint8_t *payload, *stream;
  size_t payload_bound, payload_size, stream_size;
} trial;

static bool make_topk(trial *t) {
  lcomm_topk_shape shape = {.base_count = t->count,
                            .parts = 1,
                            .outputs = 1,
                            .format = t->format,
                            .segment_ends = &t->count,
                            .segments = 1};
  if (lcomm_topk_create(&shape, &t->topk) != LCOMM_OK) {
    return false;
  }
  t->payload_bound = lcomm_topk_output_bound(t->topk, 0);
  return true;
}

static bool make_lossless(trial *t) {
  t->stream = malloc(lcomm_lossless_bound(t->format, t->payload_bound));
  return t->stream && lcomm_lossless_create(t->format, t->payload_bound, &t->lossless) == LCOMM_OK;
}

static bool make(trial *t) {
  t->payload_bound =
      lcomm_format_is_sparse(t->format) ? 0 : lcomm_payload_size(t->format, t->count);
  t->values = malloc(t->count * sizeof *t->values);
  if (!t->values || (lcomm_format_is_sparse(t->format) && !make_topk(t))) {
    return false;
  }
  t->payload = malloc(t->payload_bound);
  return t->payload && (!t->format->zstd || make_lossless(t));
}

static void discard(trial *t) {
  lcomm_topk_destroy(t->topk);
  lcomm_lossless_destroy(t->lossless);
  free(t->values);
  free(t->payload);
  free(t->stream);
}

/* Small values are many. */
static void fill(float *values, uint64_t count) {
  uint32_t state = 1;
  for (uint64_t i = 0; i < count; i++) {
    state = state * 1664525u + 1013904223u;
    float uniform = (float)(int32_t)state / 2147483648.0f;
    values[i] = uniform * uniform * uniform * 1e-2f;
  }
}

static void encode(trial *t) {
  t->payload_size = t->payload_bound;
  if (t->topk) {
    lcomm_topk_encode(t->topk, t->kernels, t->values, NULL, NULL, LCOMM_TOPK_RELEASE, &t->payload,
                      &t->payload_size);
  } else {
    lcomm_encode(t->format, t->kernels, t->values, lcomm_range_whole(t->count), 1, t->payload);
  }
  if (t->lossless) {
    t->stream_size = lcomm_lossless_encode(t->lossless, t->kernels, t->payload, t->payload_size,
                                           t->count, t->stream);
  }
}

static void decode(trial *t) {
  size_t size = 0;
  if (t->lossless &&
      lcomm_lossless_decode(t->lossless, t->kernels, t->stream, t->stream_size, t->count,
                            t->payload, t->payload_bound, &size, NULL) != LCOMM_OK) {
    return;
  }
  if (t->topk) {
    lcomm_topk_decode(t->format, t->payload, t->count, 1, 0, 1.0f, t->values);
  } else {
    lcomm_decode(t->format, t->kernels, t->payload, lcomm_range_whole(t->count), 1.0f, t->values);
  }
}

/* The fastest of some, for others may use the processor. */
static double fastest_us(trial *t, void (*work)(trial *t)) {
  double best_s = 0;
  for (int i = 0; i < REPETITIONS && (i == 0 || lcomm_clock_s() < t->until_s); i++) {
    fill(t->values, t->count);
    double begun_s = lcomm_clock_s();
    work(t);
    double taken_s = lcomm_clock_s() - begun_s;
    best_s = i == 0 || taken_s < best_s ? taken_s : best_s;
  }
  return best_s * 1e6;
}

/* False without memory for it. */
static bool try(trial t, double *encode_us, double *decode_us) {
  bool made = make(&t);
  if (made) {
    uint32_t environment = lcomm_fp_enter();
    *encode_us = fastest_us(&t, encode);
    *decode_us = fastest_us(&t, decode);
    lcomm_fp_leave(environment);
  }
  discard(&t);
  return made;
}

static double speed_gb_s(uint64_t count, double taken_us) {
  return (double)count * sizeof(float) / taken_us / 1e3;
}

void lcomm_codec_cost_fit(lcomm_codec_trial little, lcomm_codec_trial much, double *gb_s,
                          double *each_us) {
  double grown_us = much.us - little.us;
  if (grown_us > 0) {
    *gb_s = speed_gb_s(much.count - little.count, grown_us);
    double left_us = little.us - (double)little.count * sizeof(float) / *gb_s / 1e3;
    *each_us = left_us > 0 ? left_us : 0;
  } else if (much.us > 0) {
    *gb_s = speed_gb_s(much.count, much.us);
  }
}

static void fit(double little_us, double much_us, double *gb_s, double *each_us) {
  lcomm_codec_trial little = {SHORT_COUNT, little_us}, much = {COUNT, much_us};
  lcomm_codec_cost_fit(little, much, gb_s, each_us);
}

lcomm_codec_cost lcomm_codec_cost_measure(const lcomm_kernels *kernels, const lcomm_format *format,
                                          double within_s) {
  trial t = {.kernels = kernels,
             .format = format,
             .count = SHORT_COUNT,
             .until_s = lcomm_clock_s() + within_s};
  double short_encode_us = 0, short_decode_us = 0, long_encode_us = 0, long_decode_us = 0;
  lcomm_codec_cost cost = {0};
  if (try(t, &short_encode_us, &short_decode_us)) {
    t.count = COUNT;
    if (try(t, &long_encode_us, &long_decode_us)) {
      fit(short_encode_us, long_encode_us, &cost.encode_gb_s, &cost.encode_us);
      fit(short_decode_us, long_decode_us, &cost.decode_gb_s, &cost.decode_us);
    }
  }
  return cost;
}
