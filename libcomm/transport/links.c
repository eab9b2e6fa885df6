/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Which transport reaches which peer: opening, and what concerns all of them. */

#include "libcomm/transport/links.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/base/descriptors.h"
#include "libcomm/base/error.h"

/* --------------------------------------------------------------- opening */

typedef lcomm_links_answer answer;

static void find_lonely(const lcomm_links *links, answer *mine) {
  mine->lonely = LCOMM_LINKS_COMPLETE;
  for (int peer = links->size - 1; peer >= 0; peer--) {
    if (peer != links->rank && !links->of[peer]) {
      mine->lonely = peer;
    }
  }
}

static void record_reason(answer *mine, const char *name, const char *why) {
  size_t used = strlen(mine->why);
  snprintf(mine->why + used, sizeof(mine->why) - used, "%s%s: %s", used > 0 ? "; " : "", name, why);
}

/* Ask one transport, and give it the peers that nobody reached before. */
static void open_one(const lcomm_transport_setup *setup, const lcomm_transport_table *table,
                     lcomm_links *links, answer *mine) {
  lcomm_why why = {.text = ""};
  lcomm_transport *transport = NULL;
  lcomm_status status = table->open(setup, &transport, &why);
  int taken = 0;
  for (int peer = 0; status == LCOMM_OK && peer < links->size; peer++) {
    if (peer != links->rank && !links->of[peer] && transport->table->reaches(transport, peer)) {
      links->of[peer] = transport;
      taken++;
    }
  }
  if (status == LCOMM_OK && why.text[0] == '\0') {
    lcomm_why_set(&why, LCOMM_OK, "%s", transport->why);
  }
  /* Heard only if somebody stays without a link. */
  record_reason(mine, table->name, why.text[0] != '\0' ? why.text : "does not reach it");
  if (taken > 0) {
    links->open[links->count++] = transport;
  } else if (status == LCOMM_OK) {
    (void)transport->table->close(transport, true); /* nothing was sent */
  }
}

static bool gather(const lcomm_transport_setup *setup, const void *mine, void *all, size_t size) {
  return setup->bootstrap->allgather(setup->bootstrap->context, mine, all, size) == 0;
}

static bool are_on_one_host(const lcomm_transport_setup *setup) {
  for (int rank = 1; rank < setup->size; rank++) {
    if (setup->identities[rank].host_hash != setup->identities[0].host_hash) {
      return false;
    }
  }
  return true;
}

/* What is open so far, and what is known of it on all ranks. */
typedef struct opening {
  lcomm_transport_setup setup;
  answer *all; /* per rank, then mine */
  int32_t *lonely;
  lcomm_links_room *rooms;
  bool *linked; /* per rank: by a transport that is open already */
  int taken;    /* descriptors, at most */
  lcomm_transport_agreement agreed;
  lcomm_status verdict; /* TRANSPORT: some pair has no link yet */
} opening;

/* Have all ranks all links? Everybody says who misses one; why is said where somebody does. */
static lcomm_status check_all(opening *o, lcomm_why *why) {
  const lcomm_transport_setup *setup = &o->setup;
  const answer *mine = &o->all[setup->size];
  bool complete = true;
  bool good = gather(setup, &mine->lonely, o->lonely, sizeof *o->lonely);
  for (int rank = 0; rank < setup->size; rank++) {
    complete &= o->lonely[rank] == LCOMM_LINKS_COMPLETE;
  }
  o->verdict = LCOMM_OK;
  if (good && complete) {
    return LCOMM_OK;
  }
  if (!good || !gather(setup, mine, o->all, sizeof *mine)) {
    return lcomm_why_set(why, LCOMM_ERR_TRANSPORT, "the bootstrap failed while links were opened");
  }
  o->verdict = lcomm_links_check(o->all, setup->identities, setup->size, why);
  return o->verdict == LCOMM_ERR_TRANSPORT ? LCOMM_OK : o->verdict;
}

