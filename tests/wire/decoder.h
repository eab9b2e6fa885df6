/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_DECODER_H
#define LCOMM_TESTS_WIRE_DECODER_H

/* A second decoder of the wire format, written from codecs/WIRE.md and from
 * nothing else: it shares no code with the library, so what both make of the
 * same bytes is what the text says. Plain rather than fast, and double
 * precision where the library has float32. Uses xxhash and zstd.
 */

#include <stddef.h>
#include <stdint.h>

enum { DECODER_VALUES_MAX = 1 << 20 }; /* it has memory for so many */

typedef struct decoder_message {
  const char *refusal; /* NULL: it is a message; else a phrase of WIRE.md */
  uint64_t count;
  float *values; /* `count` of them; NULL when it was refused */
} decoder_message;

/* Any bytes are allowed: a header and its payload. Free with decoder_free. */
decoder_message decoder_read(const uint8_t *bytes, size_t size);
void decoder_free(decoder_message *message);

/* Where element i of owner p of P lies in the range (WIRE.md, stripes). */
uint64_t decoder_stripe(uint64_t i, uint32_t p, uint32_t P);

#endif
