/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static void raise_once(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit); /* who needs more than there are says so */
  }
}

void lcomm_descriptors_raise(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, raise_once);
}

int lcomm_descriptors_limit(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT_MAX) {
    return INT_MAX;
  }
  return (int)limit.rlim_cur;
}

/* Without /proc; numbers beyond are rarely used. */
static int count_by_trying(int limit) {
  enum { TRIED_MAX = 65536 };
  int open = 0;
  for (int fd = 0; fd < limit && fd < TRIED_MAX; fd++) {
    open += fcntl(fd, F_GETFD) >= 0;
  }
  return open;
}

/* Descriptors with numbers below the limit: those above it, which were opened
 * before it was lowered, take no room. */
static int count_open(int limit) {
  int open = 0;
  DIR *folder = opendir("/proc/self/fd");
  if (!folder) {
    return count_by_trying(limit);
  }
  for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
    char *end = NULL;
    long fd = strtol(entry->d_name, &end, 10);
    open += end != entry->d_name && *end == '\0' && fd < limit && fd != dirfd(folder);
  }
  closedir(folder);
  return open;
}

int lcomm_descriptors_free(void) {
  int limit = lcomm_descriptors_limit(), open = count_open(limit);
  return open < limit ? limit - open : 0;
}

const char *lcomm_descriptors_lack(int limit, int left, int needed, int wanted, const char *what,
                                   char *text) {
  snprintf(text, LCOMM_DESCRIPTORS_TEXT_MAX,
           "it can open %d more file descriptors (its limit is %d), and %.60s needs %d; start it "
           "with `ulimit -n %lld` or more (LimitNOFILE= of a service, --ulimit nofile= of a "
           "container)",
           left, limit, what, needed, (long long)limit - left + wanted);
  return text;
}
