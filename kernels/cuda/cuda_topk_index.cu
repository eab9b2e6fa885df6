/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where the index blocks of a payload are, see cuda_topk_reader.cuh. */

#include <string.h>

#include "kernels/cuda/cuda_dense.h"
#include "kernels/cuda/cuda_topk_reader.cuh"

/* --------------------------------------------------------------------- hops */

LCOMM_DEVICE void load_hops(const uint32_t *table, uint32_t count, uint32_t *hops) {
  for (uint32_t i = lcomm_thread(); i < count * LCOMM_TOPK_HOPS; i += LCOMM_TOPK_THREADS) {
    hops[i] = table[i];
  }
}

/* Where a way over hops has come to: a byte of a strip, after so many index blocks. */
typedef struct hop_end {
  uint32_t next, blocks;
} hop_end;

LCOMM_DEVICE void follow_hops(const uint32_t *hops, uint32_t count, hop_end *end) {
  for (uint32_t i = 0; i < count; i++) {
    uint32_t hop = hops[i * LCOMM_TOPK_HOPS + end->next];
    end->next = lcomm_topk_at_most(hop & 0xffu, LCOMM_TOPK_HOPS - 1);
    end->blocks += hop >> 8;
  }
}

LCOMM_DEVICE void find_hops(const lcomm_topk_reading *a, uint32_t strip,
                            uint8_t byte[LCOMM_TOPK_STRIP]) {
  const lcomm_topk_reading r = lcomm_topk_begin(a);
  if (lcomm_topk_is_behind(&r, strip + 1)) { /* nobody comes from the last strip */
    return;
  }
  uint32_t size = lcomm_topk_strip_size(&r, strip), blocks = 0;
  lcomm_topk_load_strip(&r, strip, byte);
  lcomm_sync_block();
  if (lcomm_thread() >= LCOMM_TOPK_HOPS) {
    return;
  }
  uint32_t at = lcomm_thread();
  for (; at < size; blocks++) {
    at += 1 + 4 * lcomm_topk_width(byte[at]);
  }
  uint32_t next = at > LCOMM_TOPK_STRIP ? at - LCOMM_TOPK_STRIP : 0;
  r.hop[(uint64_t)strip * LCOMM_TOPK_HOPS + lcomm_thread()] = blocks << 8 | next;
}

LCOMM_KERNEL(topk_hop, lcomm_topk_reading) {
  LCOMM_SHARED uint8_t byte[LCOMM_TOPK_STRIP];
  find_hops(&a, lcomm_block(), byte);
}

LCOMM_KERNEL(topk_hops, lcomm_topk_readings) {
  LCOMM_SHARED uint8_t byte[LCOMM_TOPK_STRIP];
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  find_hops(&a.reading[place.piece], place.block, byte);
}

/* Where the hops of LEAP strips lead to. */
LCOMM_DEVICE void find_leaps(const lcomm_topk_reading *a, uint32_t leap, uint32_t *hops) {
  const lcomm_topk_reading r = lcomm_topk_begin(a);
  if (lcomm_topk_is_behind(&r, (leap + 1) * LCOMM_TOPK_LEAP)) {
    return;
  }
  load_hops(r.hop + (uint64_t)leap * LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS, LCOMM_TOPK_LEAP, hops);
  lcomm_sync_block();
  if (lcomm_thread() >= LCOMM_TOPK_HOPS) {
    return;
  }
  hop_end end = {lcomm_thread(), 0};
  follow_hops(hops, LCOMM_TOPK_LEAP, &end);
  r.leap[(uint64_t)leap * LCOMM_TOPK_HOPS + lcomm_thread()] = end.blocks << 8 | end.next;
}

LCOMM_KERNEL(topk_leap, lcomm_topk_reading) {
  LCOMM_SHARED uint32_t hops[LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS];
  find_leaps(&a, lcomm_block(), hops);
}

LCOMM_KERNEL(topk_leaps, lcomm_topk_readings) {
  LCOMM_SHARED uint32_t hops[LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS];
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  find_leaps(&a.reading[place.piece], place.block, hops);
}

/* -------------------------------------------------------------------- marks */

/* Over so many strips, or LEAPs of them. */
LCOMM_DEVICE void walk(const lcomm_topk_reading *r, const uint32_t *table, uint32_t count,
                       uint32_t *hops, lcomm_topk_strip *s) {
  for (uint32_t first = 0; first < count; first += LCOMM_TOPK_LEAP) {
    uint32_t some = lcomm_topk_at_most(count - first, LCOMM_TOPK_LEAP);
    load_hops(table + (uint64_t)first * LCOMM_TOPK_HOPS, some, hops);
    lcomm_sync_block();
    if (lcomm_thread() == 0) {
      hop_end end = {s->next, s->block};
      follow_hops(hops, some, &end);
      s->next = end.next;
      s->block = end.blocks < r->blocks ? end.blocks : r->blocks;
    }
    lcomm_sync_block();
  }
}

