/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Planes of bytes, see split2 of kernels/kernels.h. Where all arrays allow it, a
 * thread takes 16 bytes of numbers at a time and as many bytes of each plane as
 * there are numbers in them; else it goes byte by byte. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_launch.h"
#include "kernels/cuda/cuda_span.cuh"

enum { PLANES_MAX = 4 };

typedef struct planes_args {
  uint8_t *numbers;
  uint8_t *plane[PLANES_MAX];
  lcomm_span span; /* without a head */
} planes_args;

/* ------------------------------------------------------------------ 4 bytes */

LCOMM_DEVICE uint32_t rotated_left(uint32_t number) {
  return number << 1 | number >> 31;
}

LCOMM_DEVICE uint32_t rotated_right(uint32_t number) {
  return number >> 1 | number << 31;
}

/* Byte `shift` / 8 of four numbers. */
LCOMM_DEVICE uint32_t gathered(lcomm_vec4 v, uint32_t shift) {
  return (v.x >> shift & 0xffu) | (v.y >> shift & 0xffu) << 8 | (v.z >> shift & 0xffu) << 16 |
         (v.w >> shift & 0xffu) << 24;
}

LCOMM_DEVICE void store_bytes(uint8_t *plane, uint64_t u, uint32_t bytes) {
  ((uint32_t *)(void *)plane)[u] = bytes;
}

LCOMM_DEVICE uint32_t load_bytes(const uint8_t *plane, uint64_t u, uint64_t units) {
  return u < units ? ((const uint32_t *)(const void *)plane)[u] : 0;
}

LCOMM_DEVICE void split4_unit(const planes_args *a, uint64_t u, lcomm_vec4 v) {
  lcomm_vec4 turned = {rotated_left(v.x), rotated_left(v.y), rotated_left(v.z), rotated_left(v.w)};
  if (u >= a->span.units) {
    return;
  }
  store_bytes(a->plane[0], u, gathered(turned, 24));
  store_bytes(a->plane[1], u, gathered(turned, 16));
  store_bytes(a->plane[2], u, gathered(turned, 8));
  store_bytes(a->plane[3], u, gathered(turned, 0));
}

