/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_TEXT_H
#define TRAINER_TRAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trainer/train_peers.h"

/* Text as bytes: read from files, or made up where there are none; the end of each file is held
 * out to test on. A model reads a window of bytes and tells at each of them what the next one is.
 */

enum {
  TEXT_CLASSES = 256, /* values of a byte */
  TEXT_WHERE_SIZE = 512,
  TEXT_BYTES_MAX = 1 << 30, /* of all files together */
  TEXT_FILES_MAX = 10000    /* of a folder */
};

/* Pass this as a place to train on the built-in text. */
#define TEXT_BUILT_IN "builtin"

typedef struct text_part {
  size_t size;
  uint8_t *bytes; /* [size], owned */
} text_part;

typedef struct text_data {
  bool built_in;
  char where[TEXT_WHERE_SIZE]; /* file or folder, "" for the built-in text */
  text_part train;             /* the first nine tenths of each file */
  text_part test;              /* the rest of each */
} text_data;

/* Load the text. `place`, if not NULL, is a file, a folder whose files are read in the order of
 * their names, or a folder with text/tinyshakespeare.txt; else LCOMM_DATA, if set, is; else
 * text/tinyshakespeare.txt is looked for in a few places, and if it is in none, the built-in text
 * is made from the seed. Returns 0, or -1 with `why`; then nothing is kept. */
int text_load(const char *place, uint64_t seed, text_data *made, failure *why);
void text_free(text_data *self);

/* Equal on ranks that loaded the same bytes. */
uint64_t text_hash(const text_data *self);

/* How many windows of `length` bytes, each with its next byte, lie side by side in a part. */
uint32_t text_windows(const text_part *part, int length);

/* Copy `length` bytes from `start` on to bytes[length], as numbers 0 .. 255, and the byte after
 * each to next[length]; so start + length < part->size. */
void text_window(const text_part *part, size_t start, int length, float *bytes, uint8_t *next);

/* Append a file, plain or gzip, to a part. A file that is empty, holds a zero byte or is larger
 * than TEXT_BYTES_MAX with what the part has is no text. Returns 0, or -1 with `why`; then the
 * part is as before. */
int text_read_file(const char *path, text_part *part, failure *why);

/* --------------------------------------------------------- the built-in text
 * For machines without data: sentences of a small grammar about a small world, equal on every
 * machine for one seed. */

enum { STORY_SIZE = 1 << 19 };

/* Fill bytes[size]. */
void story_write(uint64_t seed, uint8_t *bytes, size_t size);

#endif
