/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_EXIT_HOOK_H
#define LCOMM_BASE_EXIT_HOOK_H

/* What a communicator still has to say when the process exits without
 * destroying it. A hook is embedded in what it belongs to. Hooks run in the
 * order of being added, in the process that added them only: not in a child
 * that was forked and exits, too. */

#include <pthread.h>
#include <stdbool.h>

typedef struct lcomm_exit_hook {
  void (*run)(struct lcomm_exit_hook *hook);
  pthread_mutex_t *guard; /* held while it runs; NULL: no other thread is concerned. A hook whose
                             guard is not free for a tenth of a second is left out. */
  /* Kept by the functions below. */
  long process;
  bool added;
  struct lcomm_exit_hook *next;
} lcomm_exit_hook;

/* From here on it runs when the process exits, once. One that was added already stays
 * where it is. Any thread. */
void lcomm_exit_hook_add(lcomm_exit_hook *hook);

/* It will not run any more. Returns whether it had been added and has not run.
 * A hook of zeros may be removed. Any thread. */
bool lcomm_exit_hook_remove(lcomm_exit_hook *hook);

#endif
