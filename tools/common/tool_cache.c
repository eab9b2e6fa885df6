/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/common/tool_cache.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_units.h"

enum { PATH_SIZE = 512, LINE_SIZE = 128 };

/* The line of a file about the cache of a processor; false: there is none. */
static bool read_line(const char *folder, unsigned processor, const char *name, char *line) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/cpu%u/cache/index3/%s", folder, processor, name);
  FILE *file = fopen(path, "re");
  if (!file) {
    return false;
  }
  bool good = fgets(line, LINE_SIZE, file) != NULL;
  fclose(file);
  line[good ? strcspn(line, "\n") : 0] = '\0';
  return good;
}

/* Counted with the first of the processors that share it, such as 0 of "0-3,8". */
static uint64_t size_of_first(const char *folder, unsigned processor) {
  char shared[LINE_SIZE], text[LINE_SIZE];
  uint64_t size = 0;
  if (!read_line(folder, processor, "shared_cpu_list", shared) ||
      strtoul(shared, NULL, 10) != processor || !read_line(folder, processor, "size", text) ||
      !tool_units_read_size(text, &size)) {
    return 0;
  }
  return size;
}

uint64_t tool_cache_size(const char *folder) {
  DIR *processors = opendir(folder);
  uint64_t size = 0;
  for (const struct dirent *it; processors && (it = readdir(processors)) != NULL;) {
    unsigned number;
    char behind;
    if (sscanf(it->d_name, "cpu%9u%c", &number, &behind) == 1) {
      size += size_of_first(folder, number);
    }
  }
  if (processors) {
    closedir(processors);
  }
  return size;
}
