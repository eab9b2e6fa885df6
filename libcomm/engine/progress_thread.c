/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The progress thread: its turns, its loop, its start and end. */

#include "libcomm/engine/progress_thread.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/pair.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "libcomm/base/backoff.h"
#include "libcomm/base/clock.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/recording.h"
#include "libcomm/engine/siblings.h"

struct lcomm_progress_thread {
  lcomm_comm *comm;
  pthread_t id;
  pthread_mutex_t lock; /* recursive: calls use each other */
  unsigned depth;       /* of calls that hold it */
  atomic_uint waiting;  /* calls that want it */
  atomic_uint events;   /* kicks so far */
  atomic_bool asleep, stop;
  bool joined;
  int bell;
};

/* ----------------------------------------------------- turns of the calls */

_Thread_local int lcomm_progress_thread_turns;

unsigned lcomm_progress_thread_depth(const lcomm_progress_thread *thread) {
  return thread->depth;
}

void lcomm_progress_thread_enter(lcomm_progress_thread *thread) {
  atomic_fetch_add(&thread->waiting, 1);
  pthread_mutex_lock(&thread->lock);
  atomic_fetch_sub(&thread->waiting, 1);
  thread->depth++;
  lcomm_progress_thread_turns++;
}

void lcomm_progress_thread_leave(lcomm_progress_thread *thread) {
  bool kick = --thread->depth == 0 && lcomm_comm_is_busy(thread->comm);
  lcomm_progress_thread_turns--;
  pthread_mutex_unlock(&thread->lock);
  if (kick) {
    lcomm_progress_thread_wake(thread);
  }
}

unsigned lcomm_progress_thread_give(lcomm_progress_thread *thread) {
  unsigned depth = thread->depth;
  for (unsigned i = 0; i < depth; i++) {
    lcomm_progress_thread_leave(thread);
  }
  return depth;
}

void lcomm_progress_thread_wake(lcomm_progress_thread *thread) {
  uint64_t one = 1;
  atomic_fetch_add(&thread->events, 1);
  if (atomic_load(&thread->asleep) && write(thread->bell, &one, sizeof(one)) < 0) {
    return; /* a bell that is full has rung */
  }
}

pthread_mutex_t *lcomm_progress_thread_guard(lcomm_progress_thread *thread) {
  return &thread->lock;
}

/* ------------------------------------------------------------- the thread */

bool lcomm_engine_progress(lcomm_comm *comm) {
  bool moved = false;
  if (atomic_load(&comm->errors.status) != LCOMM_OK) {
    lcomm_operations_move(comm, &moved); /* cancels what is left */
    return false;
  }
  if (comm->deferred.for_others && atomic_load(&comm->deferred.open) &&
      comm->deferred.start(comm) != LCOMM_OK) {
    return false;
  }
  if (!lcomm_comm_is_busy(comm) && !lcomm_comm_has_recordings(comm)) {
    lcomm_links_progress(&comm->links);
    lcomm_control_receive(comm); /* peers that wait ask what this rank does */
  } else if (lcomm_operations_move(comm, &moved) == LCOMM_OK && !moved) {
    lcomm_operations_check(comm);
  }
  return moved;
}

/* Deferred operations may be due at a time. */
static double limit_until_due(const lcomm_comm *comm, double limit_s) {
  double left_s = comm->deferred.due_s - lcomm_clock_s();
  if (!(comm->deferred.due_s > 0) || left_s >= limit_s) {
    return limit_s;
  }
  return left_s > 0 ? left_s : 0;
}

/* Nothing moves: sleep until a peer or a call wakes the thread. `seen` is the number of wake-ups
 * before the last look. The caller holds the lock at begin and end. */
static void sleep_a_while(lcomm_progress_thread *thread, unsigned seen) {
  static const double WORK_S = 0.02, IDLE_S = 1.0;
  lcomm_comm *comm = thread->comm;
  double idle_s = lcomm_probe_interval_s(comm) < IDLE_S ? lcomm_probe_interval_s(comm) : IDLE_S;
  bool working = lcomm_comm_is_busy(comm);
  lcomm_links_wait_set set = {.watched = {{.fd = thread->bell, .events = POLLIN}}, .count = 1};
  double longest_s = working ? WORK_S : idle_s, limit_s = lcomm_replays_limit_s(comm, longest_s);
  limit_s = limit_until_due(comm, limit_s);
  atomic_store(&thread->asleep, true);
  if (working) {
    lcomm_links_prepare(&comm->links, &set, thread->bell);
    set.blind |= comm->runs.device_works > 0;
  }
  bool kicked = atomic_load(&thread->events) != seen;
  pthread_mutex_unlock(&thread->lock);
  bool overslept = !kicked && lcomm_links_sleep(&set, limit_s) && limit_s >= longest_s;
  atomic_store(&thread->asleep, false);
  uint64_t rung = 0;
  (void)!read(thread->bell, &rung, sizeof(rung));
  pthread_mutex_lock(&thread->lock);
  if (working) {
    comm->waiting.overslept = overslept;
    lcomm_links_awake(&comm->links);
  }
}

