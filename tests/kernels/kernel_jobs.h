/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_KERNEL_JOBS_H
#define LCOMM_TESTS_KERNELS_KERNEL_JOBS_H

/* Jobs with random inputs, and arrays for their results. Inputs have exactly
 * the size that a kernel may read, at any address that their type allows. */

#include "tests/kernels/kernel_cases.h"
#include "tests/kernels/kernel_values.h"

enum {
  GUARD = 64,         /* bytes before and after a result that must stay */
  LINE = 64,          /* results start at any place of a cache line */
  MOST_VALUES = 5000, /* in a job */
  POOL = 16384
};

/* What is made once: values of each kind, and the tables to compare with the
 * scalar one. Asking the processor is slow in a virtual machine. */
enum { MOST_TABLES = 15 };

typedef struct workshop {
  const lcomm_kernels *tables[MOST_TABLES + 1]; /* ended by NULL */
  float pool[KINDS][POOL];
  uint64_t random;
} workshop;

static inline workshop *workshop_open(void) {
  workshop *shop = sample_memory(sizeof *shop);
  shop->random = 20;
  size_t running = 0;
  for (size_t t = 0; lcomm_kernels_list[t] != NULL && running < MOST_TABLES; t++) {
    if (lcomm_kernels_list[t] != &lcomm_kernels_scalar &&
        lcomm_kernels_runs(lcomm_kernels_list[t])) {
      shop->tables[running++] = lcomm_kernels_list[t];
    }
  }
  for (kind k = 0; k < KINDS; k++) {
    make_values(k, shop->pool[k], POOL, &shop->random);
  }
  return shop;
}

/* A window of the pool, its blocks often those of the pool. */
static inline const float *pool_window(kind k, workshop *shop) {
  size_t at = sample_u64(&shop->random) % (POOL - MOST_VALUES - LINE);
  return shop->pool[k] + (sample_u64(&shop->random) % 2 ? at : at - at % LCOMM_BLOCK);
}

/* Results */

typedef struct area {
  uint8_t *memory, *start; /* NULL: no such output */
  size_t size;
} area;

static inline area area_make(const kernel_case *c, int o, size_t n, workshop *shop) {
  area a = {NULL, NULL, 0};
  if (c->out[o].size == 0) {
    return a;
  }
  size_t room = n * c->out[o].size + sizeof(uint64_t), offset = sample_u64(&shop->random) % LINE;
  a.size = (GUARD + LINE + room + GUARD + LINE - 1) / LINE * LINE;
  a.memory = aligned_alloc(LINE, a.size);
  assert_non_null(a.memory);
  a.start = a.memory + GUARD + offset / c->out[o].align * c->out[o].align;
  kind k = sample_u64(&shop->random) % KINDS;
  memcpy(a.memory, pool_window(k, shop), a.size);
  return a;
}

/* Another one at the same place of a line, with the same contents. */
static inline area area_copy(const area *original) {
  area a = *original;
  if (!a.memory) {
    return a;
  }
  a.memory = aligned_alloc(LINE, a.size);
  assert_non_null(a.memory);
  memcpy(a.memory, original->memory, a.size);
  a.start = a.memory + (original->start - original->memory);
  return a;
}

static inline bool both_nan(const uint8_t *left, const uint8_t *right) {
  float a, b;
  memcpy(&a, left, sizeof a);
  memcpy(&b, right, sizeof b);
  return lcomm_f32_magnitude(a) > (int32_t)LCOMM_F32_INF_BITS &&
         lcomm_f32_magnitude(b) > (int32_t)LCOMM_F32_INF_BITS;
}

/* The first 4 bytes that differ, or -1. */
static inline ptrdiff_t word_difference(const uint8_t *a, const uint8_t *b, size_t size,
                                        bool any_nan) {
  if (size == 0 || memcmp(a, b, size) == 0) {
    return -1;
  }
  size_t words = size / sizeof(float);
  for (size_t i = 0; i < words; i++) {
    const uint8_t *left = a + i * sizeof(float), *right = b + i * sizeof(float);
    if (memcmp(left, right, sizeof(float)) != 0 && !(any_nan && both_nan(left, right))) {
      return (ptrdiff_t)i;
    }
  }
  size_t rest = words * sizeof(float);
  return memcmp(a + rest, b + rest, size - rest) != 0 ? (ptrdiff_t)words : -1;
}

