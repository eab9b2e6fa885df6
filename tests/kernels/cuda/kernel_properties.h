/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_KERNEL_PROPERTIES_H
#define LCOMM_TESTS_KERNELS_CUDA_KERNEL_PROPERTIES_H

/* What the kernels of every device do, emulated or real: the bytes of the codecs
 * under the scalar table. Here the dense formats; value_properties.h has what
 * works on values as they are, topk_properties.h has top-k, lowrank_properties.h matrices of low
 * rank, and step_properties.h what goes on for many steps and in several streams. */

#include "codecs/codec_residual.h"
#include "tests/kernels/cuda/kernel_device.h"

/* An encode on both sides. What lies on the host becomes what the codec makes of it. */
typedef struct encoding {
  const lcomm_format *format;
  const view *view;
  lcomm_cuda_feedback feedback;
  float weight;
  uint64_t seed;
  float *source, *residual;
  uint8_t *payload;
  float *source_there, *residual_there;
  uint8_t *payload_there;
} encoding;

static inline void encode_there(const encoding *e) {
  uint64_t n = view_count(e->view);
  lcomm_cuda_encode a = {.source = e->source_there,
                         .residual = e->residual_there,
                         .feedback = e->feedback,
                         .weight = e->weight,
                         .n = n,
                         .parts = e->view->parts,
                         .part = e->view->part,
                         .code = parts_of(e->format, n, e->payload_there)};
  a.code.seed = e->seed;
  if (e->feedback == LCOMM_CUDA_FEEDBACK_NONE) {
    a.residual = NULL;
  }
  CHECK(device->kernels->encode(&a, stream));
}

static inline void encode_here(const encoding *e) {
  uint64_t n = view_count(e->view);
  lcomm_range all = lcomm_range_whole(n);
  float *from = sample_memory((size_t)n * sizeof *from);
  float *kept = sample_memory((size_t)n * sizeof *kept);
  view_gather(e->view, e->source, from);
  view_gather(e->view, e->residual, kept);
  if (e->feedback == LCOMM_CUDA_FEEDBACK_NONE) {
    lcomm_encode(e->format, scalar, from, all, e->seed, e->payload);
  } else if (e->feedback == LCOMM_CUDA_FEEDBACK_SEND) {
    lcomm_residual_encode(e->format, scalar, from, kept, kept, all, e->seed, e->payload);
  } else {
    lcomm_residual_encode_owner(e->format, scalar, from, kept, e->weight, all, e->seed, e->payload);
  }
  view_scatter(e->view, kept, e->residual);
  free(from);
  free(kept);
}

static inline void expect_encoded(const encoding *e) {
  size_t size = lcomm_payload_size(e->format, view_count(e->view));
  uint8_t *payload = sample_memory(size);
  float *residual = sample_memory(base_size(e->view));
  get(payload, e->payload_there, size);
  expect_equal_bytes(payload, e->payload, size, e->format, e->view, "payload");
  get(residual, e->residual_there, base_size(e->view));
  expect_equal_bytes(residual, e->residual, base_size(e->view), e->format, e->view, "residual");
  free(payload);
  free(residual);
}

/* Memory on both sides; source and residual are to be filled and put(). */
static inline encoding encoding_open(const lcomm_format *format, const view *v,
                                     lcomm_cuda_feedback feedback) {
  size_t size = lcomm_payload_size(format, view_count(v)), shift = v->offset * sizeof(float);
  return (encoding){.format = format,
                    .view = v,
                    .feedback = feedback,
                    .weight = 1.0f / 3.0f,
                    .seed = SEED,
                    .source = sample_memory(base_size(v)),
                    .residual = sample_memory(base_size(v)),
                    .payload = payload_open(format, view_count(v)),
                    .source_there = there(NULL, base_size(v), shift),
                    .residual_there = there(NULL, base_size(v), shift),
                    .payload_there = there(NULL, size, 8)};
}

static inline void encoding_put(const encoding *e) {
  put(e->source_there, e->source, base_size(e->view));
  put(e->residual_there, e->residual, base_size(e->view));
}

static inline void encoding_close(encoding *e) {
  free(e->source);
  free(e->residual);
  payload_free(e->payload);
}

