/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "trainer/train_text.h"

/* A file of text, plain or gzip. */

enum { FIRST_CAPACITY = 1 << 16 };

static int refuse_zero(const char *path, const uint8_t *bytes, const uint8_t *zero, failure *why) {
  size_t line = 1;
  for (const uint8_t *at = bytes; at < zero; at++) {
    line += *at == '\n';
  }
  return failure_set(why, EXIT_SETUP,
                     "%s, line %zu: a zero byte; this is no text, give --data another file", path,
                     line);
}

static int check_bytes(const char *path, const uint8_t *bytes, size_t size, failure *why) {
  if (size == 0) {
    return failure_set(why, EXIT_SETUP, "%s is empty; give --data another file", path);
  }
  const uint8_t *zero = memchr(bytes, 0, size);
  return zero ? refuse_zero(path, bytes, zero, why) : 0;
}

static int fail_reading(const char *path, gzFile file, failure *why) {
  int code = Z_OK;
  const char *text = gzerror(file, &code);
  if (code == Z_ERRNO) {
    text = strerror(errno);
  }
  return failure_set(why, EXIT_SETUP, "cannot read %s: %s; is the file whole?", path, text);
}

/* Double the room behind `used` bytes; memory grows with what is really in the file. */
static int make_room(const char *path, text_part *part, size_t *capacity, failure *why) {
  size_t wanted = *capacity ? 2 * *capacity : FIRST_CAPACITY;
  uint8_t *grown = realloc(part->bytes, wanted);
  if (!grown) {
    return failure_set(why, EXIT_SETUP, "no memory for the text of %s", path);
  }
  part->bytes = grown;
  *capacity = wanted;
  return 0;
}

/* Appends; part->size counts what was read also when it fails. */
static int read_all(const char *path, gzFile file, text_part *part, failure *why) {
  size_t capacity = part->size;
  for (;;) {
    if (part->size == capacity && make_room(path, part, &capacity, why)) {
      return -1;
    }
    size_t room = capacity - part->size;
    int count = gzread(file, part->bytes + part->size, (unsigned)room);
    if (count < 0) {
      return fail_reading(path, file, why);
    }
    part->size += (size_t)count;
    if (part->size > TEXT_BYTES_MAX) {
      return failure_set(why, EXIT_SETUP,
                         "%s makes the text larger than %d bytes, the most that is read; give "
                         "--data less",
                         path, TEXT_BYTES_MAX);
    }
    if (count == 0) {
      return 0;
    }
  }
}

static int append_file(const char *path, text_part *part, failure *why) {
  errno = 0;
  gzFile file = gzopen(path, "rb");
  if (!file) {
    return failure_set(why, EXIT_SETUP, "cannot open %s: %s", path,
                       errno ? strerror(errno) : "no memory");
  }
  size_t before = part->size;
  int result = read_all(path, file, part, why);
  /* A gzip file that was cut is reported here. */
  bool ended_well = gzclose_r(file) == Z_OK;
  if (result == 0 && !ended_well) {
    result = failure_set(why, EXIT_SETUP, "%s is a gzip file that is cut short", path);
  }
  return result ? result : check_bytes(path, part->bytes + before, part->size - before, why);
}

/* Anything but a file, such as a pipe that nobody writes to, might never end. */
static int check_is_file(const char *path, failure *why) {
  struct stat about;
  if (stat(path, &about) != 0) {
    return failure_set(why, EXIT_SETUP, "cannot open %s: %s", path, strerror(errno));
  }
  if (!S_ISREG(about.st_mode)) {
    return failure_set(why, EXIT_SETUP, "%s is not a file; give --data a file of text", path);
  }
  return 0;
}

int text_read_file(const char *path, text_part *part, failure *why) {
  if (check_is_file(path, why)) {
    return -1;
  }
  size_t before = part->size;
  if (append_file(path, part, why) == 0) {
    return 0;
  }
  part->size = before;
  return -1;
}
