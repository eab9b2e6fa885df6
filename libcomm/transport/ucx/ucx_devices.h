/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_DEVICES_H
#define LCOMM_TRANSPORT_UCX_UCX_DEVICES_H

/* Which network interfaces lead to the other hosts. UCX takes every TCP
 * interface for a way to everywhere and picks by speed; on a host with, say, a
 * bridge for containers, which has the same address on every host, it may pick
 * one that leads nowhere. */

#include <stddef.h>
#include <stdint.h>

enum { LCOMM_UCX_INTERFACES_MAX = 32, LCOMM_UCX_DEVICES_MAX = 1024 };

/* The IPv4 interfaces of a host that are up, without the loop-back. Exchanged
 * as plain bytes. Ranks with equal lists share a network. */
typedef struct lcomm_ucx_interfaces {
  uint32_t count;
  struct {
    uint32_t address, mask; /* in network byte order */
  } entries[LCOMM_UCX_INTERFACES_MAX];
} lcomm_ucx_interfaces;

/* Names in the order of a lcomm_ucx_interfaces; they stay at home. */
typedef struct lcomm_ucx_names {
  char of[LCOMM_UCX_INTERFACES_MAX][32];
} lcomm_ucx_names;

/* Those of this host; none when the system does not say. */
void lcomm_ucx_interfaces_own(lcomm_ucx_interfaces *own, lcomm_ucx_names *names);

/* The first rank on another host than `rank` whose host has this address (in
 * network byte order), or -1. */
int lcomm_ucx_interfaces_find(const lcomm_ucx_interfaces *all, int size, int rank,
                              uint32_t address);

/* A comma-separated list of the interfaces of `rank` that are in a network
 * with every other host; when there is none, of those whose address no other
 * host has, too. "" leaves the choice to UCX: one host, or nothing is known.
 * `devices` has LCOMM_UCX_DEVICES_MAX bytes. */
void lcomm_ucx_devices_select(const lcomm_ucx_interfaces *all, int size, int rank,
                              const lcomm_ucx_names *names, char *devices);

#endif
