/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/fork.h"

#include <pthread.h>

unsigned lcomm_fork_generation;

static void count_fork(void) {
  lcomm_fork_generation++;
}

static void watch(void) {
  pthread_atfork(NULL, NULL, count_fork);
}

void lcomm_fork_watch(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch);
}
