/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TRANSPORT_LINKS_FAKES_H
#define LCOMM_TESTS_TRANSPORT_LINKS_FAKES_H

/* Transports of a test's own, in the place of the library's list, and ranks that
 * are threads. Included by one file. */

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka needs the headers above */
#include <cmocka.h>

#include "libcomm/transport/links.h"

enum { RANKS = 4, FAKES = 3, FOREVER_S = 1000 };

/* ------------------------------------------------------- transports of ours */

typedef struct fake {
  lcomm_transport base;
  int rank, number;
} fake;

/* What a transport is to do, and what was done with it. */
static struct behaviour {
  lcomm_status opens;
  bool reach[RANKS][RANKS];
  int opened[RANKS], closed[RANKS], progressed[RANKS], heard[RANKS];
  atomic_bool orderly;
  int arms; /* what arm answers */
  bool lends;
  int lent;
  bool has_notice;
  const char *trouble;     /* what open says although it succeeds */
  int needed[RANKS];       /* file descriptors */
  bool told[RANKS][RANKS]; /* whom others have linked */
  bool late;               /* no link is there yet */
  bool read;               /* somebody reads what was sent, after the end */
} behaviours[FAKES];

static const lcomm_transport_table tables[FAKES];

static lcomm_status open_fake(const lcomm_transport_setup *setup, lcomm_transport **transport,
                              lcomm_why *why, int number) {
  struct behaviour *it = &behaviours[number];
  if (it->opens != LCOMM_OK) {
    snprintf(why->text, sizeof(why->text), "fake %d is broken", number);
    return it->opens;
  }
  fake *made = calloc(1, sizeof *made);
  made->base.table = &tables[number];
  made->rank = setup->rank;
  made->number = number;
  it->opened[setup->rank]++;
  memcpy(it->told[setup->rank], setup->linked, sizeof(it->told[0]));
  if (it->trouble) {
    snprintf(why->text, sizeof(why->text), "%s", it->trouble);
  }
  *transport = &made->base;
  return LCOMM_OK;
}

static lcomm_status open_near(const lcomm_transport_setup *s, lcomm_transport **t, lcomm_why *why) {
  return open_fake(s, t, why, 0);
}

static lcomm_status open_middle(const lcomm_transport_setup *s, lcomm_transport **t,
                                lcomm_why *why) {
  return open_fake(s, t, why, 1);
}

static lcomm_status open_far(const lcomm_transport_setup *s, lcomm_transport **t, lcomm_why *why) {
  return open_fake(s, t, why, 2);
}

static struct behaviour *of(const lcomm_transport *transport) {
  return &behaviours[((const fake *)transport)->number];
}

static bool release_fake(lcomm_transport *transport) {
  if (of(transport)->read) {
    return false;
  }
  free(transport);
  return true;
}

static bool close_fake(lcomm_transport *transport, bool orderly) {
  of(transport)->closed[((fake *)transport)->rank]++;
  atomic_store(&of(transport)->orderly, orderly);
  return release_fake(transport);
}

static bool reaches(const lcomm_transport *transport, int peer) {
  return of(transport)->reach[((const fake *)transport)->rank][peer];
}

static bool is_linked(const lcomm_transport *transport, int peer) {
  return reaches(transport, peer) && !of(transport)->late;
}

static void progress(lcomm_transport *transport) {
  of(transport)->progressed[((fake *)transport)->rank]++;
}

static bool hear(lcomm_transport *transport, void *message) {
  bool had = of(transport)->has_notice;
  of(transport)->has_notice = false;
  if (had) {
    memset(message, ((fake *)transport)->number, LCOMM_CONTROL_SIZE);
  }
  return had;
}

static void *lend(lcomm_transport *transport, size_t size) {
  struct behaviour *it = of(transport);
  it->lent += it->lends;
  return it->lends ? calloc(1, size) : NULL;
}

static int returned; /* what was lent */

static void take_back(void *memory) {
  returned++;
  free(memory);
}

static int arm(lcomm_transport *transport) {
  return of(transport)->arms;
}

static void disarm(lcomm_transport *transport) {
  (void)transport;
}

