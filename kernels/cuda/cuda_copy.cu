/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Many copies in one launch, from places that are known when it is launched, or that are read in
 * pinned memory when it begins. A piece goes in units of 16 bytes where both its places are
 * multiples of that, else in words where they are, else in bytes; a block has a tile of it. */

#include "kernels/cuda/cuda_grid.cuh"

#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_list.cuh"

enum { UNIT = 16, WORD = 4, UNITS = 4, TILE = UNITS * UNIT * LCOMM_THREADS_MAX };

typedef struct copy_piece {
  const uint8_t *from;
  uint8_t *to;
  uint64_t size;
} copy_piece;

typedef struct copy_list_args {
  lcomm_list_blocks blocks;
  copy_piece piece[LCOMM_CUDA_LIST_MAX];
} copy_list_args;

typedef struct fetch_piece {
  const uint8_t *const *from; /* the host writes it */
  uint8_t *to;
  uint64_t size;
} fetch_piece;

typedef struct fetch_list_args {
  lcomm_list_blocks blocks;
  fetch_piece piece[LCOMM_CUDA_LIST_MAX];
} fetch_list_args;

/* `size` bytes of a tile, a multiple of the unit. */
LCOMM_DEVICE void copy_units(const uint8_t *from, uint8_t *to, uint32_t size) {
  lcomm_vec4 unit[UNITS] = {};
  LCOMM_UNROLL for (uint32_t i = 0; i < UNITS; i++) {
    uint32_t at = (i * LCOMM_THREADS_MAX + lcomm_thread()) * UNIT;
    if (at < size) {
      unit[i] = lcomm_load4(from + at);
    }
  }
  LCOMM_UNROLL for (uint32_t i = 0; i < UNITS; i++) {
    uint32_t at = (i * LCOMM_THREADS_MAX + lcomm_thread()) * UNIT;
    if (at < size) {
      lcomm_store4(to + at, unit[i]);
    }
  }
}

LCOMM_DEVICE void copy_words(const uint8_t *from, uint8_t *to, uint32_t size) {
  for (uint32_t at = lcomm_thread() * WORD; at < size; at += LCOMM_THREADS_MAX * WORD) {
    *(uint32_t *)(to + at) = *(const uint32_t *)(from + at);
  }
}

LCOMM_DEVICE void copy_bytes(const uint8_t *from, uint8_t *to, uint32_t first, uint32_t size) {
  for (uint32_t at = first + lcomm_thread(); at < size; at += LCOMM_THREADS_MAX) {
    to[at] = from[at];
  }
}

/* The tile that begins at `first` of `all` bytes. */
LCOMM_DEVICE void copy_tile(const uint8_t *source, uint8_t *destination, uint64_t first,
                            uint64_t all) {
  uint64_t left = all - first;
  const uint8_t *from = source + first;
  uint8_t *to = destination + first;
  uint32_t size = left < TILE ? (uint32_t)left : (uint32_t)TILE, done = 0;
  uint64_t both = (uint64_t)(uintptr_t)from | (uint64_t)(uintptr_t)to;
  if (both % UNIT == 0) {
    done = size / UNIT * UNIT;
    copy_units(from, to, done);
  } else if (both % WORD == 0) {
    done = size / WORD * WORD;
    copy_words(from, to, done);
  }
  copy_bytes(from, to, done, size);
}

LCOMM_KERNEL(copy_list, copy_list_args) {
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  const copy_piece *piece = &a.piece[place.piece];
  copy_tile(piece->from, piece->to, (uint64_t)place.block * TILE, piece->size);
}

LCOMM_KERNEL(fetch_list, fetch_list_args) {
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  const fetch_piece *piece = &a.piece[place.piece];
  const uint8_t *from = lcomm_load_place_of_host(piece->from);
  if (from) {
    copy_tile(from, piece->to, (uint64_t)place.block * TILE, piece->size);
  }
}

static uint64_t blocks_of(uint64_t size) {
  return size / TILE + (size % TILE != 0);
}

extern "C" int lcomm_cuda_run_copy_list(const lcomm_cuda_copy *list, uint32_t count, void *stream) {
  copy_list_args args = {};
  if (count == 0) {
    return 0;
  }
  if (count > LCOMM_CUDA_LIST_MAX) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  for (uint32_t i = 0; i < count; i++) {
    copy_piece piece = {(const uint8_t *)list[i].from, (uint8_t *)list[i].to, list[i].size};
    args.piece[i] = piece;
    if (!piece.from || !piece.to || !lcomm_list_add(&args.blocks, blocks_of(piece.size))) {
      return LCOMM_CUDA_INVALID_VALUE;
    }
  }
  return LCOMM_LAUNCH(copy_list, lcomm_list_blocks_all(&args.blocks), LCOMM_THREADS_MAX, stream,
                      args);
}

extern "C" int lcomm_cuda_run_fetch_list(const lcomm_cuda_fetch *list, uint32_t count,
                                         void *stream) {
  fetch_list_args args = {};
  if (count == 0) {
    return 0;
  }
  if (count > LCOMM_CUDA_LIST_MAX) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  for (uint32_t i = 0; i < count; i++) {
    fetch_piece piece = {(const uint8_t *const *)list[i].from, (uint8_t *)list[i].to, list[i].size};
    args.piece[i] = piece;
    if (!piece.from || !piece.to || !lcomm_list_add(&args.blocks, blocks_of(piece.size))) {
      return LCOMM_CUDA_INVALID_VALUE;
    }
  }
  return LCOMM_LAUNCH(fetch_list, lcomm_list_blocks_all(&args.blocks), LCOMM_THREADS_MAX, stream,
                      args);
}
