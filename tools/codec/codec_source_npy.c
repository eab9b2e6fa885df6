/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* .npy, the format of numpy.save, versions 1.0 to 3.0 (numpy.lib.format):
 * "\x93NUMPY", two bytes of version, the length of the header (2 bytes, from
 * version 2 on 4), and the header, a Python dictionary such as
 * {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. */

#include "tools/codec/codec_source.h"

#include <string.h>

enum { MAGIC_SIZE = 6, WORD_MAX = 32 };

/* ------------------------------------------------------------------ grammar */

/* Walks over the header; `problem` is what was expected where it stopped. */
typedef struct cursor {
  const char *at, *end;
  const char *problem;
} cursor;

typedef struct header {
  char descr[WORD_MAX];
  uint64_t count;
  bool has_descr, has_order, has_shape;
} header;

static bool fail_at(cursor *c, const char *problem) {
  c->problem = problem;
  return false;
}

static void skip_space(cursor *c) {
  while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t')) {
    c->at++;
  }
}

/* Is this the next character that is no space? Steps over it if so. */
static bool take(cursor *c, char wanted) {
  skip_space(c);
  if (c->at == c->end || *c->at != wanted) {
    return false;
  }
  c->at++;
  return true;
}

/* A string without escapes. */
static bool take_string(cursor *c, char text[WORD_MAX]) {
  skip_space(c);
  if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) {
    return fail_at(c, "a string");
  }
  char quote = *c->at++;
  size_t size = 0;
  for (; c->at < c->end && *c->at != quote; c->at++) {
    if (size == WORD_MAX - 1 || *c->at == '\\' || *c->at == '\0') {
      return fail_at(c, "a short string without escapes");
    }
    text[size++] = *c->at;
  }
  if (c->at == c->end) {
    return fail_at(c, "the end of a string");
  }
  c->at++;
  text[size] = '\0';
  return true;
}

static bool take_word(cursor *c, const char *word) {
  size_t size = strlen(word);
  skip_space(c);
  if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0) {
    return false;
  }
  c->at += size;
  return true;
}

/* One length of a shape; Python 2 wrote an L behind it. */
static bool take_length(cursor *c, uint64_t *length) {
  skip_space(c);
  const char *begin = c->at;
  *length = 0;
  for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
    if (__builtin_mul_overflow(*length, 10u, length) ||
        __builtin_add_overflow(*length, (uint64_t)(*c->at - '0'), length)) {
      return fail_at(c, "a length below 2^64");
    }
  }
  if (c->at == begin) {
    return fail_at(c, "a length");
  }
  if (c->at < c->end && *c->at == 'L') {
    c->at++;
  }
  return true;
}

/* The product of a tuple; that of () is 1. */
static bool take_shape(cursor *c, uint64_t *count) {
  *count = 1;
  if (!take(c, '(')) {
    return fail_at(c, "a tuple of lengths");
  }
  while (!take(c, ')')) {
    uint64_t length;
    if (!take_length(c, &length)) {
      return false;
    }
    if (__builtin_mul_overflow(*count, length, count)) {
      return fail_at(c, "fewer than 2^64 values");
    }
    if (take(c, ',')) {
      continue;
    }
    if (take(c, ')')) {
      return true;
    }
    return fail_at(c, "',' or ')'");
  }
  return true;
}

static bool take_value(cursor *c, const char *key, header *h) {
  bool *seen = strcmp(key, "descr") == 0           ? &h->has_descr
               : strcmp(key, "fortran_order") == 0 ? &h->has_order
               : strcmp(key, "shape") == 0         ? &h->has_shape
                                                   : NULL;
  if (!seen || *seen) {
    return fail_at(c, "each of 'descr', 'fortran_order' and 'shape' once");
  }
  *seen = true;
  if (seen == &h->has_shape) {
    return take_shape(c, &h->count);
  }
  if (seen == &h->has_order) {
    return take_word(c, "False") || take_word(c, "True") || fail_at(c, "True or False");
  }
  if (take(c, '[')) {
    return fail_at(c, "one type, not records");
  }
  return take_string(c, h->descr);
}

