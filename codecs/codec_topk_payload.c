/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "codecs/codec_topk_payload.h"

#include <string.h>

#include "codecs/codec_topk.h"
#include "kernels/element.h"

enum { BLOCK = LCOMM_TOPK_BLOCK };

static uint32_t block_length(uint32_t left) {
  return left < BLOCK ? left : BLOCK;
}

static size_t packed_size(uint32_t n, uint32_t width) {
  return ((size_t)n * width + 7) / 8;
}

/* Values */

static bool is_int8(const lcomm_format *format) {
  return format->variant == LCOMM_TOPK_INT8;
}

static size_t scales_size(uint64_t entries) {
  return (size_t)((entries + LCOMM_BLOCK - 1) / LCOMM_BLOCK) * sizeof(float);
}

size_t lcomm_topk_values_size(const lcomm_format *format, uint64_t entries) {
  if (is_int8(format)) {
    return scales_size(entries) + (size_t)entries;
  }
  return (size_t)entries * sizeof(uint16_t);
}

/* Has a code of infinity, which a finite value may not have. */
static bool has_infinity(const uint16_t code[LCOMM_BLOCK]) {
  uint32_t found = 0;
  for (uint32_t i = 0; i < LCOMM_BLOCK; i++) {
    found |= (code[i] & 0x7fff) == 0x7f80;
  }
  return found != 0;
}

/* Block by block, because codes in a payload are not aligned. */
static void write_bf16(const lcomm_kernels *kernels, const lcomm_entries *entries,
                       uint8_t *values) {
  uint16_t code[LCOMM_BLOCK] = {0};
  for (size_t first = 0, n; first < entries->count; first += n) {
    const float *value = entries->value + first;
    n = entries->count - first < LCOMM_BLOCK ? entries->count - first : LCOMM_BLOCK;
    kernels->half.f32_to_bf16(value, code, n);
    if (has_infinity(code)) {
      for (size_t i = 0; i < n; i++) {
        code[i] = lcomm_f32_to_bf16_finite(value[i]);
      }
    }
    memcpy(values + first * sizeof *code, code, n * sizeof *code);
  }
}

/* As above: scales. */
static void write_int8(const lcomm_kernels *kernels, const lcomm_entries *entries,
                       uint8_t *values) {
  int8_t *code = (int8_t *)values + scales_size(entries->count);
  for (size_t first = 0, n; first < entries->count; first += n, values += sizeof(float)) {
    float scale;
    n = entries->count - first < LCOMM_BLOCK ? entries->count - first : LCOMM_BLOCK;
    kernels->f32_to_int8(entries->value + first, LCOMM_BLOCK, code + first, &scale, n);
    memcpy(values, &scale, sizeof scale);
  }
}

static void read_bf16(const uint8_t *values, uint32_t first, uint32_t n, float *value) {
  for (uint32_t i = 0; i < n; i++) {
    uint16_t code;
    memcpy(&code, values + ((size_t)first + i) * sizeof code, sizeof code);
    value[i] = lcomm_bf16_to_f32(code);
  }
}

static void read_int8(const uint8_t *values, uint32_t entries, uint32_t first, uint32_t n,
                      float *value) {
  const int8_t *code = (const int8_t *)values + scales_size(entries) + first;
  float scale;
  memcpy(&scale, values + first / LCOMM_BLOCK * sizeof scale, sizeof scale);
  for (uint32_t i = 0; i < n; i++) {
    value[i] = scale * (float)code[i];
  }
}

void lcomm_topk_read_values(const lcomm_format *format, const uint8_t *values, uint32_t entries,
                            uint32_t first, uint32_t n, float *value) {
  if (is_int8(format)) {
    read_int8(values, entries, first, n, value);
  } else {
    read_bf16(values, first, n, value);
  }
}

/* Positions */

/* A whole block in the widest packing, and what packing may touch behind it. */
enum { SLACK = 8, ROOM = BLOCK * 4 + SLACK };

/* Bits of the greatest delta; 0 when all are 0. */
static uint32_t width_of(const uint32_t delta[BLOCK]) {
  uint32_t all = 0;
  for (uint32_t i = 0; i < BLOCK; i++) {
    all |= delta[i];
  }
  return all == 0 ? 0 : 32 - (uint32_t)__builtin_clz(all);
}

/* `group` deltas at a time, which are 56 bits at most. */
static inline void pack_groups(const uint32_t delta[BLOCK], uint32_t width, uint32_t group,
                               uint8_t *bytes) {
  uint64_t buffer = 0;
  uint32_t held = 0;
  for (uint32_t i = 0; i < BLOCK; i += group) {
    uint64_t bits = 0;
    for (uint32_t j = 0; j < group; j++) {
      bits |= (uint64_t)delta[i + j] << (j * width);
    }
    buffer |= bits << held;
    memcpy(bytes, &buffer, sizeof buffer);
    held += group * width;
    bytes += held / 8;
    buffer >>= held & ~7u;
    held &= 7;
  }
}

/* A whole block: 4 * width bytes, and up to SLACK behind them are touched. */
static void pack(const uint32_t delta[BLOCK], uint32_t width, uint8_t *bytes) {
  if (width <= 14) {
    pack_groups(delta, width, 4, bytes);
  } else if (width <= 28) {
    pack_groups(delta, width, 2, bytes);
  } else {
    pack_groups(delta, width, 1, bytes);
  }
}

