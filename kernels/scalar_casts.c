/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels for the 16-bit formats and for float32 arithmetic. */

#include "kernels/element.h"
#include "kernels/prefetch.h"
#include "kernels/scalar.h"

static size_t block_end(size_t first, size_t n) {
  return n - first < LCOMM_BLOCK ? n : first + LCOMM_BLOCK;
}

void lcomm_scalar_f32_to_f16(const float *restrict source, uint16_t *restrict code, size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    size_t end = block_end(first, n);
    lcomm_prefetch_read(source + first);
    for (size_t i = first; i < end; i++)
      code[i] = lcomm_f32_to_f16(source[i]);
  }
}

void lcomm_scalar_f32_to_bf16(const float *restrict source, uint16_t *restrict code, size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    size_t end = block_end(first, n);
    lcomm_prefetch_read(source + first);
    for (size_t i = first; i < end; i++)
      code[i] = lcomm_f32_to_bf16(source[i]);
  }
}

void lcomm_scalar_f16_to_f32(const uint16_t *restrict code, float factor,
                             float *restrict destination, size_t n) {
  for (size_t i = 0; i < n; i++)
    destination[i] = factor * lcomm_f16_to_f32(code[i]);
}

void lcomm_scalar_bf16_to_f32(const uint16_t *restrict code, float factor,
                              float *restrict destination, size_t n) {
  for (size_t i = 0; i < n; i++)
    destination[i] = factor * lcomm_bf16_to_f32(code[i]);
}

void lcomm_scalar_f16_add(const uint16_t *restrict code, float factor, float *restrict destination,
                          size_t n) {
  for (size_t first = 0; first < n; first += LCOMM_BLOCK) {
    size_t end = block_end(first, n);
    lcomm_prefetch_write(destination + first);
    for (size_t i = first; i < end; i++)
      destination[i] += factor * lcomm_f16_to_f32(code[i]);
  }
}

void lcomm_scalar_bf16_add(const uint16_t *restrict code, float factor, float *restrict destination,
                           size_t n) {
  for (size_t i = 0; i < n; i++)
    destination[i] += factor * lcomm_bf16_to_f32(code[i]);
}

void lcomm_scalar_f32_scale(const float *source, float factor, float *destination, size_t n) {
  for (size_t i = 0; i < n; i++)
    destination[i] = factor * source[i];
}

void lcomm_scalar_f32_add(const float *restrict source, float factor, float *restrict destination,
                          size_t n) {
  for (size_t i = 0; i < n; i++)
    destination[i] += factor * source[i];
}

/* May be called with a source equal to the destination: element i is read
 * before it is written. */
static void add_pair(const float *left, const float *right, float *destination, size_t n) {
  for (size_t i = 0; i < n; i++)
    destination[i] = left[i] + right[i];
}

/* Elements summed at a time. The partial sum lives on the stack, because a
 * source may be the destination and must stay whole until it was read. */
enum { SUM_CHUNK = 512 };

void lcomm_scalar_f32_sum(const float *const *sources, size_t count, float *destination, size_t n) {
  if (n == 0)
    return;
  if (count == 1) {
    memmove(destination, sources[0], n * sizeof *destination);
    return;
  }
  float partial[SUM_CHUNK];
  for (size_t first = 0; first < n; first += SUM_CHUNK) {
    size_t length = n - first < SUM_CHUNK ? n - first : SUM_CHUNK;
    const float *left = sources[0] + first;
    for (size_t s = 1; s + 1 < count; s++) {
      add_pair(left, sources[s] + first, partial, length);
      left = partial;
    }
    add_pair(left, sources[count - 1] + first, destination + first, length);
  }
}
