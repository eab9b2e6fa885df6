/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_SUM_CASES_H
#define LCOMM_TESTS_KERNELS_CUDA_SUM_CASES_H

/* One sum on the device and the same by codecs/codec_sum.h. */

#include "codecs/codec_sum.h"
#include "kernels/plain.h"
#include "tests/kernels/cuda/dense_cases.h"

typedef enum mix {
  MIX_CODED,
  MIX_PLAIN,
  MIX_ONE,         /* plain, the second or only source, and the destination */
  MIX_ALTERNATING, /* plain, coded, plain; the first is the destination */
  MIXES
} mix;

typedef struct sum_case {
  const lcomm_format *format; /* of coded sources, and of the result */
  const view *view;
  uint32_t count;
  lcomm_cuda_op op;
  float factor;
  mix mix;
  kind values;
  bool encodes;
  bool finite;      /* values that are not finite become 0 */
  bool hostile;     /* payloads of random bytes */
  uint32_t awkward; /* s + 1: source s has awkward values after all */
} sum_case;

/* What a case works on. `local` is the elements of the view in a row. */
typedef struct sum_work {
  float *plain[LCOMM_CUDA_SOURCES_MAX], *local[LCOMM_CUDA_SOURCES_MAX];
  uint8_t *payload[LCOMM_CUDA_SOURCES_MAX];
  float *destination, *expected;
  uint8_t *encoded, *expected_encoded;
} sum_work;

/* So are all of a format that does not code: they have the geometry of the view. */
static inline bool source_is_plain(const sum_case *c, uint32_t s) {
  if (c->format->codec->id == LCOMM_CODEC_NONE) {
    return true;
  }
  switch (c->mix) {
  case MIX_PLAIN:
    return true;
  case MIX_ONE:
    return s == (c->count > 1 ? 1 : 0);
  case MIX_ALTERNATING:
    return s % 2 == 0;
  default:
    return false;
  }
}

static inline void source_values(const sum_case *c, uint32_t s, float *value, uint64_t n,
                                 uint64_t *random) {
  bool awkward = c->awkward == s + 1;
  make_values(awkward ? KIND_AWKWARD : c->values, value, (size_t)n, random);
  for (uint64_t i = 0; i < n; i++) {
    if (c->finite && !awkward && !lcomm_f32_is_finite(value[i])) {
      value[i] = 0.0f;
    }
  }
}

static inline void open_source(const sum_case *c, uint32_t s, sum_work *w, uint64_t *random) {
  uint64_t n = view_count(c->view);
  size_t size = lcomm_payload_size(c->format, n);
  w->plain[s] = array_open(c->view, c->view->base);
  w->local[s] = sample_memory((size_t)n * sizeof(float));
  source_values(c, s, w->plain[s], c->view->base, random);
  view_gather(c->view, w->plain[s], w->local[s]);
  w->payload[s] = payload_open(c->format, n);
  lcomm_encode(c->format, &lcomm_kernels_scalar, w->local[s], lcomm_range_whole(n), SEED,
               w->payload[s]);
  for (size_t i = 0; c->hostile && i < size; i++) {
    w->payload[s][i] = (uint8_t)(sample_u64(random) >> 24);
  }
}

/* The destination is the first plain source, where the mix says so. */
static inline float *destination_of(const sum_case *c, const sum_work *w) {
  for (uint32_t s = 0; s < c->count; s++) {
    if (source_is_plain(c, s) && (c->mix == MIX_ONE || c->mix == MIX_ALTERNATING)) {
      return w->plain[s];
    }
  }
  return array_open(c->view, c->view->base);
}

static inline void open_work(const sum_case *c, sum_work *w) {
  uint64_t random = 11 + c->count, n = view_count(c->view);
  for (uint32_t s = 0; s < c->count; s++) {
    open_source(c, s, w, &random);
  }
  w->destination = destination_of(c, w);
  w->expected = array_copy(c->view, w->destination, c->view->base);
  w->encoded = payload_open(c->format, n);
  w->expected_encoded = payload_open(c->format, n);
}

static inline void close_work(const sum_case *c, sum_work *w) {
  bool own = true;
  for (uint32_t s = 0; s < c->count; s++) {
    own = own && w->destination != w->plain[s];
    array_free(c->view, w->plain[s]);
    free(w->local[s]);
    payload_free(w->payload[s]);
  }
  if (own) {
    array_free(c->view, w->destination);
  }
  array_free(c->view, w->expected);
  payload_free(w->encoded);
  payload_free(w->expected_encoded);
}

