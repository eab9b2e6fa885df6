/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_residual.h"

#include <string.h>

/* Elements that travel together through encode and decode, small enough for
 * the first-level cache; a multiple of LCOMM_BLOCK. */
enum { CHUNK = 2048 };

static lcomm_range piece_of(lcomm_range range, uint64_t done) {
  uint64_t left = range.n - done;
  return (lcomm_range){range.count, range.first + done, left < CHUNK ? left : CHUNK};
}

void lcomm_residual_encode(const lcomm_format *format, const lcomm_kernels *kernels,
                           const float *source, const float *before, float *residual,
                           lcomm_range range, uint64_t seed, uint8_t *payload) {
  float decoded[CHUNK];
  for (uint64_t done = 0; done < range.n; done += CHUNK) {
    lcomm_range piece = piece_of(range, done);
    const float *const summands[] = {before + done, source + done};
    float *acc = residual + done;
    kernels->f32_sum(summands, 2, acc, (size_t)piece.n);
    lcomm_encode(format, kernels, acc, piece, seed, payload);
    lcomm_decode(format, kernels, payload, piece, 1.0f, decoded);
    kernels->ef.f32_keep_error(decoded, acc, (size_t)piece.n);
  }
}

void lcomm_residual_encode_owner(const lcomm_format *format, const lcomm_kernels *kernels,
                                 const float *source, float *residual, float weight,
                                 lcomm_range range, uint64_t seed, uint8_t *payload) {
  float decoded[CHUNK];
  for (uint64_t done = 0; done < range.n; done += CHUNK) {
    lcomm_range piece = piece_of(range, done);
    lcomm_encode(format, kernels, source + done, piece, seed, payload);
    lcomm_decode(format, kernels, payload, piece, 1.0f, decoded);
    kernels->ef.f32_add_error(source + done, decoded, weight, residual + done, (size_t)piece.n);
  }
}

void lcomm_residual_fold(const lcomm_kernels *kernels, float *values, const float *before,
                         float *residual, uint64_t n) {
  kernels->f32_add(before, 1.0f, values, (size_t)n);
  memset(residual, 0, (size_t)n * sizeof *residual);
}
