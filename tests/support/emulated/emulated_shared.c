/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/emulated/emulated_shared.h"

#include <pthread.h>
#include <string.h>

/* The linker makes these up when a kernel has shared memory. */
extern unsigned char __start_lcomm_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_lcomm_shared[] __attribute__((weak, visibility("hidden")));

void lcomm_emulated_spoil_shared(void) {
  if (__start_lcomm_shared) {
    memset(__start_lcomm_shared, 0xa7, (size_t)(__stop_lcomm_shared - __start_lcomm_shared));
  }
}

#ifdef __SANITIZE_THREAD__
void lcomm_emulated_enter_shared(void) {
}

void lcomm_emulated_leave_shared(void) {
}
#else
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

void lcomm_emulated_enter_shared(void) {
  pthread_mutex_lock(&turn);
}

void lcomm_emulated_leave_shared(void) {
  pthread_mutex_unlock(&turn);
}
#endif