static bool take_header(cursor *c, header *h) {
  char key[WORD_MAX];
  if (!take(c, '{')) {
    return fail_at(c, "'{'");
  }
  while (!take(c, '}')) {
    if (!take_string(c, key)) {
      return false;
    }
    if (!take(c, ':')) {
      return fail_at(c, "':'");
    }
    if (!take_value(c, key, h)) {
      return false;
    }
    if (take(c, ',')) {
      continue;
    }
    if (take(c, '}')) {
      break;
    }
    return fail_at(c, "',' or '}'");
  }
  if (!h->has_descr || !h->has_order || !h->has_shape) {
    return fail_at(c, "all of 'descr', 'fortran_order' and 'shape'");
  }
  skip_space(c);
  return c->at == c->end || fail_at(c, "nothing more");
}

/* ------------------------------------------------------------------- the file */

static lcomm_status find_type(const lcomm_source_input *input, const char *descr,
                              lcomm_source_type *type, char *error) {
  static const struct {
    const char *descr;
    lcomm_source_type type;
  } known[] = {{"<f4", LCOMM_SOURCE_F32}, {"<f2", LCOMM_SOURCE_F16}, {"<f8", LCOMM_SOURCE_F64}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strcmp(known[i].descr, descr) != 0) {
      continue;
    }
    *type = known[i].type;
    return LCOMM_OK;
  }
  bool may_be_bf16 = strcmp(descr, "<u2") == 0 || strcmp(descr + (descr[0] != '\0'), "V2") == 0;
  return lcomm_source_fail(error, LCOMM_ERR_UNSUPPORTED, input->path,
                           "holds values of type '%s', expected '<f4', '<f2' or '<f8'%s", descr,
                           may_be_bf16
                               ? "; bfloat16 is read from .bf16 files (array.tofile) instead"
                           : descr[0] == '>' ? "; its bytes are in big-endian order"
                                             : "");
}

/* Where the header begins, and its length. */
static lcomm_status find_header(const lcomm_source_input *input, size_t *begin, size_t *length,
                                char *error) {
  static const char magic[MAGIC_SIZE + 1] = "\x93NUMPY";
  if (input->size < MAGIC_SIZE + 2 || memcmp(input->bytes, magic, MAGIC_SIZE) != 0) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "does not begin with \"\\x93NUMPY\", expected a .npy file");
  }
  int major = input->bytes[MAGIC_SIZE], minor = input->bytes[MAGIC_SIZE + 1];
  if (major < 1 || major > 3 || minor != 0) {
    return lcomm_source_fail(error, LCOMM_ERR_UNSUPPORTED, input->path,
                             "is a .npy file of version %d.%d, expected 1.0 to 3.0", major, minor);
  }
  size_t field = major == 1 ? 2 : 4;
  *begin = MAGIC_SIZE + 2 + field;
  if (input->size < *begin) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path, "ends inside its header");
  }
  *length = (size_t)lcomm_source_number(input->bytes + *begin - field, field);
  if (*length > input->size - *begin) {
    return lcomm_source_fail(
        error, LCOMM_ERR_WIRE, input->path,
        "announces a header of %zu bytes, expected at most the %zu that follow", *length,
        input->size - *begin);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_source_parse_npy(const lcomm_source_input *input,
                                    lcomm_source_contents *contents, char *error) {
  size_t begin = 0, length = 0;
  lcomm_status status = find_header(input, &begin, &length, error);
  if (status != LCOMM_OK) {
    return status;
  }
  const char *text = (const char *)input->bytes + begin;
  cursor c = {.at = text, .end = text + length};
  header h = {0};
  if (!take_header(&c, &h)) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "its header is not as expected at byte %zu: expected %s",
                             begin + (size_t)(c.at - text), c.problem);
  }
  lcomm_source_type type = LCOMM_SOURCE_F32;
  status = find_type(input, h.descr, &type, error);
  if (status != LCOMM_OK) {
    return status;
  }
  uint64_t size, found = input->size - begin - length;
  if (__builtin_mul_overflow(h.count, lcomm_source_type_size(type), &size) || size != found) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "announces %llu values of type '%s', but %llu bytes follow",
                             (unsigned long long)h.count, h.descr, (unsigned long long)found);
  }
  return lcomm_source_add_file(input, type, h.count, begin + length, contents, error);
}
