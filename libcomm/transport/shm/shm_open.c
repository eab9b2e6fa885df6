/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How the ranks of a machine meet. Two allgathers, made by every rank whatever
 * fails: of where everyone's segment is, then of who could open whose; a third where that differs
 * from peer to peer. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "libcomm/transport/links.h"
#include "libcomm/transport/shm/shm_internal.h"

/* Messages go these ways unless a test wants others. A copy moves every line between the
 * caches once more, but where the peer reads private memory the kernel looks up every page
 * of it. Measured on pages of 4 KiB, sums of 128 KiB to 64 MiB take half the time with
 * copies; only where the caller's memory lies on huge pages are both the same. Past
 * 1 MiB a copy no longer stays in the second-level cache, and reading is as fast. */
enum { BOUNCE_LONGEST = 1 << 20, BOUNCE_TOTAL = 32 << 20 };

/* What a rank says of a lane: bits, and above them the errno for which it is not
 * reached, 0 for other reasons. */
enum { REACHED = 1, READABLE = 2, FOR_ERROR = 2 };

/* File descriptors: of a rank's own, and while files of others are opened. */
enum { OWN = 4, WHILE_MEETING = 3 }; /* bell, epoll, timer, a region */

typedef struct rendezvous {
  const lcomm_transport_setup *setup;
  lcomm_shm *t;
  int *lane;               /* per rank; -1 on other machines */
  int *lane_of;            /* the same on its own machine */
  int widest;              /* lanes of the largest machine */
  lcomm_shm_offer *offers; /* per rank, then mine */
  unsigned char *verdicts; /* per rank, `widest` each, then mine */
  lcomm_shm_peer **met;    /* per rank; those that could be opened */
  lcomm_why *why;
} rendezvous;

/* ------------------------------------------------------------------- mine */

static bool create_segment(lcomm_shm *t) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t size = sizeof *t->segment + (size_t)t->lanes * sizeof(t->segment->lanes[0]);
  t->segment_size = (size + page - 1) / page * page;
  int file = lcomm_shm_file_create("libcomm", t->segment_size);
  if (file < 0) {
    return false;
  }
  t->segment = lcomm_shm_file_map(file, t->segment_size, PROT_READ | PROT_WRITE);
  t->file = file;
  if (!t->segment || getrandom(t->token, sizeof(t->token), 0) != (ssize_t)sizeof(t->token)) {
    return false;
  }
  t->segment->magic = LCOMM_SHM_MAGIC;
  memcpy(t->segment->token, t->token, sizeof(t->token));
  return true;
}

/* A pipe with one descriptor for both of its ends, as peers open it, too. */
static int open_pipe(void) {
  int ends[2];
  if (pipe2(ends, O_NONBLOCK | O_CLOEXEC) != 0) {
    return -1;
  }
  int both = lcomm_shm_file_open(getpid(), ends[0], O_RDWR, LCOMM_SHM_PIPE);
  lcomm_shm_file_close(ends[0]);
  lcomm_shm_file_close(ends[1]);
  return both;
}

static bool create_wakeup_pipe(lcomm_shm *t) {
  struct epoll_event event = {.events = EPOLLIN, .data.u64 = UINT64_MAX};
  t->wakeup.epoll = epoll_create1(EPOLL_CLOEXEC);
  t->wakeup.pipe = t->wakeup.epoll >= 0 ? open_pipe() : -1;
  return t->wakeup.pipe >= 0 &&
         epoll_ctl(t->wakeup.epoll, EPOLL_CTL_ADD, t->wakeup.pipe, &event) == 0;
}

static void create_own(rendezvous *m) {
  lcomm_shm *t = m->t;
  lcomm_shm_offer *mine = &m->offers[m->setup->size];
  if (!create_segment(t) || !create_wakeup_pipe(t)) {
    lcomm_shm_note(m->why, "rank %d cannot make shared memory: %s", t->rank, strerror(errno));
    return;
  }
  memcpy(mine->token, t->token, sizeof(mine->token));
  mine->token_address = (uintptr_t)t->token;
  mine->segment_size = t->segment_size;
  mine->file = t->file;
  mine->pipe = t->wakeup.pipe;
}

/* ------------------------------------------------------------ the others */

