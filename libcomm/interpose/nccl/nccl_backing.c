/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table of backings, their users, and their end. */

#include "libcomm/interpose/nccl/nccl_backing.h"

#include <signal.h>
#include <stdlib.h>
#include <time.h>

/* ------------------------------------------------------------------ threads */

typedef struct job {
  int device;
  void (*work)(void *argument);
  void *argument;
} job;

static atomic_int at_work;

static void *run(void *argument) {
  job it = *(job *)argument;
  free(argument);
  lcomm_device_defer_thread(it.device);
  it.work(it.argument);
  atomic_fetch_sub(&at_work, 1);
  return NULL;
}

static bool start(job *it) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  bool started = pthread_create(&thread, NULL, run, it) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started) {
    pthread_detach(thread);
  }
  return started;
}

bool lcomm_nccl_thread_start(int device, void (*work)(void *argument), void *argument) {
  job *it = malloc(sizeof *it);
  if (!it) {
    return false;
  }
  *it = (job){device, work, argument};
  atomic_fetch_add(&at_work, 1);
  if (!start(it)) {
    atomic_fetch_sub(&at_work, 1);
    free(it);
    return false;
  }
  return true;
}

bool lcomm_nccl_threads_wait(void) {
  static const struct timespec pause = {0, 1000000};
  enum { PAUSES = 3000 };
  for (int i = 0; i < PAUSES && atomic_load(&at_work) > 0; i++) {
    nanosleep(&pause, NULL);
  }
  return atomic_load(&at_work) == 0;
}

/* ---------------------------------------------------------------- the table */