static const lcomm_transport_wakeup wakeup = {.arm = arm, .disarm = disarm};

static int descriptors_near(const lcomm_transport_setup *setup) {
  return behaviours[0].needed[setup->rank];
}

static int descriptors_middle(const lcomm_transport_setup *setup) {
  return behaviours[1].needed[setup->rank];
}

static int descriptors_far(const lcomm_transport_setup *setup) {
  return behaviours[2].needed[setup->rank];
}

#define FAKE(label, opener, needs)                                                                 \
  {                                                                                                \
    .name = label, .summary = "of this test", .open = opener, .close = close_fake,                 \
    .release = release_fake, .reaches = reaches, .linked = is_linked, .progress = progress,        \
    .control.receive = hear, .memory_get = lend, .memory_free = take_back, .wakeup = &wakeup,      \
    .descriptors = needs                                                                           \
  }

static const lcomm_transport_table tables[FAKES] = {FAKE("near", open_near, descriptors_near),
                                                    FAKE("middle", open_middle, descriptors_middle),
                                                    FAKE("far", open_far, descriptors_far)};

/* In the place of the library's. */
const lcomm_transport_table *const lcomm_transport_list[] = {&tables[0], &tables[1], &tables[2],
                                                             NULL};

/* -------------------------------------------------------------------- ranks */

static pthread_barrier_t all_ranks;
static unsigned char spoken[RANKS * 8192];
static bool allgather_fails;

static int gather(void *context, const void *send, void *receive, size_t size) {
  int rank = *(int *)context;
  memcpy(spoken + (size_t)rank * size, send, size);
  pthread_barrier_wait(&all_ranks);
  memcpy(receive, spoken, RANKS * size);
  pthread_barrier_wait(&all_ranks);
  return allgather_fails ? 1 : 0;
}

typedef struct participant {
  int rank;
  const char *names;
  lcomm_links links;
  lcomm_status status;
  lcomm_why why;
} participant;

static void *open_one(void *argument) {
  participant *p = argument;
  lcomm_identity identities[RANKS];
  memset(identities, 0, sizeof(identities));
  for (int i = 0; i < RANKS; i++) {
    snprintf(identities[i].host, sizeof(identities[i].host), "host%d", i / 2);
  }
  lcomm_bootstrap boot = {p->rank, RANKS, &p->rank, gather};
  lcomm_transport_setup setup = {
      .rank = p->rank, .size = RANKS, .identities = identities, .bootstrap = &boot, .timeout_s = 1};
  p->status = lcomm_links_open(&setup, p->names, &p->links, &p->why);
  return NULL;
}

static participant ranks[RANKS];

static inline void open_all(const char *names) {
  pthread_t threads[RANKS];
  for (int i = 0; i < RANKS; i++) {
    memset(&ranks[i], 0, sizeof(ranks[i]));
    ranks[i].rank = i;
    ranks[i].names = names;
    assert_int_equal(pthread_create(&threads[i], NULL, open_one, &ranks[i]), 0);
  }
  for (int i = 0; i < RANKS; i++) {
    pthread_join(threads[i], NULL);
  }
}

static inline void close_all(void) {
  for (int i = 0; i < RANKS; i++) {
    lcomm_links_close(&ranks[i].links, true);
  }
}

/* Ranks 0 and 1 are one host, 2 and 3 another; `far` reaches all. */
static inline int set_up(void **state) {
  (void)state;
  memset(behaviours, 0, sizeof(behaviours));
  allgather_fails = false;
  for (int i = 0; i < RANKS; i++) {
    for (int j = 0; j < RANKS; j++) {
      behaviours[0].reach[i][j] = i != j && i / 2 == j / 2;
      behaviours[2].reach[i][j] = i != j;
    }
  }
  return pthread_barrier_init(&all_ranks, NULL, RANKS);
}

static inline int tear_down(void **state) {
  (void)state;
  return pthread_barrier_destroy(&all_ranks);
}

static inline const char *link_of(int rank, int peer) {
  const lcomm_transport *link = ranks[rank].links.of[peer];
  return link ? link->table->name : "none";
}

#endif
