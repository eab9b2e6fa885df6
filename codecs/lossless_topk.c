/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The sparse side of the lossless stage. Positions leave their blocks of
 * packed bits: as LEB128 numbers (seven bits a byte, the lowest first, bit 7
 * set when more follow) the small deltas of a crowded region are equal bytes,
 * which is what an entropy coder wants. */

#include <string.h>

#include "codecs/codec_topk_payload.h"
#include "codecs/lossless_chunk.h"

enum { WORD = sizeof(uint32_t), HEAD = 2 * WORD, LEB_MAX = 5, BLOCK = LCOMM_TOPK_BLOCK };

static bool is_int8(const lcomm_format *format) {
  return format->variant == LCOMM_TOPK_INT8;
}

/* A delta of w bits takes 1, 2, 3, 4, 5 bytes of plane from w = 0, 8, 15, 22,
 * 29 on. Against w bits and the value in the payload that is worst for w = 0,
 * a byte for each value of 2 bytes or of little more than 1. */
size_t lcomm_lossless_topk_planes(const lcomm_format *format, size_t payload_bound) {
  return payload_bound + (is_int8(format) ? payload_bound : payload_bound / 2);
}

/* Deltas */

static uint8_t *put_delta(uint32_t delta, uint8_t *bytes) {
  for (; delta >= 0x80; delta >>= 7) {
    *bytes++ = (uint8_t)(delta | 0x80);
  }
  *bytes++ = (uint8_t)delta;
  return bytes;
}

/* The deltas that the reader has left. Returns the end. */
static uint8_t *put_deltas(lcomm_topk_reader *reader, uint8_t *bytes) {
  lcomm_topk_block block;
  uint32_t next = 0;
  for (lcomm_topk_read(reader, &block); block.count > 0; lcomm_topk_read(reader, &block)) {
    for (uint32_t i = 0; i < block.count; i++) {
      bytes = put_delta(block.position[i] - next, bytes);
      next = block.position[i] + 1;
    }
  }
  return bytes;
}

/* What is wrong with the next number of a plane; moves on. */
static const char *get_delta(lcomm_stream *plane, uint32_t *delta) {
  uint32_t value = 0, shift = 0, byte;
  do {
    if (plane->size == 0) {
      return "a delta plane that ends before its entries do";
    }
    byte = *plane->bytes;
    *plane = (lcomm_stream){plane->bytes + 1, plane->size - 1};
    if (shift == 7 * (LEB_MAX - 1) && byte > UINT32_MAX >> shift) {
      return "a delta of more than 32 bits";
    }
    value |= (byte & 0x7f) << shift;
    shift += 7;
  } while (byte >= 0x80);
  *delta = value;
  return byte == 0 && shift > 7 ? "a delta that is longer than it need be" : NULL;
}

/* Packed blocks, as in codec_topk.h */

static uint32_t width_of(const uint32_t *delta, uint32_t n) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < n; i++) {
    all |= delta[i];
  }
  return all == 0 ? 0 : 32 - (uint32_t)__builtin_clz(all);
}

static size_t block_size(uint32_t n, uint32_t width) {
  return 1 + ((size_t)n * width + 7) / 8;
}

static void pack_block(const uint32_t *delta, uint32_t n, uint32_t width, uint8_t *bytes) {
  uint64_t buffer = 0;
  uint32_t held = 0;
  *bytes++ = (uint8_t)width;
  for (uint32_t i = 0; i < n; i++) {
    buffer |= (uint64_t)delta[i] << held;
    for (held += width; held >= 8; held -= 8, buffer >>= 8) {
      *bytes++ = (uint8_t)buffer;
    }
  }
  if (held > 0) {
    *bytes = (uint8_t)buffer;
  }
}

/* `entries` deltas of the plane as packed blocks in `room` bytes; *size
 * receives how many they took. */
static const char *pack_deltas(lcomm_stream plane, uint32_t entries, uint64_t count, uint8_t *index,
                               size_t room, size_t *size) {
  uint32_t delta[BLOCK];
  uint64_t next = 0;
  *size = 0;
  for (uint32_t n; entries > 0; entries -= n) {
    n = entries < BLOCK ? entries : BLOCK;
    for (uint32_t i = 0; i < n; i++) {
      const char *wrong = get_delta(&plane, &delta[i]);
      if (wrong) {
        return wrong;
      }
      next += (uint64_t)delta[i] + 1;
    }
    if (next > count) {
      return "a position outside the view";
    }
    uint32_t width = width_of(delta, n);
    if (block_size(n, width) > room - *size) {
      return "more entries than there is room for";
    }
    pack_block(delta, n, width, index + *size);
    *size += block_size(n, width);
  }
  return plane.size == 0 ? NULL : "a delta plane that goes on after its entries";
}

