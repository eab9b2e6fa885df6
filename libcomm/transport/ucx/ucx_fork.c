/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_fork.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "libcomm/transport/ucx/ucx_sockets.h"

typedef struct watched {
  int event_fd;
  struct watched *next;
} watched;

/* Held during a fork, so that the child finds a whole list. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static watched *workers;

static void close_in_child(int fd, void *argument) {
  (void)argument;
  close(fd); /* the parent has it still: nothing is sent */
}

static void mark(int fd, void *argument) {
  (void)argument;
  int flags = fcntl(fd, F_GETFD);
  if (flags >= 0) {
    (void)fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
  }
}

/* ----------------------------------------------------------------- forking */

static void before(void) {
  pthread_mutex_lock(&lock);
}

static void after_in_parent(void) {
  pthread_mutex_unlock(&lock);
}

static void after_in_child(void) {
  while (workers) {
    watched *it = workers;
    lcomm_ucx_sockets_of(it->event_fd, close_in_child, NULL);
    workers = it->next;
    free(it);
  }
  pthread_mutex_unlock(&lock);
}

static void watch_forks(void) {
  (void)pthread_atfork(before, after_in_parent, after_in_child);
}

/* ----------------------------------------------------------------- workers */

void lcomm_ucx_fork_close_on_exec(int event_fd) {
  lcomm_ucx_sockets_of(event_fd, mark, NULL);
}

void lcomm_ucx_fork_watch(int event_fd) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  watched *it = event_fd >= 0 ? malloc(sizeof *it) : NULL;
  if (!it) {
    return;
  }
  pthread_once(&once, watch_forks);
  lcomm_ucx_fork_close_on_exec(event_fd);
  it->event_fd = event_fd;
  pthread_mutex_lock(&lock);
  it->next = workers;
  workers = it;
  pthread_mutex_unlock(&lock);
}

void lcomm_ucx_fork_forget(int event_fd) {
  pthread_mutex_lock(&lock);
  watched **link = &workers;
  while (*link && (*link)->event_fd != event_fd) {
    link = &(*link)->next;
  }
  watched *it = *link;
  *link = it ? it->next : NULL;
  pthread_mutex_unlock(&lock);
  free(it);
}
