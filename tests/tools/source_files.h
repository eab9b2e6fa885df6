/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOOLS_SOURCE_FILES_H
#define LCOMM_TESTS_TOOLS_SOURCE_FILES_H

/* Files for the tests of what codec_bench reads: bytes in the making, folders,
 * and what is good and what is refused. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "tests/support/temp_folder.h"
#include "tools/codec/codec_source.h"

enum { PATH_SIZE = 512, BYTES_MAX = 4096 };

/* ------------------------------------------------------------- test bytes */

/* A file in the making. */
typedef struct bytes {
  size_t size;
  uint8_t data[BYTES_MAX];
} bytes;

static inline void put(bytes *b, const void *data, size_t size) {
  assert_true(b->size + size <= BYTES_MAX);
  memcpy(b->data + b->size, data, size);
  b->size += size;
}

static inline void put_number(bytes *b, uint64_t value, size_t size) {
  for (size_t i = 0; i < size; i++) {
    put(b, &(uint8_t){(uint8_t)(value >> (8 * i))}, 1);
  }
}

static inline void put_text(bytes *b, const char *text) {
  put(b, text, strlen(text));
}

/* count floats: 0, 1, 2, ... */
static inline void put_floats(bytes *b, size_t count) {
  for (size_t i = 0; i < count; i++) {
    put(b, &(float){(float)i}, sizeof(float));
  }
}

static inline bytes make_npy(int major, const char *header) {
  bytes b = {0};
  put_text(&b, "\x93NUMPY");
  put_number(&b, (uint64_t)major, 2);
  put_number(&b, strlen(header), major == 1 ? 2 : 4);
  put_text(&b, header);
  return b;
}

static inline bytes make_safetensors(const char *header) {
  bytes b = {0};
  put_number(&b, strlen(header), 8);
  put_text(&b, header);
  return b;
}

/* A capture of one tensor, its values and checksum still missing. */
static inline bytes make_capture_of(int version, const char *name, uint64_t count, uint64_t rows,
                                    uint64_t columns) {
  bytes b = {0};
  put_text(&b, "LCMG");
  put_number(&b, (uint64_t)version, 4);
  put_number(&b, 123456, 8);
  put_number(&b, 2, 4); /* rank, ranks, nodes, tensors */
  put_number(&b, 6, 4);
  put_number(&b, 3, 4);
  put_number(&b, 1, 4);
  put_number(&b, strlen(name), 4);
  put_text(&b, name);
  put_number(&b, count, 8);
  if (version > 1) {
    put_number(&b, rows, 8);
    put_number(&b, columns, 8);
  }
  while (b.size % 64 != 0) {
    put_number(&b, 0, 1);
  }
  return b;
}

/* Of the version without shapes. */
static inline bytes make_capture(const char *name, uint64_t count) {
  return make_capture_of(1, name, count, 0, 0);
}

static inline void put_checksum(bytes *b) {
  put_number(b, XXH3_64bits(b->data, b->size), 8);
}

/* ------------------------------------------------------------------ folders */

static inline const char *write_file(void **state, const char *name, const bytes *b) {
  static char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%s", ((folder *)*state)->path, name);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(b->data, 1, b->size, file), b->size);
  assert_int_equal(fclose(file), 0);
  return path;
}

static inline const char *write_text(void **state, const char *name, const char *text) {
  bytes b = {0};
  put_text(&b, text);
  return write_file(state, name, &b);
}

/* ------------------------------------------------------------------ checks */

static inline lcomm_source *open_good(const char *path, const char *layers) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  if (lcomm_source_open(path, layers, &source, error) != LCOMM_OK) {
    fail_msg("%s", error);
  }
  return source;
}

/* The sentence begins with `path` and has `phrase` in it. */
static inline void check_sentence(const char *error, const char *path, const char *phrase) {
  if (strncmp(error, path, strlen(path)) != 0 || !strstr(error, phrase)) {
    fail_msg("\"%s\" is not about %s and does not say \"%s\"", error, path, phrase);
  }
}

static inline void check_refused(const char *path, const char *layers, lcomm_status expected,
                                 const char *about, const char *phrase) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source *source = NULL;
  assert_int_equal(lcomm_source_open(path, layers, &source, error), expected);
  assert_null(source);
  check_sentence(error, about, phrase);
}

typedef lcomm_status (*parser)(const lcomm_source_input *input, lcomm_source_contents *contents,
                               char *error);

/* Not cmocka's memory: its guards would hide from a sanitizer one byte too far. */
static inline lcomm_source_input exact_input(const bytes *b) {
  uint8_t *exact = malloc(b->size);
  assert_true(exact || b->size == 0);
  memcpy(exact, b->data, b->size);
  return (lcomm_source_input){"dir/a.bin", exact, b->size};
}

static inline void check_unparsed(parser parse, const bytes *b, lcomm_status expected,
                                  const char *phrase) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source_input input = exact_input(b);
  lcomm_source_contents contents = {0};
  lcomm_status status = parse(&input, &contents, error);
  if (status == LCOMM_OK) {
    fail_msg("read, expected to be refused: %s", phrase);
  }
  check_sentence(error, "dir/a.bin: ", phrase);
  assert_int_equal(status, expected);
  lcomm_source_contents_free(&contents);
  free((void *)input.bytes);
}

static inline lcomm_source_contents parse_good(parser parse, const bytes *b) {
  char error[LCOMM_SOURCE_ERROR_MAX];
  lcomm_source_input input = exact_input(b);
  lcomm_source_contents contents = {0};
  if (parse(&input, &contents, error) != LCOMM_OK) {
    fail_msg("%s", error);
  }
  free((void *)input.bytes);
  return contents;
}

static inline void check_tensor(const lcomm_source_contents *contents, size_t index,
                                const char *name, uint64_t first, uint64_t count) {
  assert_in_range(index, 0, contents->tensor_count - 1);
  assert_string_equal(contents->tensors[index].name, name);
  assert_int_equal(contents->tensors[index].first, first);
  assert_int_equal(contents->tensors[index].count, count);
}

#endif
