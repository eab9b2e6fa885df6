/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_RAILS_H
#define LCOMM_TRANSPORT_UCX_UCX_RAILS_H

/* Rails: the IPv4 networks in which every host has a card. Each rank sends and receives through the
 * card of one rail, so that the ranks of a host share its cards out; TCP goes to the address of the
 * peer, so two ranks of different rails use the cards of one of them.
 *
 * Pure functions over what all ranks say of their interfaces, so every rank has the same rails.
 * Sets of rails have a bit for each. Those of a host are the ranks with equal interfaces. */

#include <stdbool.h>
#include <stdint.h>

#include "libcomm/transport/ucx/ucx_devices.h"

enum { LCOMM_UCX_RAILS_MAX = 16 };

/* What a rank asks for by LCOMM_RAILS. */
typedef enum lcomm_ucx_rails_asked {
  LCOMM_UCX_RAILS_AUTO, /* one rail for each rank, in turn, near ones first */
  LCOMM_UCX_RAILS_ONE,  /* the first rail */
  LCOMM_UCX_RAILS_ALL,  /* UCX gets all cards, and chooses for each link */
  LCOMM_UCX_RAILS_NONE  /* UCX or LCOMM_UCX_NET_DEVICES chooses: no rank of the job has rails */
} lcomm_ucx_rails_asked;

typedef struct lcomm_ucx_rail {
  uint32_t network, mask; /* in network byte order */
  uint32_t speed_mbit_s;  /* of the slowest card in it; 0: not known */
} lcomm_ucx_rail;

/* The fastest first, those of equal speed in the order of their networks. */
typedef struct lcomm_ucx_rails {
  int count;
  lcomm_ucx_rail of[LCOMM_UCX_RAILS_MAX];
} lcomm_ucx_rails;

/* Write into `own` what `asked` means for these interfaces: auto, 1, all, or names of cards
 * separated by commas, which are then shared out as by auto. NULL is auto. False when it names no
 * card of this host; all are unwanted then. */
bool lcomm_ucx_rails_ask(const char *asked, const lcomm_ucx_names *names,
                         lcomm_ucx_interfaces *own);

/* Networks in which every host has a card that is up, wanted and not broken, with an address that
 * no other host has. None where there is one host, or where a rank asks for NONE. */
void lcomm_ucx_rails_find(const lcomm_ucx_interfaces *all, int size, lcomm_ucx_rails *rails);

/* The card of a host in a network: the entry of its interfaces, or -1. usable: one that is up,
 * wanted and not broken. */
int lcomm_ucx_rails_card(const lcomm_ucx_interfaces *host, const lcomm_ucx_rail *rail);
int lcomm_ucx_rails_card_usable(const lcomm_ucx_interfaces *host, const lcomm_ucx_rail *rail);

/* All of them; the first one of a set. */
uint32_t lcomm_ucx_rails_every(const lcomm_ucx_rails *rails);
uint32_t lcomm_ucx_rails_first(uint32_t set);

/* Those of `left` that are as fast as the fastest of them. */
uint32_t lcomm_ucx_rails_fastest(const lcomm_ucx_rails *rails, uint32_t left);

/* The rails of a rank, where the job uses those of `used`; at least one of them. */
uint32_t lcomm_ucx_rails_of(const lcomm_ucx_interfaces *all, int size, int rank,
                            const lcomm_ucx_rails *rails, uint32_t used);

/* The cards of a host in these rails, and the loop-back, as a comma-separated list.
 * `devices` has LCOMM_UCX_DEVICES_MAX bytes. */
void lcomm_ucx_rails_devices(const lcomm_ucx_interfaces *host, const lcomm_ucx_names *names,
                             const lcomm_ucx_rails *rails, uint32_t mine, char *devices);

#endif