/* From strip to strip, up to this one. */
LCOMM_DEVICE void find_entrance(const lcomm_topk_reading *r, uint32_t to, uint32_t *hops,
                                lcomm_topk_strip *s) {
  uint32_t leaps = lcomm_topk_at_most(to / LCOMM_TOPK_LEAP, r->leaps);
  uint32_t strip = leaps * LCOMM_TOPK_LEAP;
  if (lcomm_thread() == 0) {
    s->next = s->block = 0;
  }
  walk(r, r->leap, leaps, hops, s);
  walk(r, r->hop + (uint64_t)strip * LCOMM_TOPK_HOPS, to - strip, hops, s);
}

/* By one thread, in the round that has found the last index block. */
LCOMM_DEVICE void set_index_size(const lcomm_topk_reading *r, uint32_t strip,
                                 const lcomm_topk_strip *s) {
  uint32_t begin = s->begin[s->found - 1], n = lcomm_topk_entries_in(r, r->blocks - 1);
  uint32_t bytes = (n * lcomm_topk_width(s->byte[begin]) + 7) / 8;
  *r->index_size = strip * LCOMM_TOPK_STRIP + begin + 1 + bytes;
}

LCOMM_DEVICE void find_mark(const lcomm_topk_reading *a, uint32_t strip, uint32_t *hops,
                            lcomm_topk_strip *s) {
  const lcomm_topk_reading r = lcomm_topk_begin(a);
  if (lcomm_topk_is_behind(&r, strip)) {
    return;
  }
  lcomm_topk_load_strip(&r, strip, s->byte);
  find_entrance(&r, strip, hops, s);
  lcomm_sync_block();
  lcomm_topk_mark mark = {s->next, s->block, 0};
  while (lcomm_topk_next_round(&r, strip, s) > 0) {
    uint32_t all, own = lcomm_thread() < s->found ? s->advance[lcomm_thread()] : 0;
    lcomm_scan_block(own, s->sums, &all);
    mark.advance += all;
    if (lcomm_thread() == 0) {
      s->block += s->found;
      if (s->block == r.blocks) {
        set_index_size(&r, strip, s);
      }
    }
  }
  if (lcomm_thread() == 0) {
    r.mark[strip] = mark;
  }
}

LCOMM_KERNEL(topk_mark, lcomm_topk_reading) {
  LCOMM_SHARED lcomm_topk_strip s;
  LCOMM_SHARED uint32_t hops[LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS];
  find_mark(&a, lcomm_block(), hops, &s);
}

LCOMM_KERNEL(topk_marks, lcomm_topk_readings) {
  LCOMM_SHARED lcomm_topk_strip s;
  LCOMM_SHARED uint32_t hops[LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS];
  lcomm_list_place place = lcomm_list_place_of(&a.blocks);
  find_mark(&a.reading[place.piece], place.block, hops, &s);
}

/* ------------------------------------------------------------------- launch */

extern "C" int lcomm_cuda_topk_find_marks(const lcomm_topk_reading *r, void *stream) {
  int error = 0;
  if (r->strips > 1) {
    error = LCOMM_LAUNCH(topk_hop, r->strips - 1, LCOMM_TOPK_THREADS, stream, *r);
  }
  if (error == 0) {
    error = LCOMM_LAUNCH(topk_leap, r->leaps, LCOMM_TOPK_THREADS, stream, *r);
  }
  if (error != 0) {
    return error;
  }
  return LCOMM_LAUNCH(topk_mark, r->strips, LCOMM_TOPK_THREADS, stream, *r);
}

/* The blocks of each payload: of its strips but for the last `fewer`, or of its leaps. */
static uint32_t count_blocks(lcomm_topk_readings *all, uint32_t count, uint32_t fewer,
                             uint32_t leaps) {
  all->blocks.count = 0;
  for (uint32_t i = 0; i < count; i++) {
    const lcomm_topk_reading *r = &all->reading[i];
    uint32_t strips = r->strips > fewer ? r->strips - fewer : 0;
    if (!lcomm_list_add(&all->blocks, leaps ? r->leaps : strips)) {
      return UINT32_MAX;
    }
  }
  return lcomm_list_blocks_all(&all->blocks);
}

extern "C" int lcomm_cuda_topk_find_all_marks(const lcomm_topk_reading *list, uint32_t count,
                                              void *stream) {
  lcomm_topk_readings all;
  memset(&all, 0, sizeof all);
  memcpy(all.reading, list, count * sizeof *list);
  uint32_t blocks = count_blocks(&all, count, 0, 0);
  if (blocks == UINT32_MAX) {
    return LCOMM_CUDA_INVALID_VALUE;
  }
  blocks = count_blocks(&all, count, 1, 0);
  int error = LCOMM_LAUNCH(topk_hops, blocks, LCOMM_TOPK_THREADS, stream, all);
  blocks = count_blocks(&all, count, 0, 1);
  if (error == 0) {
    error = LCOMM_LAUNCH(topk_leaps, blocks, LCOMM_TOPK_THREADS, stream, all);
  }
  blocks = count_blocks(&all, count, 0, 0);
  return error != 0 ? error : LCOMM_LAUNCH(topk_marks, blocks, LCOMM_TOPK_THREADS, stream, all);
}