static void meet_all(rendezvous *m) {
  unsigned char *mine = m->verdicts + (size_t)m->setup->size * (size_t)m->widest;
  for (int rank = 0; rank < m->setup->size && m->offers[m->setup->size].segment_size; rank++) {
    if (m->lane[rank] < 0 || rank == m->setup->rank) {
      continue;
    }
    lcomm_shm_peer *peer =
        lcomm_shm_peer_meet(m->t, rank, m->setup->identities[rank].pid, &m->offers[rank], m->why);
    m->met[rank] = peer;
    if (peer) {
      peer->here = &m->t->segment->lanes[m->lane[rank]];
      peer->there = &peer->segment->lanes[m->lane[m->setup->rank]];
      lcomm_shm_writer_init(&peer->out, peer->there);
      lcomm_shm_reader_init(&peer->in, peer->here);
      mine[m->lane[rank]] = peer->may_read ? REACHED | READABLE : REACHED;
    } else {
      mine[m->lane[rank]] = (unsigned char)(errno << FOR_ERROR & 0xff);
    }
  }
}

/* ------------------------------------------------------------- agreement */

/* A pair is linked when both sides could open the other. */
static void agree(rendezvous *m) {
  lcomm_shm *t = m->t;
  for (int rank = 0; rank < m->setup->size; rank++) {
    lcomm_shm_peer *peer = m->met[rank];
    if (!peer) {
      continue;
    }
    unsigned char theirs =
        m->verdicts[(size_t)rank * (size_t)m->widest + (size_t)m->lane[m->setup->rank]];
    if (!(theirs & REACHED)) {
      lcomm_shm_note(m->why, "rank %d could not open the memory of rank %d%s%s", rank, t->rank,
                     theirs ? ": " : "", theirs ? strerror(theirs >> FOR_ERROR) : "");
      lcomm_shm_peer_free(t, peer);
      continue;
    }
    peer->reads_us = (theirs & READABLE) != 0;
    lcomm_shm_watch_peer(t, peer, t->reached_count);
    t->reached[t->reached_count++] = peer;
    t->of[rank] = peer;
  }
}

/* --------------------------------------------------------------- rendezvous */

/* Lanes: the ranks of a machine in rank order. */
static void find_lanes(rendezvous *m) {
  const lcomm_identity *all = m->setup->identities;
  for (int rank = 0; rank < m->setup->size; rank++) {
    int before = 0;
    for (int other = 0; other < rank; other++) {
      before += all[other].host_hash == all[rank].host_hash;
    }
    bool here = all[rank].host_hash == all[m->setup->rank].host_hash;
    m->lane[rank] = here ? before : -1;
    m->lane_of[rank] = before;
    m->t->lanes += here;
    m->widest = before + 1 > m->widest ? before + 1 : m->widest;
  }
}

static lcomm_shm *create(const lcomm_transport_setup *setup) {
  lcomm_shm *t = calloc(1, sizeof *t);
  if (!t) {
    return NULL;
  }
  t->base.table = &lcomm_transport_shm;
  t->rank = setup->rank;
  t->size = setup->size;
  t->timeout_s = setup->timeout_s;
  t->file = t->wakeup.epoll = t->wakeup.timer = t->wakeup.pipe = -1;
  t->ways = (lcomm_shm_ways){BOUNCE_LONGEST, BOUNCE_TOTAL, true, true};
  t->of = calloc((size_t)setup->size, sizeof(lcomm_shm_peer *));
  t->reached = calloc((size_t)setup->size, sizeof(lcomm_shm_peer *));
  return t;
}

static bool prepare(rendezvous *m) {
  size_t size = (size_t)m->setup->size;
  m->t = create(m->setup);
  m->lane = calloc(size, sizeof(int));
  m->lane_of = calloc(size, sizeof(int));
  m->offers = calloc(size + 1, sizeof(lcomm_shm_offer));
  m->met = calloc(size, sizeof(lcomm_shm_peer *));
  if (!m->t || !m->t->of || !m->t->reached || !m->lane || !m->lane_of || !m->offers || !m->met) {
    return false;
  }
  find_lanes(m);
  m->verdicts = calloc(size + 1, (size_t)m->widest);
  return m->verdicts != NULL;
}

/* What lies behind the ranks of this machine in a row is 0 and of no meaning: it is filled up with
 * the verdict on the first peer, so that rows of equal verdicts are uniform. */
