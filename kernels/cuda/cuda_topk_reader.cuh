/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_KERNELS_CUDA_CUDA_TOPK_READER_CUH
#define LCOMM_KERNELS_CUDA_CUDA_TOPK_READER_CUH

/* Reading a payload of top-k with many blocks of threads.
 *
 * How many entries it has, it says itself, on the device: a grid is sized for all bytes that may be
 * read, and blocks behind the index have nothing to do.
 *
 * An index block says how long it is and so where the next one begins: a chain,
 * which one thread would follow for a long time. So the bytes are cut into *strips*.
 * A chain can enter a strip at one of its first HOPS bytes only, because an index
 * block is not longer; for each of these it is found out where it leaves the strip,
 * and after how many index blocks (topk_hop), and then the same for every LEAP strips
 * (topk_leap). That makes a short way to the true entrance of each strip. From there
 * its index blocks are known, and how far their positions advance in all (topk_mark);
 * the sum over the strips before is the position that the first of them counts from
 * (topk_apply).
 *
 * If the payload was not checked before, or has changed since, the results are
 * meaningless, but no access leaves the payload and the destination. One that says to have
 * more entries than it can have counts as empty.
 */

#include "kernels/cuda/cuda_list.cuh"
#include "kernels/cuda/cuda_topk_view.cuh"

enum {
  LCOMM_TOPK_STRIP = LCOMM_CUDA_TOPK_STRIP, /* bytes of the index */
  LCOMM_TOPK_HOPS = 129, /* bytes of the longest index block: 32 deltas of 32 bits */
  LCOMM_TOPK_LEAP = LCOMM_CUDA_TOPK_LEAP, /* strips */
  LCOMM_TOPK_ROUND = 256                  /* index blocks that are looked at together */
};

typedef struct lcomm_topk_mark {
  uint32_t entrance; /* byte of the strip */
  uint32_t block;    /* the first index block that begins in it */
  uint32_t advance;  /* of positions, by all that do */
} lcomm_topk_mark;

/* A payload. */
typedef struct lcomm_topk_reading {
  const uint8_t *index;              /* behind the number of entries */
  uint64_t readable;                 /* bytes from there on */
  uint32_t most;                     /* entries */
  uint32_t strips, leaps;            /* of `readable`: the grid's */
  uint32_t int8, parts, part, count; /* the last: elements of the view */
  /* What it says itself, set in every kernel by lcomm_topk_begin. */
  uint32_t entries, blocks;
  uint64_t limit; /* bytes of the index at most */
  /* Scratch. */
  uint32_t *index_size;
  lcomm_topk_mark *mark; /* of each strip */
  uint32_t *hop;         /* HOPS for each strip: index blocks * 256 + byte of the next strip */
  uint32_t *leap;        /* the same for each LEAP strips */
  uint32_t *position;    /* of each entry; only where it is asked for */
} lcomm_topk_reading;

/* Shared memory of a block that reads a strip. */
typedef struct lcomm_topk_strip {
  uint8_t byte[LCOMM_TOPK_STRIP];
  uint32_t begin[LCOMM_TOPK_ROUND];   /* of index blocks, in the strip */
  uint32_t advance[LCOMM_TOPK_ROUND]; /* of their positions */
  uint32_t sums[LCOMM_TOPK_WARPS];
  uint32_t next, block, found; /* where the chain is, and what a round has found */
} lcomm_topk_strip;

/* Payloads that are read in one launch: blocks of each are those of its strips, or leaps. */
typedef struct lcomm_topk_readings {
  lcomm_list_blocks blocks;
  lcomm_topk_reading reading[LCOMM_CUDA_LIST_MAX];
} lcomm_topk_readings;

#ifdef __cplusplus
extern "C" {
#endif

/* Sets the marks and the size of the index, for whoever applies the entries next. */
int lcomm_cuda_topk_find_marks(const lcomm_topk_reading *r, void *stream);

/* The same of up to LCOMM_CUDA_LIST_MAX payloads. */
int lcomm_cuda_topk_find_all_marks(const lcomm_topk_reading *list, uint32_t count, void *stream);

#ifdef __cplusplus
}
#endif

/* How many entries a payload has: 0 if that cannot be. */
LCOMM_DEVICE uint32_t lcomm_topk_count_entries(const lcomm_topk_reading *r) {
  uint32_t entries = 0;
  const uint8_t *payload = r->index - sizeof entries;
  for (uint32_t i = 0; i < sizeof entries; i++) {
    entries |= (uint32_t)payload[i] << 8 * i;
  }
  return entries <= r->most && lcomm_topk_value_bytes(entries, r->int8) < r->readable ? entries : 0;
}

/* By every thread of a kernel, first of all. */
LCOMM_DEVICE lcomm_topk_reading lcomm_topk_begin(const lcomm_topk_reading *a) {
  lcomm_topk_reading r = *a;
  r.entries = lcomm_topk_count_entries(a);
  r.blocks =
      (uint32_t)(((uint64_t)r.entries + LCOMM_TOPK_INDEX_BLOCK - 1) / LCOMM_TOPK_INDEX_BLOCK);
  r.limit = r.entries > 0 ? r.readable - lcomm_topk_value_bytes(r.entries, r.int8) : 0;
  return r;
}

/* Has the index no byte of this strip, nor of those after it? */
LCOMM_DEVICE int lcomm_topk_is_behind(const lcomm_topk_reading *r, uint32_t strip) {
  return (uint64_t)strip * LCOMM_TOPK_STRIP >= r->limit;
}

