/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The speed of a codec, on values like those of a gradient. */

#include "libcomm/comm/measure_codecs.h"

#include <stdlib.h>

#include "codecs/codec_topk.h"
#include "codecs/lossless.h"
#include "libcomm/base/clock.h"

enum { COUNT = 256 << 10 /* a chunk of 1 MiB, as plans make them */, REPETITIONS = 3 };

/* A codec with its memory. */
typedef struct trial {
  const lcomm_kernels *kernels;
  const lcomm_format *format;
  lcomm_topk *topk;         /* of the sparse codec */
  lcomm_lossless *lossless; /* with the lossless stage */
  float *values;
  uint8_t *payload, *stream;
  size_t payload_bound, payload_size, stream_size;
} trial;

static bool make_topk(trial *t) {
  static const uint64_t count = COUNT;
  lcomm_topk_shape shape = {.base_count = COUNT,
                            .parts = 1,
                            .outputs = 1,
                            .format = t->format,
                            .segment_ends = &count,
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
  t->payload_bound = lcomm_format_is_sparse(t->format) ? 0 : lcomm_payload_size(t->format, COUNT);
  t->values = malloc(COUNT * sizeof *t->values);
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
static void fill(float *values) {
  uint32_t state = 1;
  for (int i = 0; i < COUNT; i++) {
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
    lcomm_encode(t->format, t->kernels, t->values, lcomm_range_whole(COUNT), 1, t->payload);
  }
  if (t->lossless) {
    t->stream_size = lcomm_lossless_encode(t->lossless, t->kernels, t->payload, t->payload_size,
                                           COUNT, t->stream);
  }
}

static void decode(trial *t) {
  size_t size = 0;
  if (t->lossless &&
      lcomm_lossless_decode(t->lossless, t->kernels, t->stream, t->stream_size, COUNT, t->payload,
                            t->payload_bound, &size, NULL) != LCOMM_OK) {
    return;
  }
  if (t->topk) {
    lcomm_topk_decode(t->format, t->payload, COUNT, 1, 0, 1.0f, t->values);
  } else {
    lcomm_decode(t->format, t->kernels, t->payload, lcomm_range_whole(COUNT), 1.0f, t->values);
  }
}

/* The fastest of some, for others may use the processor. */
static double fastest_gb_s(trial *t, void (*work)(trial *t)) {
  double best_s = 0;
  for (int i = 0; i < REPETITIONS; i++) {
    fill(t->values);
    double begun_s = lcomm_clock_s();
    work(t);
    double taken_s = lcomm_clock_s() - begun_s;
    best_s = i == 0 || taken_s < best_s ? taken_s : best_s;
  }
  return best_s > 0 ? COUNT * sizeof(float) / best_s / 1e9 : 0;
}

lcomm_codec_cost lcomm_codec_cost_measure(const lcomm_kernels *kernels,
                                          const lcomm_format *format) {
  trial t = {.kernels = kernels, .format = format};
  lcomm_codec_cost cost = {0};
  if (make(&t)) {
    uint32_t environment = lcomm_fp_enter();
    cost.encode_gb_s = fastest_gb_s(&t, encode);
    cost.decode_gb_s = fastest_gb_s(&t, decode);
    lcomm_fp_leave(environment);
  }
  discard(&t);
  return cost;
}
