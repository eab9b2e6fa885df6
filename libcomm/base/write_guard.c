/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/write_guard.h"

#include <errno.h>
#include <time.h>

void lcomm_write_guard_begin(lcomm_write_guard *guard) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGXFSZ);
  sigaddset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &blocked, &guard->mask);
  sigpending(&guard->pending);
}

/* The signal that came with an error; 0: none. */
static int signal_of(int error) {
  return error == EFBIG ? SIGXFSZ : error == EPIPE ? SIGPIPE : 0;
}

void lcomm_write_guard_end(const lcomm_write_guard *guard, int error) {
  static const struct timespec NOW = {0, 0};
  int number = signal_of(error), kept = errno;
  if (number != 0 && sigismember(&guard->pending, number) == 0) {
    sigset_t own;
    sigemptyset(&own);
    sigaddset(&own, number);
    while (sigtimedwait(&own, NULL, &NOW) < 0 && errno == EINTR) {
    }
  }
  pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
  errno = kept;
}
