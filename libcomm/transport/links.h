/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_LINKS_H
#define LCOMM_TRANSPORT_LINKS_H

/* Which transport reaches which peer. Transports are asked in the order of
 * their cost (lcomm_transport_list); each peer gets the first one that reaches
 * it, and a transport that no pair needs is not opened. LCOMM_TRANSPORT names
 * those that may be used.
 */

#include <poll.h>

#include "libcomm/base/error.h"
#include "libcomm/transport/transport.h"

enum { LCOMM_LINKS_MAX = 4, LCOMM_WAIT_SET_MAX = 128 };

typedef struct lcomm_links_memory lcomm_links_memory;

typedef struct lcomm_links {
  int rank, size;
  int count; /* open transports */
  lcomm_transport *open[LCOMM_LINKS_MAX];
  lcomm_transport **of;       /* per peer; NULL for this rank itself */
  lcomm_links_memory *memory; /* what was given out */
  uint64_t memory_size;       /* bytes of it */
} lcomm_links;

/* Is `names`, such as "shm,ucx" or "auto", a list of transports? On a mistake
 * a sentence is written into why. NULL is "auto". ARGUMENT. */
lcomm_status lcomm_links_parse(const char *names, lcomm_why *why);

/* May a transport of this name be opened? `names` is a list as above. */
bool lcomm_links_may_use(const char *names, const char *name);

/* Open what is needed for every rank to reach every other; collective, the
 * same result on all ranks. `names` as above, equal on all ranks. On failure
 * the sentence in why names a pair without a link
 * and what each transport said, or the rank that has too few file descriptors.
 * TRANSPORT, SYSTEM, MEMORY. */
lcomm_status lcomm_links_open(const lcomm_transport_setup *setup, const char *names,
                              lcomm_links *links, lcomm_why *why);

/* False: somebody may still read what cancelled messages were to send. That memory, which was given
 * out or is the caller's, must stay as it is until lcomm_links_release() is true. */
bool lcomm_links_close(lcomm_links *links, bool orderly);

/* Does nobody read it any more? Any thread. */
bool lcomm_links_release(lcomm_links *links);

/* As the function of a transport. */
void lcomm_links_stop_reading(lcomm_links *links);

/* What this rank says of itself beforehand. */
void lcomm_links_introduce(lcomm_transport_introduction *mine);

/* What all ranks have said, for people, as rails_print in lcomm_transport_table. */
size_t lcomm_links_rails_print(const lcomm_transport_introduction *all, int size, int rank,
                               char *text, size_t room);

/* What a rank says of its file descriptors before a transport is opened. */
typedef struct lcomm_links_room {
  int32_t limit, left, needed;
} lcomm_links_room;

/* Has every rank as many left as the transport needs there? Collective, unless all have said that
 * they have more than `taken` and what it can need at most; the same
 * result on all ranks: a rank that runs out in the middle may be aborted inside
 * of a library. rooms: one per rank, to work in. On failure the sentence in why
 * names the first rank that lacks some, and what
 * `ulimit -n` it needs. SYSTEM, TRANSPORT. */
lcomm_status lcomm_links_check_descriptors(const lcomm_transport_setup *setup,
                                           const lcomm_transport_table *table, int taken,
                                           lcomm_links_room *rooms, lcomm_why *why);

/* Is a transport of this name open? */
bool lcomm_links_use(const lcomm_links *links, const char *name);

/* Is there a link to this peer already? Else the first message makes it. A link may be there on one
 * side only. Along the links that are there from the beginning each rank reaches all others. */
bool lcomm_links_linked(const lcomm_links *links, int peer);

/* All open transports. */
void lcomm_links_progress(lcomm_links *links);
bool lcomm_links_control_receive(lcomm_links *links, void *message);

/* As the functions of a transport: from all peers, with all transports. */
void lcomm_links_part(lcomm_links *links);
int lcomm_links_unparted(const lcomm_links *links);

/* As the function of a transport; the first that any of them finds. */
int lcomm_links_unreachable(lcomm_links *links, lcomm_why *why);

/* Memory that local peers can view; plain memory where no transport has any.
 * Aligned to a page, zeroed. NULL when there is none. */
void *lcomm_links_memory_get(lcomm_links *links, size_t size);
void lcomm_links_memory_free(lcomm_links *links, void *memory);

/* What was not given back. The links are closed, and nobody reads it any more. */
void lcomm_links_memory_free_all(lcomm_links *links);

/* Sleeping until something arrives, in three parts, so that a lock need not be held in the middle
 * one: prepare fills a wait set, sleep waits for it for at most `limit_s`, awake ends it. A
 * transport that is busy makes sleep return at once; one that cannot tell makes it short. extra:
 * one more file descriptor, or -1. join adds other links to a set that was prepared; where there is
 * no room for them it makes the sleep short. sleep is true when it ran to its limit although every
 * transport could have told. */
typedef struct lcomm_links_wait_set {
  struct pollfd watched[LCOMM_WAIT_SET_MAX];
  nfds_t count;
  bool busy, blind;
} lcomm_links_wait_set;

void lcomm_links_prepare(lcomm_links *links, lcomm_links_wait_set *set, int extra);
void lcomm_links_join(lcomm_links *links, lcomm_links_wait_set *set);
bool lcomm_links_sleep(lcomm_links_wait_set *set, double limit_s);
void lcomm_links_awake(lcomm_links *links);

/* --- who reaches whom? links_reached.c --- */

/* Gather from each rank a byte for each of `width` ranks, its own of no meaning: all has a row of
 * `width` for each rank, `own` is the place of this rank in its row. Each rank first says the one
 * value that it has for all others; only where somebody has several are the rows exchanged. False
 * when the bootstrap failed. Collective. */
bool lcomm_links_gather_reached(const lcomm_bootstrap *bootstrap, const unsigned char *mine,
                                int width, int own, unsigned char *all);

/* What a rank says first. */
typedef struct lcomm_links_uniform {
  uint8_t value, uniform; /* 1: it holds for all others, 0: there are several */
} lcomm_links_uniform;

/* --- has every rank a link to every other? links_check.c --- */

enum {
  LCOMM_LINKS_COMPLETE = -1,
  LCOMM_LINKS_WHY_MAX = 512 /* travels */
};

/* What a rank says after a transport was opened. */
typedef struct lcomm_links_answer {
  int32_t lonely; /* a peer without a link, or LCOMM_LINKS_COMPLETE */
  char why[LCOMM_LINKS_WHY_MAX];
} lcomm_links_answer;

/* The answers of all ranks, any bytes: the same verdict on all of them. TRANSPORT
 * when a pair has no link, WIRE for what is no answer; the sentence in `why`
 * names the lowest such rank. The hosts' names are texts. */
lcomm_status lcomm_links_check(const lcomm_links_answer *all, const lcomm_identity *identities,
                               int size, lcomm_why *why);

#endif
