/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_FEW_FILES_H
#define LCOMM_TESTS_FEW_FILES_H

/* Processes that may open few files. */

#include <stdbool.h>
#include <sys/resource.h>

#include "libcomm/base/descriptors.h"

/* From now on this process can open `count` more files; hard: nobody in it can
 * raise that again. */
static inline bool leave_files(int count, bool hard) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return false;
  }
  limit.rlim_cur = (rlim_t)count;
  while (setrlimit(RLIMIT_NOFILE, &limit) == 0 && lcomm_descriptors_free() < count) {
    limit.rlim_cur++;
  }
  limit.rlim_max = hard ? limit.rlim_cur : limit.rlim_max;
  return setrlimit(RLIMIT_NOFILE, &limit) == 0 && lcomm_descriptors_free() == count;
}

#endif
