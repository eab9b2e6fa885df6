/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_predict.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "tools/common/tool_units.h"

/* 2 (m-1)/m: how often each byte leaves or reaches a node. */
static double crossings(uint64_t nodes) {
  double m = (double)nodes;
  return 2.0 * (m - 1.0) / m;
}

const char *lcomm_baseline_name(lcomm_baseline baseline) {
  return baseline == LCOMM_BASELINE_FP32 ? "fp32" : "bf16";
}

static double codec_seconds(const lcomm_prediction_case *given, double size) {
  if (given->encode <= 0.0 || given->decode <= 0.0) {
    return 0.0;
  }
  return size * ((1.0 + 1.0 / (double)given->nodes) / given->encode +
                 crossings(given->nodes) / given->decode);
}

static double pipelined(double codec, double wire, double chunks) {
  return fmax(codec, wire) + fmin(codec, wire) / chunks;
}

/* The bandwidth at which the pipeline is as fast as the baseline, where there is one.
 * Below the bandwidth at which codec and wire are as long, the wire is the
 * baseline's and shorter; above, codec + wire/chunks grows against the baseline's. */
static double pipelined_limit(double codec, double sent, double base, double chunks) {
  if (codec <= 0.0) {
    return sent < base ? (double)INFINITY : 0.0;
  }
  double wire_bound = (base - sent) / (codec / chunks);
  double codec_bound = (base - sent / chunks) / codec;
  double crossover = sent / codec; /* bandwidth where both take as long */
  double limit = codec_bound > crossover ? codec_bound : fmin(wire_bound, crossover);
  return fmax(limit, 0.0);
}

lcomm_prediction lcomm_predict(const lcomm_prediction_case *given) {
  double size = 4.0 * (double)given->count, each = crossings(given->nodes);
  double chunks = fmax(ceil(size / LCOMM_PREDICT_CHUNK), 1.0);
  double sent = each * given->sent_bytes, bf16 = each * size / 2.0;
  bool fp32 = given->baseline == LCOMM_BASELINE_FP32;
  double base = fp32 ? 2.0 * bf16 : bf16;
  lcomm_prediction p = {.codec_s = codec_seconds(given, size),
                        .wire_s = sent / given->bandwidth,
                        .fp32_s = each * size / given->bandwidth,
                        .bf16_s = bf16 / given->bandwidth,
                        .baseline_s = base / given->bandwidth};
  p.sequential_s = p.codec_s + p.wire_s;
  p.pipelined_s = pipelined(p.codec_s, p.wire_s, chunks);
  p.pipelined_pays_below = pipelined_limit(p.codec_s, sent, base, chunks);
  if (p.codec_s > 0.0) {
    p.sequential_pays_below = fmax((base - sent) / p.codec_s, 0.0);
  } else {
    p.sequential_pays_below = sent < base ? (double)INFINITY : 0.0;
  }
  return p;
}

/* Where it would pay, as the end of a sentence. */
static void limit_words(double limit, const char *baseline, char *text, size_t size) {
  char bandwidth[TOOL_UNITS_TEXT_MAX];
  if (limit > 0.0 && isfinite(limit)) {
    snprintf(text, size, "; pays below %s", tool_units_bandwidth(limit, bandwidth));
  } else {
    snprintf(text, size, "; sends no fewer bytes than %s", baseline);
  }
}

const char *lcomm_predict_verdict(const lcomm_prediction_case *given,
                                  const lcomm_prediction *prediction, char *text) {
  char limit[LCOMM_VERDICT_MAX / 2];
  const char *baseline = lcomm_baseline_name(given->baseline);
  double value_bytes = given->baseline == LCOMM_BASELINE_FP32 ? 4.0 : 2.0;
  double exact_bytes = value_bytes * (double)given->count;
  double gain = prediction->baseline_s / prediction->pipelined_s;
  double sequential_gain = prediction->baseline_s / prediction->sequential_s;
  if (gain > 1.005 && sequential_gain > 1.005) {
    const char *bound = prediction->codec_s > prediction->wire_s ? "the codec" : "the wire";
    snprintf(text, LCOMM_VERDICT_MAX, "pays: %.3g times as fast, bound by %s", gain, bound);
  } else if (gain > 1.005) {
    snprintf(text, LCOMM_VERDICT_MAX, "pays in a pipeline only: %.3g times as fast", gain);
  } else if (given->sent_bytes > 0.9995 * exact_bytes && given->sent_bytes < 1.0005 * exact_bytes &&
             gain > 0.995) {
    snprintf(text, LCOMM_VERDICT_MAX, "as fast as %s: the same bytes, bound by the wire", baseline);
  } else {
    limit_words(prediction->pipelined_pays_below, baseline, limit, sizeof limit);
    snprintf(text, LCOMM_VERDICT_MAX, "does not pay: %.3g times as long%s", 1.0 / gain, limit);
  }
  return text;
}
