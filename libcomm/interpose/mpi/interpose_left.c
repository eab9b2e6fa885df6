/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_left.h"

#include "libcomm/interpose/mpi/interpose_queue.h"

/* The communicators for which something is left. */
static struct {
  pthread_mutex_t lock; /* guards `left` of all communicators */
  lcomm_interpose_comm *first;
  atomic_uint count; /* a look without the lock */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Needs at->lock. A failure ends the calls. */
static void do_left(lcomm_interpose_comm *at) {
  lcomm_interpose_call *call = at->left.call;
  if (call && !call->begun) {
    call->status = lcomm_interpose_call_begin(call, &call->request);
    call->begun = true;
    atomic_fetch_sub(&at->waiting, 1);
  }
  if (at->left.comm) {
    (void)lcomm_progress(at->left.comm);
  }
}

/* ---------------------------------------------------------- the queue's thread */

static void add(lcomm_interpose_comm *at, lcomm_interpose_left left) {
  at->left = left;
  at->left.since_s = PMPI_Wtime();
  at->left.next = all.first;
  all.first = at;
  atomic_fetch_add(&all.count, 1);
}

static void take_off(lcomm_interpose_comm *at) {
  lcomm_interpose_comm **link = &all.first;
  while (*link != at) {
    link = &(*link)->left.next;
  }
  *link = at->left.next;
  at->left = (lcomm_interpose_left){.comm = NULL};
  atomic_fetch_sub(&all.count, 1);
}

static bool is_anything(const lcomm_interpose_left *it) {
  return it->comm || it->call;
}

static void replace(lcomm_interpose_comm *at, lcomm_interpose_left left) {
  if (at->left.comm == left.comm && at->left.call == left.call) {
    return;
  }
  if (is_anything(&at->left)) {
    take_off(at);
  }
  if (is_anything(&left)) {
    add(at, left);
  }
}

static void *run(void *at) {
  do_left(at);
  return NULL;
}

/* The queue's thread waits for it, with at->lock: nobody else is inside libcomm with this
 * communicator. */
static void do_in_another_thread(lcomm_interpose_comm *at) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, at) == 0) {
    pthread_join(thread, NULL);
  }
}

void lcomm_interpose_left_look(lcomm_interpose_comm *at, lcomm_comm *comm,
                               lcomm_interpose_call *call) {
  static const double PATIENCE_S = 0.5;
  bool awaits = comm && lcomm_device_is_loaded() && lcomm_device_reads_awaited(comm);
  lcomm_interpose_left left = {.comm = awaits ? comm : NULL, .call = call};
  if (!is_anything(&left) && !is_anything(&at->left)) {
    return;
  }
  pthread_mutex_lock(&all.lock);
  replace(at, left);
  bool overdue = is_anything(&left) && PMPI_Wtime() - at->left.since_s > PATIENCE_S;
  pthread_mutex_unlock(&all.lock);
  if (overdue) {
    do_in_another_thread(at);
  }
}

/* ------------------------------------------------------- the program's threads */

void lcomm_interpose_left_do(void) {
  if (atomic_load_explicit(&all.count, memory_order_relaxed) == 0 ||
      pthread_mutex_trylock(&all.lock) != 0) {
    return;
  }
  for (lcomm_interpose_comm *at = all.first; at; at = at->left.next) {
    if (pthread_mutex_trylock(&at->lock) == 0) {
      do_left(at);
      pthread_mutex_unlock(&at->lock);
    }
  }
  pthread_mutex_unlock(&all.lock);
}

bool lcomm_interpose_left_may_come(void) {
  return lcomm_interpose_queue_is_busy() && lcomm_device_is_loaded();
}
