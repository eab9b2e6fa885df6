/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Another process of this machine: opening what it offers, and its end. What
 * it offers is believed once it is seen to be so. */

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "libcomm/transport/shm/shm_internal.h"

void lcomm_shm_note(lcomm_why *why, const char *format, ...) {
  va_list arguments;
  if (why->text[0] != '\0') {
    return;
  }
  va_start(arguments, format);
  vsnprintf(why->text, sizeof(why->text), format, arguments);
  va_end(arguments);
}

void lcomm_shm_peer_free(const lcomm_shm *t, lcomm_shm_peer *peer) {
  if (!peer) {
    return;
  }
  if (peer->segment) {
    munmap(peer->segment, t->segment_size);
  }
  lcomm_shm_file_close(peer->pipe);
  lcomm_shm_pidfd_put(peer->pidfd);
  free(peer);
}

/* The peer's segment, if it is the one that was offered. */
static bool open_segment(const lcomm_shm *t, lcomm_shm_peer *peer, const lcomm_shm_offer *theirs,
                         lcomm_why *why) {
  int file = lcomm_shm_file_open(peer->pid, theirs->file, O_RDWR, LCOMM_SHM_FILE);
  if (file < 0) {
    bool foreign = errno != EMFILE && errno != ENFILE;
    lcomm_shm_note(why, "the memory of rank %d (process %ld) cannot be opened: %s%s", peer->rank,
                   (long)peer->pid, strerror(errno),
                   foreign ? "; it may be of another user or in another process namespace" : "");
    return false;
  }
  if (lcomm_shm_file_is_fixed(file, t->segment_size)) {
    peer->segment = lcomm_shm_file_map(file, t->segment_size, PROT_READ | PROT_WRITE);
  }
  close(file);
  if (!peer->segment || peer->segment->magic != LCOMM_SHM_MAGIC ||
      memcmp(peer->segment->token, theirs->token, LCOMM_SHM_TOKEN) != 0) {
    lcomm_shm_note(why, "process %ld does not share the memory that rank %d has offered",
                   (long)peer->pid, peer->rank);
    errno = 0;
    return false;
  }
  return true;
}

static bool open_wakeup_pipe(lcomm_shm_peer *peer, const lcomm_shm_offer *theirs, lcomm_why *why) {
  struct stat facts;
  peer->pipe = lcomm_shm_file_open(peer->pid, theirs->pipe, O_RDWR, LCOMM_SHM_PIPE);
  if (peer->pipe < 0 || fstat(peer->pipe, &facts) != 0 || !S_ISFIFO(facts.st_mode)) {
    lcomm_shm_note(why, "the doorbell of rank %d (process %ld) cannot be opened: %s", peer->rank,
                   (long)peer->pid, peer->pipe < 0 ? strerror(errno) : "it is no pipe");
    errno = peer->pipe < 0 ? errno : 0;
    return false;
  }
  return true;
}

/* May its private memory be read? Try with bytes that we know. */
static bool try_reading(const lcomm_shm_peer *peer, const lcomm_shm_offer *theirs) {
  unsigned char token[LCOMM_SHM_TOKEN];
  return lcomm_shm_read(peer, theirs->token_address, token, sizeof(token)) == 0 &&
         lcomm_shm_is_alive(peer) && memcmp(token, theirs->token, sizeof(token)) == 0;
}

lcomm_shm_peer *lcomm_shm_peer_meet(lcomm_shm *t, int rank, uint64_t pid,
                                    const lcomm_shm_offer *theirs, lcomm_why *why) {
  if (theirs->segment_size != t->segment_size) {
    lcomm_shm_note(why, "rank %d has no shared memory", rank);
    errno = 0;
    return NULL;
  }
  lcomm_shm_peer *peer = calloc(1, sizeof *peer);
  if (!peer) {
    lcomm_shm_note(why, "no memory for rank %d", rank);
    errno = ENOMEM;
    return NULL;
  }
  peer->rank = rank;
  peer->pid = (pid_t)pid;
  peer->pipe = -1;
  /* First of all: what is opened afterwards belongs to this process, or the
   * token is wrong. */
  peer->pidfd = lcomm_shm_pidfd_get(peer->pid);
  if (!open_segment(t, peer, theirs, why) || !open_wakeup_pipe(peer, theirs, why)) {
    int error = errno;
    lcomm_shm_peer_free(t, peer);
    errno = error;
    return NULL;
  }
  peer->sleeping = &peer->segment->sleeping;
  peer->may_read = try_reading(peer, theirs);
  return peer;
}

/* ------------------------------------------------------------- its end */

bool lcomm_shm_peer_reads(const lcomm_shm_peer *peer) {
  const lcomm_shm_segment *segment = peer->segment;
  return atomic_load_explicit(&segment->stopped_reading, memory_order_seq_cst) == 0 &&
         atomic_load_explicit(&segment->closed, memory_order_seq_cst) == 0 &&
         lcomm_shm_is_alive(peer);
}

/* Be woken when the peer ends. */
void lcomm_shm_watch_peer(lcomm_shm *t, const lcomm_shm_peer *peer, int index) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = (uint64_t)index};
  if (peer->pidfd >= 0 && epoll_ctl(t->wakeup.epoll, EPOLL_CTL_ADD, peer->pidfd, &event) == 0) {
    return;
  }
  lcomm_shm_watch_by_time(t);
}

void lcomm_shm_watch_by_time(lcomm_shm *t) {
  static const struct itimerspec often = {{0, 100000000}, {0, 100000000}};
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
  if (t->wakeup.timer >= 0) {
    return;
  }
  t->wakeup.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (t->wakeup.timer >= 0) {
    timerfd_settime(t->wakeup.timer, 0, &often, NULL);
    epoll_ctl(t->wakeup.epoll, EPOLL_CTL_ADD, t->wakeup.timer, &event);
  }
}
