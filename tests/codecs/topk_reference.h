/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_CODECS_TOPK_REFERENCE_H
#define LCOMM_TESTS_CODECS_TOPK_REFERENCE_H

/* A slow and obvious top-k: sort everything. And a payload reader that takes
 * one bit at a time. Nothing here is shared with the library but the element
 * maths and the stripe geometry. */

#include <math.h>
#include <stdbool.h>

#include "codecs/codec_topk.h"
#include "kernels/stripe.h"
#include "tests/kernels/kernel_samples.h"

typedef struct entry {
  uint32_t position; /* local to the output */
  uint64_t global;
  float acc, sent;
} entry;

typedef struct entry_list {
  entry *entry;
  size_t count;
} entry_list;

static inline uint32_t magnitude_of(float value) {
  return lcomm_f32_bits(value) & 0x7fffffffu;
}

static inline int by_magnitude(const void *left, const void *right) {
  const entry *a = left, *b = right;
  uint32_t x = magnitude_of(a->acc), y = magnitude_of(b->acc);
  if (x != y) {
    return x < y ? 1 : -1;
  }
  return a->global < b->global ? -1 : 1;
}

static inline int by_place(const void *left, const void *right) {
  const entry *a = left, *b = right;
  return a->global < b->global ? -1 : 1;
}

/* Keep the largest, in order of place. */
static inline void keep_largest(entry_list *list, size_t kept) {
  if (list->count == 0) {
    return;
  }
  qsort(list->entry, list->count, sizeof *list->entry, by_magnitude);
  if (list->count > kept) {
    list->count = kept;
  }
  qsort(list->entry, list->count, sizeof *list->entry, by_place);
}

static inline double reference_density(const lcomm_topk_shape *shape, size_t segment,
                                       uint64_t elements) {
  if (shape->segment_densities) {
    return shape->segment_densities[segment];
  }
  if (shape->format->density > 0.0) {
    return shape->format->density;
  }
  return fmin(1.0, (double)shape->format->kept / (double)elements);
}

/* The entries of all segments of the view, whatever the outputs. */
static inline entry_list reference_select(const lcomm_topk_shape *shape, const float *acc) {
  entry_list all = {.entry = sample_memory((size_t)shape->base_count * sizeof(entry))};
  uint64_t begin = 0;
  for (size_t s = 0; s < shape->segments; begin = shape->segment_ends[s++]) {
    entry_list segment = {.entry = all.entry + all.count};
    for (uint64_t i = begin; i < shape->segment_ends[s]; i++) {
      if (lcomm_stripe_owner(i, shape->parts) == shape->part) {
        segment.entry[segment.count++] = (entry){.global = i, .acc = acc[i]};
      }
    }
    double density = reference_density(shape, s, shape->segment_ends[s] - begin);
    keep_largest(&segment, (size_t)lcomm_topk_entries(density, segment.count));
    all.count += segment.count;
  }
  return all;
}

/* What `n` values become in one block of int8. */
static inline void send_int8(entry *e, size_t n) {
  uint32_t amax = 0;
  for (size_t i = 0; i < n; i++) {
    amax = magnitude_of(e[i].acc) > amax ? magnitude_of(e[i].acc) : amax;
  }
  float largest = lcomm_f32_from_bits(amax), inverse = 127.0f / largest;
  float scale = amax < LCOMM_INTEGER_TINY_BITS ? 0.0f : largest / 127.0f;
  for (size_t i = 0; i < n; i++) {
    float code = scale > 0.0f ? nearbyintf(e[i].acc * inverse) : 0.0f;
    if (amax >= LCOMM_F32_INF_BITS) { /* Inf stays, all others become NaN */
      code = isinf(e[i].acc) ? copysignf(127.0f, e[i].acc) : 0.0f;
    }
    e[i].sent = scale * (code + 0.0f);
  }
}

static inline void send(const lcomm_format *format, entry_list *list) {
  for (size_t i = 0; i < list->count; i++) {
    list->entry[i].sent = lcomm_bf16_to_f32(lcomm_f32_to_bf16_finite(list->entry[i].acc));
  }
  for (size_t i = 0; format->variant == LCOMM_TOPK_INT8 && i < list->count; i += 128) {
    send_int8(list->entry + i, list->count - i < 128 ? list->count - i : 128);
  }
}

/* What one output must hold. */
static inline entry_list reference_output(const lcomm_topk_shape *shape, const entry_list *all,
                                          uint32_t output) {
  bool split = shape->outputs > 1;
  uint32_t parts = split ? shape->outputs : shape->parts;
  entry_list mine = {.entry = sample_memory(all->count * sizeof(entry))};
  for (size_t i = 0; i < all->count; i++) {
    entry e = all->entry[i];
    if (split && lcomm_stripe_owner(e.global, parts) != output) {
      continue;
    }
    e.position = (uint32_t)lcomm_stripe_local(e.global, parts);
    mine.entry[mine.count++] = e;
  }
  uint64_t part_count = lcomm_stripe_count(shape->base_count, shape->outputs, output);
  keep_largest(&mine, (size_t)lcomm_topk_capacity(all->count, shape->outputs, part_count));
  send(shape->format, &mine);
  return mine;
}

