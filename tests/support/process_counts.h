/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_PROCESS_COUNTS_H
#define LCOMM_TESTS_PROCESS_COUNTS_H

/* What this process holds, from /proc: compared before and after, it shows what is left behind.
 * Only differences mean something: folders have entries of their own. */

#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline int count_entries(const char *folder) {
  int count = 0;
  DIR *entries = opendir(folder);
  while (entries && readdir(entries)) {
    count++;
  }
  if (entries) {
    closedir(entries);
  }
  return count;
}

/* Open descriptors. */
static inline int count_files(void) {
  return count_entries("/proc/self/fd");
}

static inline int count_threads(void) {
  return count_entries("/proc/self/task");
}

/* A thread that was joined may be listed a while longer. Whether no more than `count` are left. */
static inline bool threads_fall_to(int count) {
  for (int i = 0; i < 60000 && count_threads() > count; i++) {
    usleep(1000);
  }
  return count_threads() <= count;
}

/* Mappings of files whose names hold `name`. */
static inline int count_mappings_of(const char *name) {
  char line[512];
  int count = 0;
  FILE *maps = fopen("/proc/self/maps", "re");
  while (maps && fgets(line, sizeof(line), maps)) {
    count += strstr(line, name) != NULL;
  }
  if (maps) {
    fclose(maps);
  }
  return count;
}

/* Memory in use, in KiB; -1: unknown. */
static inline long resident_kib(void) {
  char line[128];
  long kib = -1;
  FILE *status = fopen("/proc/self/status", "re");
  while (status && kib < 0 && fgets(line, sizeof(line), status)) {
    sscanf(line, "VmRSS: %ld", &kib);
  }
  if (status) {
    fclose(status);
  }
  return kib;
}

/* KiB that malloc has given out; 0 with sanitizers, which have another one. */
static inline long heap_kib(void) {
  struct mallinfo2 all = mallinfo2();
  return (long)((all.uordblks + all.hblkhd) / 1024);
}

/* Has this process at most so much memory? Sanitizers keep what was freed, so there it cannot be
 * said. */
static inline bool is_memory_within(long kib) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return kib > 0;
#else
  return resident_kib() <= kib;
#endif
}

/* Has it no more than it had with so much, but for 2 MiB? */
static inline bool is_memory_flat(long kib) {
  return is_memory_within(kib + 2048);
}

#endif
