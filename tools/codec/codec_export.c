/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_export.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16, NAME_MAX_BYTES = 200, TWINS_MAX = 100000 };

static bool fail(char *error, const char *path, int number) {
  snprintf(error, TOOL_ERROR_MAX, "'%.600s' cannot be written: %.200s", path, strerror(number));
  return false;
}

/* The name of a source without its extension, and that of its tensor. */
static void name_file(const char *source, const char *tensor, char name[NAME_MAX_BYTES]) {
  const char *dot = strrchr(source, '.');
  int length = (int)(dot && dot != source ? dot - source : (long)strlen(source));
  bool own = strcmp(source, tensor) != 0; /* a file without names is one tensor of its name */
  snprintf(name, NAME_MAX_BYTES, "%.*s%s%s", length, source, own ? "." : "", own ? tensor : "");
  for (char *c = name; *c != '\0'; c++) {
    if (!isalnum((unsigned char)*c) && !strchr("._-", *c)) {
      *c = '_';
    }
  }
  if (name[0] == '.') {
    name[0] = '_';
  }
}

/* A file that was not there before: none is overwritten. NULL with a sentence. */
static FILE *create(const char *folder, const char *name, char *error) {
  char path[4096];
  for (int twin = 1; twin < TWINS_MAX; twin++) {
    int length = twin == 1 ? snprintf(path, sizeof path, "%s/%s.npy", folder, name)
                           : snprintf(path, sizeof path, "%s/%s-%d.npy", folder, name, twin);
    if (length < 0 || (size_t)length >= sizeof path) {
      errno = ENAMETOOLONG;
      break;
    }
    int handle = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (handle >= 0) {
      return fdopen(handle, "wb");
    }
    if (errno != EEXIST) {
      break;
    }
  }
  fail(error, path, errno);
  return NULL;
}

/* 10 bytes, then a Python dictionary padded with blanks: 128 bytes in all. */
static bool write_header(FILE *file, uint64_t count) {
  enum { DICTIONARY = 118 };
  static const unsigned char head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, DICTIONARY, 0};
  char text[DICTIONARY];
  snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%llu,), }",
           (unsigned long long)count);
  return fwrite(head, 1, sizeof head, file) == sizeof head &&
         fprintf(file, "%-*s\n", DICTIONARY - 1, text) == DICTIONARY;
}

static bool write_values(FILE *file, const lcomm_source *source,
                         const lcomm_source_tensor *tensor) {
  static float values[PIECE];
  for (uint64_t done = 0; done < tensor->count;) {
    uint64_t n = tensor->count - done < PIECE ? tensor->count - done : PIECE;
    lcomm_source_read(source, tensor->first + done, n, values);
    if (fwrite(values, sizeof *values, (size_t)n, file) != n) {
      return false;
    }
    done += n;
  }
  return true;
}

static bool write_tensor(const lcomm_source *source, const lcomm_source_tensor *tensor,
                         const char *folder, char *error) {
  char name[NAME_MAX_BYTES];
  name_file(lcomm_source_name(source), tensor->name, name);
  FILE *file = create(folder, name, error);
  if (!file) {
    return false;
  }
  bool good = write_header(file, tensor->count) && write_values(file, source, tensor);
  int number = errno;
  return (fclose(file) == 0 && good) || fail(error, name, number);
}

bool lcomm_export(const lcomm_dataset *dataset, const char *folder, uint64_t *files, char *error) {
  *files = 0;
  if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
    return fail(error, folder, errno);
  }
  for (size_t i = 0; i < dataset->source_count; i++) {
    const lcomm_source_contents *contents = lcomm_source_contents_of(dataset->sources[i]);
    for (size_t t = 0; t < contents->tensor_count; t++) {
      if (!write_tensor(dataset->sources[i], &contents->tensors[t], folder, error)) {
        return false;
      }
      ++*files;
    }
  }
  return true;
}