/* The value of entry i of `count`, whose values begin at `values`. */
static inline float read_value(const lcomm_format *format, const uint8_t *values, uint32_t count,
                               uint32_t i) {
  if (format->variant == LCOMM_TOPK_INT8) {
    float scale;
    memcpy(&scale, values + i / 128 * 4, sizeof scale);
    return scale * (float)(int8_t)values[(count + 127) / 128 * 4 + i];
  }
  uint16_t code;
  memcpy(&code, values + 2 * (size_t)i, sizeof code);
  return lcomm_bf16_to_f32(code);
}

/* Reads a valid payload; global and acc stay empty. */
static inline entry_list read_payload(const lcomm_format *format, const uint8_t *payload,
                                      size_t size) {
  uint32_t count;
  memcpy(&count, payload, sizeof count);
  entry_list list = {.entry = sample_memory(count * sizeof(entry)), .count = count};
  size_t at = 4;
  uint64_t position = 0;
  for (uint32_t first = 0; first < count; first += 32) {
    uint32_t width = payload[at++], n = count - first < 32 ? count - first : 32;
    for (uint32_t i = 0; i < n; i++) {
      uint64_t delta = 0;
      for (uint32_t bit = 0; bit < width; bit++) {
        size_t place = (size_t)i * width + bit;
        delta |= (uint64_t)(payload[at + place / 8] >> (place % 8) & 1) << bit;
      }
      position += delta;
      list.entry[first + i].position = (uint32_t)position++;
    }
    at += ((size_t)n * width + 7) / 8;
  }
  for (uint32_t i = 0; i < count; i++) {
    list.entry[i].sent = read_value(format, payload + at, count, i);
  }
  bool int8 = format->variant == LCOMM_TOPK_INT8;
  assert_int_equal(at + (int8 ? (count + 127) / 128 * 4 + count : 2 * (size_t)count), size);
  return list;
}

static inline void assert_same_float(float a, float b) {
  uint32_t x = lcomm_f32_bits(a), y = lcomm_f32_bits(b);
  if (magnitude_of(a) > LCOMM_F32_INF_BITS && magnitude_of(b) > LCOMM_F32_INF_BITS) {
    return;
  }
  assert_int_equal(x, y);
}

/* What stays of acc in an element where nothing was sent. */
static inline float unsent(float acc) {
  return magnitude_of(acc) < LCOMM_F32_INF_BITS ? acc : 0.0f;
}

/* What stays of acc where `sent` was sent for certain. */
static inline float released(float acc, float sent) {
  if (magnitude_of(acc) >= LCOMM_F32_INF_BITS) {
    return 0.0f;
  }
  return magnitude_of(sent) < LCOMM_F32_INF_BITS ? acc - sent : acc;
}

/* One payload against what it must hold; updates the residual expected after it. */
static inline void check_output(const lcomm_topk *topk, const lcomm_topk_shape *shape,
                                const entry_list *all, uint32_t o, const uint8_t *payload,
                                size_t size, lcomm_topk_keep keep, float *expected) {
  uint64_t part_count = shape->outputs > 1
                            ? lcomm_stripe_count(shape->base_count, shape->outputs, o)
                            : lcomm_stripe_count(shape->base_count, shape->parts, shape->part);
  uint64_t entries = 0;
  assert_true(size <= lcomm_topk_output_bound(topk, o));
  assert_int_equal(lcomm_topk_check(shape->format, payload, size, part_count, &entries), LCOMM_OK);
  entry_list want = reference_output(shape, all, o);
  entry_list got = read_payload(shape->format, payload, size);
  assert_int_equal(got.count, want.count);
  assert_int_equal(entries, want.count);
  assert_true(entries <= lcomm_topk_output_capacity(topk, o));
  for (size_t i = 0; i < want.count; i++) {
    const entry *e = &want.entry[i];
    assert_int_equal(got.entry[i].position, e->position);
    assert_same_float(got.entry[i].sent, e->sent);
    if (keep == LCOMM_TOPK_RELEASE) {
      expected[e->global] = released(e->acc, e->sent);
    }
  }
  free(want.entry);
  free(got.entry);
}

/* One encode of the library and of the reference, compared in full: payloads
 * and residuals. `residual` may be NULL, and is left as the library left it. */
static inline void check_encode(lcomm_topk *topk, const lcomm_topk_shape *shape,
                                const lcomm_kernels *kernels, const float *base, float *residual,
                                lcomm_topk_keep keep) {
  size_t count = (size_t)shape->base_count, bytes = count * sizeof(float);
  float *acc = sample_memory(bytes), *expected = sample_memory(bytes);
  for (size_t i = 0; i < count; i++) {
    bool mine = lcomm_stripe_owner(i, shape->parts) == shape->part;
    acc[i] = residual ? base[i] + residual[i] : base[i];
    expected[i] = mine ? unsent(acc[i]) : residual ? residual[i] : 0.0f;
  }
  uint8_t *payload[256];
  size_t size[256];
  for (uint32_t o = 0; o < shape->outputs; o++) {
    payload[o] = sample_memory(lcomm_topk_output_bound(topk, o));
  }
  lcomm_topk_encode(topk, kernels, base, residual, residual, keep, payload, size);
  entry_list all = reference_select(shape, acc);
  assert_int_equal(all.count, lcomm_topk_total(topk));
  for (uint32_t o = 0; o < shape->outputs; o++) {
    check_output(topk, shape, &all, o, payload[o], size[o], keep, expected);
    free(payload[o]);
  }
  for (size_t i = 0; residual != NULL && i < count; i++) {
    assert_same_float(residual[i], expected[i]);
  }
  free(all.entry);
  free(acc);
  free(expected);
}

#endif
