/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/wire/decoder.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tests/wire/decoder_number.h"
#include "tests/wire/decoder_stream.h"

enum { NONE, FP16, BF16, FP8E4M3, FP8E5M2, INT8, TOPK, INT4, SIGN, INT2, CODECS };
enum { HEADER = 40, TILE = 4096 };

/* Section 1 */

static const unsigned blocks[CODECS][4] = {
    [FP8E4M3] = {128, 64, 32}, [FP8E5M2] = {128, 64, 32}, [INT8] = {128, 32},
    [INT4] = {32, 128},        [SIGN] = {128, 64, 32},    [INT2] = {128, 64, 32}};
static const unsigned last_variant[CODECS] = {[FP16] = 2, [TOPK] = 1};

typedef struct heading {
  unsigned codec, block, variant;
  int checked, lossless;
  uint64_t count, payload_size, checksum;
} heading;

static const char *read_header(const uint8_t *bytes, size_t size, heading *h) {
  if (size < HEADER) {
    return "fewer bytes than a header";
  }
  if (memcmp(bytes, "LCMW", 4) != 0) {
    return "wrong magic";
  }
  if (bytes[4] != 1) {
    return "unknown wire version";
  }
  if (bytes[5] >= CODECS) {
    return "unknown codec";
  }
  if (bytes[6] > 7) {
    return "unknown dtype";
  }
  unsigned flags = bytes[7], index = flags / 4 % 4;
  if (flags >= 64) {
    return "unknown flag";
  }
  *h = (heading){.codec = bytes[5],
                 .block = blocks[bytes[5]][index],
                 .variant = flags / 16 % 4,
                 .checked = flags % 2 == 1,
                 .lossless = flags / 2 % 2 == 1,
                 .count = number(bytes + 16, 8),
                 .payload_size = number(bytes + 24, 8),
                 .checksum = number(bytes + 32, 8)};
  if (index > 0 && h->block == 0) {
    return "a block size that the codec does not have";
  }
  if (h->variant > last_variant[h->codec]) {
    return "a variant that the codec does not have";
  }
  return !h->checked && h->checksum != 0 ? "a checksum without its flag" : NULL;
}

/* Section 2 */

static unsigned block_of(const heading *h) {
  return h->codec == FP16 ? 128 : h->block;
}

/* What stands before the codes of a dense payload. */
static uint64_t head_size(const heading *h) {
  if (h->codec == FP16 && h->variant == 1) {
    return h->count > 0 ? 8 : 0;
  }
  int has_scales = (h->codec == FP16 && h->variant == 2) || h->block != 0;
  if (!has_scales) {
    return 0;
  }
  uint64_t scale = h->codec == INT8 || h->codec == INT4 ? 4 : 1;
  return ceil_div(ceil_div(h->count, block_of(h)) * scale, 8) * 8;
}

/* Bytes of one number whose bytes are codes; 0: a part of a byte. */
static uint64_t code_size(unsigned codec) {
  static const uint8_t size[CODECS] = {4, 2, 2, 1, 1, 1};
  return size[codec];
}

static uint64_t codes_size(const heading *h) {
  switch (h->codec) {
  case INT4:
    return ceil_div(h->count, 2);
  case INT2:
    return ceil_div(h->count, 4);
  case SIGN:
    return ceil_div(h->count, 8);
  default:
    return h->count * code_size(h->codec);
  }
}

static double code_value(const heading *h, const uint8_t *codes, uint64_t i) {
  switch (h->codec) {
  case NONE:
    return f32_at(codes + 4 * i);
  case FP16:
    return ieee_float((unsigned)number(codes + 2 * i, 2), 5, 10);
  case BF16:
    return ieee_float((unsigned)number(codes + 2 * i, 2), 8, 7);
  case FP8E4M3:
    return codes[i] % 128 == 127 ? NAN : plain_float(codes[i], 4, 3);
  case FP8E5M2:
    return ieee_float(codes[i], 5, 2);
  case INT8:
    return two_complement(codes[i], 8);
  case SIGN:
    return codes[i / 8] >> i % 8 & 1 ? -1 : 1;
  case INT2:
    return (codes[i / 4] >> i % 4 * 2 & 1 ? -1 : 1) * (codes[i / 4] >> i % 4 * 2 & 2 ? 4 : 1);
  default:
    return two_complement(codes[i / 2] >> (i % 2 * 4) & 15, 4);
  }
}

