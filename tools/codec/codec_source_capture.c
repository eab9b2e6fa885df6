/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Captured buckets, .lcg; the format is in source.h. */

#include "tools/codec/codec_source.h"

#include <string.h>
#include <xxhash.h>

enum { HEADER_SIZE = 32, VERSION = 2, WITHOUT_SHAPES = 1, ALIGNMENT = 64, CHECKSUM_SIZE = 8 };

/* Walks over the records; `at` never passes `size`, where the checksum is. */
typedef struct reader {
  const lcomm_source_input *input;
  char *error;
  size_t at, size;
  uint64_t version;
} reader;

static lcomm_status fail(const reader *self, const char *what) {
  return lcomm_source_fail(self->error, LCOMM_ERR_WIRE, self->input->path, "%s (byte %zu)", what,
                           self->at);
}

static bool take_number(reader *self, size_t size, uint64_t *value) {
  if (self->size - self->at < size) {
    return false;
  }
  *value = lcomm_source_number(self->input->bytes + self->at, size);
  self->at += size;
  return true;
}

/* ------------------------------------------------------------------- header */

static lcomm_status check_checksum(const reader *self) {
  uint64_t expected = XXH3_64bits(self->input->bytes, self->size);
  uint64_t found = lcomm_source_number(self->input->bytes + self->size, CHECKSUM_SIZE);
  if (found == expected) {
    return LCOMM_OK;
  }
  return lcomm_source_fail(self->error, LCOMM_ERR_WIRE, self->input->path,
                           "ends with the checksum %016llx, expected %016llx: it is damaged or cut "
                           "short",
                           (unsigned long long)found, (unsigned long long)expected);
}

static lcomm_status read_header(reader *self, lcomm_source_capture *capture, uint64_t *tensors) {
  static const uint8_t magic[4] = {'L', 'C', 'M', 'G'};
  const uint8_t *bytes = self->input->bytes;
  if (self->input->size < HEADER_SIZE + CHECKSUM_SIZE || memcmp(bytes, magic, sizeof magic) != 0) {
    return fail(self, "does not begin with \"LCMG\", expected a captured bucket");
  }
  self->version = lcomm_source_number(bytes + 4, 4);
  if (self->version != VERSION && self->version != WITHOUT_SHAPES) {
    return lcomm_source_fail(self->error, LCOMM_ERR_UNSUPPORTED, self->input->path,
                             "is a capture of version %llu, expected %d or %d",
                             (unsigned long long)self->version, WITHOUT_SHAPES, VERSION);
  }
  self->size = self->input->size - CHECKSUM_SIZE;
  lcomm_status status = check_checksum(self);
  if (status != LCOMM_OK) {
    return status;
  }
  *capture = (lcomm_source_capture){.step = lcomm_source_number(bytes + 8, 8),
                                    .rank = (uint32_t)lcomm_source_number(bytes + 16, 4),
                                    .ranks = (uint32_t)lcomm_source_number(bytes + 20, 4),
                                    .nodes = (uint32_t)lcomm_source_number(bytes + 24, 4)};
  *tensors = lcomm_source_number(bytes + 28, 4);
  self->at = HEADER_SIZE;
  if (capture->rank >= capture->ranks || capture->nodes < 1 || capture->nodes > capture->ranks) {
    return fail(self, "announces a rank or nodes that its number of ranks has no room for");
  }
  if (*tensors < 1 || *tensors > LCOMM_CAPTURE_TENSORS_MAX) {
    return fail(self, "announces an impossible number of tensors, expected 1 to 65536");
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------------ records */

/* A matrix has all of the values. */
static lcomm_status read_shape(reader *self, lcomm_source_entry *entry) {
  if (self->version == WITHOUT_SHAPES) {
    return LCOMM_OK;
  }
  if (!take_number(self, 8, &entry->rows) || !take_number(self, 8, &entry->columns)) {
    return fail(self, "ends inside a tensor's shape");
  }
  uint64_t rows = entry->rows, columns = entry->columns;
  bool fits = rows > 0 && entry->count % rows == 0 && entry->count / rows == columns;
  return fits || (rows == 0 && columns == 0)
             ? LCOMM_OK
             : fail(self, "announces rows and columns that are not those of its values");
}

/* Offsets count from the first value until all records are read. */
static lcomm_status read_record(reader *self, uint64_t *values, lcomm_source_contents *contents) {
  uint64_t length = 0;
  lcomm_source_entry entry = {.offset = *values * 4, .type = LCOMM_SOURCE_F32};
  if (!take_number(self, 4, &length) || length > self->size - self->at) {
    return fail(self, "ends inside a tensor's name");
  }
  entry.name = (const char *)self->input->bytes + self->at;
  entry.name_size = (size_t)length;
  self->at += (size_t)length;
  if (!take_number(self, 8, &entry.count)) {
    return fail(self, "ends inside a tensor's record");
  }
  lcomm_status status = read_shape(self, &entry);
  if (status != LCOMM_OK) {
    return status;
  }
  if (entry.count > self->size / 4 - *values) {
    return fail(self, "announces more values than it has room for");
  }
  *values += entry.count;
  return lcomm_source_add(self->input, &entry, contents, self->error);
}

static lcomm_status read_padding(reader *self) {
  for (; self->at % ALIGNMENT != 0; self->at++) {
    if (self->at == self->size) {
      return fail(self, "ends before its values");
    }
    if (self->input->bytes[self->at] != 0) {
      return fail(self, "has no zeros between its records and its values");
    }
  }
  return LCOMM_OK;
}

static lcomm_status read_records(reader *self, uint64_t tensors, lcomm_source_contents *contents) {
  uint64_t values = 0;
  lcomm_status status = LCOMM_OK;
  for (uint64_t i = 0; status == LCOMM_OK && i < tensors; i++) {
    status = read_record(self, &values, contents);
  }
  if (status == LCOMM_OK) {
    status = read_padding(self);
  }
  if (status != LCOMM_OK) {
    return status;
  }
  if (self->size - self->at != values * 4) {
    return lcomm_source_fail(self->error, LCOMM_ERR_WIRE, self->input->path,
                             "holds %zu bytes of values, expected %llu for the %llu values of its "
                             "tensors",
                             self->size - self->at, (unsigned long long)values * 4,
                             (unsigned long long)values);
  }
  for (size_t i = 0; i < contents->tensor_count; i++) {
    contents->tensors[i].offset += self->at;
  }
  return LCOMM_OK;
}

lcomm_status lcomm_source_parse_capture(const lcomm_source_input *input,
                                        lcomm_source_contents *contents, char *error) {
  reader self = {.input = input, .error = error};
  uint64_t tensors = 0;
  lcomm_status status = read_header(&self, &contents->capture, &tensors);
  return status == LCOMM_OK ? read_records(&self, tensors, contents) : status;
}
