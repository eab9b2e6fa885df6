/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_TOPK_PAIR_H
#define LCOMM_TESTS_KERNELS_CUDA_TOPK_PAIR_H

/* Two encoders of one shape, the processor's and the device's, each with memory of
 * its own, of exactly the size it asks for. What they do has to be the same to the
 * last byte. */

#include <stdio.h>

#include "codecs/codec_topk_internal.h"
#include "kernels/cuda/cuda_topk.h"
#include "kernels/stripe.h"
#include "tests/codecs/topk_samples.h"
#include "tests/kernels/cuda/topk_device_shape.h"
#include "tests/support/emulated/emulated_blocks.h"

enum { OUTPUTS_MAX = 70 };

typedef struct side {
  float *residual;
  uint8_t *payload[OUTPUTS_MAX];
  uint64_t size[OUTPUTS_MAX];
} side;

typedef struct pair {
  lcomm_topk_shape shape;
  lcomm_topk *cpu;
  lcomm_cuda_topk *device;
  void *memory; /* of the device's encoder */
  size_t memory_size;
  float *base;
  side expected, found;
} pair;

/* What an encode is to do. */
typedef enum pair_mode { RELEASE, HOLD, NO_RESIDUAL, OWNER, MODES } pair_mode;

static inline void *device_memory(size_t size) {
  void *memory = NULL;
  assert_int_equal(posix_memalign(&memory, 256, size > 0 ? size : 1), 0);
  memset(memory, 0xa5, size);
  return memory;
}

static inline bool is_int8(const lcomm_format *format) {
  return format->variant == LCOMM_TOPK_INT8;
}

static inline void make_device(pair *p) {
  size_t segments = lcomm_topk_segments(p->cpu);
  uint64_t *count = sample_memory(segments * sizeof *count);
  uint64_t *kept = sample_memory(segments * sizeof *kept);
  uint64_t capacity[OUTPUTS_MAX];
  lcomm_cuda_topk_shape shape = device_shape(p->cpu, &p->shape, count, kept, capacity);
  p->memory_size = lcomm_cuda_run_topk_size(&shape);
  p->memory = device_memory(p->memory_size);
  p->device = lcomm_cuda_run_topk_create(&shape, p->memory, NULL);
  assert_non_null(p->device);
  free(count);
  free(kept);
}

static inline void make_side(const pair *p, side *s) {
  s->residual = sample_memory(p->shape.base_count * sizeof *s->residual);
  for (uint32_t o = 0; o < p->shape.outputs; o++) {
    s->payload[o] = sample_memory(lcomm_topk_output_bound(p->cpu, o));
  }
}

/* The format in the shape outlives the pair. */
static inline pair make_pair(const lcomm_topk_shape *shape) {
  pair p = {.shape = *shape};
  assert_in_range(shape->outputs, 1, OUTPUTS_MAX);
  p.cpu = make(shape);
  make_device(&p);
  p.base = sample_memory(shape->base_count * sizeof *p.base);
  make_side(&p, &p.expected);
  make_side(&p, &p.found);
  return p;
}

static inline void free_pair(pair *p) {
  lcomm_topk_destroy(p->cpu);
  lcomm_cuda_run_topk_destroy(p->device);
  free(p->memory);
  free(p->base);
  free(p->expected.residual);
  free(p->found.residual);
  for (uint32_t o = 0; o < p->shape.outputs; o++) {
    free(p->expected.payload[o]);
    free(p->found.payload[o]);
  }
}

static const float owner_weight = 0.25f;

static inline void encode_expected(pair *p, pair_mode mode) {
  side *s = &p->expected;
  size_t size[OUTPUTS_MAX];
  const lcomm_kernels *kernels = &lcomm_kernels_scalar;
  if (mode == OWNER) {
    lcomm_topk_encode_owner(p->cpu, kernels, p->base, s->residual, owner_weight, s->payload[0],
                            size);
  } else {
    lcomm_topk_encode(p->cpu, kernels, p->base, mode == NO_RESIDUAL ? NULL : s->residual,
                      mode == NO_RESIDUAL ? NULL : s->residual,
                      mode == HOLD ? LCOMM_TOPK_HOLD : LCOMM_TOPK_RELEASE, s->payload, size);
  }
  for (uint32_t o = 0; o < p->shape.outputs; o++) {
    s->size[o] = size[o];
  }
}

static inline void encode_found(pair *p, pair_mode mode) {
  lcomm_cuda_topk_encode a = {.base = p->base,
                              .residual = mode == NO_RESIDUAL ? NULL : p->found.residual,
                              .hold = mode == HOLD,
                              .owner = mode == OWNER,
                              .weight = owner_weight,
                              .payload = p->found.payload,
                              .payload_size = p->found.size};
  assert_int_equal(lcomm_cuda_run_topk_encode(p->device, &a, NULL), 0);
}

/* Both encode what is in base. */
static inline void encode_both(pair *p, pair_mode mode) {
  encode_expected(p, mode);
  encode_found(p, mode);
  for (uint32_t o = 0; o < p->shape.outputs; o++) {
    assert_int_equal(p->found.size[o], p->expected.size[o]);
    assert_memory_equal(p->found.payload[o], p->expected.payload[o], p->expected.size[o]);
  }
  assert_memory_equal(p->found.residual, p->expected.residual,
                      p->shape.base_count * sizeof *p->base);
}

/* Both have accumulated this before. */
static inline void fill_residuals(pair *p, value_of *kind, uint64_t seed) {
  fill(p->expected.residual, p->shape.base_count, kind, seed);
  memcpy(p->found.residual, p->expected.residual, p->shape.base_count * sizeof *p->base);
}

#endif
