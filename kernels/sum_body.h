/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_SUM_BODY_H
#define LCOMM_KERNELS_SUM_BODY_H

/* Sums of many coded arrays, written once for vectors of any width. VECTORS of
 * them stay in registers while all sources are added to them. Hardware prefetchers
 * do not follow so many streams, so every source is prefetched.
 *
 * The file that includes this defines lcomm_vector, WIDTH (its elements) and
 * the functions on vectors: plain, from_bf16, from_int8, add, multiply,
 * broadcast, put and stream.
 */

#include "kernels/element.h"

enum { VECTORS = 8, PIECE = VECTORS * WIDTH, AHEAD_BYTES = 256, LINE = 64 };

static inline void ask(const void *next, size_t size) {
  uintptr_t place = (uintptr_t)next + AHEAD_BYTES;
  for (size_t line = 0; line < size; line += LINE) {
    _mm_prefetch((const char *)(place + line), _MM_HINT_T0);
  }
}

static inline void begin_or_add(lcomm_vector *sum, lcomm_vector value, size_t source) {
  *sum = source == 0 ? value : add(*sum, value);
}

static inline void add_plain(const float *values, size_t source, lcomm_vector sum[VECTORS]) {
  for (int v = 0; v < VECTORS; v++) {
    begin_or_add(&sum[v], plain(values + v * WIDTH), source);
  }
}

static inline void add_bf16(const uint16_t *code, size_t source, lcomm_vector sum[VECTORS]) {
  ask(code, PIECE * sizeof *code);
  for (int v = 0; v < VECTORS; v++) {
    begin_or_add(&sum[v], from_bf16(code + v * WIDTH), source);
  }
}

/* `block` is a constant wherever it is used. */
static inline void add_int8_block(const int8_t *code, const float *scale, size_t block,
                                  size_t source, lcomm_vector sum[VECTORS]) {
  ask(code, PIECE);
  for (size_t v = 0; v < VECTORS; v++) {
    lcomm_vector unit = broadcast(scale[v * WIDTH / block]);
    begin_or_add(&sum[v], from_int8(code + v * WIDTH, unit), source);
  }
}

static inline void add_int8(const int8_t *code, const float *scale, size_t block, size_t source,
                            lcomm_vector sum[VECTORS]) {
  if (block == 32) {
    add_int8_block(code, scale, 32, source, sum);
  } else {
    add_int8_block(code, scale, LCOMM_BLOCK, source, sum);
  }
}

static inline void store(const lcomm_vector sum[VECTORS], float factor, int streams,
                         float *destination) {
  lcomm_vector by = broadcast(factor);
  for (int v = 0; v < VECTORS; v++) {
    lcomm_vector scaled = multiply(by, sum[v]);
    if (streams) {
      stream(destination + v * WIDTH, scaled);
    } else {
      put(destination + v * WIDTH, scaled);
    }
  }
}

static int streams_to(const float *destination, size_t n) {
  return n >= LCOMM_STREAM_COUNT && (uintptr_t)destination % sizeof(lcomm_vector) == 0;
}

/* What is left of an array, element by element. */

static float value_of(const lcomm_source *source, size_t i, float coded) {
  return source->values ? source->values[i] : coded;
}

static void bf16_rest(const lcomm_source *sources, size_t count, size_t first, float factor,
                      float *destination, size_t i) {
  float sum = 0.0f;
  for (size_t s = 0; s < count; s++) {
    const uint16_t *code = sources[s].code;
    float coded = code ? lcomm_bf16_to_f32(code[first + i]) : 0.0f;
    float value = value_of(&sources[s], i, coded);
    sum = s == 0 ? value : sum + value;
  }
  destination[i] = factor * sum;
}

static void int8_rest(const lcomm_source *sources, size_t count, size_t block, size_t first,
                      float factor, float *destination, size_t i) {
  float sum = 0.0f;
  for (size_t s = 0; s < count; s++) {
    const int8_t *code = sources[s].code;
    float coded = code ? sources[s].scale[(first + i) / block] * (float)code[first + i] : 0.0f;
    float value = value_of(&sources[s], i, coded);
    sum = s == 0 ? value : sum + value;
  }
  destination[i] = factor * sum;
}

static inline void sum_bf16(const lcomm_source *sources, size_t count, size_t first, float factor,
                            float *destination, size_t n) {
  int streams = streams_to(destination, n);
  size_t whole = n - n % PIECE;
  for (size_t i = 0; i < whole; i += PIECE) {
    lcomm_vector sum[VECTORS] = {broadcast(0.0f)};
    for (size_t s = 0; s < count; s++) {
      if (sources[s].values) {
        add_plain(sources[s].values + i, s, sum);
      } else {
        add_bf16((const uint16_t *)sources[s].code + first + i, s, sum);
      }
    }
    store(sum, factor, streams, destination + i);
  }
  for (size_t i = whole; i < n; i++) {
    bf16_rest(sources, count, first, factor, destination, i);
  }
  _mm_sfence();
}

static inline void sum_int8(const lcomm_source *sources, size_t count, size_t block, size_t first,
                            float factor, float *destination, size_t n) {
  int streams = streams_to(destination, n);
  size_t whole = n - n % PIECE;
  for (size_t i = 0; i < whole; i += PIECE) {
    lcomm_vector sum[VECTORS] = {broadcast(0.0f)};
    for (size_t s = 0; s < count; s++) {
      size_t at = first + i;
      if (sources[s].values) {
        add_plain(sources[s].values + i, s, sum);
      } else {
        add_int8((const int8_t *)sources[s].code + at,
                 sources[s].scale + (block == 32 ? at / 32 : at / LCOMM_BLOCK), block, s, sum);
      }
    }
    store(sum, factor, streams, destination + i);
  }
  for (size_t i = whole; i < n; i++) {
    int8_rest(sources, count, block, first, factor, destination, i);
  }
  _mm_sfence();
}

#endif
