/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The size of the largest payload. */

#include "codecs/codec_topk.h"
#include "codecs/codec_topk_payload.h"

/* The greatest sum of the widths of `blocks` blocks whose deltas sum up to
 * `sum` at most. A width w needs one delta of 2^(w-1), so the first bit of a
 * block costs 1 and the ones after it 1, 2, 4 and so on. As no bit is cheaper
 * than the one before it, the best is to widen all blocks evenly, and as many
 * as then can be once more. */
static uint64_t widths_most(uint64_t blocks, uint64_t sum) {
  if (sum < blocks || blocks == 0) {
    return blocks == 0 ? 0 : sum;
  }
  unsigned even = 63 - (unsigned)__builtin_clzll(sum / blocks);
  uint64_t rest = sum - (blocks << even);
  return blocks * (even + 1) + (rest >> even);
}

/* Deltas of a view sum up to less than its count, whatever their number. A
 * full block of width w takes 4 * w bytes; the last one may be shorter, so
 * all of its widths are tried. This is the maximum itself, but for the few
 * entries that the sum leaves out. More entries make a block longer or add
 * one, under the same sum: the bound grows with them, and holds for payloads
 * of fewer entries too. A width is 32 at most, so an entry takes 4 bytes at
 * most. */
static size_t index_most(uint64_t entries, uint64_t count) {
  uint64_t full = (entries - 1) / LCOMM_TOPK_BLOCK, most = 0;
  uint64_t sum = count - 1 < UINT32_MAX ? count - 1 : UINT32_MAX;
  uint32_t last = (uint32_t)(entries - full * LCOMM_TOPK_BLOCK);
  for (uint32_t width = 0; width <= 32; width++) {
    uint64_t taken = width == 0 ? 0 : 1ull << (width - 1);
    if (taken > sum) {
      break;
    }
    uint64_t bytes = 4 * widths_most(full, sum - taken) + (last * width + 7) / 8;
    most = bytes > most ? bytes : most;
  }
  return (size_t)(full + 1 + most);
}

size_t lcomm_topk_bound(const lcomm_format *format, uint64_t entries, uint64_t count) {
  uint64_t most = entries < count ? entries : count;
  if (most == 0) {
    return sizeof(uint32_t);
  }
  return sizeof(uint32_t) + index_most(most, count) + lcomm_topk_values_size(format, most);
}
