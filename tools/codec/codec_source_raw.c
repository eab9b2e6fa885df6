/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Files as bytes, bytes as values and names, and files that are nothing but values. */

#include "tools/codec/codec_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernels/element.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are copied as they are in files");

/* ---------------------------------------------------------------- sentences */

/* Bytes of the UTF-8 character at `text`; 0 when it is none (cut, overlong, a
 * surrogate, above U+10FFFF) or a control character. */
static size_t character_size(const uint8_t *text, size_t left) {
  static const uint32_t least[] = {0, 0x20, 0xa0, 0x800, 0x10000};
  uint8_t lead = text[0];
  size_t size = lead < 0x80 ? 1 : lead < 0xc0 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (size == 0 || size > left || lead > 0xf4) {
    return 0;
  }
  uint32_t code = size == 1 ? lead : lead & (0x7fu >> size);
  for (size_t i = 1; i < size; i++) {
    if ((text[i] & 0xc0) != 0x80) {
      return 0;
    }
    code = code << 6 | (text[i] & 0x3fu);
  }
  bool surrogate = code >= 0xd800 && code < 0xe000;
  return code < least[size] || code == 0x7f || code > 0x10ffff || surrogate ? 0 : size;
}

/* Bytes that are no character become '?'. */
static void make_printable(char *text) {
  size_t left = strlen(text), step;
  for (uint8_t *at = (uint8_t *)text; left > 0; at += step, left -= step) {
    step = character_size(at, left);
    if (step > 0) {
      continue;
    }
    *at = '?';
    step = 1;
  }
}

lcomm_status lcomm_source_fail(char *error, lcomm_status status, const char *path,
                               const char *format, ...) {
  enum { PATH_SHOWN = LCOMM_SOURCE_ERROR_MAX / 2 };
  size_t length = strlen(path);
  bool cut = length > PATH_SHOWN;
  int at = snprintf(error, LCOMM_SOURCE_ERROR_MAX, "%s%s: ", cut ? "..." : "",
                    cut ? path + length - PATH_SHOWN : path);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(error + at, (size_t)(LCOMM_SOURCE_ERROR_MAX - at), format, arguments);
  va_end(arguments);
  make_printable(error);
  return status;
}

/* ------------------------------------------------------------------ mapping */

static lcomm_status map_open_file(int file, lcomm_source_input *input, char *error) {
  struct stat found;
  if (fstat(file, &found) != 0) {
    return lcomm_source_fail(error, LCOMM_ERR_SYSTEM, input->path, "cannot be looked at: %s",
                             strerror(errno));
  }
  if (!S_ISREG(found.st_mode)) {
    return lcomm_source_fail(error, LCOMM_ERR_ARGUMENT, input->path, "is %s, expected a file",
                             S_ISDIR(found.st_mode) ? "a folder" : "no regular file");
  }
  input->size = (size_t)found.st_size;
  if (input->size == 0) {
    return LCOMM_OK; /* an empty mapping is an error of mmap */
  }
  void *bytes = mmap(NULL, input->size, PROT_READ, MAP_PRIVATE, file, 0);
  if (bytes == MAP_FAILED) {
    return lcomm_source_fail(error, LCOMM_ERR_SYSTEM, input->path, "cannot be mapped: %s",
                             strerror(errno));
  }
  input->bytes = bytes;
  return LCOMM_OK;
}

lcomm_status lcomm_source_map(const char *path, lcomm_source_input *input, char *error) {
  *input = (lcomm_source_input){.path = path};
  /* Opening a pipe must not wait for somebody to write into it. */
  int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) {
    return lcomm_source_fail(error, LCOMM_ERR_SYSTEM, path, "cannot be opened: %s",
                             strerror(errno));
  }
  lcomm_status status = map_open_file(file, input, error);
  close(file);
  return status;
}

void lcomm_source_unmap(lcomm_source_input *input) {
  if (input->bytes) {
    munmap((void *)input->bytes, input->size);
  }
  input->bytes = NULL;
}

/* ------------------------------------------------------------------- values */

size_t lcomm_source_type_size(lcomm_source_type type) {
  switch (type) {
  case LCOMM_SOURCE_F32:
    return 4;
  case LCOMM_SOURCE_F16:
  case LCOMM_SOURCE_BF16:
    return 2;
  case LCOMM_SOURCE_F64:
    return 8;
  }
  return 0;
}

uint64_t lcomm_source_number(const uint8_t *bytes, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; i++) {
    value |= (uint64_t)bytes[i] << (8 * i);
  }
  return value;
}

/* Files promise no alignment, so each value is copied out of its bytes. The
 * functions of element.h and not the kernels: those multiply by a factor, and
 * that would change the bits of a signalling NaN. */
static void convert_16(float (*to_f32)(uint16_t), const uint8_t *bytes, uint64_t n, float *values) {
  for (uint64_t i = 0; i < n; i++) {
    uint16_t code;
    memcpy(&code, bytes + 2 * i, sizeof code);
    values[i] = to_f32(code);
  }
}

static void convert_f64(const uint8_t *bytes, uint64_t n, float *values) {
  for (uint64_t i = 0; i < n; i++) {
    double value;
    memcpy(&value, bytes + 8 * i, sizeof value);
    values[i] = (float)value;
  }
}

