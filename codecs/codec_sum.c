/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_sum.h"

#include <string.h>

/* Elements of a tile: 16 KiB, half of a small first-level cache. A multiple of
 * LCOMM_BLOCK. */
enum { TILE = 4096, SOURCES_MAX = 64 };

/* The kernel of the one codec of all payloads does it, if it has one; `done`
 * elements of values and destination lie before the range. */
static bool sum_by_kernel(const lcomm_kernels *kernels, const lcomm_summand *summands, size_t count,
                          lcomm_range range, uint64_t done, float factor, float *destination) {
  lcomm_source sources[SOURCES_MAX];
  const lcomm_format *format = NULL;
  if (count > SOURCES_MAX) {
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    const lcomm_summand *summand = &summands[i];
    bool coded = summand->payload != NULL;
    sources[i] =
        (lcomm_source){.values = coded ? NULL : summand->values + done, .code = summand->payload};
    if (coded && format && !lcomm_format_equal(format, summand->format)) {
      return false;
    }
    format = coded ? summand->format : format;
  }
  if (!format || !format->codec->sum) {
    return false;
  }
  format->codec->sum(format, kernels, sources, count, range, factor, destination + done);
  return true;
}

static void set(const lcomm_kernels *kernels, const lcomm_summand *summand, lcomm_range tile,
                uint64_t done, float *sum) {
  if (summand->payload) {
    lcomm_decode(summand->format, kernels, summand->payload, tile, 1.0f, sum);
  } else {
    memcpy(sum, summand->values + done, (size_t)tile.n * sizeof *sum);
  }
}

static void add(const lcomm_kernels *kernels, const lcomm_summand *summand, lcomm_range tile,
                uint64_t done, float *sum) {
  if (summand->payload) {
    lcomm_accumulate(summand->format, kernels, summand->payload, tile, 1.0f, sum);
  } else {
    kernels->f32_add(summand->values + done, 1.0f, sum, (size_t)tile.n);
  }
}

/* One tile; `done` elements of the range lie before it. */
static void sum_tile(const lcomm_kernels *kernels, const lcomm_summand *summands, size_t count,
                     lcomm_range tile, uint64_t done, float factor, float *destination) {
  float sum[TILE];
  set(kernels, &summands[0], tile, done, sum);
  for (size_t i = 1; i < count; i++) {
    add(kernels, &summands[i], tile, done, sum);
  }
  kernels->f32_scale(sum, factor, destination + done, (size_t)tile.n);
}

static lcomm_range tile_of(lcomm_range range, uint64_t done) {
  uint64_t left = range.n - done;
  return (lcomm_range){range.count, range.first + done, left < TILE ? left : TILE};
}

void lcomm_sum(const lcomm_kernels *kernels, const lcomm_summand *summands, size_t count,
               lcomm_range range, float factor, float *destination) {
  if (sum_by_kernel(kernels, summands, count, range, 0, factor, destination)) {
    return;
  }
  for (uint64_t done = 0; done < range.n; done += TILE) {
    sum_tile(kernels, summands, count, tile_of(range, done), done, factor, destination);
  }
}

void lcomm_sum_encode(const lcomm_kernels *kernels, const lcomm_summand *summands, size_t count,
                      lcomm_range range, float factor, float *destination,
                      const lcomm_format *format, uint64_t seed, uint8_t *payload) {
  for (uint64_t done = 0; done < range.n; done += TILE) {
    lcomm_range tile = tile_of(range, done);
    if (!sum_by_kernel(kernels, summands, count, tile, done, factor, destination)) {
      sum_tile(kernels, summands, count, tile, done, factor, destination);
    }
    lcomm_encode(format, kernels, destination + done, tile, seed, payload);
  }
}
