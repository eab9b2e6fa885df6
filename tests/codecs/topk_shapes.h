/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_CODECS_TOPK_SHAPES_H
#define LCOMM_TESTS_CODECS_TOPK_SHAPES_H

/* Formats and shapes of top-k. */

#include "codecs/codec_topk.h"

static inline lcomm_format topk_format(double density, int variant) {
  lcomm_format format = lcomm_format_of(&lcomm_codec_topk);
  format.density = density;
  format.variant = (uint8_t)variant;
  return format;
}

/* One view of as many segments; the last one ends where the view does. */
static inline lcomm_topk_shape segmented(const uint64_t *ends, size_t segments,
                                         const lcomm_format *format) {
  return (lcomm_topk_shape){.base_count = ends[segments - 1],
                            .parts = 1,
                            .outputs = 1,
                            .format = format,
                            .segment_ends = ends,
                            .segments = segments};
}

static inline lcomm_topk_shape whole(const uint64_t *count, const lcomm_format *format) {
  return segmented(count, 1, format);
}

#endif