static inline void run_on_device(const sum_case *c, sum_work *w) {
  uint64_t n = view_count(c->view);
  lcomm_cuda_code sources[LCOMM_CUDA_SOURCES_MAX], encoded = parts_of(c->format, n, w->encoded);
  for (uint32_t s = 0; s < c->count; s++) {
    sources[s] = parts_of(c->format, n, w->payload[s]);
    if (source_is_plain(c, s)) {
      sources[s] = (lcomm_cuda_code){.kind = LCOMM_CUDA_F32, .code = w->plain[s]};
    }
  }
  lcomm_cuda_sum a = {.sources = sources,
                      .count = c->count,
                      .op = c->op,
                      .factor = c->factor,
                      .destination = w->destination,
                      .n = n,
                      .parts = c->view->parts,
                      .part = c->view->part,
                      .encoded = c->encodes ? &encoded : NULL};
  assert_int_equal(lcomm_cuda_run_sum(&a, NULL), 0);
}

/* Bit for bit, but any NaN for a NaN of hostile bytes, where several meet. */
static inline void expect_results(const sum_case *c, const sum_work *w) {
  size_t base = (size_t)c->view->base;
  for (size_t i = 0; c->hostile && i < base; i++) {
    bool both = w->expected[i] != w->expected[i] && w->destination[i] != w->destination[i];
    w->destination[i] = both ? w->expected[i] : w->destination[i];
  }
  expect_equal_bytes(w->destination, w->expected, base * sizeof(float), c->format, c->view, "sum");
  if (c->encodes) {
    expect_equal_bytes(w->encoded, w->expected_encoded,
                       lcomm_payload_size(c->format, view_count(c->view)), c->format, c->view,
                       "payload of the sum");
  }
}

/* One source is a decode. */
static inline void decode_by_codec(const sum_case *c, const sum_work *w, float *result) {
  bool plain = source_is_plain(c, 0);
  const lcomm_format none = lcomm_format_of(&lcomm_codec_none);
  lcomm_decode(plain ? &none : c->format, &lcomm_kernels_scalar,
               plain ? (const uint8_t *)w->local[0] : w->payload[0],
               lcomm_range_whole(view_count(c->view)), c->factor, result);
}

/* The sum of the codecs in result. */
static inline void sum_by_codecs(const sum_case *c, const sum_work *w, float *result) {
  lcomm_range all = lcomm_range_whole(view_count(c->view));
  lcomm_summand summands[LCOMM_CUDA_SOURCES_MAX];
  for (uint32_t s = 0; s < c->count; s++) {
    summands[s] = (lcomm_summand){.format = c->format,
                                  .payload = source_is_plain(c, s) ? NULL : w->payload[s],
                                  .values = w->local[s]};
  }
  if (c->count == 1) {
    decode_by_codec(c, w, result);
  } else {
    lcomm_sum(&lcomm_kernels_scalar, summands, c->count, all, c->factor, result);
  }
  if (c->encodes) {
    lcomm_encode(c->format, &lcomm_kernels_scalar, result, all, SEED, w->expected_encoded);
  }
}

static inline void expect_sum_of_codecs(const sum_case *c) {
  static float result[VIEW_MOST];
  sum_work w;
  open_work(c, &w);
  sum_by_codecs(c, &w, result);
  view_scatter(c->view, result, w.expected);
  run_on_device(c, &w);
  expect_results(c, &w);
  close_work(c, &w);
}

/* As the executor combines minima and maxima, see kernels/plain.h. */
static inline void expect_extremes(const sum_case *c) {
  static float values[VIEW_MOST], result[VIEW_MOST];
  uint64_t n = view_count(c->view);
  lcomm_plain_kernel combine = lcomm_plain_kernel_of(
      LCOMM_FLOAT32, c->op == LCOMM_CUDA_MIN ? LCOMM_PLAIN_MIN : LCOMM_PLAIN_MAX);
  sum_work w;
  open_work(c, &w);
  for (uint32_t s = 0; s < c->count; s++) {
    const void *both[2] = {result, values};
    if (source_is_plain(c, s)) {
      memcpy(values, w.local[s], (size_t)n * sizeof *values);
    } else {
      lcomm_decode(c->format, &lcomm_kernels_scalar, w.payload[s], lcomm_range_whole(n), 1.0f,
                   values);
    }
    if (s == 0) {
      memcpy(result, values, (size_t)n * sizeof *values);
    } else {
      combine(both, 2, result, (size_t)n);
    }
  }
  view_scatter(c->view, result, w.expected);
  run_on_device(c, &w);
  expect_results(c, &w);
  close_work(c, &w);
}

#endif
