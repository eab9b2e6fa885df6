/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_WIRE_DECODER_STREAM_H
#define LCOMM_TESTS_WIRE_DECODER_STREAM_H

/* Inside of the second decoder: section 5 of codecs/WIRE.md. The functions
 * take bytes off a stream and return NULL, or the phrase of a refusal.
 */

#include <stddef.h>
#include <stdint.h>

/* Bytes that are left to read. */
typedef struct input {
  const uint8_t *at;
  uint64_t left;
} input;

/* A plane of `size` bytes. */
const char *decoder_plane(input *in, uint8_t *plane, uint64_t size);

/* n numbers of `width` bytes, 2 or 4, from their planes. `planes` has room for
 * as many bytes as the numbers. */
const char *decoder_numbers(input *in, unsigned width, uint64_t n, uint8_t *planes,
                            uint8_t *numbers);

/* `entries` positions below `count` from a delta plane. */
const char *decoder_positions(input plane, uint64_t entries, uint64_t count, uint32_t *positions);

#endif
