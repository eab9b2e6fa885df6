/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/simulation/simulate_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/simulation/simulate_speeds.h"

static char *read_open(FILE *file, const char *path, size_t most, size_t *length, char *why) {
  struct stat it;
  char *text = NULL;
  if (fstat(fileno(file), &it) != 0 || !S_ISREG(it.st_mode)) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s is no ordinary file", path);
    return NULL;
  }
  if ((size_t)it.st_size > most || !(text = malloc((size_t)it.st_size + 1))) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s is longer than %zu bytes", path, most);
    return NULL;
  }
  *length = fread(text, 1, (size_t)it.st_size, file);
  text[*length] = '\0';
  if (ferror(file)) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s cannot be read: %s", path, strerror(errno));
    free(text);
    return NULL;
  }
  return text;
}

char *simulate_file_read(const char *path, size_t most, size_t *length, char *why) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    snprintf(why, SIMULATE_WHY_MAX, "%.200s cannot be opened: %s", path, strerror(errno));
    return NULL;
  }
  char *text = read_open(file, path, most, length, why);
  fclose(file);
  return text;
}
