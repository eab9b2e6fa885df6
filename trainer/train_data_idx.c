/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "trainer/train_data.h"

/* Reading IDX files. */

/* Unsigned bytes (type 8) of so many dimensions. */
#define MAGIC_OF(dimensions) (0x00000800u | (uint32_t)(dimensions))

enum { FIRST_CAPACITY = 1 << 20 };

typedef struct idx_reader {
  const char *path;
  gzFile file;
  failure *why;
} idx_reader;

static int fail_reading(const idx_reader *reader) {
  int code = Z_OK;
  const char *text = gzerror(reader->file, &code);
  if (code == Z_ERRNO) {
    text = strerror(errno);
  }
  return failure_set(reader->why, EXIT_SETUP,
                     "cannot read %s: %s; the file is damaged, fetch it again (make data)",
                     reader->path, text);
}

/* Up to `size` bytes into `to`; *got is smaller at the end of the file. */
static int read_bytes(const idx_reader *reader, void *to, uint32_t size, uint32_t *got) {
  int count = gzread(reader->file, to, size);
  if (count < 0) {
    return fail_reading(reader);
  }
  *got = (uint32_t)count;
  return 0;
}

static int read_word(const idx_reader *reader, uint32_t *word) {
  uint8_t bytes[4];
  uint32_t got = 0;
  if (read_bytes(reader, bytes, sizeof bytes, &got)) {
    return -1;
  }
  if (got < sizeof bytes) {
    return failure_set(reader->why, EXIT_SETUP,
                       "%s ends inside its header; expected an IDX file, fetch it again "
                       "(make data)",
                       reader->path);
  }
  *word = (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
  return 0;
}

static int read_header(const idx_reader *reader, idx_array *made, uint32_t *total) {
  uint32_t magic = 0;
  if (read_word(reader, &magic)) {
    return -1;
  }
  if (magic != MAGIC_OF(made->dimensions)) {
    return failure_set(reader->why, EXIT_SETUP,
                       "%s begins with 0x%08x, expected 0x%08x (IDX, unsigned bytes, %d "
                       "dimension%s); is it another file under this name?",
                       reader->path, magic, MAGIC_OF(made->dimensions), made->dimensions,
                       made->dimensions == 1 ? "" : "s");
  }
  uint64_t product = 1;
  for (int i = 0; i < made->dimensions; i++) {
    if (read_word(reader, &made->sizes[i])) {
      return -1;
    }
    if (made->sizes[i] < 1 || made->sizes[i] > IDX_SIZE_MAX) {
      return failure_set(reader->why, EXIT_SETUP,
                         "%s announces %u in dimension %d, expected 1 to %d; the file is damaged, "
                         "fetch it again (make data)",
                         reader->path, made->sizes[i], i + 1, IDX_SIZE_MAX);
    }
    product *= made->sizes[i];
    if (product > IDX_BYTES_MAX) {
      return failure_set(reader->why, EXIT_SETUP,
                         "%s announces more than %d bytes, the most that is read; use a smaller "
                         "data set",
                         reader->path, IDX_BYTES_MAX);
    }
  }
  *total = (uint32_t)product;
  return 0;
}

static int read_body(const idx_reader *reader, idx_array *made, uint32_t total) {
  uint32_t filled = 0;
  uint32_t capacity = total < FIRST_CAPACITY ? total : FIRST_CAPACITY;
  for (;;) {
    uint8_t *grown = realloc(made->bytes, capacity);
    if (!grown) {
      return failure_set(reader->why, EXIT_SETUP, "no memory for the %u bytes of %s", total,
                         reader->path);
    }
    made->bytes = grown;
    uint32_t got = 0;
    if (read_bytes(reader, made->bytes + filled, capacity - filled, &got)) {
      return -1;
    }
    filled += got;
    if (filled == total) {
      return 0;
    }
    if (filled < capacity) {
      return failure_set(reader->why, EXIT_SETUP,
                         "%s holds %u bytes of data, its header announces %u; the file is cut "
                         "short, fetch it again (make data)",
                         reader->path, filled, total);
    }
    capacity = capacity < total / 2 ? capacity * 2 : total;
  }
}

/* Reading past the data also makes zlib compare the checksum. */
static int read_end(const idx_reader *reader, uint32_t total) {
  uint8_t byte = 0;
  uint32_t got = 0;
  if (read_bytes(reader, &byte, 1, &got)) {
    return -1;
  }
  if (got > 0) {
    return failure_set(reader->why, EXIT_SETUP,
                       "%s goes on after the %u bytes that its header announces; is it another "
                       "file under this name?",
                       reader->path, total);
  }
  return 0;
}

static int read_array(const idx_reader *reader, idx_array *made) {
  uint32_t total = 0;
  if (read_header(reader, made, &total)) {
    return -1;
  }
  if (read_body(reader, made, total)) {
    return -1;
  }
  return read_end(reader, total);
}

int idx_read(const char *path, int dimensions, idx_array *made, failure *why) {
  memset(made, 0, sizeof *made);
  made->dimensions = dimensions;
  errno = 0;
  idx_reader reader = {path, gzopen(path, "rb"), why};
  if (!reader.file) {
    return failure_set(why, EXIT_SETUP, "cannot open %s: %s; fetch the data (make data)", path,
                       errno ? strerror(errno) : "no memory");
  }
  int result = read_array(&reader, made);
  /* A gzip file that was cut is reported here, if its data were complete. */
  bool ended_well = gzclose_r(reader.file) == Z_OK;
  if (result == 0 && !ended_well) {
    result = failure_set(why, EXIT_SETUP,
                         "%s is a gzip file that is cut short; fetch it again (make data)", path);
  }
  if (result) {
    idx_free(made);
  }
  return result;
}

void idx_free(idx_array *self) {
  free(self->bytes);
  memset(self, 0, sizeof *self);
}
