/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/wire/decoder_stream.h"

#include <string.h>
#include <zstd.h>

#include "tests/wire/decoder_number.h"

enum { CHUNK = 65536 };

static const char *read_frame(const uint8_t *frame, size_t size, uint8_t *chunk, size_t n) {
  if (ZSTD_getFrameContentSize(frame, size) != n) {
    return "a frame that does not declare the size of its chunk";
  }
  if (ZSTD_findFrameCompressedSize(frame, size) != size) {
    return "a frame that does not end with its chunk";
  }
  return ZSTD_decompress(chunk, n, frame, size) == n ? NULL : "a frame that zstd refuses";
}

static const char *read_chunk(input *in, uint8_t *chunk, size_t n) {
  if (in->left < 4) {
    return "a stream that ends before its planes do";
  }
  uint64_t word = number(in->at, 4), size = word % 0x80000000u;
  const uint8_t *bytes = in->at + 4;
  if (size > in->left - 4) {
    return "a chunk that is longer than its stream";
  }
  *in = (input){bytes + size, in->left - 4 - size};
  if (word != size) {
    return read_frame(bytes, (size_t)size, chunk, n);
  }
  if (size != n) {
    return "a stored chunk of another size than its plane has";
  }
  memcpy(chunk, bytes, n);
  return NULL;
}

const char *decoder_plane(input *in, uint8_t *plane, uint64_t size) {
  const char *wrong = NULL;
  for (uint64_t at = 0; at < size && !wrong; at += CHUNK) {
    wrong = read_chunk(in, plane + at, size - at < CHUNK ? (size_t)(size - at) : CHUNK);
  }
  return wrong;
}

/* Numbers of `width` bytes from their planes, which come last plane first. */
const char *decoder_numbers(input *in, unsigned width, uint64_t n, uint8_t *planes,
                            uint8_t *numbers) {
  const char *wrong = NULL;
  for (unsigned p = 0; p < width && !wrong; p++) {
    wrong = decoder_plane(in, planes + p * n, n);
  }
  for (uint64_t i = 0; i < n && !wrong; i++) {
    uint64_t rotated = 0;
    for (unsigned p = 0; p < width; p++) {
      rotated |= (uint64_t)planes[p * n + i] << 8 * p;
    }
    uint64_t value = rotated >> 1 | rotated % 2 << (8 * width - 1);
    for (unsigned b = 0; b < width; b++) {
      numbers[i * width + b] = (uint8_t)(value >> 8 * b);
    }
  }
  return wrong;
}

static const char *read_delta(input *plane, uint64_t *delta) {
  unsigned shift = 0;
  *delta = 0;
  for (;;) {
    if (plane->left == 0) {
      return "a delta plane that ends before its entries do";
    }
    uint8_t byte = *plane->at;
    *plane = (input){plane->at + 1, plane->left - 1};
    *delta |= (uint64_t)(byte & 0x7f) << shift;
    if (*delta > UINT32_MAX || (shift == 28 && byte >= 0x80)) {
      return "a delta of more than 32 bits";
    }
    if (byte == 0 && shift > 0) {
      return "a delta that is longer than it need be";
    }
    if (byte < 0x80) {
      return NULL;
    }
    shift += 7;
  }
}

const char *decoder_positions(input plane, uint64_t entries, uint64_t count, uint32_t *positions) {
  uint64_t next = 0, delta;
  for (uint64_t i = 0; i < entries; i++) {
    const char *wrong = read_delta(&plane, &delta);
    if (wrong) {
      return wrong;
    }
    positions[i] = (uint32_t)(next + delta);
    next += delta + 1;
    if ((i % 32 == 31 || i == entries - 1) && next > count) {
      return "a position outside the view";
    }
  }
  return plane.left == 0 ? NULL : "a delta plane that goes on after its entries";
}
