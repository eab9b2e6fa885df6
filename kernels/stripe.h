/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_STRIPE_H
#define LCOMM_KERNELS_STRIPE_H

/* Block-cyclic stripes. A range of `count` elements is cut into tiles of
 * LCOMM_TILE; part p of `parts` owns the tiles t with t % parts == p. Element
 * i of a part, counted over its own tiles only, is its *local* index; its
 * place in the range is the *global* index. With parts == 1 both are equal.
 */

#include <stdint.h>

enum { LCOMM_TILE = 4096 };

/* Number of elements that `part` owns among the first `count` of the range. */
static inline uint64_t lcomm_stripe_count(uint64_t count, uint32_t parts, uint32_t part) {
  uint64_t full_rounds = count / ((uint64_t)LCOMM_TILE * parts);
  uint64_t rest = count - full_rounds * LCOMM_TILE * parts;
  uint64_t before = (uint64_t)part * LCOMM_TILE;
  uint64_t tail = rest > before ? rest - before : 0;
  return full_rounds * LCOMM_TILE + (tail < LCOMM_TILE ? tail : (uint64_t)LCOMM_TILE);
}

static inline uint64_t lcomm_stripe_global(uint64_t local, uint32_t parts, uint32_t part) {
  return (local / LCOMM_TILE * parts + part) * LCOMM_TILE + local % LCOMM_TILE;
}

static inline uint32_t lcomm_stripe_owner(uint64_t global, uint32_t parts) {
  return (uint32_t)(global / LCOMM_TILE % parts);
}

static inline uint64_t lcomm_stripe_local(uint64_t global, uint32_t parts) {
  return global / LCOMM_TILE / parts * LCOMM_TILE + global % LCOMM_TILE;
}

/* Length of the run that starts at `local`, ends at `end` at the latest, and
 * is contiguous in the range too. */
static inline uint64_t lcomm_stripe_run(uint64_t local, uint64_t end, uint32_t parts) {
  uint64_t tile_left = LCOMM_TILE - local % LCOMM_TILE;
  return parts > 1 && tile_left < end - local ? tile_left : end - local;
}

#endif
