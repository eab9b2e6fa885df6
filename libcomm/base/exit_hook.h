/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_EXIT_HOOK_H
#define LCOMM_BASE_EXIT_HOOK_H

/* Exit hooks: what a communicator writes when the process exits without lcomm_destroy(). A hook is
 * a member of the struct that it belongs to. Hooks run in the order in which they were added, and
 * only in the process that added them: not in a forked child that exits. */

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

/* Add a hook: it runs once, when the process exits. A hook that was added already keeps its
 * position. Any thread. */
void lcomm_exit_hook_add(lcomm_exit_hook *hook);

/* Remove a hook: it does not run any more. Returns whether it had been added and has not run. A
 * hook of zeros may be removed. Any thread. */
bool lcomm_exit_hook_remove(lcomm_exit_hook *hook);

#endif
