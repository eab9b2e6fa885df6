/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/turn.h"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcomm/base/backoff.h"

bool lcomm_turn_is_biased;

static void prepare(void) {
  lcomm_turn_is_biased =
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void lcomm_turn_prepare(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
}

void lcomm_turn_await_guest(lcomm_turn *turn) {
  lcomm_backoff backoff = {.yields = LCOMM_BACKOFF_ALWAYS};
  do {
    atomic_store(&turn->depth, 0);
    while (atomic_load(&turn->claimed)) {
      lcomm_backoff_step(&backoff);
    }
    atomic_store(&turn->depth, 1);
  } while (atomic_load(&turn->claimed));
}

/* Registered processes and their children cannot fail here. */
static void barrier_everywhere(void) {
  if (lcomm_turn_is_biased) {
    (void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  }
}

bool lcomm_turn_try(lcomm_turn *turn) {
  if (atomic_load(&turn->depth) != 0) {
    return false;
  }
  atomic_store(&turn->claimed, true);
  barrier_everywhere();
  if (atomic_load(&turn->depth) == 0) {
    return true;
  }
  atomic_store(&turn->claimed, false);
  return false;
}

void lcomm_turn_end(lcomm_turn *turn) {
  atomic_store_explicit(&turn->claimed, false, memory_order_release);
}
