/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the lock of the emulation orders would hide from ThreadSanitizer what a
 * program forgot to order: two streams take turns at the lock all the time. So the
 * sanitizer is shown neither the lock nor what is done with it, and is told instead
 * what the order of a device is. */

#include <time.h>

#include "tests/support/emulated/emulated_internal.h"

#define WEAK __attribute__((weak))

/* Of its runtime; absent in other builds. */
extern WEAK void AnnotateIgnoreSyncBegin(const char *file, int line);
extern WEAK void AnnotateIgnoreSyncEnd(const char *file, int line);
extern WEAK void AnnotateIgnoreReadsBegin(const char *file, int line);
extern WEAK void AnnotateIgnoreReadsEnd(const char *file, int line);
extern WEAK void AnnotateIgnoreWritesBegin(const char *file, int line);
extern WEAK void AnnotateIgnoreWritesEnd(const char *file, int line);
extern WEAK void AnnotateHappensBefore(const char *file, int line, uintptr_t address);
extern WEAK void AnnotateHappensAfter(const char *file, int line, uintptr_t address);

void emulated_lock(void) {
  if (AnnotateIgnoreSyncBegin) {
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  pthread_mutex_lock(&emulated.lock);
}

void emulated_unlock(void) {
  pthread_mutex_unlock(&emulated.lock);
  if (AnnotateIgnoreSyncEnd) {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
}

void emulated_wait(pthread_cond_t *changed) {
  pthread_cond_wait(changed, &emulated.lock);
}

void emulated_wait_for(pthread_cond_t *changed, double seconds) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  uint64_t ns = (uint64_t)until.tv_nsec + (uint64_t)(seconds * 1e9);
  until.tv_sec += (time_t)(ns / 1000000000);
  until.tv_nsec = (long)(ns % 1000000000);
  emulated.waiting += changed == &emulated.changed;
  (void)pthread_cond_timedwait(changed, &emulated.lock, &until);
  emulated.waiting -= changed == &emulated.changed;
}

void emulated_tell(void) {
  if (emulated.waiting > 0) {
    pthread_cond_broadcast(&emulated.changed);
  }
}

void emulated_before(const void *what) {
  if (AnnotateHappensBefore) {
    AnnotateHappensBefore(__FILE__, __LINE__, (uintptr_t)what);
  }
}

void emulated_after(const void *what) {
  if (AnnotateHappensAfter) {
    AnnotateHappensAfter(__FILE__, __LINE__, (uintptr_t)what);
  }
}