void lcomm_source_convert(lcomm_source_type type, const uint8_t *bytes, uint64_t n, float *values) {
  if (n == 0) {
    return;
  }
  switch (type) {
  case LCOMM_SOURCE_F32:
    memcpy(values, bytes, (size_t)n * sizeof *values);
    return;
  case LCOMM_SOURCE_F16:
    convert_16(lcomm_f16_to_f32, bytes, n, values);
    return;
  case LCOMM_SOURCE_BF16:
    convert_16(lcomm_bf16_to_f32, bytes, n, values);
    return;
  case LCOMM_SOURCE_F64:
    convert_f64(bytes, n, values);
    return;
  }
}

/* -------------------------------------------------------------------- names */

static bool is_name(const char *name, size_t size) {
  if (size == 0 || size >= LCOMM_SOURCE_NAME_MAX) {
    return false;
  }
  for (size_t at = 0, step; at < size; at += step) {
    step = character_size((const uint8_t *)name + at, size - at);
    if (step == 0) {
      return false;
    }
  }
  return true;
}

static lcomm_status check_name(const lcomm_source_input *input, const lcomm_source_entry *entry,
                               char *error) {
  if (is_name(entry->name, entry->name_size)) {
    return LCOMM_OK;
  }
  int shown = entry->name_size < 40 ? (int)entry->name_size : 40;
  return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                           "a tensor's name is \"%.*s\" (%zu bytes), expected 1 to %d bytes of "
                           "UTF-8 without control characters",
                           shown, entry->name, entry->name_size, LCOMM_SOURCE_NAME_MAX - 1);
}

/* ----------------------------------------------------------------- contents */

/* Room for one more of the `count` elements of `*array`, for an entry with a good name. Doubles at
 * powers of two, so no capacity need be kept. */
static lcomm_status grow(const lcomm_source_input *input, const lcomm_source_entry *entry,
                         void **array, size_t count, size_t size, char *error) {
  lcomm_status status = check_name(input, entry, error);
  if (status != LCOMM_OK || (count & (count - 1)) != 0) {
    return status;
  }
  void *grown = reallocarray(*array, count == 0 ? 1 : 2 * count, size);
  if (!grown) {
    return lcomm_source_fail(error, LCOMM_ERR_MEMORY, input->path, "no memory for its tensors");
  }
  *array = grown;
  return LCOMM_OK;
}

lcomm_status lcomm_source_skip(const lcomm_source_input *input, const lcomm_source_entry *entry,
                               const char *why, lcomm_source_contents *contents, char *error) {
  void *array = contents->skipped;
  lcomm_status status =
      grow(input, entry, &array, contents->skipped_count, sizeof *contents->skipped, error);
  if (status != LCOMM_OK) {
    return status;
  }
  contents->skipped = array;
  lcomm_source_skipped *skipped = contents->skipped + contents->skipped_count++;
  memset(skipped, 0, sizeof *skipped);
  memcpy(skipped->name, entry->name, entry->name_size);
  snprintf(skipped->why, sizeof skipped->why, "%s", why);
  return LCOMM_OK;
}

lcomm_status lcomm_source_add(const lcomm_source_input *input, const lcomm_source_entry *entry,
                              lcomm_source_contents *contents, char *error) {
  if (entry->count == 0) {
    return lcomm_source_skip(input, entry, "no values", contents, error);
  }
  void *array = contents->tensors;
  lcomm_status status =
      grow(input, entry, &array, contents->tensor_count, sizeof *contents->tensors, error);
  if (status != LCOMM_OK) {
    return status;
  }
  contents->tensors = array;
  lcomm_source_tensor *tensor = contents->tensors + contents->tensor_count++;
  *tensor = (lcomm_source_tensor){.first = contents->count,
                                  .count = entry->count,
                                  .offset = entry->offset,
                                  .rows = entry->rows,
                                  .columns = entry->columns,
                                  .type = entry->type};
  memcpy(tensor->name, entry->name, entry->name_size);
  contents->count += entry->count;
  return LCOMM_OK;
}

void lcomm_source_contents_free(lcomm_source_contents *contents) {
  free(contents->tensors);
  free(contents->skipped);
  *contents = (lcomm_source_contents){0};
}

/* ---------------------------------------------------------------- raw files */

lcomm_status lcomm_source_add_file(const lcomm_source_input *input, lcomm_source_type type,
                                   uint64_t count, uint64_t offset, lcomm_source_contents *contents,
                                   char *error) {
  const char *slash = strrchr(input->path, '/');
  char name[LCOMM_SOURCE_NAME_MAX];
  snprintf(name, sizeof name, "%s", slash != NULL ? slash + 1 : input->path);
  if (name[0] == '\0') {
    snprintf(name, sizeof name, "values");
  }
  make_printable(name); /* a file may have any name */
  lcomm_source_entry entry = {
      .name = name, .name_size = strlen(name), .count = count, .offset = offset, .type = type};
  return lcomm_source_add(input, &entry, contents, error);
}

lcomm_status lcomm_source_parse_raw(const lcomm_source_input *input, lcomm_source_type type,
                                    lcomm_source_contents *contents, char *error) {
  size_t size = lcomm_source_type_size(type);
  if (input->size % size != 0) {
    return lcomm_source_fail(error, LCOMM_ERR_WIRE, input->path,
                             "holds %zu bytes, expected a multiple of %zu: is it cut short, or of "
                             "another type?",
                             input->size, size);
  }
  return lcomm_source_add_file(input, type, input->size / size, 0, contents, error);
}
