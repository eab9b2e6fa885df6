/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_PREDICT_H
#define LCOMM_TOOLS_CODEC_CODEC_PREDICT_H

/* How long a gradient takes to be reduced between nodes, and whether a codec
 * pays. The model is the two-phase sum of the library: of S float32 bytes on m
 * nodes, each one encodes its S and as owner S/m of the sum, and decodes
 * 2(m-1)/m of S, so
 *   codec  S * ((1 + 1/m) / encode + 2 (m-1)/m / decode)
 *   wire   2 (m-1)/m * bytes / bandwidth
 * where encode and decode are speeds in float32 bytes per second. One after the
 * other they take their sum; in a pipeline of chunks the longer one, and the
 * first chunk of the other. Exact sums have no codec. Latencies and the sum
 * inside the node are left out: they are the same for all. */

#include <stdint.h>

/* What a codec is compared with: gradients that are sent as they are, as float32, or as bf16. */
typedef enum lcomm_baseline { LCOMM_BASELINE_BF16, LCOMM_BASELINE_FP32 } lcomm_baseline;

/* "bf16", "fp32". */
const char *lcomm_baseline_name(lcomm_baseline baseline);

typedef struct lcomm_prediction_case {
  uint64_t count;        /* values */
  double sent_bytes;     /* of all values, encoded */
  double encode, decode; /* bytes of float32 per second; 0: no codec */
  double bandwidth;      /* of a node, bytes per second */
  uint64_t nodes;        /* m >= 2 */
  lcomm_baseline baseline;
} lcomm_prediction_case;

typedef struct lcomm_prediction {
  double codec_s, wire_s;
  double sequential_s, pipelined_s;
  double fp32_s, bf16_s; /* exact, the latter with gradients that are bf16 */
  double baseline_s;     /* one of the two */
  /* Bandwidths below which the codec beats the baseline, bytes per second; 0: it never
   * does, infinity: it always does. */
  double sequential_pays_below, pipelined_pays_below;
} lcomm_prediction;

enum { LCOMM_PREDICT_CHUNK = 4 << 20 }; /* float32 bytes of a chunk of the pipeline */

lcomm_prediction lcomm_predict(const lcomm_prediction_case *given);

enum { LCOMM_VERDICT_MAX = 160 };

/* Does it pay? In words; returns text. `given` is what was predicted from. */
const char *lcomm_predict_verdict(const lcomm_prediction_case *given,
                                  const lcomm_prediction *prediction, char *text);

#endif
