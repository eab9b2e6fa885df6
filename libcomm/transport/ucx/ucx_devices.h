/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_DEVICES_H
#define LCOMM_TRANSPORT_UCX_UCX_DEVICES_H

/* Which network interfaces lead to the other hosts. UCX takes every TCP
 * interface for a way to everywhere and picks by speed; on a host with, say, a
 * bridge for containers, which has the same address on every host, it may pick
 * one that leads nowhere. Which of several a rank takes: ucx_rails.h. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LCOMM_UCX_INTERFACES_MAX = 32,
  LCOMM_UCX_INTERFACES_SIZE = 18 + 7 * LCOMM_UCX_INTERFACES_MAX, /* bytes of them on their way */
  LCOMM_UCX_DEVICES_MAX = 1024
};

/* The IPv4 interfaces of a host, without the loop-back: those that are up, then those that are
 * not. Ranks with equal addresses share a network. Sets of interfaces have a bit for each entry. */
typedef struct lcomm_ucx_interfaces {
  uint32_t count;
  uint32_t down;     /* no carrier, or switched off */
  uint32_t asked;    /* a lcomm_ucx_rails_asked, of this rank; ucx_rails.h */
  uint32_t unwanted; /* LCOMM_RAILS does not name them */
  uint32_t broken;   /* led nowhere when this process used them; ucx_lost.h */
  uint32_t near;     /* of a NUMA node on which this rank may run, or of an unknown one */
  struct {
    uint32_t address, mask; /* in network byte order */
    uint32_t speed_mbit_s;  /* 0: not known */
  } entries[LCOMM_UCX_INTERFACES_MAX];
} lcomm_ucx_interfaces;

/* Names in the order of a lcomm_ucx_interfaces; they stay at home. */
typedef struct lcomm_ucx_names {
  char of[LCOMM_UCX_INTERFACES_MAX][32];
} lcomm_ucx_names;

/* Those of this host, none when the system does not say; all are wanted and none is known to be
 * broken. */
void lcomm_ucx_interfaces_own(lcomm_ucx_interfaces *own, lcomm_ucx_names *names);

/* What travels: little-endian, of each entry the address, the length of its prefix and the speed.
 * Any bytes are read, as some interfaces of a host. */
void lcomm_ucx_interfaces_pack(const lcomm_ucx_interfaces *host, unsigned char *bytes);
void lcomm_ucx_interfaces_unpack(const unsigned char *bytes, lcomm_ucx_interfaces *host);

/* Entries of a host that may be read, whatever a peer says. */
uint32_t lcomm_ucx_interfaces_count(const lcomm_ucx_interfaces *host);

/* Do two ranks share a network of their host? */
bool lcomm_ucx_interfaces_together(const lcomm_ucx_interfaces *all, int rank, int other);

/* The first rank on another host than `rank` whose host has this address (in
 * network byte order), or -1. */
int lcomm_ucx_interfaces_find(const lcomm_ucx_interfaces *all, int size, int rank,
                              uint32_t address);

/* A comma-separated list of the interfaces of `rank` that are up, wanted, and in a network
 * with every other host; when there is none, of those whose address no other
 * host has, too. "" leaves the choice to UCX: one host, or nothing is known.
 * `devices` has LCOMM_UCX_DEVICES_MAX bytes. */
void lcomm_ucx_devices_select(const lcomm_ucx_interfaces *all, int size, int rank,
                              const lcomm_ucx_names *names, char *devices);

#endif