LCOMM_DEVICE uint32_t lcomm_topk_width(uint32_t byte) {
  return byte < 32 ? byte : 32;
}

/* Bytes of the strip that belong to the index. */
LCOMM_DEVICE uint32_t lcomm_topk_strip_size(const lcomm_topk_reading *r, uint32_t strip) {
  uint64_t first = (uint64_t)strip * LCOMM_TOPK_STRIP;
  uint64_t left = r->limit > first ? r->limit - first : 0;
  return lcomm_topk_at_most(left, LCOMM_TOPK_STRIP);
}

LCOMM_DEVICE void lcomm_topk_load_strip(const lcomm_topk_reading *r, uint32_t strip,
                                        uint8_t byte[LCOMM_TOPK_STRIP]) {
  uint64_t first = (uint64_t)strip * LCOMM_TOPK_STRIP;
  uint32_t size = lcomm_topk_strip_size(r, strip);
  for (uint32_t i = lcomm_thread(); i < LCOMM_TOPK_STRIP; i += LCOMM_TOPK_THREADS) {
    byte[i] = i < size ? r->index[first + i] : 0;
  }
}

LCOMM_DEVICE uint32_t lcomm_topk_entries_in(const lcomm_topk_reading *r, uint32_t block) {
  uint32_t left = r->entries - block * LCOMM_TOPK_INDEX_BLOCK;
  return lcomm_topk_at_most(left, LCOMM_TOPK_INDEX_BLOCK);
}

/* By one thread: follows the chain, for so many index blocks as a round has. */
LCOMM_DEVICE void lcomm_topk_follow(const lcomm_topk_reading *r, uint32_t size,
                                    lcomm_topk_strip *s) {
  uint32_t at = s->next, found = 0, left = r->blocks - s->block;
  for (; at < size && found < LCOMM_TOPK_ROUND && found < left; found++) {
    s->begin[found] = at;
    at += 1 + 4 * lcomm_topk_width(s->byte[at]);
  }
  s->next = at;
  s->found = found;
}

/* The delta of this lane, of the index block at `begin` of the strip. */
LCOMM_DEVICE uint32_t lcomm_topk_delta(const lcomm_topk_reading *r, const lcomm_topk_strip *s,
                                       uint32_t strip, uint32_t begin) {
  uint32_t width = lcomm_topk_width(s->byte[begin]), bit = lcomm_lane() * width;
  uint64_t at = (uint64_t)strip * LCOMM_TOPK_STRIP + begin + 1 + bit / 8, bytes = 0;
  LCOMM_UNROLL for (uint32_t i = 0; i < 5; i++) {
    if (8 * i < bit % 8 + width && at + i < r->limit) {
      bytes |= (uint64_t)r->index[at + i] << 8 * i;
    }
  }
  return (uint32_t)(bytes >> bit % 8 & (((uint64_t)1 << width) - 1));
}

/* How far position i of `n` of an index block, the lane's, is from where the block
 * counts from, plus one. */
LCOMM_DEVICE uint32_t lcomm_topk_distances(const lcomm_topk_reading *r, const lcomm_topk_strip *s,
                                           uint32_t strip, uint32_t begin, uint32_t n) {
  uint32_t delta = lcomm_lane() < n ? lcomm_topk_delta(r, s, strip, begin) + 1 : 0;
  return lcomm_scan_warp(delta);
}

/* Finds the next index blocks of a strip and how far each advances; 0 at its end.
 * All threads take part. */
LCOMM_DEVICE uint32_t lcomm_topk_next_round(const lcomm_topk_reading *r, uint32_t strip,
                                            lcomm_topk_strip *s) {
  lcomm_sync_block();
  if (lcomm_thread() == 0) {
    lcomm_topk_follow(r, lcomm_topk_strip_size(r, strip), s);
  }
  lcomm_sync_block();
  for (uint32_t i = lcomm_warp(); i < s->found; i += LCOMM_TOPK_WARPS) {
    uint32_t n = lcomm_topk_entries_in(r, s->block + i);
    uint32_t advance = lcomm_topk_distances(r, s, strip, s->begin[i], n);
    if (lcomm_lane() == LCOMM_WARP - 1) {
      s->advance[i] = advance;
    }
  }
  lcomm_sync_block();
  return s->found;
}

/* -------------------------------------------------------------------- values */

LCOMM_DEVICE uint32_t lcomm_topk_bytes(const lcomm_topk_reading *r, uint64_t at, uint32_t size) {
  uint32_t number = 0;
  for (uint32_t i = 0; i < size; i++) {
    number |= at + i < r->readable ? (uint32_t)r->index[at + i] << 8 * i : 0;
  }
  return number;
}

LCOMM_DEVICE float lcomm_topk_value(const lcomm_topk_reading *r, uint32_t entry) {
  uint64_t values = *r->index_size;
  if (!r->int8) {
    return lcomm_bf16_to_f32((uint16_t)lcomm_topk_bytes(r, values + (uint64_t)entry * 2, 2));
  }
  uint64_t scales = ((uint64_t)r->entries + LCOMM_BLOCK - 1) / LCOMM_BLOCK * sizeof(float);
  uint32_t scale = lcomm_topk_bytes(r, values + entry / LCOMM_BLOCK * sizeof(float), 4);
  int8_t code = (int8_t)(uint8_t)lcomm_topk_bytes(r, values + scales + entry, 1);
  return lcomm_product_f32(lcomm_f32_from_bits(scale), (float)code);
}

#endif