enum { ROWS = 256 };
static struct {
  pthread_mutex_t lock;
  lcomm_nccl_backing *rows[ROWS];
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static lcomm_nccl_backing **row_of(ncclComm_t comm) {
  uintptr_t address = (uintptr_t)comm;
  return &table.rows[(address >> 4 ^ address >> 12 ^ address >> 20) % ROWS];
}

/* With the lock. Where it is linked; NULL behind the last one. */
static lcomm_nccl_backing **find(ncclComm_t comm) {
  lcomm_nccl_backing **at = row_of(comm);
  while (*at && (*at)->of != comm) {
    at = &(*at)->next;
  }
  return at;
}

lcomm_nccl_backing *lcomm_nccl_backing_find(ncclComm_t comm) {
  pthread_mutex_lock(&table.lock);
  lcomm_nccl_backing *found = *find(comm);
  pthread_mutex_unlock(&table.lock);
  return found;
}

lcomm_nccl_backing *lcomm_nccl_backing_new(int device) {
  lcomm_nccl_backing *mine = calloc(1, sizeof *mine);
  if (!mine) {
    return NULL;
  }
  pthread_mutex_init(&mine->lock, NULL);
  pthread_cond_init(&mine->changed, NULL);
  mine->users = 1;
  mine->device = device;
  mine->is_making = true;
  return mine;
}

void lcomm_nccl_backing_list(lcomm_nccl_backing *backing, ncclComm_t comm) {
  pthread_mutex_lock(&table.lock);
  lcomm_nccl_backing **at = row_of(comm);
  backing->of = comm;
  backing->next = *at;
  *at = backing;
  pthread_mutex_unlock(&table.lock);
}

/* ------------------------------------------------------------------- ending */

/* Waits until all ranks do. A failure is no news: the calls before have told it, or nobody asks. */
static void destroy(void *argument) {
  lcomm_nccl_made *made = argument;
  lcomm_nccl_feedback_destroy(made->feedback);
  (void)lcomm_destroy(made->comm);
  free(made);
}

void lcomm_nccl_made_end(const lcomm_nccl_made *made, const char *reason) {
  if (!made->comm) {
    return;
  }
  if (reason) {
    lcomm_abort(made->comm, reason);
  }
  lcomm_nccl_made *mine = malloc(sizeof *mine);
  if (mine) {
    *mine = *made;
  }
  if (!mine || !lcomm_nccl_thread_start(-1, destroy, mine)) {
    free(mine);
    lcomm_nccl_log("there is no memory or no thread to end a communicator, which stays");
  }
}

/* One of a policy before. */
typedef struct lcomm_nccl_captured {
  lcomm_nccl_made made;
  struct lcomm_nccl_captured *next;
} lcomm_nccl_captured;

/* Without memory it stays to the end of the process. */
static void keep(lcomm_nccl_backing *backing, const lcomm_nccl_made *made) {
  lcomm_nccl_captured *it = malloc(sizeof *it);
  if (!it) {
    lcomm_nccl_log("there is no memory to end a communicator later, which stays");
    return;
  }
  *it = (lcomm_nccl_captured){.made = *made, .next = backing->captured};
  backing->captured = it;
}

/* Who gives up looks at all with the table's lock. */
void lcomm_nccl_backing_drop_former(lcomm_nccl_backing *backing) {
  pthread_mutex_lock(&table.lock);
  lcomm_nccl_made former = backing->former;
  backing->former = (lcomm_nccl_made){0};
  if (former.was_captured) {
    keep(backing, &former);
  }
  pthread_mutex_unlock(&table.lock);
  if (!former.was_captured) {
    lcomm_nccl_made_end(&former, NULL);
  }
}

static void end_captured(lcomm_nccl_backing *backing) {
  for (lcomm_nccl_captured *it = backing->captured, *next = NULL; it; it = next) {
    next = it->next;
    lcomm_nccl_made_end(&it->made, backing->given_up);
    free(it);
  }
}

void lcomm_nccl_backing_retain(lcomm_nccl_backing *backing) {
  pthread_mutex_lock(&backing->lock);
  backing->users++;
  pthread_mutex_unlock(&backing->lock);
}

void lcomm_nccl_backing_release(lcomm_nccl_backing *backing) {
  pthread_mutex_lock(&backing->lock);
  bool is_last = --backing->users == 0;
  pthread_mutex_unlock(&backing->lock);
  if (!is_last) {
    return;
  }
  end_captured(backing);
  lcomm_nccl_made_end(&backing->former, backing->given_up);
  lcomm_nccl_made_end(&backing->now, backing->given_up);
  pthread_mutex_destroy(&backing->lock);
  pthread_cond_destroy(&backing->changed);
  lcomm_nccl_places_free(&backing->places);
  free(backing->failure);
  free(backing);
}

void lcomm_nccl_backing_set(lcomm_nccl_backing *backing, const lcomm_nccl_made *made) {
  pthread_mutex_lock(&table.lock);
  backing->former = backing->now;
  backing->now = *made;
  pthread_mutex_unlock(&table.lock);
}

static void abort_made(const lcomm_nccl_made *made, const char *reason) {
  if (made->comm) {
    lcomm_abort(made->comm, reason);
  }
}

/* With the table's lock, and without its own, which a call that is to be unblocked may hold. */
static void give_up(lcomm_nccl_backing *backing, const char *reason) {
  backing->given_up = reason;
  abort_made(&backing->now, reason);
  abort_made(&backing->former, reason);
  for (const lcomm_nccl_captured *it = backing->captured; it; it = it->next) {
    abort_made(&it->made, reason);
  }
}

void lcomm_nccl_backing_give_up(ncclComm_t comm, const char *reason) {
  pthread_mutex_lock(&table.lock);
  lcomm_nccl_backing *mine = *find(comm);
  if (mine) {
    give_up(mine, reason);
  }
  pthread_mutex_unlock(&table.lock);
}

void lcomm_nccl_backing_end(ncclComm_t comm, const char *reason) {
  pthread_mutex_lock(&table.lock);
  lcomm_nccl_backing **at = find(comm), *mine = *at;
  if (mine) {
    *at = mine->next;
  }
  if (mine && reason) {
    give_up(mine, reason);
  }
  pthread_mutex_unlock(&table.lock);
  if (mine) {
    lcomm_nccl_backing_release(mine);
  }
}

/* ------------------------------------------------------------------ entering */

void lcomm_nccl_backing_enter(lcomm_nccl_backing *backing) {
  pthread_mutex_lock(&backing->lock);
  while (backing->is_making || backing->is_changing || backing->turn != backing->turns) {
    pthread_cond_wait(&backing->changed, &backing->lock);
  }
}

void lcomm_nccl_backing_leave(lcomm_nccl_backing *backing) {
  pthread_mutex_unlock(&backing->lock);
}

bool lcomm_nccl_backing_is_making(lcomm_nccl_backing *backing) {
  pthread_mutex_lock(&backing->lock);
  bool is = backing->is_making;
  pthread_mutex_unlock(&backing->lock);
  return is;
}
