/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_CODECS_LOSSLESS_STAGES_H
#define LCOMM_TESTS_CODECS_LOSSLESS_STAGES_H

/* Stages of every format with payloads of several contents, for the tests of the
 * lossless stage. */

#include "tests/kernels/kernel_samples.h"

#include <zstd.h>

#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"
#include "codecs/lossless.h"
#include "tests/codecs/formats.h"

enum { CHUNK = 64 << 10, ALL_MAX = FORMATS_MAX + 2 };

typedef enum content { RANDOM, GRADIENT, CONSTANT, AWKWARD, CONTENTS } content;

/* One format with room for payloads of up to `most` values. */
typedef struct stage {
  lcomm_format format;
  size_t bound, stream_bound;
  uint8_t *payload, *stream, *back;
  lcomm_lossless *lossless;
  /* of the last call of encode() */
  uint64_t count;
  size_t size, stream_size;
} stage;

static inline const lcomm_kernels *kernels(void) {
  return lcomm_kernels_best();
}

static inline size_t all_formats(lcomm_format list[ALL_MAX]) {
  size_t count = dense_formats(list);
  for (uint8_t variant = 0; variant < 2; variant++) {
    list[count] = lcomm_format_of(&lcomm_codec_topk);
    list[count++].variant = variant;
  }
  return count;
}

static inline stage make_stage(lcomm_format format, uint64_t most) {
  stage s = {.format = format};
  s.bound = lcomm_format_is_sparse(&format) ? lcomm_topk_bound(&format, most, 16 * most)
                                            : lcomm_payload_size(&format, most);
  s.stream_bound = lcomm_lossless_bound(&format, s.bound);
  s.payload = sample_memory(s.bound);
  s.back = sample_memory(s.bound);
  s.stream = sample_memory(s.stream_bound);
  assert_int_equal(lcomm_lossless_create(&format, s.bound, &s.lossless), LCOMM_OK);
  return s;
}

static inline void free_stage(stage *s) {
  lcomm_lossless_destroy(s->lossless);
  free(s->payload);
  free(s->back);
  free(s->stream);
}

static inline float value_of(content what, uint64_t i, uint64_t *seed) {
  switch (what) {
  case GRADIENT: /* layers of different size */
    return sample_normal(seed) * lcomm_f32_from_bits((uint32_t)(90 + i / 400 % 3) << 23);
  case CONSTANT:
    return 0.375f;
  default:
    return sample_bits(seed);
  }
}

/* n entries at random distances that sum up to 16 * n at most; constant ones
 * lie side by side. */
static inline void make_sparse(stage *s, content what, uint64_t n, uint64_t *seed) {
  lcomm_entries entries = {.position = sample_memory((size_t)n * sizeof(uint32_t)),
                           .value = sample_memory((size_t)n * sizeof(float)),
                           .count = (size_t)n};
  uint64_t left = 15 * n, next = 0;
  for (uint64_t i = 0; i < n; i++) {
    uint64_t jump = sample_u64(seed) % (i % 40 == 0 ? 400 : 9);
    jump = what == CONSTANT ? 0 : jump > left ? left : jump;
    left -= jump, next += jump;
    entries.position[i] = (uint32_t)next++;
    entries.value[i] = value_of(what, i, seed);
  }
  s->count = 16 * n;
  s->size = lcomm_topk_write(&s->format, kernels(), &entries, s->payload);
  free(entries.position);
  free(entries.value);
}

static inline void make_dense(stage *s, content what, uint64_t n, uint64_t *seed) {
  s->count = n;
  s->size = lcomm_payload_size(&s->format, n);
  float *value = sample_memory((size_t)n * sizeof *value);
  for (uint64_t i = 0; i < n; i++) {
    value[i] = value_of(what, i, seed);
  }
  lcomm_encode(&s->format, kernels(), value, lcomm_range_whole(n), 1, s->payload);
  for (size_t i = 0; what == RANDOM && i < s->size; i++) {
    s->payload[i] = (uint8_t)(sample_u64(seed) >> 20);
  }
  free(value);
}

static inline void encode(stage *s) {
  s->stream_size =
      lcomm_lossless_encode(s->lossless, kernels(), s->payload, s->size, s->count, s->stream);
  assert_true(s->stream_size <= s->stream_bound);
}

static inline void make(stage *s, content what, uint64_t n) {
  uint64_t seed = 1 + n * CONTENTS + what;
  if (lcomm_format_is_sparse(&s->format)) {
    make_sparse(s, what, n, &seed);
  } else {
    make_dense(s, what, n, &seed);
  }
  encode(s);
}

/* `size` bytes as a stream, into `capacity` bytes; *why is NULL when it is one. */
static inline size_t decode(stage *s, const uint8_t *stream, size_t size, size_t capacity,
                            const char **why) {
  size_t payload_size = 0;
  uint8_t *exact = sample_memory(size), *room = sample_memory(capacity);
  *why = NULL;
  if (size > 0) {
    memcpy(exact, stream, size);
  }
  lcomm_status status = lcomm_lossless_decode(s->lossless, kernels(), exact, size, s->count, room,
                                              capacity, &payload_size, why);
  if (status == LCOMM_OK) {
    assert_true(payload_size <= capacity && capacity <= s->bound);
    memcpy(s->back, room, payload_size);
  } else {
    assert_int_equal(status, LCOMM_ERR_WIRE);
    assert_non_null(*why);
  }
  free(exact);
  free(room);
  return payload_size;
}

static inline const char *refusal(stage *s, const uint8_t *stream, size_t size) {
  const char *why;
  decode(s, stream, size, s->bound, &why);
  return why;
}

static inline void check_round_trip(stage *s) {
  const char *why;
  assert_int_equal(decode(s, s->stream, s->stream_size, s->size, &why), s->size);
  assert_null(why);
  assert_memory_equal(s->back, s->payload, s->size);
}

static inline void for_each_stage(uint64_t most, void (*check)(stage *)) {
  lcomm_format list[ALL_MAX];
  for (size_t i = 0, n = all_formats(list); i < n; i++) {
    stage s = make_stage(list[i], most);
    check(&s);
    free_stage(&s);
  }
}

/* What comes back */

#endif
