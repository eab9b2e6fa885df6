/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One pidfd for each process, however many communicators it is a peer in. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libcomm/transport/shm/shm_internal.h"

typedef struct shared_pidfd {
  struct shared_pidfd *next;
  pid_t pid;
  int fd, users;
} shared_pidfd;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shared_pidfd *shared;

static bool has_ended(int pidfd) {
  struct pollfd end = {.fd = pidfd, .events = POLLIN};
  return poll(&end, 1, 0) > 0;
}

/* The number of a process that has ended may be somebody else's now. */
static shared_pidfd *find(pid_t pid) {
  shared_pidfd *it = shared;
  while (it && (it->pid != pid || has_ended(it->fd))) {
    it = it->next;
  }
  return it;
}

static shared_pidfd *open_new(pid_t pid) {
  shared_pidfd *made = calloc(1, sizeof *made);
  if (!made) {
    errno = ENOMEM;
    return NULL;
  }
  made->fd = (int)syscall(SYS_pidfd_open, pid, 0);
  if (made->fd < 0) {
    int error = errno;
    free(made);
    errno = error;
    return NULL;
  }
  made->pid = pid;
  made->next = shared;
  shared = made;
  return made;
}

int lcomm_shm_pidfd_get(pid_t pid) {
  pthread_mutex_lock(&lock);
  shared_pidfd *it = find(pid);
  it = it ? it : open_new(pid);
  if (it) {
    it->users++;
  }
  int fd = it ? it->fd : -1;
  pthread_mutex_unlock(&lock);
  return fd;
}

void lcomm_shm_pidfd_put(int pidfd) {
  if (pidfd < 0) {
    return;
  }
  pthread_mutex_lock(&lock);
  shared_pidfd **at = &shared;
  while (*at && (*at)->fd != pidfd) {
    at = &(*at)->next;
  }
  shared_pidfd *it = *at;
  if (it && --it->users == 0) {
    *at = it->next;
    close(it->fd);
    free(it);
  }
  pthread_mutex_unlock(&lock);
}
