/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_reads.h"

#include "libcomm/interpose/mpi/interpose_queue.h"

/* The communicators of which a read is awaited. */
static struct {
  pthread_mutex_t lock; /* guards `reads` of all communicators */
  lcomm_interpose_comm *first;
  atomic_uint count; /* a look without the lock */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---------------------------------------------------------- the queue's thread */

static void add(lcomm_interpose_comm *at, lcomm_comm *comm) {
  at->reads = (lcomm_interpose_reads){.comm = comm, .since_s = PMPI_Wtime(), .next = all.first};
  all.first = at;
  atomic_fetch_add(&all.count, 1);
}

static void remove_from_list(lcomm_interpose_comm *at) {
  lcomm_interpose_comm **link = &all.first;
  while (*link != at) {
    link = &(*link)->reads.next;
  }
  *link = at->reads.next;
  at->reads = (lcomm_interpose_reads){.comm = NULL};
  atomic_fetch_sub(&all.count, 1);
}

static void *read_alone(void *comm) {
  (void)lcomm_progress(comm); /* a failure ends the calls */
  return NULL;
}

/* The queue's thread waits for it, with at->lock: nobody else is inside libcomm with this
 * communicator. */
static void read_by_another_thread(lcomm_comm *comm) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, read_alone, comm) == 0) {
    pthread_join(thread, NULL);
  }
}

void lcomm_interpose_reads_look(lcomm_interpose_comm *at, lcomm_comm *comm) {
  static const double PATIENCE_S = 0.5;
  bool awaited = comm && lcomm_device_is_loaded() && lcomm_device_reads_awaited(comm);
  if (!awaited && !at->reads.comm) {
    return;
  }
  pthread_mutex_lock(&all.lock);
  if (at->reads.comm != (awaited ? comm : NULL)) {
    if (at->reads.comm) {
      remove_from_list(at);
    }
    if (awaited) {
      add(at, comm);
    }
  }
  bool overdue = awaited && PMPI_Wtime() - at->reads.since_s > PATIENCE_S;
  pthread_mutex_unlock(&all.lock);
  if (overdue) {
    read_by_another_thread(comm);
  }
}

/* ------------------------------------------------------- the program's threads */

void lcomm_interpose_reads_do(void) {
  if (atomic_load_explicit(&all.count, memory_order_relaxed) == 0 ||
      pthread_mutex_trylock(&all.lock) != 0) {
    return;
  }
  for (lcomm_interpose_comm *at = all.first; at; at = at->reads.next) {
    if (pthread_mutex_trylock(&at->lock) == 0) {
      (void)lcomm_progress(at->reads.comm);
      pthread_mutex_unlock(&at->lock);
    }
  }
  pthread_mutex_unlock(&all.lock);
}

bool lcomm_interpose_reads_may_come(void) {
  return lcomm_interpose_queue_is_busy() && lcomm_device_is_loaded();
}
