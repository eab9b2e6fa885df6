/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_check.h"

#include <string.h>

/* 52 bits, so that a double carries them. */
static double hash(const unsigned char *bytes, size_t size) {
  uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a over words */
  for (size_t at = 0; at < size; at += sizeof h) {
    uint64_t word = 0;
    memcpy(&word, bytes + at, size - at < sizeof word ? size - at : sizeof word);
    h = (h ^ word) * UINT64_C(0x100000001b3);
    h ^= h >> 29;
  }
  return (double)(h >> 12);
}

/* Elements in blocks that are not the same on all ranks. The largest hash and
 * the largest negative one are both mine everywhere only if all are equal. */
static uint64_t count_unequal(const lcomm_perf_world *world, lcomm_dtype dtype, const void *buffer,
                              uint64_t count) {
  enum { BLOCK = 1 << 14, BATCH = 1024 };
  double largest[2 * BATCH];
  size_t element = lcomm_dtype_size(dtype);
  uint64_t unequal = 0;
  for (uint64_t first = 0; first < count;) {
    uint64_t at = first;
    size_t blocks = 0;
    for (; blocks < BATCH && at < count; blocks++, at += BLOCK) {
      uint64_t length = count - at < BLOCK ? count - at : BLOCK;
      largest[2 * blocks] = hash((const unsigned char *)buffer + at * element, length * element);
      largest[2 * blocks + 1] = -largest[2 * blocks];
    }
    lcomm_perf_world_max(world, largest, 2 * blocks);
    for (size_t i = 0; i < blocks; i++) {
      uint64_t begin = first + i * BLOCK;
      uint64_t length = count - begin < BLOCK ? count - begin : BLOCK;
      unequal += largest[2 * i] == -largest[2 * i + 1] ? 0 : length;
    }
    first = at;
  }
  return unequal;
}

/* Of a result that is alike everywhere each rank compares a part with the exact
 * one: equality makes the parts a whole. */
lcomm_perf_difference lcomm_perf_check_result(const lcomm_perf_world *world,
                                              const lcomm_perf_pattern *pattern,
                                              const lcomm_perf_call *call, int is_exact,
                                              const void *result) {
  uint64_t count = lcomm_perf_receive_count(call->collective, call->count, world->ranks);
  uint64_t first = 0, end = count;
  if (call->collective->is_alike) {
    uint64_t step = count / (uint64_t)world->ranks + 1;
    first = step * (uint64_t)world->rank < count ? step * (uint64_t)world->rank : count;
    end = count - first < step ? count : first + step;
  }
  lcomm_perf_difference d =
      lcomm_perf_pattern_compare(pattern, call, world->rank, result, first, end - first);
  if (!is_exact) {
    d.wrong = 0;
  }
  if (call->collective->is_alike) {
    uint64_t unequal = count_unequal(world, call->dtype, result, count);
    d.wrong += world->rank == 0 ? unequal : 0;
  }
  return d;
}
