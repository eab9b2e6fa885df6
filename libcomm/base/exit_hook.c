/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/base/exit_hook.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static lcomm_exit_hook *hooks;

/* Some other thread may make progress on the communicator even now. */
static bool take_guard(pthread_mutex_t *guard) {
  static const long PATIENCE_NS = 100000000, SECOND_NS = 1000000000;
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += PATIENCE_NS;
  until.tv_sec += until.tv_nsec / SECOND_NS;
  until.tv_nsec %= SECOND_NS;
  return pthread_mutex_timedlock(guard, &until) == 0;
}

static void run_hook(lcomm_exit_hook *hook) {
  hook->added = false;
  if (hook->process != (long)getpid()) {
    return;
  }
  if (!hook->guard) {
    hook->run(hook);
  } else if (take_guard(hook->guard)) {
    hook->run(hook);
    pthread_mutex_unlock(hook->guard);
  }
}

/* The lock is held all the time, so that no hook's owner can go away. */
static void run_all(void) {
  pthread_mutex_lock(&lock);
  for (lcomm_exit_hook *hook = hooks; hook;) {
    lcomm_exit_hook *next = hook->next;
    run_hook(hook);
    hook = next;
  }
  hooks = NULL;
  pthread_mutex_unlock(&lock);
}

/* In a forked child: the hooks are its parent's, and a thread that is not there may
 * have held the lock. */
static void forget_all(void) {
  pthread_mutex_init(&lock, NULL);
  hooks = NULL;
}

/* The caller has the lock. */
static void append(lcomm_exit_hook *hook) {
  hook->process = (long)getpid();
  hook->added = true;
  hook->next = NULL;
  lcomm_exit_hook **end = &hooks;
  while (*end) {
    end = &(*end)->next;
  }
  *end = hook;
}

void lcomm_exit_hook_add(lcomm_exit_hook *hook) {
  static bool registered;
  pthread_mutex_lock(&lock);
  if (!registered) {
    registered = atexit(run_all) == 0;
    pthread_atfork(NULL, NULL, forget_all);
  }
  if (!hook->added) {
    append(hook);
  }
  pthread_mutex_unlock(&lock);
}

bool lcomm_exit_hook_remove(lcomm_exit_hook *hook) {
  pthread_mutex_lock(&lock);
  bool added = hook->added;
  for (lcomm_exit_hook **at = &hooks; added && *at; at = &(*at)->next) {
    if (*at == hook) {
      *at = hook->next;
      break;
    }
  }
  hook->added = false;
  pthread_mutex_unlock(&lock);
  return added;
}
