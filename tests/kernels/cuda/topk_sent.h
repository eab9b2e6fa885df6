/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_CUDA_TOPK_SENT_H
#define LCOMM_TESTS_KERNELS_CUDA_TOPK_SENT_H

/* Payloads of top-k that the CPU has made, for those who read them on a device. */

#include "codecs/codec_topk_payload.h"
#include "tests/kernels/cuda/topk_pair.h"

/* A payload, and what a device needs to read it. */
typedef struct sent {
  lcomm_format format;
  uint64_t base_count, entries;
  size_t size;
  uint32_t parts, part;
  uint8_t *payload;
  void *scratch;
} sent;

typedef struct geometry {
  uint64_t base_count;
  uint32_t parts, part;
} geometry;

static inline sent make_sent(geometry g, double density, int variant, value_of *kind,
                             uint64_t seed) {
  sent s = {.format = topk_format(density, variant),
            .base_count = g.base_count,
            .parts = g.parts,
            .part = g.part};
  lcomm_topk_shape shape = whole(&g.base_count, &s.format);
  shape.parts = g.parts;
  shape.part = g.part;
  lcomm_topk *topk = make(&shape);
  float *base = sample_memory(g.base_count * sizeof *base);
  uint8_t *payload = payload_memory(topk);
  fill(base, g.base_count, kind, seed);
  lcomm_topk_encode(topk, &lcomm_kernels_scalar, base, NULL, NULL, LCOMM_TOPK_RELEASE, &payload,
                    &s.size);
  s.entries = lcomm_topk_total(topk);
  s.payload = sample_memory(s.size);
  memcpy(s.payload, payload, s.size);
  s.scratch = device_memory(lcomm_cuda_run_topk_scratch(s.entries, s.size));
  free(payload);
  free(base);
  lcomm_topk_destroy(topk);
  return s;
}

static inline void free_sent(sent *s) {
  free(s->payload);
  free(s->scratch);
}

static inline lcomm_cuda_sparse sparse_of(const sent *s) {
  return (lcomm_cuda_sparse){.payload = s->payload,
                             .size = s->size,
                             .entries = s->entries,
                             .int8 = is_int8(&s->format),
                             .parts = s->parts,
                             .part = s->part,
                             .base_count = s->base_count,
                             .scratch = s->scratch};
}

/* What nobody can have sent; so many kinds of it. */
enum { IMPOSSIBLE = 4 };

static inline lcomm_cuda_sparse impossible(const sent *s, int kind) {
  lcomm_cuda_sparse a = sparse_of(s);
  a.size = kind == 0 ? 3 : a.size; /* no number of entries */
  a.parts = kind == 1 ? 0 : a.parts;
  a.part = kind == 2 ? 1 : a.part;
  a.base_count = kind == 3 ? (uint64_t)1 << 32 : a.base_count;
  return a;
}

/* Two vectors of the same values. */
typedef struct vectors {
  float *expected, *found;
  size_t size;
} vectors;

static inline vectors make_vectors(uint64_t count, value_of *kind) {
  vectors v = {.size = count * sizeof(float)};
  v.expected = sample_memory(v.size);
  v.found = sample_memory(v.size);
  fill(v.expected, count, kind, 77);
  memcpy(v.found, v.expected, v.size);
  return v;
}

static inline void compare_and_free(vectors *v) {
  assert_memory_equal(v->found, v->expected, v->size);
  free(v->expected);
  free(v->found);
}

/* Whoever launches does not know how many entries there are, and how many bytes: he says how many
 * there can be. */
static inline void say_more(sent *s, uint64_t entries, size_t bytes) {
  size_t size = s->size + bytes;
  uint8_t *larger = sample_memory(size);
  memset(larger, 0xc3, size);
  memcpy(larger, s->payload, s->size);
  free_sent(s);
  s->payload = larger;
  s->size = size;
  s->entries += entries;
  s->scratch = device_memory(lcomm_cuda_run_topk_scratch(s->entries, s->size));
}

#endif
