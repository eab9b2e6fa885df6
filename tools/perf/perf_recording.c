/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_SIZE = 4096, FILES_MAX = 1 << 16 };

/* The path with its first %d replaced; returns 0 if it is too long. */
static int path_of(const char *pattern, int number, char *path) {
  const char *place = strstr(pattern, "%d");
  int length = !place ? snprintf(path, PATH_SIZE, "%s", pattern)
                      : snprintf(path, PATH_SIZE, "%.*s%d%s", (int)(place - pattern), pattern,
                                 number, place + 2);
  return length > 0 && length < PATH_SIZE;
}

static int exists(const char *pattern, int number) {
  char path[PATH_SIZE];
  FILE *file = path_of(pattern, number, path) ? fopen(path, "rb") : NULL;
  if (file) {
    fclose(file);
  }
  return file != NULL;
}

static int count_files(const char *pattern) {
  int files = 0;
  while (strstr(pattern, "%d") && files < FILES_MAX && exists(pattern, files)) {
    files++;
  }
  return files > 0 ? files : 1;
}

int lcomm_perf_recording_load(lcomm_perf_recording *recording, const char *path, int rank,
                              char *error, size_t error_size) {
  char name[PATH_SIZE] = "";
  memset(recording, 0, sizeof *recording);
  snprintf(error, error_size, "the file '%s' given with --data cannot be read", path);
  if (!path_of(path, rank % count_files(path), name)) {
    return 0;
  }
  FILE *file = fopen(name, "rb");
  if (!file) {
    return 0;
  }
  long size = fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  rewind(file);
  uint64_t count = size > 0 ? (uint64_t)size / sizeof(float) : 0;
  recording->values = count > 0 ? malloc(count * sizeof(float)) : NULL;
  if (recording->values) {
    recording->count = fread(recording->values, sizeof(float), count, file);
  }
  fclose(file);
  if (recording->count == 0) {
    snprintf(error, error_size, "the file '%s' given with --data holds no float32 value", name);
    lcomm_perf_recording_free(recording);
    return 0;
  }
  return 1;
}

void lcomm_perf_recording_free(lcomm_perf_recording *recording) {
  free(recording->values);
  memset(recording, 0, sizeof *recording);
}

void lcomm_perf_recording_fill(const lcomm_perf_recording *recording, float *buffer,
                               uint64_t count) {
  for (uint64_t at = 0; at < count; at += recording->count) {
    uint64_t left = count - at;
    memcpy(buffer + at, recording->values,
           (left < recording->count ? left : recording->count) * sizeof(float));
  }
}
