/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Quotas of control groups, version 2 (cpu.max) and 1 (cpu.cfs_quota_us). */

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/topo/processors.h"

enum { TEXT_MAX = 4096, PATH_MAX_BYTES = 4600 };

/* A whole small file as text; false when there is none. */
static bool read_text(const char *path, char text[TEXT_MAX]) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = file >= 0 ? read(file, text, TEXT_MAX - 1) : -1;
  if (file >= 0) {
    close(file);
  }
  text[got > 0 ? got : 0] = '\0';
  return got > 0;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/* "200000 100000" of cpu.max; "max" and what is no number is no quota. */
static uint64_t parse_quota(const char *text) {
  char *end = NULL;
  uint64_t quota = is_digit(text[0]) ? strtoull(text, &end, 10) : 0;
  bool pair = quota > 0 && end[0] == ' ' && is_digit(end[1]);
  uint64_t period = pair ? strtoull(end + 1, NULL, 10) : 0;
  if (period == 0 || quota > UINT64_MAX / 100) {
    return 0;
  }
  uint64_t percent = 100 * quota / period;
  return percent > 0 ? percent : 1;
}

static uint64_t quota_at(const char *folder, bool first_version) {
  char path[PATH_MAX_BYTES + 32], text[TEXT_MAX], period[TEXT_MAX], both[128];
  if (!first_version) {
    snprintf(path, sizeof(path), "%s/cpu.max", folder);
    return read_text(path, text) ? parse_quota(text) : 0;
  }
  snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", folder);
  bool there = read_text(path, text);
  snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", folder);
  if (!there || !read_text(path, period)) {
    return 0;
  }
  text[strcspn(text, "\n")] = '\0';
  snprintf(both, sizeof(both), "%.40s %.40s", text, period);
  return parse_quota(both); /* -1 is no number */
}

/* The smallest one from a group up to the root of them. */
static uint64_t quota_up_from(const char *mount, const char *group, bool first_version) {
  char folder[PATH_MAX_BYTES];
  size_t base = strlen(mount);
  uint64_t least = 0;
  if (snprintf(folder, sizeof(folder), "%s%s", mount, group) >= (int)sizeof(folder)) {
    return 0;
  }
  for (size_t length = strlen(folder); length >= base; length--) {
    if (length > base && folder[length] != '/' && folder[length] != '\0') {
      continue;
    }
    folder[length] = '\0';
    uint64_t quota = quota_at(folder, first_version);
    least = quota > 0 && (least == 0 || quota < least) ? quota : least;
    if (length == 0) {
      break;
    }
  }
  return least;
}

/* Is "cpu" among "cpu,cpuacct"? */
static bool names_cpu(const char *controllers, size_t length) {
  for (size_t i = 0; i + 3 <= length; i++) {
    bool begins = i == 0 || controllers[i - 1] == ',';
    bool ends = i + 3 == length || controllers[i + 3] == ',';
    if (begins && ends && memcmp(controllers + i, "cpu", 3) == 0) {
      return true;
    }
  }
  return false;
}

/* A line of /proc/self/cgroup: NUMBER:CONTROLLERS:GROUP, no controllers in version 2. */
static uint64_t quota_of_line(const char *root, const char *line) {
  char mount[1024];
  const char *controllers = strchr(line, ':');
  const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
  if (!group || group[1] != '/') {
    return 0;
  }
  size_t length = (size_t)(group - controllers - 1);
  if (length > 0 && !names_cpu(controllers + 1, length)) {
    return 0;
  }
  snprintf(mount, sizeof(mount), "%.900s/sys/fs/cgroup%s", root, length > 0 ? "/cpu" : "");
  return quota_up_from(mount, group + 1, length > 0);
}

uint64_t lcomm_cgroup_quota(const char *root) {
  char path[1024], text[TEXT_MAX], *rest = NULL;
  uint64_t least = 0;
  snprintf(path, sizeof(path), "%.900s/proc/self/cgroup", root);
  if (!read_text(path, text)) {
    return 0;
  }
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    uint64_t quota = quota_of_line(root, line);
    least = quota > 0 && (least == 0 || quota < least) ? quota : least;
  }
  return least;
}
