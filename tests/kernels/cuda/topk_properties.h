/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_TOPK_PROPERTIES_H
#define LCOMM_TESTS_KERNELS_CUDA_TOPK_PROPERTIES_H

/* Top-k of every device: an encoder on each side, and what the
 * receiver does with payloads. */

#include "tests/kernels/cuda/kernel_properties.h"
#include "tests/kernels/cuda/topk_device_shape.h"

enum { OUTPUTS_MAX = 8, SEGMENTS_MAX = 16 };

/* What an encode is to do. */
typedef enum sending { RELEASE, HOLD, OWNER, SENDINGS } sending;

/* A payload, and what a device needs to read it. */
typedef struct sparse {
  uint8_t *payload, *payload_there;
  uint64_t size;
  void *scratch;
} sparse;

/* What lies on the host is what the codec made of it. */
typedef struct topk {
  lcomm_topk_shape shape;
  lcomm_topk *here;
  lcomm_cuda_topk *there;
  float *base, *residual, *base_there, *residual_there;
  sparse output[OUTPUTS_MAX];
  uint64_t *size_there; /* pinned */
} topk;

static inline sparse sparse_open(uint64_t entries, size_t size) {
  return (sparse){.payload = sample_memory(size),
                  .payload_there = there(NULL, size, 8),
                  .scratch = there(NULL, device->kernels->topk_scratch(entries, size), 0)};
}

static inline void topk_create_there(topk *t) {
  uint64_t count[SEGMENTS_MAX], kept[SEGMENTS_MAX], capacity[OUTPUTS_MAX];
  lcomm_cuda_topk_shape shape = device_shape(t->here, &t->shape, count, kept, capacity);
  void *memory = there(NULL, device->kernels->topk_size(&shape), 0);
  t->there = device->kernels->topk_create(&shape, memory, stream);
  assert_non_null(t->there);
}

/* The format in the shape outlives it. */
static inline topk topk_open(const lcomm_topk_shape *shape) {
  size_t size = (size_t)shape->base_count * sizeof(float);
  topk t = {.shape = *shape};
  void *pinned = NULL;
  assert_true(shape->outputs <= OUTPUTS_MAX && shape->segments <= SEGMENTS_MAX);
  assert_int_equal(lcomm_topk_create(shape, &t.here), LCOMM_OK);
  topk_create_there(&t);
  t.base = sample_memory(size);
  t.residual = sample_memory(size);
  t.base_there = there(t.base, size, 4);
  t.residual_there = there(t.residual, size, 12);
  for (uint32_t o = 0; o < shape->outputs; o++) {
    t.output[o] =
        sparse_open(lcomm_topk_output_capacity(t.here, o), lcomm_topk_output_bound(t.here, o));
  }
  CHECK(device->memory.pinned_get(OUTPUTS_MAX * sizeof *t.size_there, &pinned));
  t.size_there = pinned;
  return t;
}

/* Before give_back(). */
static inline void topk_close(topk *t) {
  CHECK(device->stream.finish(stream));
  CHECK(device->memory.pinned_free(t->size_there));
  device->kernels->topk_destroy(t->there);
  lcomm_topk_destroy(t->here);
  free(t->base);
  free(t->residual);
  for (uint32_t o = 0; o < t->shape.outputs; o++) {
    free(t->output[o].payload);
  }
}

static const float owner_weight = 0.25f;

static inline void topk_encode_there(topk *t, sending s) {
  uint8_t *payload[OUTPUTS_MAX];
  for (uint32_t o = 0; o < t->shape.outputs; o++) {
    payload[o] = t->output[o].payload_there;
  }
  put(t->base_there, t->base, (size_t)t->shape.base_count * sizeof *t->base);
  lcomm_cuda_topk_encode a = {.base = t->base_there,
                              .residual = t->residual_there,
                              .hold = s == HOLD,
                              .owner = s == OWNER,
                              .weight = owner_weight,
                              .payload = payload,
                              .payload_size = t->size_there};
  CHECK(device->kernels->topk_encode(t->there, &a, stream));
}

static inline void topk_encode_here(topk *t, sending s) {
  uint8_t *payload[OUTPUTS_MAX];
  size_t size[OUTPUTS_MAX] = {0};
  for (uint32_t o = 0; o < t->shape.outputs; o++) {
    payload[o] = t->output[o].payload;
  }
  if (s == OWNER) {
    lcomm_topk_encode_owner(t->here, scalar, t->base, t->residual, owner_weight, payload[0], size);
  } else {
    lcomm_topk_encode(t->here, scalar, t->base, t->residual, t->residual,
                      s == HOLD ? LCOMM_TOPK_HOLD : LCOMM_TOPK_RELEASE, payload, size);
  }
  for (uint32_t o = 0; o < t->shape.outputs; o++) {
    t->output[o].size = size[o];
  }
}

static inline void topk_expect(const topk *t) {
  CHECK(device->stream.finish(stream));
  for (uint32_t o = 0; o < t->shape.outputs; o++) {
    assert_int_equal(t->size_there[o], t->output[o].size);
    expect_there(t->output[o].payload_there, t->output[o].payload, t->output[o].size, "payload");
  }
  expect_there(t->residual_there, t->residual, (size_t)t->shape.base_count * sizeof(float),
               "residual");
}

static inline void topk_both(topk *t, sending s) {
  topk_encode_there(t, s);
  topk_encode_here(t, s);
  topk_expect(t);
}