static bool gather_verdicts(rendezvous *m) {
  int own = m->lane[m->setup->rank], first = own == 0 ? 1 : 0;
  unsigned char *mine = m->verdicts + (size_t)m->setup->size * (size_t)m->widest;
  for (int lane = m->t->lanes; m->t->lanes > 1 && lane < m->widest; lane++) {
    mine[lane] = mine[first];
  }
  return lcomm_links_gather_reached(m->setup->bootstrap, mine, m->widest, own, m->verdicts);
}

/* Has each rank reached all others of its machine? */
static bool all_reached(const rendezvous *m) {
  const lcomm_identity *all = m->setup->identities;
  for (int rank = 0; rank < m->setup->size; rank++) {
    for (int other = 0; other < m->setup->size; other++) {
      const unsigned char *row = m->verdicts + (size_t)rank * (size_t)m->widest;
      bool peers = rank != other && all[rank].host_hash == all[other].host_hash;
      if (peers && !(row[m->lane_of[other]] & REACHED)) {
        return false;
      }
    }
  }
  return true;
}

static lcomm_status exchange_offers(rendezvous *m) {
  const lcomm_bootstrap *bootstrap = m->setup->bootstrap;
  size_t size = (size_t)m->setup->size;
  create_own(m);
  int broken = bootstrap->allgather(bootstrap->context, &m->offers[size], m->offers,
                                    sizeof(lcomm_shm_offer));
  if (!broken) {
    meet_all(m);
  }
  broken |= !gather_verdicts(m);
  if (broken) {
    lcomm_shm_note(m->why, "the bootstrap failed");
    memset(m->verdicts, 0, size * (size_t)m->widest);
  }
  if (m->setup->agreed) {
    *m->setup->agreed = !broken && all_reached(m) ? LCOMM_AGREED_HOSTS : LCOMM_AGREED_NOTHING;
  }
  lcomm_shm_file_close(m->t->file); /* everybody has opened it, or will not */
  m->t->file = -1;
  agree(m);
  if (m->t->lanes == 1) {
    lcomm_shm_note(m->why, "no other rank is on this machine");
  }
  return broken ? LCOMM_ERR_TRANSPORT : LCOMM_ERR_UNSUPPORTED;
}

int lcomm_shm_descriptors(const lcomm_transport_setup *setup) {
  int others = -1;
  for (int rank = 0; rank < setup->size; rank++) {
    others += setup->identities[rank].host_hash == setup->identities[setup->rank].host_hash;
  }
  return others > 0 ? 2 * others + OWN + WHILE_MEETING : 0;
}

int lcomm_shm_descriptors_most(int size) {
  return 2 * (size - 1) + OWN + WHILE_MEETING;
}

lcomm_status lcomm_shm_open(const lcomm_transport_setup *setup, lcomm_transport **transport,
                            lcomm_why *why) {
  rendezvous m = {.setup = setup, .why = why};
  lcomm_status status = LCOMM_ERR_MEMORY;
  why->text[0] = '\0';
  if (prepare(&m)) {
    status = exchange_offers(&m);
  } else {
    lcomm_shm_note(m.why, "no memory to meet %d ranks", setup->size);
  }
  if (m.t && m.t->reached_count > 0) {
    *transport = &m.t->base;
    status = LCOMM_OK;
  } else if (m.t) {
    lcomm_shm_free(m.t);
  }
  free(m.lane);
  free(m.lane_of);
  free(m.offers);
  free(m.met);
  free(m.verdicts);
  return status;
}

void lcomm_shm_free(lcomm_shm *t) {
  lcomm_shm_bounces_free(t);
  for (int i = 0; i < t->reached_count; i++) {
    lcomm_shm_maps_free(t, t->reached[i]);
    lcomm_shm_peer_free(t, t->reached[i]);
  }
  lcomm_shm_records_free(t);
  if (t->segment) {
    munmap(t->segment, t->segment_size);
  }
  lcomm_shm_file_close(t->file);
  lcomm_shm_file_close(t->wakeup.pipe);
  lcomm_shm_file_close(t->wakeup.epoll);
  lcomm_shm_file_close(t->wakeup.timer);
  free(t->of);
  free(t->reached);
  free(t);
}
