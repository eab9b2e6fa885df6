/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_CODEC_CODEC_JSON_H
#define LCOMM_TOOLS_CODEC_CODEC_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/codec/codec_results.h"

/* Write all results as one JSON object:
 *   tool, floors, threads, repetitions, kernels
 *   sources  name, values, tensors, skipped
 *   codecs   codec, and what was measured of
 *     accuracy    as below
 *     tensors     source, tensor, and the figures of accuracy
 *     steps       steps, nmse, bits_per_value
 *     speed       operation, kernels, size_bytes, floor, gb_s, floor_gb_s,
 *                 memcpy_gb_s, of_floor, of_memcpy, of_best, each of these {min,
 *                 median, max}
 *     duels       name, rival, kernels, size_bytes, gb_s, rival_gb_s, times,
 *                 ratio, rival_ratio
 *     prediction  bandwidth_bytes_per_s, nodes, codec_s, wire_s, sequential_s,
 *                 pipelined_s, fp32_s, bf16_s, pays_below_bytes_per_s, verdict
 *     refusal     why something is missing
 * Accuracy: values, sent_bytes, ratio, bits_per_value, limit_bits_per_value,
 * nmse, cosine, error_max, given_max, flushed_share, not_finite_in,
 * not_finite_out; of top-k entries, index_bits, sent_index_bits, entry_bits.
 * Numbers that are not finite are null. false when memory ended or the file
 * took not everything. */
bool lcomm_json_print(const lcomm_results *results, FILE *file);

#endif