/* OK, and o->verdict says whether some pair has no link yet; or what ends it. */
static lcomm_status open_next(opening *o, const lcomm_transport_table *table, lcomm_links *links,
                              lcomm_why *why) {
  const lcomm_transport_setup *setup = &o->setup;
  answer *mine = &o->all[setup->size];
  o->agreed = LCOMM_AGREED_NOTHING;
  for (int peer = 0; peer < setup->size; peer++) {
    o->linked[peer] = links->of[peer] != NULL;
  }
  LCOMM_TRY(lcomm_links_check_descriptors(setup, table, o->taken, o->rooms, why));
  o->taken += table->descriptors_most ? table->descriptors_most(setup->size) : 0;
  open_one(setup, table, links, mine);
  find_lonely(links, mine);
  if (o->agreed == LCOMM_AGREED_NOTHING) {
    return check_all(o, why);
  }
  bool complete = o->agreed == LCOMM_AGREED_ALL || are_on_one_host(setup);
  o->verdict = complete ? LCOMM_OK : LCOMM_ERR_TRANSPORT;
  return LCOMM_OK;
}

/* A list that ends with a transport which left somebody alone, as everybody knows, has not been
 * asked who. */
static lcomm_status open_all(opening *o, const char *names, lcomm_links *links, lcomm_why *why) {
  o->verdict = o->setup.size == 1 ? LCOMM_OK : LCOMM_ERR_TRANSPORT;
  for (int i = 0; lcomm_transport_list[i] && o->verdict == LCOMM_ERR_TRANSPORT; i++) {
    if (lcomm_links_may_use(names, lcomm_transport_list[i]->name)) {
      LCOMM_TRY(open_next(o, lcomm_transport_list[i], links, why));
    }
  }
  if (o->verdict == LCOMM_ERR_TRANSPORT && o->agreed != LCOMM_AGREED_NOTHING) {
    LCOMM_TRY(check_all(o, why));
  }
  return o->verdict;
}

lcomm_status lcomm_links_open(const lcomm_transport_setup *setup, const char *names,
                              lcomm_links *links, lcomm_why *why) {
  memset(links, 0, sizeof *links);
  links->rank = setup->rank;
  links->size = setup->size;
  links->of = calloc((size_t)setup->size, sizeof(lcomm_transport *));
  opening o = {.setup = *setup,
               .all = calloc((size_t)setup->size + 1, sizeof *o.all),
               .lonely = calloc((size_t)setup->size, sizeof *o.lonely),
               .rooms = calloc((size_t)setup->size, sizeof *o.rooms),
               .linked = calloc((size_t)setup->size, sizeof *o.linked)};
  lcomm_status status =
      lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory for the links to %d ranks", setup->size);
  o.setup.agreed = &o.agreed;
  o.setup.linked = o.linked;
  if (links->of && o.all && o.lonely && o.rooms && o.linked) {
    status = open_all(&o, names, links, why);
  }
  free(o.linked);
  free(o.rooms);
  free(o.lonely);
  free(o.all);
  if (status != LCOMM_OK) {
    (void)lcomm_links_close(links, true); /* nothing was sent */
  }
  return status;
}

bool lcomm_links_close(lcomm_links *links, bool orderly) {
  lcomm_transport *left[LCOMM_LINKS_MAX] = {NULL};
  int count = 0;
  for (int i = links->count; i-- > 0;) { /* memory of the first is used by the others */
    if (!links->open[i]->table->close(links->open[i], orderly)) {
      left[count++] = links->open[i];
    }
  }
  memcpy(links->open, left, (size_t)count * sizeof *left);
  links->count = count;
  free(links->of);
  links->of = NULL;
  return count == 0;
}

bool lcomm_links_release(lcomm_links *links) {
  int count = 0;
  for (int i = 0; i < links->count; i++) {
    lcomm_transport *transport = links->open[i];
    if (!transport->table->release || !transport->table->release(transport)) {
      links->open[count++] = transport;
    }
  }
  links->count = count;
  return count == 0;
}

void lcomm_links_stop_reading(lcomm_links *links) {
  for (int i = 0; i < links->count; i++) {
    if (links->open[i]->table->stop_reading) {
      links->open[i]->table->stop_reading(links->open[i]);
    }
  }
}

void lcomm_links_introduce(lcomm_transport_introduction *mine) {
  memset(mine, 0, sizeof *mine);
  mine->descriptors_limit = lcomm_descriptors_limit();
  mine->descriptors_left = lcomm_descriptors_free();
  for (int i = 0; lcomm_transport_list[i]; i++) {
    if (lcomm_transport_list[i]->introduce) {
      lcomm_transport_list[i]->introduce(mine->bytes);
    }
  }
}