static inline bool any_nan_will_do(const kernel_case *c, const job *j) {
  return c->sums || j->hostile_scales;
}

static inline void run_case(const kernel_case *c, const lcomm_kernels *table, const job *j,
                            area *areas) {
  void *const out[OUTPUTS] = {areas[0].start, areas[1].start, areas[2].start, areas[3].start};
  c->run(table, j, out);
}

/* Inputs */

typedef struct inputs {
  job job;
  void *owned[7];
} inputs;

/* `size` bytes for the caller to fill, the last of them the last of the
 * memory, at a multiple of `align`. */
static inline void *input_make(inputs *in, int slot, size_t size, size_t align, workshop *shop) {
  size_t offset = sample_u64(&shop->random) % LINE / align * align;
  in->owned[slot] = sample_memory(offset + size);
  return (uint8_t *)in->owned[slot] + offset;
}

static inline const float *input_values(inputs *in, int slot, size_t n, kind k, workshop *shop) {
  float *value = input_make(in, slot, n * sizeof *value, sizeof *value, shop);
  memcpy(value, pool_window(k, shop), n * sizeof *value);
  return value;
}

/* Random, or one after the other, so that all are there. */
static inline const void *input_bytes(inputs *in, int slot, size_t size, size_t align,
                                      workshop *shop) {
  uint8_t *byte = input_make(in, slot, size, align, shop);
  uint64_t start = sample_u64(&shop->random);
  for (size_t i = 0; i < size; i++) {
    byte[i] = (uint8_t)(start % 2 ? sample_u64(&shop->random) >> 20 : start / 2 + i);
  }
  return byte;
}

static inline const uint8_t *input_scale_bytes(inputs *in, int slot, size_t n, bool hostile,
                                               workshop *shop) {
  uint8_t *byte = input_make(in, slot, n, 1, shop);
  for (size_t i = 0; i < n; i++) {
    uint64_t random = sample_u64(&shop->random);
    byte[i] = (uint8_t)(!hostile     ? 117 + random % 20
                        : random & 1 ? random >> 20
                                     : random >> 20 | 0xf0);
  }
  return byte;
}

static inline uint32_t input_threshold(const float *source, size_t n, workshop *shop) {
  static const uint32_t special[] = {0,          1,          0x7f800000, 0x7f800001,
                                     0x7fffffff, 0x80000000, 0xffffffff};
  uint64_t choice = sample_u64(&shop->random) % 16;
  if (choice < 7 || n == 0) {
    return special[choice % 7];
  }
  return (uint32_t)lcomm_f32_magnitude(source[sample_u64(&shop->random) % n]);
}

static inline inputs inputs_make(size_t n, size_t block, kind k, workshop *shop) {
  static const float factors[] = {1.0f, 0.25f, 1.0f / 3.0f, 0.0f, -2.0f};
  uint64_t random = sample_u64(&shop->random);
  size_t scales = (n + 31) / 32, capacities[] = {n, n, n / 2, n / 16, n > 0};
  kind scale_kind = random % 2 ? KIND_GRADIENT : KIND_AWKWARD;
  inputs in = {.job = {.n = n, .block = block, .seed = random, .hostile_scales = random % 2 == 0}};
  job *j = &in.job;
  j->factor = factors[sample_u64(&shop->random) % 5];
  for (int s = 0; s < 3; s++) {
    j->source[s] = input_values(&in, s, n, s == 0 || random % 4 == 0 ? k : KIND_GRADIENT, shop);
  }
  j->half = input_bytes(&in, 3, n * sizeof *j->half, sizeof *j->half, shop);
  j->code = input_bytes(&in, 4, 4 * n, 1, shop);
  j->scale = input_values(&in, 5, scales, scale_kind, shop);
  j->scale_byte = input_scale_bytes(&in, 6, scales, j->hostile_scales, shop);
  /* Around indices whose lower half is 0. */
  j->first = ((random >> 8) % 4 << 32) + LCOMM_BLOCK * ((random >> 16) % 16) - LCOMM_BLOCK * 8;
  j->threshold = input_threshold(j->source[0], n, shop);
  j->capacity = capacities[(random >> 12) % 5];
  return in;
}

static inline void inputs_free(inputs *in) {
  for (int o = 0; o < 7; o++) {
    free(in->owned[o]);
  }
}

#endif