static double scale_value(const heading *h, const uint8_t *head, uint64_t i) {
  if (h->codec == FP16 && h->variant == 1) {
    return f32_at(head);
  }
  if (h->codec == INT8 || h->codec == INT4) {
    return f32_at(head + i / h->block * 4);
  }
  if (h->block == 0 && !(h->codec == FP16 && h->variant == 2)) {
    return 1;
  }
  uint8_t byte = head[i / block_of(h)];
  if ((h->codec == SIGN || h->codec == INT2) && byte == 0) {
    return 0;
  }
  return byte == 255 ? NAN : ldexp(1, byte - 127);
}

/* Products of a scale and a code are exact in double precision, so the
 * conversion is the one rounding. */
static void decode_dense(const heading *h, const uint8_t *head, const uint8_t *codes,
                         float *values) {
  for (uint64_t i = 0; i < h->count; i++) {
    values[i] = (float)(scale_value(h, head, i) * code_value(h, codes, i));
  }
}

/* Section 3 */

static const char no_topk[] = "not a top-k payload";

static uint64_t scales_size(const heading *h, uint64_t entries) {
  return h->variant == 1 ? 4 * ceil_div(entries, 128) : 0;
}

static uint64_t values_size(const heading *h, uint64_t entries) {
  return h->variant == 1 ? scales_size(h, entries) + entries : 2 * entries;
}

static double entry_value(const heading *h, const uint8_t *bytes, uint64_t entries, uint64_t i) {
  if (h->variant == 0) {
    return ieee_float((unsigned)number(bytes + 2 * i, 2), 8, 7);
  }
  unsigned code = bytes[scales_size(h, entries) + i];
  return f32_at(bytes + i / 128 * 4) * two_complement(code, 8);
}

static void add_entries(const heading *h, const uint32_t *positions, uint64_t entries,
                        const uint8_t *bytes, float *values) {
  for (uint64_t i = 0; i < entries; i++) {
    values[positions[i]] += (float)entry_value(h, bytes, entries, i);
  }
}

static uint64_t bits_at(const uint8_t *bytes, uint64_t first, unsigned n) {
  uint64_t value = 0;
  for (uint64_t b = first; b < first + n; b++) {
    value |= (uint64_t)(bytes[b / 8] >> b % 8 & 1) << (b - first);
  }
  return value;
}

static const char *read_index_block(input *in, unsigned n, uint64_t count, uint64_t *next,
                                    uint32_t *positions) {
  if (in->left == 0 || in->at[0] > 32) {
    return no_topk;
  }
  unsigned width = in->at[0], size = (n * width + 7) / 8;
  const uint8_t *bytes = in->at + 1;
  if (size > in->left - 1) {
    return no_topk;
  }
  uint64_t largest = 0;
  for (unsigned i = 0; i < n; i++) {
    uint64_t delta = bits_at(bytes, (uint64_t)i * width, width);
    largest = delta > largest ? delta : largest;
    if (*next + delta >= count) {
      return no_topk;
    }
    positions[i] = (uint32_t)(*next + delta);
    *next += delta + 1;
  }
  if (width > 0 && largest >> (width - 1) == 0) {
    return no_topk;
  }
  *in = (input){bytes + size, in->left - 1 - size};
  return bits_at(bytes, (uint64_t)n * width, 8 * size - n * width) != 0 ? no_topk : NULL;
}

static const char *decode_topk(const heading *h, input in, uint32_t *positions, float *values) {
  if (in.left < 4 || number(in.at, 4) > h->count) {
    return no_topk;
  }
  uint64_t entries = number(in.at, 4), next = 0;
  in = (input){in.at + 4, in.left - 4};
  for (uint64_t first = 0; first < entries; first += 32) {
    unsigned n = entries - first < 32 ? (unsigned)(entries - first) : 32;
    const char *wrong = read_index_block(&in, n, h->count, &next, positions + first);
    if (wrong) {
      return wrong;
    }
  }
  if (in.left != values_size(h, entries)) {
    return no_topk;
  }
  add_entries(h, positions, entries, in.at, values);
  return NULL;
}