/* Residuals are always finite. */
static inline encoding encoding_made(const lcomm_format *format, const view *v,
                                     lcomm_cuda_feedback feedback, kind values) {
  uint64_t random = 5 + v->base + (uint64_t)values;
  encoding e = encoding_open(format, v, feedback);
  make_values(values, e.source, (size_t)v->base, &random);
  make_values(KIND_GRADIENT, e.residual, (size_t)v->base, &random);
  encoding_put(&e);
  return e;
}

static inline void encode_both(const lcomm_format *format, const view *v,
                               lcomm_cuda_feedback feedback, kind values) {
  encoding e = encoding_made(format, v, feedback, values);
  encode_there(&e);
  encode_here(&e);
  expect_encoded(&e);
  encoding_close(&e);
  give_back();
}

static void every_length_and_stripe_is_encoded_as_by_the_codecs(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t i = 0; i < COUNT(views); i++) {
      encode_both(&formats[f], &views[i],
                  (lcomm_cuda_feedback)((f + i) % LCOMM_CUDA_FEEDBACK_COUNT),
                  (kind)((f + 2 * i) % KINDS));
    }
  }
}

static void every_kind_of_value_is_encoded_as_by_the_codecs(void **state) {
  const view v = {4 * LCOMM_BLOCK + 1027, 1, 0, 1};
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (int k = 0; k < KINDS; k++) {
      for (int feedback = 0; feedback < LCOMM_CUDA_FEEDBACK_COUNT; feedback++) {
        encode_both(&formats[f], &v, (lcomm_cuda_feedback)feedback, (kind)k);
      }
    }
  }
}

/* More than the blocks of threads that run at once. */
static void long_arrays_are_encoded_as_by_the_codecs(void **state) {
  const view v = {long_count + 77, 1, 0, 0}, stripe = {long_count + 4099, 3, 1, 0};
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    encode_both(&formats[f], f % 2 ? &v : &stripe, LCOMM_CUDA_FEEDBACK_SEND,
                f % 4 ? KIND_GRADIENT : KIND_BITS);
  }
}

/* --------------------------------------------------------------------- sums */

static inline void sum_there(const sum_case *c, const sum_work *w) {
  uint64_t n = view_count(c->view);
  size_t size = lcomm_payload_size(c->format, n), shift = c->view->offset * sizeof(float);
  float *destination = NULL;
  uint8_t *payload = there(NULL, size, 8);
  lcomm_cuda_code sources[LCOMM_CUDA_SOURCES_MAX], encoded = parts_of(c->format, n, payload);
  for (uint32_t s = 0; s < c->count; s++) {
    if (!source_is_plain(c, s)) {
      sources[s] = parts_of(c->format, n, there(w->payload[s], size, 8));
      continue;
    }
    sources[s] = (lcomm_cuda_code){.kind = LCOMM_CUDA_F32,
                                   .code = there(w->plain[s], base_size(c->view), shift)};
    if (w->destination == w->plain[s]) {
      destination = sources[s].code;
    }
  }
  if (!destination) {
    destination = there(w->destination, base_size(c->view), shift);
  }
  lcomm_cuda_sum a = {.sources = sources,
                      .count = c->count,
                      .op = c->op,
                      .factor = c->factor,
                      .destination = destination,
                      .n = n,
                      .parts = c->view->parts,
                      .part = c->view->part,
                      .encoded = c->encodes ? &encoded : NULL};
  CHECK(device->kernels->sum(&a, stream));
  get(w->destination, destination, base_size(c->view));
  get(w->encoded, payload, size);
}

/* What a sum is compared with. */
typedef void expectation(const sum_case *c, sum_work *w);

static inline void sum_here(const sum_case *c, sum_work *w) {
  float *result = sample_memory((size_t)view_count(c->view) * sizeof *result);
  sum_by_codecs(c, w, result);
  view_scatter(c->view, result, w->expected);
  free(result);
}

/* With gradients in the place of the sources. */
static inline void sum_gradients_here(const sum_case *c, sum_work *w) {
  for (uint32_t s = 0; s < c->count; s++) {
    memcpy(w->plain[s], gradient(s, c->view->base), base_size(c->view));
    view_gather(c->view, w->plain[s], w->local[s]);
    lcomm_encode(c->format, scalar, w->local[s], lcomm_range_whole(view_count(c->view)), SEED,
                 w->payload[s]);
  }
  sum_here(c, w);
}