/* Values */

static uint8_t *encode_values(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                              const uint8_t *values, uint32_t entries, uint8_t *scratch,
                              uint8_t *stream) {
  const lcomm_zstd *zstd = &lossless->zstd;
  if (is_int8(&lossless->format)) {
    size_t scales = lcomm_topk_values_size(&lossless->format, entries) - entries;
    stream = lcomm_plane_encode(zstd, LCOMM_PLANE_REPEATS, values, scales, stream);
    return lcomm_plane_encode(zstd, LCOMM_PLANE_CODES, values + scales, entries, stream);
  }
  uint8_t *plane[2] = {scratch, scratch + entries};
  kernels->planes.split2(values, plane, entries);
  stream = lcomm_plane_encode(zstd, LCOMM_PLANE_MANTISSAS, plane[1], entries, stream);
  return lcomm_plane_encode(zstd, LCOMM_PLANE_REPEATS, plane[0], entries, stream);
}

static const char *decode_values(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                 lcomm_stream *stream, uint32_t entries, uint8_t *scratch,
                                 uint8_t *values) {
  const lcomm_zstd *zstd = &lossless->zstd;
  const char *wrong;
  if (is_int8(&lossless->format)) {
    size_t scales = lcomm_topk_values_size(&lossless->format, entries) - entries;
    wrong = lcomm_plane_decode(zstd, stream, values, scales);
    return wrong ? wrong : lcomm_plane_decode(zstd, stream, values + scales, entries);
  }
  uint8_t *plane[2] = {scratch, scratch + entries};
  wrong = lcomm_plane_decode(zstd, stream, plane[1], entries);
  if (!wrong) {
    wrong = lcomm_plane_decode(zstd, stream, plane[0], entries);
  }
  if (!wrong) {
    kernels->planes.join2((const uint8_t *const *)plane, values, entries);
  }
  return wrong;
}

/* Payloads */

size_t lcomm_lossless_topk_encode(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                  const uint8_t *payload, uint8_t *stream) {
  lcomm_topk_reader reader = lcomm_topk_open(&lossless->format, payload);
  const uint8_t *values = reader.values;
  uint32_t entries = reader.entries;
  uint8_t *scratch = put_deltas(&reader, lossless->planes);
  uint32_t head[2] = {entries, (uint32_t)(scratch - lossless->planes)};
  memcpy(stream, head, sizeof head);
  uint8_t *end = lcomm_plane_encode(&lossless->zstd, LCOMM_PLANE_REPEATS, lossless->planes, head[1],
                                    stream + HEAD);
  end = encode_values(lossless, kernels, values, entries, scratch, end);
  return (size_t)(end - stream);
}

/* Of the numbers in the head of a stream: entries, and bytes of deltas. */
static const char *head_refusal(const lcomm_lossless *lossless, const uint32_t head[2],
                                uint64_t count, size_t capacity) {
  size_t values = lcomm_topk_values_size(&lossless->format, head[0]);
  if (head[0] > count) {
    return "more entries than elements";
  }
  if (capacity < WORD || values > capacity - WORD) {
    return "more entries than there is room for";
  }
  if (head[1] > lossless->planes_size || values > lossless->planes_size - head[1]) {
    return "larger planes than those of any payload";
  }
  return NULL;
}

const char *lcomm_lossless_topk_decode(const lcomm_lossless *lossless, const lcomm_kernels *kernels,
                                       lcomm_stream stream, uint64_t count, uint8_t *payload,
                                       size_t capacity, size_t *payload_size) {
  uint32_t head[2];
  if (stream.size < HEAD) {
    return "a stream that ends in its head";
  }
  memcpy(head, stream.bytes, sizeof head);
  stream = (lcomm_stream){stream.bytes + HEAD, stream.size - HEAD};
  const char *wrong = head_refusal(lossless, head, count, capacity);
  if (!wrong) {
    wrong = lcomm_plane_decode(&lossless->zstd, &stream, lossless->planes, head[1]);
  }
  if (wrong) {
    return wrong;
  }
  size_t values = lcomm_topk_values_size(&lossless->format, head[0]), index;
  wrong = pack_deltas((lcomm_stream){lossless->planes, head[1]}, head[0], count, payload + WORD,
                      capacity - WORD - values, &index);
  if (!wrong) {
    wrong = decode_values(lossless, kernels, &stream, head[0], lossless->planes + head[1],
                          payload + WORD + index);
  }
  if (!wrong && stream.size > 0) {
    wrong = "bytes behind the last plane";
  }
  if (wrong) {
    return wrong;
  }
  memcpy(payload, head, WORD);
  *payload_size = WORD + index + values;
  return NULL;
}