/* A whole block. Reads up to SLACK bytes behind it. */
static void unpack(const uint8_t *bytes, uint32_t width, uint32_t delta[BLOCK]) {
  uint64_t mask = ((uint64_t)1 << width) - 1;
  for (uint32_t i = 0, bit = 0; i < BLOCK; i++, bit += width) {
    uint64_t word;
    memcpy(&word, bytes + bit / 8, sizeof word);
    delta[i] = (uint32_t)(word >> bit % 8 & mask);
  }
}

/* The deltas of n <= BLOCK entries, 0 for those that there are not. A whole
 * block is followed by its values, so SLACK is in the payload; the last one
 * may be not. */
static void read_deltas(const uint8_t *bytes, uint32_t n, uint32_t width, uint32_t delta[BLOCK]) {
  if (n == BLOCK) {
    unpack(bytes, width, delta);
    return;
  }
  uint8_t room[ROOM] = {0};
  memcpy(room, bytes, packed_size(n, width));
  unpack(room, width, delta);
}

static uint8_t *write_deltas(const uint32_t delta[BLOCK], uint32_t n, uint8_t *end) {
  uint32_t width = width_of(delta);
  uint8_t room[ROOM];
  *end++ = (uint8_t)width;
  if (n == BLOCK) {
    pack(delta, width, end);
    return end + packed_size(n, width);
  }
  pack(delta, width, room);
  memcpy(end, room, packed_size(n, width));
  return end + packed_size(n, width);
}

static uint8_t *write_positions(const lcomm_entries *entries, uint8_t *end) {
  uint32_t count = (uint32_t)entries->count, next = 0;
  for (uint32_t first = 0; first < count; first += BLOCK) {
    const uint32_t *position = entries->position + first;
    uint32_t n = block_length(count - first), delta[BLOCK] = {0};
    delta[0] = position[0] - next;
    for (uint32_t i = 1; i < n; i++) {
      delta[i] = position[i] - position[i - 1] - 1;
    }
    next = position[n - 1] + 1;
    end = write_deltas(delta, n, end);
  }
  return end;
}

size_t lcomm_topk_write(const lcomm_format *format, const lcomm_kernels *kernels,
                        const lcomm_entries *entries, uint8_t *payload) {
  uint32_t count = (uint32_t)entries->count;
  memcpy(payload, &count, sizeof count);
  uint8_t *values = write_positions(entries, payload + sizeof count);
  if (is_int8(format)) {
    write_int8(kernels, entries, values);
  } else {
    write_bf16(kernels, entries, values);
  }
  return (size_t)(values - payload) + lcomm_topk_values_size(format, count);
}

/* Reading */

lcomm_topk_reader lcomm_topk_open(const lcomm_format *format, const uint8_t *payload) {
  lcomm_topk_reader reader = {.format = format, .index = payload + sizeof(uint32_t)};
  memcpy(&reader.entries, payload, sizeof reader.entries);
  reader.values = reader.index;
  for (uint32_t left = reader.entries; left > 0; left -= block_length(left)) {
    reader.values += 1 + packed_size(block_length(left), *reader.values);
  }
  return reader;
}

void lcomm_topk_read(lcomm_topk_reader *reader, lcomm_topk_block *block) {
  uint32_t n = block_length(reader->entries - reader->done), delta[BLOCK];
  block->count = n;
  if (n == 0) {
    return;
  }
  uint32_t width = *reader->index++;
  read_deltas(reader->index, n, width, delta);
  reader->index += packed_size(n, width);
  for (uint32_t i = 0; i < n; i++) {
    block->position[i] = reader->next + delta[i];
    reader->next = block->position[i] + 1;
  }
  lcomm_topk_read_values(reader->format, reader->values, reader->entries, reader->done, n,
                         block->value);
  reader->done += n;
}

/* Nothing but the deltas is set: deltas behind the n-th are read as 0, and so
 * is the padding as a part of one. */
static bool is_narrowest(const uint32_t delta[BLOCK], uint32_t n, uint32_t width) {
  uint32_t rest = 0;
  for (uint32_t i = n; i < BLOCK; i++) {
    rest |= delta[i];
  }
  return rest == 0 && width_of(delta) == width;
}

/* The positions of `entries` entries in the first `size` bytes; behind them
 * come the values. Returns where they end, 0 if they are malformed. */
static size_t check_positions(const uint8_t *payload, size_t size, uint64_t count,
                              uint32_t entries) {
  uint64_t next = 0;
  size_t offset = sizeof entries;
  for (uint32_t left = entries, n; left > 0; left -= n) {
    uint32_t delta[BLOCK], width = offset < size ? payload[offset++] : UINT32_MAX;
    n = block_length(left);
    if (width > 32 || packed_size(n, width) > size - offset) {
      return 0;
    }
    read_deltas(payload + offset, n, width, delta);
    if (!is_narrowest(delta, n, width)) {
      return 0;
    }
    offset += packed_size(n, width);
    for (uint32_t i = 0; i < n; i++) {
      next += (uint64_t)delta[i] + 1;
    }
    if (next > count) {
      return 0;
    }
  }
  return offset;
}

lcomm_status lcomm_topk_check(const lcomm_format *format, const uint8_t *payload, size_t size,
                              uint64_t count, uint64_t *entries) {
  uint32_t found;
  if (size < sizeof found) {
    return LCOMM_ERR_WIRE;
  }
  memcpy(&found, payload, sizeof found);
  size_t values = lcomm_topk_values_size(format, found);
  if (count > UINT32_MAX || found > count || values > size - sizeof found) {
    return LCOMM_ERR_WIRE;
  }
  if (check_positions(payload, size - values, count, found) != size - values) {
    return LCOMM_ERR_WIRE;
  }
  if (entries) {
    *entries = found;
  }
  return LCOMM_OK;
}
