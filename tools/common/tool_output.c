/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_output.h"

#include <errno.h>
#include <string.h>

#include "tools/common/tool_options.h"

bool tool_output_check(const char *path, char *error) {
  FILE *file = path ? fopen(path, "a") : NULL;
  if (!path || (file && fclose(file) == 0)) {
    return true;
  }
  snprintf(error, TOOL_ERROR_MAX, "'%s' cannot be written: %s", path, strerror(errno));
  return false;
}

FILE *tool_output_open(const char *path) {
  return fopen(path, "w");
}

bool tool_output_close(const char *program, const char *path, FILE *file, bool good) {
  if (!file || fclose(file) != 0 || !good) {
    fprintf(stderr, "%s: '%s' is incomplete; is the disk full?\n", program, path);
    return false;
  }
  return true;
}

void tool_put_quoted(const char *text, FILE *file) {
  fputc('"', file);
  for (; *text != '\0'; text++) {
    if (*text == '"') {
      fputc('"', file);
    }
    fputc(*text == '\n' || *text == '\r' ? ' ' : *text, file);
  }
  fputc('"', file);
}
