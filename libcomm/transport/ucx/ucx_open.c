/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/base/log.h"
#include "libcomm/transport/ucx/ucx_fork.h"
#include "libcomm/transport/ucx/ucx_internal.h"
#include "libcomm/transport/ucx/ucx_lost.h"
#include "libcomm/transport/ucx/ucx_sockets.h"

/* What needs no peer. NULL on failure, with a phrase in why. */
static lcomm_ucx_transport *create(const lcomm_transport_setup *setup, const lcomm_ucx_cards *cards,
                                   const char *devices, lcomm_status *status, lcomm_why *why) {
  *status = lcomm_ucx_load(why);
  if (*status == LCOMM_OK) {
    *status = lcomm_ucx_cards_check(cards, why);
  }
  if (*status != LCOMM_OK) {
    return NULL;
  }
  lcomm_ucx_transport *t = calloc(1, sizeof *t);
  lcomm_ucx_peer *peers = calloc((size_t)setup->size, sizeof *peers);
  *status = lcomm_why_set(why, LCOMM_ERR_MEMORY, "out of memory");
  if (t && peers) {
    *status = lcomm_ucx_place_open(devices, &t->place, why);
  }
  if (*status != LCOMM_OK) {
    free(peers);
    free(t);
    return NULL;
  }
  t->base.table = &lcomm_transport_ucx;
  t->rank = setup->rank;
  t->size = setup->size;
  t->peers = peers;
  if (lcomm_ucx.ucp_worker_get_efd(t->place.worker, &t->event_fd) != UCS_OK) {
    t->event_fd = -1;
  }
  for (int i = 0; i < t->size; i++) {
    memcpy(peers[i].host, setup->identities[i].host, sizeof(peers[i].host) - 1);
    peers[i].alarms = &t->base.alarms;
    peers[i].elsewhere = setup->linked && setup->linked[i];
  }
  return t;
}

/* ---------------------------------------------------------------- attempts */

/* What became of the links over some rails. */
typedef struct attempt {
  lcomm_ucx_transport *t; /* NULL: this rank has none */
  lcomm_status status;
  lcomm_why why;
  unsigned char *reached; /* who reached whom, as all ranks know it; NULL: not known */
  lcomm_transport_agreement agreed;
} attempt;

/* Collective, with the same number of allgathers whatever happens. */
static attempt try_rails(const lcomm_transport_setup *setup, const lcomm_ucx_cards *cards,
                         uint32_t used) {
  attempt it = {.status = LCOMM_OK};
  lcomm_why why = {.text = ""};
  char devices[LCOMM_UCX_DEVICES_MAX];
  lcomm_transport_setup own = *setup;
  own.agreed = &it.agreed;
  lcomm_ucx_cards_devices(cards, used, devices);
  it.t = create(setup, cards, devices, &it.status, &it.why);
  if (it.t && cards->all) {
    lcomm_ucx_listeners_admit(&it.t->place.listeners, cards->all, setup->size);
  }
  lcomm_status linked = lcomm_ucx_link_all(it.t, &own, &it.reached, &why);
  if (it.t) {
    const char *given = lcomm_env_get(LCOMM_ENV_UCX_NET_DEVICES);
    snprintf(it.t->devices, sizeof(it.t->devices), "%s", given ? given : devices);
    it.status = linked;
    it.why = why;
  }
  return it;
}

static void end_attempt(attempt *it) {
  if (it->t) {
    lcomm_ucx_close(&it->t->base, false);
  }
  free(it->reached);
}

typedef struct choice {
  uint32_t left, used; /* rails that may still be good; those that are tried */
  bool one;            /* ranks of different rails do not reach each other: all use one */
} choice;

/* Some ranks did not reach each other. Leave out the rails over which they should have. False when
 * there is nothing else to try. */
static bool choose_again(const lcomm_ucx_cards *cards, const unsigned char *reached,
                         lcomm_ucx_lost *lost, choice *c) {
  uint32_t bad = lcomm_ucx_lost_judge(cards, c->used, reached, lost);
  if (bad == 0 && lcomm_ucx_rails_first(c->used) == c->used) {
    return false;
  }
  c->one |= bad == 0;
  c->left &= ~bad;
  c->used = lcomm_ucx_rails_fastest(&cards->rails, c->left);
  c->used = c->one ? lcomm_ucx_rails_first(c->used) : c->used;
  return c->left != 0;
}

static void tell_one_rail(const lcomm_ucx_cards *cards) {
  static const char sentence[] =
      "ranks on different network cards do not reach each other, so all ranks use the first card "
      "of their host that leads to all others; LCOMM_RAILS=1 does so without trying";
  lcomm_log(cards->rank == 0 ? LCOMM_LOG_WARN : LCOMM_LOG_INFO, sentence);
}

/* Over the fastest rails; where those do not link all ranks, over others. The last attempt counts:
 * it links some ranks, or says why not. */
static attempt try_all(const lcomm_transport_setup *setup, const lcomm_ucx_cards *cards) {
  lcomm_ucx_lost lost;
  choice c = {.left = lcomm_ucx_rails_every(&cards->rails)};
  c.used = lcomm_ucx_rails_fastest(&cards->rails, c.left);
  lcomm_ucx_lost_find(cards, &lost);
  attempt it = try_rails(setup, cards, c.used);
  while (it.reached && it.agreed != LCOMM_AGREED_ALL && c.used != 0 &&
         choose_again(cards, it.reached, &lost, &c)) {
    end_attempt(&it);
    it = try_rails(setup, cards, c.used);
  }
  if (it.agreed == LCOMM_AGREED_ALL) {
    lcomm_ucx_lost_tell(cards, setup, &lost);
  }
  if (it.agreed == LCOMM_AGREED_ALL && c.one) {
    tell_one_rail(cards);
  }
  return it;
}

/* ------------------------------------------------------------------ opening */

/* Then peers have to get in for as long as it lives, and one that has just connected has not said
 * anything yet. */
static bool makes_links_later(const lcomm_ucx_transport *t) {
  bool some = false;
  for (int i = 0; i < t->size; i++) {
    some |= t->peers[i].address != NULL;
  }
  return some;
}

/* All that is linked has met. */
static void settle(lcomm_ucx_transport *t) {
  if (!makes_links_later(t)) {
    lcomm_ucx_listeners_close(&t->place.listeners);
    lcomm_ucx_listeners_dismiss_silent(&t->place.listeners);
  }
  lcomm_ucx_sockets_keep_alive(t->event_fd);
  lcomm_ucx_fork_watch(t->event_fd);
  lcomm_ucx_listen(t);
}

lcomm_status lcomm_ucx_open(const lcomm_transport_setup *setup, lcomm_transport **transport,
                            lcomm_why *why) {
  lcomm_ucx_cards cards;
  lcomm_ucx_cards_find(setup, &cards);
  attempt it = try_all(setup, &cards);
  if (setup->agreed) {
    *setup->agreed = it.agreed;
  }
  if (it.status != LCOMM_OK) {
    *why = it.why;
    end_attempt(&it);
    lcomm_ucx_cards_free(&cards);
    return it.status;
  }
  free(it.reached);
  it.t->interfaces = cards.all;
  settle(it.t);
  why->text[0] = '\0';
  *transport = &it.t->base;
  return LCOMM_OK;
}