LCOMM_DEVICE void split4_one(const planes_args *a, uint64_t i) {
  const uint8_t *p = a->numbers + 4 * i;
  uint32_t number = rotated_left((uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 |
                                 (uint32_t)p[0]);
  a->plane[0][i] = (uint8_t)(number >> 24);
  a->plane[1][i] = (uint8_t)(number >> 16);
  a->plane[2][i] = (uint8_t)(number >> 8);
  a->plane[3][i] = (uint8_t)number;
}

LCOMM_KERNEL(split4, planes_args) {
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = lcomm_unit_load(a.numbers, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      split4_unit(&a, first + k * LCOMM_SPAN_THREADS, v[k]);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    split4_one(&a, lcomm_loose_index(a.span, 4, j));
  }
}

/* Of each plane the byte of number `shift` / 8, plane 0 on top. */
LCOMM_DEVICE uint32_t joined(lcomm_vec4 planes, uint32_t shift) {
  return rotated_right((planes.x >> shift & 0xffu) << 24 | (planes.y >> shift & 0xffu) << 16 |
                       (planes.z >> shift & 0xffu) << 8 | (planes.w >> shift & 0xffu));
}

LCOMM_DEVICE void join4_one(const planes_args *a, uint64_t i) {
  uint32_t number = rotated_right((uint32_t)a->plane[0][i] << 24 | (uint32_t)a->plane[1][i] << 16 |
                                  (uint32_t)a->plane[2][i] << 8 | (uint32_t)a->plane[3][i]);
  uint8_t *p = a->numbers + 4 * i;
  p[0] = (uint8_t)number;
  p[1] = (uint8_t)(number >> 8);
  p[2] = (uint8_t)(number >> 16);
  p[3] = (uint8_t)(number >> 24);
}

LCOMM_KERNEL(join4, planes_args) {
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      uint64_t u = first + k * LCOMM_SPAN_THREADS;
      v[k].x = load_bytes(a.plane[0], u, a.span.units);
      v[k].y = load_bytes(a.plane[1], u, a.span.units);
      v[k].z = load_bytes(a.plane[2], u, a.span.units);
      v[k].w = load_bytes(a.plane[3], u, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      lcomm_vec4 unit = {joined(v[k], 0), joined(v[k], 8), joined(v[k], 16), joined(v[k], 24)};
      lcomm_unit_store(a.numbers, first + k * LCOMM_SPAN_THREADS, a.span.units, unit);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    join4_one(&a, lcomm_loose_index(a.span, 4, j));
  }
}

/* ------------------------------------------------------------------ 2 bytes */

/* Two numbers in a word; both are turned at once. */
LCOMM_DEVICE uint32_t pair_left(uint32_t pair) {
  return (pair << 1 & 0xfffefffeu) | (pair >> 15 & 0x00010001u);
}

LCOMM_DEVICE uint32_t pair_right(uint32_t pair) {
  return (pair >> 1 & 0x7fff7fffu) | (pair << 15 & 0x80008000u);
}

/* The upper, or the lower bytes of four numbers in two words. */
LCOMM_DEVICE uint32_t upper_bytes(uint32_t first, uint32_t second) {
  return (first >> 8 & 0xffu) | (first >> 16 & 0xff00u) | (second << 8 & 0xff0000u) |
         (second & 0xff000000u);
}

LCOMM_DEVICE uint32_t lower_bytes(uint32_t first, uint32_t second) {
  return (first & 0xffu) | (first >> 8 & 0xff00u) | (second << 16 & 0xff0000u) |
         (second << 8 & 0xff000000u);
}

LCOMM_DEVICE void split2_unit(const planes_args *a, uint64_t u, lcomm_vec4 v) {
  uint32_t x = pair_left(v.x), y = pair_left(v.y), z = pair_left(v.z), w = pair_left(v.w);
  lcomm_vec2 upper = {upper_bytes(x, y), upper_bytes(z, w)};
  lcomm_vec2 lower = {lower_bytes(x, y), lower_bytes(z, w)};
  if (u >= a->span.units) {
    return;
  }
  lcomm_store2(a->plane[0] + 8 * u, upper);
  lcomm_store2(a->plane[1] + 8 * u, lower);
}

LCOMM_DEVICE void split2_one(const planes_args *a, uint64_t i) {
  uint32_t number = pair_left((uint32_t)a->numbers[2 * i + 1] << 8 | a->numbers[2 * i]);
  a->plane[0][i] = (uint8_t)(number >> 8);
  a->plane[1][i] = (uint8_t)number;
}

LCOMM_KERNEL(split2, planes_args) {
  lcomm_vec4 v[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      v[k] = lcomm_unit_load(a.numbers, first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      split2_unit(&a, first + k * LCOMM_SPAN_THREADS, v[k]);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    split2_one(&a, lcomm_loose_index(a.span, 2, j));
  }
}

/* Numbers 0 and 1, or 2 and 3, of four whose upper and lower bytes these are. */
LCOMM_DEVICE uint32_t joined_pair(uint32_t upper, uint32_t lower, uint32_t shift) {
  uint32_t high = upper >> shift, low = lower >> shift;
  return pair_right((low & 0xffu) | (high & 0xffu) << 8 | (low & 0xff00u) << 8 |
                    (high & 0xff00u) << 16);
}

LCOMM_DEVICE lcomm_vec2 load_pairs(const uint8_t *plane, uint64_t u, uint64_t units) {
  lcomm_vec2 none = {0, 0};
  return u < units ? lcomm_load2(plane + 8 * u) : none;
}

LCOMM_DEVICE void join2_one(const planes_args *a, uint64_t i) {
  uint32_t number = pair_right((uint32_t)a->plane[0][i] << 8 | a->plane[1][i]);
  a->numbers[2 * i] = (uint8_t)number;
  a->numbers[2 * i + 1] = (uint8_t)(number >> 8);
}

LCOMM_KERNEL(join2, planes_args) {
  lcomm_vec2 upper[LCOMM_UNITS], lower[LCOMM_UNITS];
  for (uint64_t first = lcomm_span_first(); first < a.span.units; first += lcomm_span_step()) {
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      upper[k] = load_pairs(a.plane[0], first + k * LCOMM_SPAN_THREADS, a.span.units);
      lower[k] = load_pairs(a.plane[1], first + k * LCOMM_SPAN_THREADS, a.span.units);
    }
    for (uint32_t k = 0; k < LCOMM_UNITS; k++) {
      lcomm_vec4 unit = {
          joined_pair(upper[k].x, lower[k].x, 0), joined_pair(upper[k].x, lower[k].x, 16),
          joined_pair(upper[k].y, lower[k].y, 0), joined_pair(upper[k].y, lower[k].y, 16)};
      lcomm_unit_store(a.numbers, first + k * LCOMM_SPAN_THREADS, a.span.units, unit);
    }
  }
  for (uint64_t j = lcomm_loose_first(); j < a.span.loose; j += lcomm_loose_step()) {
    join2_one(&a, lcomm_loose_index(a.span, 2, j));
  }
}

/* ---------------------------------------------------------------- launching */

/* A unit has 16 / width bytes of a plane. */
static planes_args planes_of(unsigned width, const uint8_t *numbers, const uint8_t *const *plane,
                             uint64_t n) {
  planes_args args = {(uint8_t *)numbers, {NULL}, {0, 0, n}};
  uint64_t numbers_in_unit = LCOMM_UNIT_SIZE / width;
  uintptr_t astray = (uintptr_t)numbers % LCOMM_UNIT_SIZE;
  for (unsigned p = 0; p < width; p++) {
    args.plane[p] = (uint8_t *)plane[p];
    astray |= (uintptr_t)plane[p] % numbers_in_unit;
  }
  if (astray) {
    return args;
  }
  args.span.units = n / numbers_in_unit;
  args.span.loose = n % numbers_in_unit;
  return args;
}

extern "C" int lcomm_cuda_run_split(unsigned width, const uint8_t *source, uint8_t *const *plane,
                                    uint64_t n, void *stream) {
  if (width != 2 && width != 4) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  planes_args args = planes_of(width, source, plane, n);
  uint32_t blocks = lcomm_span_blocks(args.span);
  return width == 2 ? LCOMM_LAUNCH(split2, blocks, LCOMM_SPAN_THREADS, stream, args)
                    : LCOMM_LAUNCH(split4, blocks, LCOMM_SPAN_THREADS, stream, args);
}

extern "C" int lcomm_cuda_run_join(unsigned width, const uint8_t *const *plane,
                                   uint8_t *destination, uint64_t n, void *stream) {
  if (width != 2 && width != 4) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  planes_args args = planes_of(width, destination, plane, n);
  uint32_t blocks = lcomm_span_blocks(args.span);
  return width == 2 ? LCOMM_LAUNCH(join2, blocks, LCOMM_SPAN_THREADS, stream, args)
                    : LCOMM_LAUNCH(join4, blocks, LCOMM_SPAN_THREADS, stream, args);
}
