/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_CARDS_H
#define LCOMM_TRANSPORT_UCX_UCX_CARDS_H

/* What all ranks know of each other's network cards, and what this rank does with it. */

#include "libcomm/transport/transport.h"
#include "libcomm/transport/ucx/ucx_devices.h"
#include "libcomm/transport/ucx/ucx_rails.h"

typedef struct lcomm_ucx_cards {
  lcomm_ucx_interfaces *all; /* per rank; NULL: not known */
  lcomm_ucx_names names;     /* of this rank's; "" where a card is gone since */
  lcomm_ucx_rails rails;     /* that may be used; none where `all` is not known */
  int size, rank;
} lcomm_ucx_cards;

/* The interfaces of this rank, packed. */
void lcomm_ucx_introduce(unsigned char *bytes);

/* One allgather, whatever happens, unless the ranks have introduced themselves. */
void lcomm_ucx_cards_find(const lcomm_transport_setup *setup, lcomm_ucx_cards *cards);
void lcomm_ucx_cards_free(lcomm_ucx_cards *cards);

/* Does LCOMM_RAILS name a card of this host, or none at all? If not, TRANSPORT with a phrase. */
lcomm_status lcomm_ucx_cards_check(const lcomm_ucx_cards *cards, lcomm_why *why);

/* Where the job uses the rails of `used`: this rank's rails; its devices, as UCX wants them.
 * Without rails those that lcomm_ucx_devices_select chooses. `devices` has LCOMM_UCX_DEVICES_MAX
 * bytes. */
void lcomm_ucx_cards_devices(const lcomm_ucx_cards *cards, uint32_t used, char *devices);

/* As in lcomm_transport_table. */
size_t lcomm_ucx_rails_print(const lcomm_transport_introduction *all, int size, int rank,
                             char *text, size_t room);

#endif
