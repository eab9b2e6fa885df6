/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Where the index blocks of a payload are, see cuda_topk_reader.cuh. */

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

LCOMM_KERNEL(topk_hop, lcomm_topk_reading) {
  LCOMM_SHARED uint8_t byte[LCOMM_TOPK_STRIP];
  const lcomm_topk_reading r = lcomm_topk_begin(&a);
  if (lcomm_topk_is_behind(&r, lcomm_block() + 1)) { /* nobody comes from the last strip */
    return;
  }
  uint32_t size = lcomm_topk_strip_size(&r, lcomm_block()), blocks = 0;
  lcomm_topk_load_strip(&r, lcomm_block(), byte);
  lcomm_sync_block();
  if (lcomm_thread() >= LCOMM_TOPK_HOPS) {
    return;
  }
  uint32_t at = lcomm_thread();
  for (; at < size; blocks++) {
    at += 1 + 4 * lcomm_topk_width(byte[at]);
  }
  uint32_t next = at > LCOMM_TOPK_STRIP ? at - LCOMM_TOPK_STRIP : 0;
  a.hop[(uint64_t)lcomm_block() * LCOMM_TOPK_HOPS + lcomm_thread()] = blocks << 8 | next;
}

/* Where the hops of LEAP strips lead to. */
LCOMM_KERNEL(topk_leap, lcomm_topk_reading) {
  LCOMM_SHARED uint32_t hops[LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS];
  const lcomm_topk_reading r = lcomm_topk_begin(&a);
  if (lcomm_topk_is_behind(&r, (lcomm_block() + 1) * LCOMM_TOPK_LEAP)) {
    return;
  }
  load_hops(a.hop + (uint64_t)lcomm_block() * LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS, LCOMM_TOPK_LEAP,
            hops);
  lcomm_sync_block();
  if (lcomm_thread() >= LCOMM_TOPK_HOPS) {
    return;
  }
  hop_end end = {lcomm_thread(), 0};
  follow_hops(hops, LCOMM_TOPK_LEAP, &end);
  a.leap[(uint64_t)lcomm_block() * LCOMM_TOPK_HOPS + lcomm_thread()] = end.blocks << 8 | end.next;
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
LCOMM_DEVICE void find_entrance(const lcomm_topk_reading *r, uint32_t *hops, lcomm_topk_strip *s) {
  uint32_t leaps = lcomm_topk_at_most(lcomm_block() / LCOMM_TOPK_LEAP, r->leaps);
  uint32_t strip = leaps * LCOMM_TOPK_LEAP;
  if (lcomm_thread() == 0) {
    s->next = s->block = 0;
  }
  walk(r, r->leap, leaps, hops, s);
  walk(r, r->hop + (uint64_t)strip * LCOMM_TOPK_HOPS, lcomm_block() - strip, hops, s);
}

/* By one thread, in the round that has found the last index block. */
LCOMM_DEVICE void set_index_size(const lcomm_topk_reading *r, const lcomm_topk_strip *s) {
  uint32_t begin = s->begin[s->found - 1], n = lcomm_topk_entries_in(r, r->blocks - 1);
  uint32_t bytes = (n * lcomm_topk_width(s->byte[begin]) + 7) / 8;
  *r->index_size = lcomm_block() * LCOMM_TOPK_STRIP + begin + 1 + bytes;
}

LCOMM_KERNEL(topk_mark, lcomm_topk_reading) {
  LCOMM_SHARED lcomm_topk_strip s;
  LCOMM_SHARED uint32_t hops[LCOMM_TOPK_LEAP * LCOMM_TOPK_HOPS];
  const lcomm_topk_reading r = lcomm_topk_begin(&a);
  if (lcomm_topk_is_behind(&r, lcomm_block())) {
    return;
  }
  lcomm_topk_load_strip(&r, lcomm_block(), s.byte);
  find_entrance(&r, hops, &s);
  lcomm_sync_block();
  lcomm_topk_mark mark = {s.next, s.block, 0};
  while (lcomm_topk_next_round(&r, lcomm_block(), &s) > 0) {
    uint32_t all, own = lcomm_thread() < s.found ? s.advance[lcomm_thread()] : 0;
    lcomm_scan_block(own, s.sums, &all);
    mark.advance += all;
    if (lcomm_thread() == 0) {
      s.block += s.found;
      if (s.block == r.blocks) {
        set_index_size(&r, &s);
      }
    }
  }
  if (lcomm_thread() == 0) {
    a.mark[lcomm_block()] = mark;
  }
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
