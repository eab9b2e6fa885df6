/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tools/scale/scale_held.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

int64_t scale_memory_kib(void) {
  char line[128];
  long long kib = 0;
  FILE *file = fopen("/proc/self/smaps_rollup", "r");
  while (file && fgets(line, sizeof line, file) && sscanf(line, "Pss: %lld", &kib) != 1) {
  }
  if (file) {
    fclose(file);
  }
  return kib;
}

/* Without "." and "..". */
static int64_t count_entries(const char *folder) {
  int64_t count = 0;
  DIR *entries = opendir(folder);
  while (entries && readdir(entries)) {
    count++;
  }
  if (entries) {
    closedir(entries);
  }
  return count > 2 ? count - 2 : 0;
}

static int64_t count_maps(const char *name) {
  char line[512];
  int64_t count = 0;
  FILE *file = fopen("/proc/self/maps", "r");
  while (file && fgets(line, sizeof line, file)) {
    count += strstr(line, name) != NULL;
  }
  if (file) {
    fclose(file);
  }
  return count;
}

void scale_held(const lcomm_comm *comm, scale_holdings *held) {
  held->links = 0;
  for (int peer = 0; peer < comm->size; peer++) {
    held->links += lcomm_links_linked(&comm->links, peer);
  }
  held->maps = count_maps("/memfd:libcomm");
  held->descriptors = count_entries("/proc/self/fd") - 1; /* the folder itself */
  held->threads = count_entries("/proc/self/task");
}
