/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Sleeping and waking, and who has ended.
 *
 * A rank that goes to sleep says so in its segment, then looks once more at
 * all that peers write. A peer first writes, then looks whether the rank
 * sleeps. All four accesses are sequentially consistent, so at least one of
 * the two sees the other and no wake-up is lost. The bell is a pipe: what a
 * rank sleeps on is a file descriptor that holds it together with those of
 * the other processes, so that an end wakes it too. */

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "libcomm/transport/shm/shm_internal.h"

enum { EVENTS = 16 };

void lcomm_shm_write_wakeup(lcomm_shm_peer *peer) {
  if (atomic_exchange_explicit(peer->sleeping, 0, memory_order_seq_cst) != 0) {
    /* A full pipe wakes as well. It is open for reading too: no SIGPIPE. */
    ssize_t ignored = write(peer->pipe, "", 1);
    (void)ignored;
  }
}

/* -------------------------------------------------------------- sleeping */

/* Has anything come from this peer, or can anything leave? */
static bool is_busy(lcomm_shm *t, lcomm_shm_peer *peer) {
  const lcomm_shm_entry *next = lcomm_shm_place(peer->in.ring, peer->in.at);
  if (peer->fault != LCOMM_SHM_FINE) {
    return false;
  }
  if (atomic_load_explicit(&next->word, memory_order_seq_cst) != 0 ||
      atomic_load_explicit(&peer->segment->closed, memory_order_seq_cst) != 0) {
    return true;
  }
  if (peer->queue.first && lcomm_shm_flush(t, peer)) {
    return true;
  }
  if (peer->sends.used_count > 0) {
    bool answered = lcomm_shm_take_answers(t, peer);
    if (lcomm_shm_pump(t, peer) || answered) {
      return true;
    }
  }
  return peer->control.waits && lcomm_shm_control_resend(peer);
}

int lcomm_shm_arm(lcomm_transport *transport) {
  lcomm_shm *t = lcomm_shm_of(transport);
  bool busy = t->news;
  t->news = false;
  if (busy) {
    return LCOMM_ARM_BUSY;
  }
  atomic_store_explicit(&t->segment->sleeping, 1, memory_order_seq_cst);
  busy = lcomm_shm_has_error(t);
  for (int i = 0; i < t->reached_count; i++) {
    busy |= is_busy(t, t->reached[i]);
  }
  if (busy || t->news) {
    t->news = false;
    atomic_store_explicit(&t->segment->sleeping, 0, memory_order_seq_cst);
    return LCOMM_ARM_BUSY;
  }
  return t->wakeup.epoll;
}

void lcomm_shm_disarm(lcomm_transport *transport) {
  lcomm_shm *t = lcomm_shm_of(transport);
  char bytes[64];
  atomic_store_explicit(&t->segment->sleeping, 0, memory_order_seq_cst);
  while (read(t->wakeup.pipe, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes)) {
  }
  if (t->wakeup.timer >= 0) {
    ssize_t ignored = read(t->wakeup.timer, bytes, sizeof(uint64_t));
    (void)ignored;
  }
  lcomm_shm_check_peers(t);
}

/* -------------------------------------------------------- who has ended */

bool lcomm_shm_is_alive(const lcomm_shm_peer *peer) {
  struct pollfd end = {.fd = peer->pidfd, .events = POLLIN};
  if (peer->pidfd >= 0) {
    return poll(&end, 1, 0) <= 0;
  }
  return kill(peer->pid, 0) == 0 || errno != ESRCH;
}

void lcomm_shm_give_up(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_fault fault) {
  if (peer->fault != LCOMM_SHM_FINE) {
    return;
  }
  peer->fault = fault;
  t->news = true;
  t->base.alarms++;
  if (peer->pidfd >= 0) {
    /* An end is readable for ever; who is given up must not wake us. */
    epoll_ctl(t->wakeup.epoll, EPOLL_CTL_DEL, peer->pidfd, NULL);
  }
}

/* What a peer wrote before its end is still taken in. */
static void bury(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_fault fault) {
  if (peer->peek.active) {
    return; /* found again next time */
  }
  lcomm_shm_drain(t, peer);
  lcomm_shm_give_up(t, peer, fault);
}

static void bury_closed(lcomm_shm *t) {
  for (int i = 0; i < t->reached_count; i++) {
    lcomm_shm_peer *peer = t->reached[i];
    if (peer->fault != LCOMM_SHM_FINE) {
      continue;
    }
    if (atomic_load_explicit(&peer->segment->closed, memory_order_acquire) != 0) {
      bury(t, peer, LCOMM_SHM_CLOSED);
    } else if (peer->pidfd < 0 && !lcomm_shm_is_alive(peer)) {
      bury(t, peer, LCOMM_SHM_ENDED);
    }
  }
}

void lcomm_shm_check_peers(lcomm_shm *t) {
  struct epoll_event events[EVENTS];
  int count = epoll_wait(t->wakeup.epoll, events, EVENTS, 0);
  bury_closed(t);
  for (int i = 0; i < count; i++) {
    uint64_t index = events[i].data.u64;
    if (index < (uint64_t)t->reached_count) {
      bury(t, t->reached[index], LCOMM_SHM_ENDED);
    }
  }
}
