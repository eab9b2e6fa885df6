/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/env.h"
#include "libcomm/transport/ucx/ucx_fork.h"
#include "libcomm/transport/ucx/ucx_internal.h"
#include "libcomm/transport/ucx/ucx_sockets.h"

/* What needs no peer. NULL on failure, with a phrase in why. */
static lcomm_ucx_transport *create(const lcomm_transport_setup *setup, const char *devices,
                                   lcomm_status *status, lcomm_why *why) {
  *status = lcomm_ucx_load(why);
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

/* Then peers have to get in for as long as it lives, and one that has just connected has not said
 * anything yet. */
static bool makes_links_later(const lcomm_ucx_transport *t) {
  bool some = false;
  for (int i = 0; i < t->size; i++) {
    some |= t->peers[i].address != NULL;
  }
  return some;
}

lcomm_status lcomm_ucx_open(const lcomm_transport_setup *setup, lcomm_transport **transport,
                            lcomm_why *why) {
  lcomm_why link_why = {.text = ""};
  char devices[LCOMM_UCX_DEVICES_MAX];
  lcomm_status status = LCOMM_OK;
  lcomm_ucx_interfaces *interfaces = lcomm_ucx_link_devices(setup, devices);
  lcomm_ucx_transport *t = create(setup, devices, &status, why);
  if (t && interfaces) {
    lcomm_ucx_listeners_admit(&t->place.listeners, interfaces, setup->size);
  }
  lcomm_status linked = lcomm_ucx_link_all(t, setup, &link_why);
  if (!t) {
    free(interfaces);
    return status;
  }
  t->interfaces = interfaces;
  const char *given = lcomm_env_get(LCOMM_ENV_UCX_NET_DEVICES);
  snprintf(t->devices, sizeof(t->devices), "%s", given ? given : devices);
  if (linked != LCOMM_OK) {
    *why = link_why;
    lcomm_ucx_close(&t->base, false);
    return linked;
  }
  if (!makes_links_later(t)) {
    lcomm_ucx_listeners_close(&t->place.listeners);
    lcomm_ucx_listeners_dismiss_silent(&t->place.listeners);
  }
  lcomm_ucx_sockets_keep_alive(t->event_fd);
  lcomm_ucx_fork_watch(t->event_fd);
  lcomm_ucx_listen(t);
  why->text[0] = '\0';
  *transport = &t->base;
  return LCOMM_OK;
}