static void *run_thread(void *argument) {
  enum { QUIET_ROUNDS = 32 };
  lcomm_progress_thread *thread = argument;
  unsigned quiet = 0;
  lcomm_backoff yield = {.yields = LCOMM_BACKOFF_ALWAYS};
  (void)lcomm_device_bar();
  for (;;) {
    while (atomic_load(&thread->waiting) > 0) {
      lcomm_backoff_step(&yield); /* calls go first */
    }
    pthread_mutex_lock(&thread->lock);
    unsigned seen = atomic_load(&thread->events); /* before all that a kick may be about */
    if (atomic_load(&thread->stop)) {
      break;
    }
    quiet = lcomm_engine_progress(thread->comm) ? 0 : quiet + 1;
    if (thread->comm->observers.trace) {
      lcomm_trace_tick(thread->comm->observers.trace);
    }
    if (quiet > QUIET_ROUNDS || !lcomm_comm_is_busy(thread->comm)) {
      sleep_a_while(thread, seen);
    }
    pthread_mutex_unlock(&thread->lock);
    if (quiet > 0) {
      lcomm_backoff_step(&yield);
    }
  }
  pthread_mutex_unlock(&thread->lock);
  return NULL;
}

/* ---------------------------------------------------------- start and end */

/* Signals of the program are handled by its own threads. */
static int create_thread(lcomm_progress_thread *thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread->id, NULL, run_thread, thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error;
}

static void init_lock(lcomm_progress_thread *thread) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&thread->lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

/* The caller's calls have the first turns; the lock is recursive. */
static void enter_before(lcomm_progress_thread *thread, unsigned depth) {
  for (unsigned i = 0; i < depth; i++) {
    lcomm_progress_thread_enter(thread);
  }
}

static void leave_again(lcomm_progress_thread *thread, unsigned depth) {
  lcomm_progress_thread_turns -= (int)depth;
  for (unsigned i = 0; i < depth; i++) {
    pthread_mutex_unlock(&thread->lock);
  }
}

lcomm_status lcomm_progress_thread_start(lcomm_comm *comm, unsigned depth, lcomm_why *why) {
  lcomm_progress_thread *thread = calloc(1, sizeof *thread);
  if (!thread) {
    return lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory for the progress thread");
  }
  thread->comm = comm;
  thread->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  init_lock(thread);
  enter_before(thread, depth);
  int error = thread->bell < 0 ? errno : create_thread(thread);
  if (error != 0) {
    if (thread->bell >= 0) {
      close(thread->bell);
    }
    leave_again(thread, depth);
    pthread_mutex_destroy(&thread->lock);
    free(thread);
    return lcomm_why_set(why, LCOMM_ERR_SYSTEM, "the progress thread cannot be started: %s",
                         strerror(error));
  }
  comm->progress.thread = thread;
  return LCOMM_OK;
}

/* What an exit shows and writes is guarded by the thread's lock from here on. */
static void guard_exit(lcomm_comm *comm) {
  pthread_mutex_t *guard = lcomm_progress_thread_guard(comm->progress.thread);
  lcomm_summary_guard(&comm->observers.summary, guard);
  if (comm->observers.trace) {
    lcomm_trace_watch(comm->observers.trace, guard);
  }
}

void lcomm_progress_thread_begin(lcomm_comm *comm) {
  lcomm_why why;
  unsigned depth = atomic_load_explicit(&comm->turn.depth, memory_order_relaxed);
  comm->progress.wants_thread = false;
  lcomm_siblings_remove(comm);
  if (lcomm_progress_thread_start(comm, depth, &why) != LCOMM_OK) {
    lcomm_log_info(why.text);
    lcomm_siblings_add(comm);
    return;
  }
  atomic_store_explicit(&comm->turn.depth, 0, memory_order_release);
  guard_exit(comm);
}

void lcomm_progress_thread_stop(lcomm_comm *comm) {
  lcomm_progress_thread *thread = comm->progress.thread;
  if (!thread || thread->joined) {
    return;
  }
  atomic_store(&thread->stop, true);
  lcomm_progress_thread_wake(thread);
  pthread_join(thread->id, NULL);
  thread->joined = true;
}

void lcomm_progress_thread_free(lcomm_comm *comm) {
  lcomm_progress_thread *thread = comm->progress.thread;
  if (!thread) {
    return;
  }
  lcomm_progress_thread_stop(comm);
  comm->progress.thread = NULL;
  close(thread->bell);
  pthread_mutex_destroy(&thread->lock);
  free(thread);
}