size_t lcomm_links_rails_print(const lcomm_transport_introduction *all, int size, int rank,
                               char *text, size_t room) {
  for (int i = 0; lcomm_transport_list[i]; i++) {
    if (lcomm_transport_list[i]->rails_print) {
      return lcomm_transport_list[i]->rails_print(all, size, rank, text, room);
    }
  }
  if (room > 0) {
    text[0] = '\0';
  }
  return 0;
}

/* ---------------------------------------------------------- all together */

bool lcomm_links_use(const lcomm_links *links, const char *name) {
  for (int i = 0; i < links->count; i++) {
    if (strcmp(links->open[i]->table->name, name) == 0) {
      return true;
    }
  }
  return false;
}

bool lcomm_links_linked(const lcomm_links *links, int peer) {
  const lcomm_transport *link = links->of[peer];
  return link && (!link->table->linked || link->table->linked(link, peer));
}

void lcomm_links_progress(lcomm_links *links) {
  for (int i = 0; i < links->count; i++) {
    if (links->open[i]->table->progress) {
      links->open[i]->table->progress(links->open[i]);
    }
  }
}

bool lcomm_links_control_receive(lcomm_links *links, void *message) {
  for (int i = 0; i < links->count; i++) {
    if (links->open[i]->table->control.receive(links->open[i], message)) {
      return true;
    }
  }
  return false;
}

void lcomm_links_part(lcomm_links *links) {
  for (int peer = 0; peer < links->size; peer++) {
    lcomm_transport *link = links->of[peer];
    if (link && link->table->control.part) {
      link->table->control.part(link, peer);
    }
  }
}

int lcomm_links_unparted(const lcomm_links *links) {
  int peer = -1;
  for (int i = 0; i < links->count && peer < 0; i++) {
    const lcomm_transport_control *control = &links->open[i]->table->control;
    peer = control->unparted ? control->unparted(links->open[i]) : -1;
  }
  return peer;
}

int lcomm_links_unreachable(lcomm_links *links, lcomm_why *why) {
  int peer = -1;
  for (int i = 0; i < links->count && peer < 0; i++) {
    const lcomm_transport_table *table = links->open[i]->table;
    peer = table->unreachable ? table->unreachable(links->open[i], why) : -1;
  }
  return peer;
}

void lcomm_links_prepare(lcomm_links *links, lcomm_links_wait_set *set, int extra) {
  set->count = 0;
  set->busy = set->blind = false;
  if (extra >= 0) {
    set->watched[set->count++] = (struct pollfd){.fd = extra, .events = POLLIN};
  }
  lcomm_links_join(links, set);
}

void lcomm_links_join(lcomm_links *links, lcomm_links_wait_set *set) {
  for (int i = 0; i < links->count; i++) {
    const lcomm_transport_wakeup *wakeup = links->open[i]->table->wakeup;
    int fd = wakeup ? wakeup->arm(links->open[i]) : LCOMM_ARM_NEVER;
    set->busy |= fd == LCOMM_ARM_BUSY;
    set->blind |= fd == LCOMM_ARM_NEVER || set->count == LCOMM_WAIT_SET_MAX;
    if (fd >= 0 && set->count < LCOMM_WAIT_SET_MAX) {
      set->watched[set->count++] = (struct pollfd){.fd = fd, .events = POLLIN};
    }
  }
}

bool lcomm_links_sleep(lcomm_links_wait_set *set, double limit_s) {
  static const double BLIND_S = 50e-6;
  if (set->busy) {
    return false;
  }
  double sleep_s = set->blind && limit_s > BLIND_S ? BLIND_S : limit_s;
  struct timespec limit = {(time_t)sleep_s, (long)(1e9 * (sleep_s - (double)(time_t)sleep_s))};
  int rang = ppoll(set->watched, set->count, &limit, NULL); /* whatever woke us, all is looked at */
  return rang == 0 && !set->blind;
}

void lcomm_links_awake(lcomm_links *links) {
  for (int i = 0; i < links->count; i++) {
    const lcomm_transport_wakeup *wakeup = links->open[i]->table->wakeup;
    if (wakeup) {
      wakeup->disarm(links->open[i]);
    }
  }
}