static inline lcomm_cuda_sparse sparse_of(const sparse *s, const lcomm_topk_shape *shape) {
  uint32_t entries;
  memcpy(&entries, s->payload, sizeof entries);
  return (lcomm_cuda_sparse){.payload = s->payload_there,
                             .size = s->size,
                             .entries = entries,
                             .int8 = shape->format->variant == LCOMM_TOPK_INT8,
                             .parts = shape->parts,
                             .part = shape->part,
                             .base_count = shape->base_count,
                             .scratch = s->scratch};
}

/* ------------------------------------------------------------ many shapes */

static inline void encode_shape(const lcomm_topk_shape *shape, kind values, sending s) {
  uint64_t random = 7 + shape->base_count + (uint64_t)values;
  topk t = topk_open(shape);
  make_values(values, t.base, (size_t)shape->base_count, &random);
  make_values(KIND_GRADIENT, t.residual, (size_t)shape->base_count, &random);
  put(t.residual_there, t.residual, (size_t)shape->base_count * sizeof(float));
  topk_both(&t, s);
  topk_close(&t);
  give_back();
}

static void every_kind_of_value_is_chosen_from(void **state) {
  static const uint64_t ends[] = {1, 130, 4097, 6001};
  (void)state;
  for (int variant = 0; variant < 2; variant++) {
    for (int k = 0; k < KINDS; k++) {
      for (int s = 0; s < SENDINGS; s++) {
        const lcomm_format format = topk_format(k % 2 ? 0.01 : 0.2, variant);
        const lcomm_topk_shape shape = segmented(ends, COUNT(ends), &format);
        encode_shape(&shape, (kind)k, (sending)s);
      }
    }
  }
}

static inline void encode_whole(uint64_t count, uint32_t parts, uint32_t outputs, int variant,
                                double density) {
  const lcomm_format format = topk_format(density, variant);
  const lcomm_topk_shape shape = {.base_count = count,
                                  .parts = parts,
                                  .part = parts / 2,
                                  .outputs = outputs,
                                  .format = &format,
                                  .segment_ends = &count,
                                  .segments = 1};
  encode_shape(&shape, KIND_GRADIENT, variant ? HOLD : RELEASE);
}

static void lengths_stripes_and_outputs_are_chosen_from(void **state) {
  static const uint64_t counts[] = {0, 1, 33, 127, 1025, 4097, 20001};
  (void)state;
  for (size_t i = 0; i < COUNT(counts); i++) {
    encode_whole(counts[i], 1, 1, i % 2, 1.0);
    encode_whole(counts[i], 3, 1, (i + 1) % 2, 0.05);
    encode_whole(counts[i], 1, 3, i % 2, 0.05);
    encode_whole(counts[i], 1, OUTPUTS_MAX, (i + 1) % 2, 0.3);
  }
  encode_whole(4 * long_count + 1, 1, 1, 0, 0.01);
  encode_whole(4 * long_count + 1, 1, 4, 1, 0.001);
}

/* --------------------------------------------------------------- receivers */

static inline void receive(const lcomm_topk_shape *shape, float factor) {
  size_t size = (size_t)shape->base_count * sizeof(float);
  uint64_t random = 19 + shape->base_count;
  float *vector = sample_memory(size), *vector_there;
  topk t = topk_open(shape);
  sparse *sent = &t.output[0];
  make_values(KIND_GRADIENT, t.base, (size_t)shape->base_count, &random);
  make_values(KIND_GRADIENT, vector, (size_t)shape->base_count, &random);
  topk_encode_here(&t, RELEASE);
  put(sent->payload_there, sent->payload, sent->size);
  lcomm_cuda_sparse a = sparse_of(sent, shape);
  vector_there = there(vector, size, 4);
  CHECK(device->kernels->topk_add(&a, factor, vector_there, stream));
  lcomm_topk_add(shape->format, sent->payload, shape->parts, shape->part, factor, vector);
  expect_there(vector_there, vector, size, "sum");
  CHECK(device->kernels->topk_commit(&a, NULL, vector_there, stream));
  lcomm_topk_commit(shape->format, sent->payload, NULL, shape->parts, shape->part, vector);
  expect_there(vector_there, vector, size, "committed");
  CHECK(device->kernels->topk_mask(&a, NULL, vector_there, stream));
  lcomm_topk_mask(shape->format, sent->payload, NULL, shape->parts, shape->part, vector);
  expect_there(vector_there, vector, size, "masked");
  CHECK(device->kernels->topk_decode(&a, factor, vector_there, stream));
  lcomm_topk_decode(shape->format, sent->payload, shape->base_count, shape->parts, shape->part,
                    factor, vector);
  expect_there(vector_there, vector, size, "decoded");
  free(vector);
  topk_close(&t);
  give_back();
}

static void receivers_do_what_those_of_the_codec_do(void **state) {
  static const uint64_t counts[] = {0, 1, 33, 5000, 20000, 40000};
  static const double densities[] = {0.001, 0.05, 1.0};
  (void)state;
  for (size_t i = 0; i < COUNT(counts); i++) {
    for (size_t d = 0; d < COUNT(densities); d++) {
      for (int variant = 0; variant < 2; variant++) {
        const lcomm_format format = topk_format(densities[d], variant);
        const uint32_t parts = (i + d) % 3 == 2 ? 3 : 1;
        const lcomm_topk_shape shape = {.base_count = counts[i],
                                        .parts = parts,
                                        .part = parts / 2,
                                        .outputs = 1,
                                        .format = &format,
                                        .segment_ends = &counts[i],
                                        .segments = 1};
        receive(&shape, variant ? 0.125f : 1.0f / 3.0f);
      }
    }
  }
}

#define TOPK_PROPERTIES(TEST)                                                                      \
  TEST(every_kind_of_value_is_chosen_from), TEST(lengths_stripes_and_outputs_are_chosen_from),     \
      TEST(receivers_do_what_those_of_the_codec_do)

#endif
