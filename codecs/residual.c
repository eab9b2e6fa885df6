/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/residual.h"

#include "kernels/element.h"

/* Elements that travel together through encode and decode, small enough for
 * the first-level cache; a multiple of LCOMM_BLOCK. */
enum { CHUNK = 2048 };

static uint64_t chunk_length(uint64_t done, uint64_t n) {
  return n - done < CHUNK ? n - done : CHUNK;
}

/* What is kept of `value` after `decoded` was sent in its place: all of it
 * when nothing finite arrived, nothing when there is nothing finite to keep. */
static inline float kept(float value, float decoded) {
  uint32_t difference = lcomm_f32_bits(value - decoded);
  uint32_t bits = lcomm_pick(lcomm_f32_is_finite(decoded), difference, lcomm_f32_bits(value));
  return lcomm_f32_from_bits(lcomm_pick(lcomm_f32_is_finite(value), bits, 0));
}

static void keep_error(float *restrict residual, const float *restrict decoded, size_t n) {
  for (size_t i = 0; i < n; i++)
    residual[i] = kept(residual[i], decoded[i]);
}

static void add_error(float *restrict residual, const float *restrict source,
                      const float *restrict decoded, float weight, size_t n) {
  for (size_t i = 0; i < n; i++) {
    float sum = residual[i] + weight * kept(source[i], decoded[i]);
    uint32_t bits = lcomm_pick(lcomm_f32_is_finite(sum), lcomm_f32_bits(sum), 0);
    residual[i] = lcomm_f32_from_bits(bits);
  }
}

void lcomm_residual_encode(const lcomm_codec *codec, const lcomm_kernels *kernels,
                           const float *source, float *residual, uint64_t count, uint64_t first,
                           uint64_t n, uint8_t *payload) {
  float decoded[CHUNK];
  for (uint64_t done = 0; done < n; done += CHUNK) {
    uint64_t length = chunk_length(done, n);
    float *acc = residual + done;
    kernels->f32_add(source + done, 1.0f, acc, (size_t)length);
    codec->encode(kernels, acc, count, first + done, length, payload);
    codec->decode(kernels, payload, count, first + done, length, 1.0f, decoded);
    keep_error(acc, decoded, (size_t)length);
  }
}

void lcomm_residual_encode_owner(const lcomm_codec *codec, const lcomm_kernels *kernels,
                                 const float *source, float *residual, float weight, uint64_t count,
                                 uint64_t first, uint64_t n, uint8_t *payload) {
  float decoded[CHUNK];
  for (uint64_t done = 0; done < n; done += CHUNK) {
    uint64_t length = chunk_length(done, n);
    codec->encode(kernels, source + done, count, first + done, length, payload);
    codec->decode(kernels, payload, count, first + done, length, 1.0f, decoded);
    add_error(residual + done, source + done, decoded, weight, (size_t)length);
  }
}

void lcomm_residual_fold(float *values, float *residual, uint64_t n) {
  for (uint64_t i = 0; i < n; i++)
    values[i] += residual[i];
  for (uint64_t i = 0; i < n; i++)
    residual[i] = 0.0f;
}