static inline void sum_both(const sum_case *c, expectation *here) {
  sum_work w;
  open_work(c, &w);
  here(c, &w);
  sum_there(c, &w);
  expect_results(c, &w);
  close_work(c, &w);
  give_back();
}

static const uint32_t source_counts[] = {1, 2, 8};

/* At most one source has NaN and Inf, and then the others are small enough for every
 * format, so that no two NaNs meet. */
static void sums_are_those_of_the_codecs(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(source_counts); c++) {
      for (int m = 0; m < 2 * MIXES; m++) {
        sum_case s = {.format = &formats[f], .count = source_counts[c], .factor = 1.0f / 3.0f};
        s.view = &views[(5 * f + 3 * c + 2 * (size_t)m) % COUNT(views)];
        s.mix = (mix)(m / 2);
        s.encodes = m % 2 == 1;
        s.values = (kind)((f + c + (size_t)m) % KINDS);
        s.finite = true;
        s.awkward = s.values == KIND_GRADIENT ? 1 + (uint32_t)m % s.count : 0;
        sum_both(&s, sum_here);
      }
    }
  }
}

static void sums_of_gradients_are_those_of_the_codecs(void **state) {
  const view v = {TILE + 4099, 1, 0, 0};
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(source_counts); c++) {
      sum_case s = {.format = &formats[f], .view = &v, .count = source_counts[c]};
      s.factor = 1.0f / (float)s.count;
      s.mix = (mix)((f + c) % MIXES);
      s.encodes = c > 0;
      sum_both(&s, sum_gradients_here);
    }
  }
}

/* Any bits in values, and any bytes in payloads. */
static void fuzzed_bits_are_summed_as_by_the_codecs(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(source_counts); c++) {
      sum_case s = {.format = &formats[f], .count = source_counts[c], .factor = 3.0f};
      s.view = &views[(3 * f + 7 * c) % COUNT(views)];
      s.mix = (mix)((f + 2 * c) % MIXES);
      s.values = KIND_BITS;
      s.hostile = true;
      sum_both(&s, sum_here);
    }
  }
}

/* As the executor combines minima and maxima, see kernels/plain.h: the first NaN in
 * the order of the sources wins, with its bits. */
static inline void extremes_here(const sum_case *c, sum_work *w) {
  uint64_t n = view_count(c->view);
  lcomm_plain_kernel combine = lcomm_plain_kernel_of(
      LCOMM_FLOAT32, c->op == LCOMM_CUDA_MIN ? LCOMM_PLAIN_MIN : LCOMM_PLAIN_MAX);
  const void *both[] = {w->local[0], NULL};
  for (uint32_t s = 0; s < c->count; s++) {
    if (!source_is_plain(c, s)) {
      lcomm_decode(c->format, scalar, w->payload[s], lcomm_range_whole(n), 1.0f, w->local[s]);
    }
    both[1] = w->local[s];
    combine(both, s == 0 ? 1 : 2, w->local[0], (size_t)n);
  }
  view_scatter(c->view, w->local[0], w->expected);
}

static void minima_and_maxima_are_those_of_plain_kernels(void **state) {
  (void)state;
  for (size_t f = 0; f < format_count; f++) {
    for (size_t c = 0; c < COUNT(source_counts); c++) {
      sum_case s = {.format = &formats[f], .count = source_counts[c], .factor = 1.0f};
      s.view = &views[(f + 5 * c) % COUNT(views)];
      s.mix = (mix)((f + c) % MIXES);
      s.values = f % 2 ? KIND_AWKWARD : KIND_BITS;
      s.op = c % 2 ? LCOMM_CUDA_MIN : LCOMM_CUDA_MAX;
      sum_both(&s, extremes_here);
    }
  }
}

#define KERNEL_PROPERTIES(TEST)                                                                    \
  TEST(every_length_and_stripe_is_encoded_as_by_the_codecs),                                       \
      TEST(every_kind_of_value_is_encoded_as_by_the_codecs),                                       \
      TEST(long_arrays_are_encoded_as_by_the_codecs), TEST(sums_are_those_of_the_codecs),          \
      TEST(sums_of_gradients_are_those_of_the_codecs),                                             \
      TEST(fuzzed_bits_are_summed_as_by_the_codecs),                                               \
      TEST(minima_and_maxima_are_those_of_plain_kernels)

#endif
