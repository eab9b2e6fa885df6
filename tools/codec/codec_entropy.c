/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_entropy.h"

#include <math.h>
#include <string.h>

#include "codecs/block.h"
#include "codecs/codec_topk_payload.h"

enum { SYMBOLS = 256, PLANES_MAX = 4 };

typedef uint64_t histogram[SYMBOLS];

double lcomm_entropy_bits(const uint64_t counts[SYMBOLS]) {
  double total = 0.0, weighted = 0.0;
  for (size_t i = 0; i < SYMBOLS; i++) {
    double n = (double)counts[i];
    total += n;
    weighted += counts[i] > 0 ? n * log2(n) : 0.0;
  }
  return total > 0.0 ? fmax(total * log2(total) - weighted, 0.0) : 0.0;
}

double lcomm_entropy_positions(uint64_t kept, uint64_t count) {
  if (kept == 0 || kept >= count) {
    return 0.0;
  }
  double n = (double)count, share = (double)kept / n;
  return -n * (share * log2(share) + (1.0 - share) * log1p(-share) / log(2.0));
}

/* Codes of one byte. */
static double byte_bits(const uint8_t *bytes, size_t n) {
  histogram counts = {0};
  for (size_t i = 0; i < n; i++) {
    counts[bytes[i]]++;
  }
  return lcomm_entropy_bits(counts);
}

static double nibble_bits(const uint8_t *bytes, size_t n) {
  histogram counts = {0};
  for (size_t i = 0; i < n; i++) {
    counts[bytes[i / 2] >> (i % 2 * 4) & 0xf]++;
  }
  return lcomm_entropy_bits(counts);
}

static double plane_bits_2(const uint8_t *bytes, size_t n) {
  histogram counts[2] = {{0}};
  for (size_t i = 0; i < n; i++) {
    uint16_t code;
    memcpy(&code, bytes + 2 * i, sizeof code);
    uint32_t turned = (uint16_t)(code << 1 | code >> 15);
    counts[0][turned >> 8]++;
    counts[1][turned & 0xff]++;
  }
  return lcomm_entropy_bits(counts[0]) + lcomm_entropy_bits(counts[1]);
}

static double plane_bits_4(const uint8_t *bytes, size_t n) {
  histogram counts[PLANES_MAX] = {{0}};
  for (size_t i = 0; i < n; i++) {
    uint32_t code;
    memcpy(&code, bytes + 4 * i, sizeof code);
    uint32_t turned = code << 1 | code >> 31;
    for (size_t plane = 0; plane < PLANES_MAX; plane++) {
      counts[plane][turned >> (24 - 8 * plane) & 0xff]++;
    }
  }
  double bits = 0.0;
  for (size_t plane = 0; plane < PLANES_MAX; plane++) {
    bits += lcomm_entropy_bits(counts[plane]);
  }
  return bits;
}

static double sparse_bits(const lcomm_format *format, const uint8_t *payload, size_t size,
                          uint64_t count) {
  uint32_t entries;
  memcpy(&entries, payload, sizeof entries);
  size_t values_size = lcomm_topk_values_size(format, entries);
  const uint8_t *values = payload + size - values_size;
  double bits = lcomm_entropy_positions(entries, count);
  if (format->variant != LCOMM_TOPK_INT8) {
    return bits + plane_bits_2(values, entries);
  }
  size_t scales = values_size - entries;
  return bits + plane_bits_4(values, scales / 4) + byte_bits(values + scales, entries);
}

/* fp16 has one head number, or the scale bytes of its blocks, or neither. */
static double fp16_bits(const lcomm_format *format, const uint8_t *payload, size_t size,
                        uint64_t count) {
  size_t n = (size_t)count, head = size - 2 * n;
  double bits = plane_bits_2(payload + head, n);
  if (format->variant == LCOMM_FP16_FIXED) {
    return bits + 8.0 * (double)head;
  }
  if (format->variant == LCOMM_FP16_BLOCK) {
    return bits + byte_bits(payload, lcomm_block_count(count, LCOMM_BLOCK));
  }
  return bits;
}

/* Codes of whole bytes, which is what the lossless stage sees. */
static double lowbit_bits(const lcomm_format *format, const uint8_t *payload, size_t size,
                          size_t n) {
  size_t codes = lcomm_lowbit_codes_size(format->codec->id == LCOMM_CODEC_SIGN ? 1 : 2, n);
  return byte_bits(payload, lcomm_block_count(n, format->block)) +
         byte_bits(payload + size - codes, codes);
}

double lcomm_entropy_payload(const lcomm_format *format, const uint8_t *payload, size_t size,
                             uint64_t count) {
  size_t n = (size_t)count;
  switch (format->codec->id) {
  case LCOMM_CODEC_NONE:
    return plane_bits_4(payload, n);
  case LCOMM_CODEC_FP16:
    return fp16_bits(format, payload, size, count);
  case LCOMM_CODEC_BF16:
    return plane_bits_2(payload, n);
  case LCOMM_CODEC_FP8E4M3:
  case LCOMM_CODEC_FP8E5M2:
    return byte_bits(payload, lcomm_block_count(count, format->block)) +
           byte_bits(payload + size - n, n);
  case LCOMM_CODEC_INT8:
    return plane_bits_4(payload, lcomm_block_count(count, format->block)) +
           byte_bits(payload + size - n, n);
  case LCOMM_CODEC_INT4:
    return plane_bits_4(payload, lcomm_block_count(count, format->block)) +
           nibble_bits(payload + size - (n + 1) / 2, n);
  case LCOMM_CODEC_SIGN:
  case LCOMM_CODEC_INT2:
    return lowbit_bits(format, payload, size, n);
  case LCOMM_CODEC_TOPK:
    return sparse_bits(format, payload, size, count);
  }
  return 0.0;
}
