/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/topk_payload.h"

#include <string.h>

#include "codecs/topk.h"
#include "kernels/element.h"

enum { BLOCK = LCOMM_TOPK_BLOCK };

static uint32_t block_length(uint32_t left) {
  return left < BLOCK ? left : BLOCK;
}

static size_t packed_size(uint32_t n, uint32_t width) {
  return ((size_t)n * width + 7) / 8;
}

size_t lcomm_topk_bound(uint64_t entries) {
  size_t blocks = (size_t)((entries + BLOCK - 1) / BLOCK);
  return sizeof(uint32_t) + blocks + (size_t)entries * (sizeof(uint32_t) + sizeof(uint16_t));
}

/* Bits of the greatest delta; 0 when all are 0. */
static uint32_t width_of(const uint32_t *delta, uint32_t n) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < n; i++)
    all |= delta[i];
  return all == 0 ? 0 : 32 - (uint32_t)__builtin_clz(all);
}

/* n deltas of `width` bits. Returns the end. */
static uint8_t *pack(const uint32_t *delta, uint32_t n, uint32_t width, uint8_t *bytes) {
  uint64_t buffer = 0;
  uint32_t held = 0;
  for (uint32_t i = 0; i < n; i++) {
    buffer |= (uint64_t)delta[i] << held;
    held += width;
    if (held < 32)
      continue;
    uint32_t word = (uint32_t)buffer;
    memcpy(bytes, &word, sizeof word);
    bytes += sizeof word;
    buffer >>= 32;
    held -= 32;
  }
  for (uint32_t done = 0; done < held; done += 8)
    *bytes++ = (uint8_t)(buffer >> done);
  return bytes;
}

/* Reads packed_size(n, width) bytes, not one more. */
static void unpack(const uint8_t *bytes, uint32_t n, uint32_t width, uint32_t *delta) {
  uint64_t buffer = 0, mask = ((uint64_t)1 << width) - 1;
  uint32_t held = 0;
  size_t left = packed_size(n, width);
  for (uint32_t i = 0; i < n; i++) {
    if (held < width && left >= sizeof(uint32_t)) {
      uint32_t word;
      memcpy(&word, bytes, sizeof word);
      bytes += sizeof word;
      left -= sizeof word;
      buffer |= (uint64_t)word << held;
      held += 32;
    }
    for (; held < width; held += 8, left--)
      buffer |= (uint64_t)*bytes++ << held;
    delta[i] = (uint32_t)(buffer & mask);
    buffer >>= width;
    held -= width;
  }
}

size_t lcomm_topk_write(const lcomm_entries *entries, uint8_t *payload) {
  uint32_t count = (uint32_t)entries->count, next = 0, delta[BLOCK];
  memcpy(payload, &count, sizeof count);
  uint8_t *end = payload + sizeof count;
  for (uint32_t first = 0; first < count; first += BLOCK) {
    uint32_t n = block_length(count - first);
    for (uint32_t i = 0; i < n; i++) {
      uint32_t position = entries->position[first + i];
      delta[i] = position - next;
      next = position + 1;
    }
    uint32_t width = width_of(delta, n);
    *end++ = (uint8_t)width;
    end = pack(delta, n, width, end);
  }
  for (uint32_t i = 0; i < count; i++, end += sizeof(uint16_t)) {
    uint16_t code = lcomm_f32_to_bf16_finite(lcomm_f32_from_bits(entries->bits[i]));
    memcpy(end, &code, sizeof code);
  }
  return (size_t)(end - payload);
}

lcomm_topk_reader lcomm_topk_open(const uint8_t *payload) {
  lcomm_topk_reader reader = {.index = payload + sizeof(uint32_t), .next = 0};
  memcpy(&reader.left, payload, sizeof reader.left);
  reader.value = reader.index;
  for (uint32_t left = reader.left; left > 0; left -= block_length(left))
    reader.value += 1 + packed_size(block_length(left), *reader.value);
  return reader;
}

void lcomm_topk_read(lcomm_topk_reader *reader, lcomm_topk_block *block) {
  uint32_t n = block_length(reader->left), delta[BLOCK];
  block->count = n;
  if (n == 0)
    return;
  uint32_t width = *reader->index++;
  unpack(reader->index, n, width, delta);
  reader->index += packed_size(n, width);
  reader->left -= n;
  for (uint32_t i = 0; i < n; i++) {
    block->position[i] = reader->next + delta[i];
    reader->next = block->position[i] + 1;
  }
  for (uint32_t i = 0; i < n; i++, reader->value += sizeof(uint16_t)) {
    uint16_t code;
    memcpy(&code, reader->value, sizeof code);
    block->value[i] = lcomm_bf16_to_f32(code);
  }
}

lcomm_status lcomm_topk_check(const uint8_t *payload, size_t size, uint64_t count,
                              uint64_t *entries) {
  uint32_t left, delta[BLOCK];
  if (size < sizeof left)
    return LCOMM_ERR_WIRE;
  memcpy(&left, payload, sizeof left);
  if (left > count)
    return LCOMM_ERR_WIRE;
  uint64_t found = left, next = 0;
  size_t offset = sizeof left;
  while (left > 0) {
    uint32_t n = block_length(left), width = offset < size ? payload[offset++] : UINT32_MAX;
    if (width > 32 || packed_size(n, width) > size - offset)
      return LCOMM_ERR_WIRE;
    unpack(payload + offset, n, width, delta);
    offset += packed_size(n, width);
    for (uint32_t i = 0; i < n; i++)
      next += (uint64_t)delta[i] + 1;
    if (next > count)
      return LCOMM_ERR_WIRE;
    left -= n;
  }
  if (size - offset != found * sizeof(uint16_t))
    return LCOMM_ERR_WIRE;
  if (entries != NULL)
    *entries = found;
  return LCOMM_OK;
}
