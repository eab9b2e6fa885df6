/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_KERNELS_KERNEL_SLABS_H
#define LCOMM_TESTS_KERNELS_KERNEL_SLABS_H

/* Results of long jobs: two pieces of memory that are used again for every
 * kernel, and jobs whose inputs are all the same array. */

#include <stdio.h>

#include "tests/kernels/kernel_jobs.h"

/* The caches are passed by in whole lines: where in its line each output
 * begins. */
typedef enum slab_place { ALL_AT_0, ALL_AT_20, FIRST_AT_0, SLAB_PLACES } slab_place;

static inline size_t slab_offset(slab_place place, int output) {
  return place == ALL_AT_0 ? 0 : place == ALL_AT_20 ? 20 : 20 * (size_t)output;
}

typedef struct slabs {
  void *owned[2];
  uint8_t *expected, *got; /* `size` bytes each, from the beginning of a line */
  size_t size;
} slabs;

static inline size_t slab_room(const kernel_case *c, int o, size_t n) {
  return c->out[o].size == 0 ? 0 : (n * c->out[o].size + 2 * GUARD + LINE - 1) / LINE * LINE;
}

static inline size_t slab_need(const kernel_case *c, size_t n) {
  size_t need = 0;
  for (int o = 0; o < OUTPUTS; o++) {
    need += slab_room(c, o, n);
  }
  return need;
}

static inline slabs slabs_open(size_t size) {
  slabs s = {.size = size};
  for (int i = 0; i < 2; i++) {
    s.owned[i] = sample_memory(size + LINE);
  }
  s.expected = (uint8_t *)(((uintptr_t)s.owned[0] + LINE - 1) / LINE * LINE);
  s.got = (uint8_t *)(((uintptr_t)s.owned[1] + LINE - 1) / LINE * LINE);
  return s;
}

static inline void slabs_close(slabs *s) {
  free(s->owned[0]);
  free(s->owned[1]);
}

/* Into zeros. */
static inline void slab_run(const kernel_case *c, const lcomm_kernels *table, const job *j,
                            uint8_t *slab, slab_place place) {
  void *out[OUTPUTS];
  size_t at = 0;
  memset(slab, 0, slab_need(c, j->n));
  for (int o = 0; o < OUTPUTS; o++) {
    out[o] = slab + at + slab_offset(place, o);
    at += slab_room(c, o, j->n);
  }
  c->run(table, j, out);
}

/* The first output that differs, or -1. */
static inline int slab_difference(const kernel_case *c, const slabs *s, const job *j,
                                  slab_place place) {
  size_t at = 0;
  for (int o = 0; o < OUTPUTS; o++) {
    const uint8_t *expected = s->expected + at, *got = s->got + at + slab_offset(place, o);
    size_t size = c->out[o].size == 0 ? 0 : j->n * c->out[o].size + GUARD;
    if (word_difference(expected, got, size, any_nan_will_do(c, j)) >= 0) {
      return o;
    }
    at += slab_room(c, o, j->n);
  }
  return -1;
}

/* Every table, and every place in a line. */
static inline void slabs_compare(const kernel_case *c, const job *j, const slabs *s,
                                 const workshop *shop) {
  if (slab_need(c, j->n) > s->size) {
    return;
  }
  slab_run(c, &lcomm_kernels_scalar, j, s->expected, ALL_AT_0);
  for (size_t t = 0; shop->tables[t] != NULL; t++) {
    for (slab_place p = 0; p < SLAB_PLACES; p++) {
      if (p == FIRST_AT_0 && c->out[1].size == 0) {
        continue;
      }
      slab_run(c, shop->tables[t], j, s->got, p);
      int output = slab_difference(c, s, j, p);
      if (output >= 0) {
        fail_msg("%s, table %s: %zu values, output %d at offset %zu differs", c->name,
                 shop->tables[t]->name, j->n, output, slab_offset(p, output));
      }
    }
  }
}

/* All inputs are the bytes of `value`. */
static inline job slab_job(const float *value, size_t n) {
  job j = {.n = n,
           .block = LCOMM_BLOCK,
           .factor = 0.75f,
           .half = (const uint16_t *)value,
           .hostile_scales = true};
  for (int s = 0; s < 3; s++) {
    j.source[s] = value;
  }
  j.code = j.scale_byte = (const uint8_t *)value;
  j.scale = value;
  j.threshold = 0x3a83126f; /* 0.001 */
  j.capacity = n;
  return j;
}

#endif