uint64_t decoder_stripe(uint64_t i, uint32_t p, uint32_t P) {
  return (i / TILE * P + p) * TILE + i % TILE;
}

/* Section 5 */

static const char *inflate_dense(const heading *h, input in, uint8_t *payload, uint8_t *planes) {
  uint64_t head = head_size(h);
  const char *wrong = decoder_plane(&in, payload, head);
  if (!wrong && code_size(h->codec) > 1) {
    wrong = decoder_numbers(&in, (unsigned)code_size(h->codec), h->count, planes, payload + head);
  } else if (!wrong) {
    wrong = decoder_plane(&in, payload + head, codes_size(h));
  }
  return !wrong && in.left > 0 ? "bytes behind the last plane" : wrong;
}

static const char *inflate_topk(const heading *h, input in, uint8_t *room, uint32_t *positions,
                                float *values) {
  if (in.left < 8) {
    return "a stream that ends in its head";
  }
  uint64_t entries = number(in.at, 4), deltas = number(in.at + 4, 4);
  if (entries > h->count) {
    return "more entries than elements";
  }
  if (deltas > 5 * entries + 64) {
    return "larger planes than those of any payload";
  }
  in = (input){in.at + 8, in.left - 8};
  const char *wrong = decoder_plane(&in, room, deltas);
  if (!wrong) {
    wrong = decoder_positions((input){room, deltas}, entries, h->count, positions);
  }
  if (!wrong && h->variant == 0) {
    wrong = decoder_numbers(&in, 2, entries, room, room + 2 * entries);
  } else if (!wrong) {
    wrong = decoder_plane(&in, room + 2 * entries, scales_size(h, entries));
  }
  if (!wrong && h->variant == 1) {
    wrong = decoder_plane(&in, room + 2 * entries + scales_size(h, entries), entries);
  }
  if (!wrong && in.left > 0) {
    wrong = "bytes behind the last plane";
  }
  if (!wrong) {
    add_entries(h, positions, entries, room + 2 * entries, values);
  }
  return wrong;
}

/* Messages */

/* `room` is for 8 bytes a value, twice, and some. */
static const char *decode_payload(const heading *h, input in, uint8_t *room, float *values) {
  uint32_t *positions = (uint32_t *)(void *)(room + 8 * h->count + 1024);
  if (h->codec == TOPK && h->lossless) {
    return inflate_topk(h, in, room, positions, values);
  }
  if (h->codec == TOPK) {
    return decode_topk(h, in, positions, values);
  }
  if (h->lossless) {
    uint8_t *planes = room + 8 * h->count + 1024;
    const char *wrong = inflate_dense(h, in, room, planes);
    if (wrong) {
      return wrong;
    }
    in.at = room;
  }
  decode_dense(h, in.at, in.at + head_size(h), values);
  return NULL;
}

static const char *check_message(const heading *h, const uint8_t *payload, size_t size) {
  int exact = h->codec != TOPK && !h->lossless;
  int absurd = h->count > (uint64_t)1 << 56; /* sizes could overflow */
  if (exact && (absurd || h->payload_size != head_size(h) + codes_size(h))) {
    return "payload bytes";
  }
  if (size != h->payload_size) {
    return "its length is not what its header says";
  }
  if (h->checked && XXH3_64bits(payload, size) != h->checksum) {
    return "wrong checksum";
  }
  return h->count > DECODER_VALUES_MAX ? "more values than there is room for" : NULL;
}

decoder_message decoder_read(const uint8_t *bytes, size_t size) {
  heading h;
  decoder_message message = {.refusal = read_header(bytes, size, &h)};
  if (!message.refusal) {
    message.refusal = check_message(&h, bytes + HEADER, size - HEADER);
  }
  if (message.refusal) {
    return message;
  }
  uint8_t *room = calloc(2, (size_t)(8 * h.count + 1024));
  message.values = calloc((size_t)h.count + 1, sizeof(float));
  message.count = h.count;
  if (!room || !message.values) {
    abort();
  }
  message.refusal =
      decode_payload(&h, (input){bytes + HEADER, size - HEADER}, room, message.values);
  free(room);
  if (message.refusal) {
    decoder_free(&message);
  }
  return message;
}

void decoder_free(decoder_message *message) {
  free(message->values);
  message->values = NULL;
}
