/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Scalar kernels that sum many coded arrays: a block of the sum stays on the
 * stack while all sources are added to it. */

#include <string.h>

#include "kernels/element.h"
#include "kernels/scalar.h"

static size_t length_at(size_t done, size_t n) {
  return n - done < LCOMM_BLOCK ? n - done : LCOMM_BLOCK;
}

static void add_plain(const float *restrict values, size_t n, int begins, float *restrict sum) {
  for (size_t i = 0; i < n; i++) {
    sum[i] = begins ? values[i] : sum[i] + values[i];
  }
}

static void add_bf16(const uint16_t *restrict code, size_t n, int begins, float *restrict sum) {
  for (size_t i = 0; i < n; i++) {
    float value = lcomm_bf16_to_f32(code[i]);
    sum[i] = begins ? value : sum[i] + value;
  }
}

static void add_int8(const int8_t *restrict code, const float *restrict scale, size_t block,
                     size_t n, int begins, float *restrict sum) {
  for (size_t i = 0; i < n; i++) {
    float value = scale[i / block] * (float)code[i];
    sum[i] = begins ? value : sum[i] + value;
  }
}

void lcomm_scalar_bf16_sum(const lcomm_source *sources, size_t count, size_t first, float factor,
                           float *destination, size_t n) {
  float sum[LCOMM_BLOCK];
  for (size_t done = 0; done < n; done += LCOMM_BLOCK) {
    size_t length = length_at(done, n);
    for (size_t s = 0; s < count; s++) {
      if (sources[s].values) {
        add_plain(sources[s].values + done, length, s == 0, sum);
      } else {
        add_bf16((const uint16_t *)sources[s].code + first + done, length, s == 0, sum);
      }
    }
    lcomm_scalar_f32_scale(sum, factor, destination + done, length);
  }
}

void lcomm_scalar_int8_sum(const lcomm_source *sources, size_t count, size_t block, size_t first,
                           float factor, float *destination, size_t n) {
  float sum[LCOMM_BLOCK];
  for (size_t done = 0; done < n; done += LCOMM_BLOCK) {
    size_t length = length_at(done, n), at = first + done;
    for (size_t s = 0; s < count; s++) {
      if (sources[s].values) {
        add_plain(sources[s].values + done, length, s == 0, sum);
      } else {
        add_int8((const int8_t *)sources[s].code + at, sources[s].scale + at / block, block, length,
                 s == 0, sum);
      }
    }
    lcomm_scalar_f32_scale(sum, factor, destination + done, length);
  }
}
