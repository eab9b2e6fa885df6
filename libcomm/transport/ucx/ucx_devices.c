/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/transport/ucx/ucx_devices.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "codecs/little_endian.h"
#include "libcomm/topo/sysfs.h"

typedef lcomm_ucx_interfaces interfaces;

/* The loop-back interface under the name it has on Linux: UCX tells by itself
 * whether a peer is behind it. */
#define LOOPBACK "lo"

static bool has_address_of_network(const struct ifaddrs *it) {
  return it->ifa_addr && it->ifa_netmask && it->ifa_addr->sa_family == AF_INET &&
         !(it->ifa_flags & IFF_LOOPBACK);
}

static bool is_running(const struct ifaddrs *it) {
  unsigned wanted = IFF_UP | IFF_RUNNING;
  return (it->ifa_flags & wanted) == wanted;
}

static uint32_t address_in(const struct sockaddr *address) {
  struct sockaddr_in in;
  memcpy(&in, address, sizeof(in));
  return in.sin_addr.s_addr;
}

static void add(const struct ifaddrs *it, interfaces *own, lcomm_ucx_names *names) {
  uint32_t i = own->count++, bit = UINT32_C(1) << i;
  /* "eth0:1" is a second address of eth0 */
  int length = (int)strcspn(it->ifa_name, ":");
  snprintf(names->of[i], sizeof(names->of[0]), "%.*s", length, it->ifa_name);
  lcomm_nic nic;
  lcomm_sysfs_interface(LCOMM_SYSFS_ROOT, names->of[i], &nic);
  int node = nic.place.numa_node;
  own->entries[i].address = address_in(it->ifa_addr);
  own->entries[i].mask = address_in(it->ifa_netmask);
  own->entries[i].speed_mbit_s =
      nic.speed_mbit_s > 0 && nic.speed_mbit_s <= UINT32_MAX ? (uint32_t)nic.speed_mbit_s : 0;
  own->down |= is_running(it) ? 0 : bit;
  own->near |= node < 0 || lcomm_sysfs_runs_on(LCOMM_SYSFS_ROOT, node) ? bit : 0;
}

static void add_all(const struct ifaddrs *list, bool running, interfaces *own,
                    lcomm_ucx_names *names) {
  for (const struct ifaddrs *it = list; it && own->count < LCOMM_UCX_INTERFACES_MAX;
       it = it->ifa_next) {
    if (has_address_of_network(it) && is_running(it) == running) {
      add(it, own, names);
    }
  }
}

void lcomm_ucx_interfaces_own(interfaces *own, lcomm_ucx_names *names) {
  struct ifaddrs *list = NULL;
  memset(own, 0, sizeof *own);
  memset(names, 0, sizeof *names);
  if (getifaddrs(&list) != 0) {
    return;
  }
  add_all(list, true, own, names);
  add_all(list, false, own, names);
  freeifaddrs(list);
}

/* ---------------------------------------------------------------- travelling */

enum {
  COUNT_AT,
  ASKED_AT,
  DOWN_AT,
  UNWANTED_AT = 6,
  BROKEN_AT = 10,
  NEAR_AT = 14,
  ENTRIES_AT = 18
};
enum { PREFIX_AT = 4, SPEED_AT = 5, ENTRY_SIZE = 7, HUNDREDS = 0x8000 };

/* Two bytes: Mbit/s, or from 32 Gbit/s on hundreds of them. */
static uint32_t pack_speed(uint32_t speed_mbit_s) {
  uint32_t hundreds = speed_mbit_s / 100;
  uint32_t most = hundreds < HUNDREDS ? hundreds : HUNDREDS - 1;
  return speed_mbit_s < HUNDREDS ? speed_mbit_s : HUNDREDS | most;
}

static uint32_t unpack_speed(uint32_t packed) {
  return packed < HUNDREDS ? packed : 100 * (packed - HUNDREDS);
}

void lcomm_ucx_interfaces_pack(const interfaces *host, unsigned char *bytes) {
  memset(bytes, 0, LCOMM_UCX_INTERFACES_SIZE);
  bytes[COUNT_AT] = (unsigned char)lcomm_ucx_interfaces_count(host);
  bytes[ASKED_AT] = (unsigned char)host->asked;
  lcomm_le_put(bytes + DOWN_AT, host->down, 4);
  lcomm_le_put(bytes + UNWANTED_AT, host->unwanted, 4);
  lcomm_le_put(bytes + BROKEN_AT, host->broken, 4);
  lcomm_le_put(bytes + NEAR_AT, host->near, 4);
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(host); i++) {
    unsigned char *entry = bytes + ENTRIES_AT + (size_t)i * ENTRY_SIZE;
    memcpy(entry, &host->entries[i].address, 4);
    entry[PREFIX_AT] = (unsigned char)__builtin_popcount(host->entries[i].mask);
    lcomm_le_put(entry + SPEED_AT, pack_speed(host->entries[i].speed_mbit_s), 2);
  }
}

void lcomm_ucx_interfaces_unpack(const unsigned char *bytes, interfaces *host) {
  memset(host, 0, sizeof *host);
  host->count = bytes[COUNT_AT];
  host->count = lcomm_ucx_interfaces_count(host);
  host->asked = bytes[ASKED_AT];
  host->down = (uint32_t)lcomm_le_get(bytes + DOWN_AT, 4);
  host->unwanted = (uint32_t)lcomm_le_get(bytes + UNWANTED_AT, 4);
  host->broken = (uint32_t)lcomm_le_get(bytes + BROKEN_AT, 4);
  host->near = (uint32_t)lcomm_le_get(bytes + NEAR_AT, 4);
  for (uint32_t i = 0; i < host->count; i++) {
    const unsigned char *entry = bytes + ENTRIES_AT + (size_t)i * ENTRY_SIZE;
    unsigned length = entry[PREFIX_AT] < 32 ? entry[PREFIX_AT] : 32;
    memcpy(&host->entries[i].address, entry, 4);
    host->entries[i].mask = htonl(length == 0 ? 0 : UINT32_MAX << (32 - length));
    host->entries[i].speed_mbit_s = unpack_speed((uint32_t)lcomm_le_get(entry + SPEED_AT, 2));
  }
}

/* ------------------------------------------------------------------ choosing */

uint32_t lcomm_ucx_interfaces_count(const interfaces *host) {
  return host->count < LCOMM_UCX_INTERFACES_MAX ? host->count : LCOMM_UCX_INTERFACES_MAX;
}

static bool has_address(const interfaces *host, uint32_t address) {
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(host); i++) {
    if (host->entries[i].address == address) {
      return true;
    }
  }
  return false;
}

bool lcomm_ucx_interfaces_together(const interfaces *all, int rank, int other) {
  const interfaces *a = &all[rank], *b = &all[other];
  if (rank == other || a->count != b->count) {
    return rank == other;
  }
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(a); i++) {
    if (a->entries[i].address != b->entries[i].address ||
        a->entries[i].mask != b->entries[i].mask) {
      return false;
    }
  }
  return true;
}

int lcomm_ucx_interfaces_find(const interfaces *all, int size, int rank, uint32_t address) {
  for (int other = 0; other < size; other++) {
    if (!lcomm_ucx_interfaces_together(all, rank, other) && has_address(&all[other], address)) {
      return other;
    }
  }
  return -1;
}

static bool is_up(const interfaces *host, uint32_t entry) {
  return (host->down >> entry & 1) == 0;
}

/* Does the host have another address in this network, and is it up? */
static bool is_in_network(const interfaces *host, uint32_t address, uint32_t mask) {
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(host); i++) {
    bool inside = ((host->entries[i].address ^ address) & mask) == 0;
    if (inside && host->entries[i].address != address && is_up(host, i)) {
      return true;
    }
  }
  return false;
}

typedef enum rule { IN_ALL_NETWORKS, UNIQUE_ADDRESS } rule;

static bool passes(rule by, const interfaces *all, int size, int rank, uint32_t entry) {
  uint32_t address = all[rank].entries[entry].address, mask = all[rank].entries[entry].mask;
  for (int other = 0; is_up(&all[rank], entry) && other < size; other++) {
    if (lcomm_ucx_interfaces_together(all, rank, other)) {
      continue;
    }
    if (has_address(&all[other], address) ||
        (by == IN_ALL_NETWORKS && !is_in_network(&all[other], address, mask))) {
      return false;
    }
  }
  return is_up(&all[rank], entry);
}

static bool has_other_hosts(const interfaces *all, int size, int rank) {
  for (int other = 0; other < size; other++) {
    if (!lcomm_ucx_interfaces_together(all, rank, other)) {
      return true;
    }
  }
  return false;
}

/* Those that pass, then the loop-back; "" when none passes. */
static void list_by(rule by, const interfaces *all, int size, int rank,
                    const lcomm_ucx_names *names, char *devices) {
  size_t used = 0;
  devices[0] = '\0';
  for (uint32_t i = 0; i < lcomm_ucx_interfaces_count(&all[rank]); i++) {
    bool wanted = (all[rank].unwanted >> i & 1) == 0;
    if (wanted && passes(by, all, size, rank, i) && used + 64 < LCOMM_UCX_DEVICES_MAX) {
      used += (size_t)snprintf(devices + used, LCOMM_UCX_DEVICES_MAX - used, "%s,", names->of[i]);
    }
  }
  if (used > 0) {
    snprintf(devices + used, LCOMM_UCX_DEVICES_MAX - used, "%s", LOOPBACK);
  }
}

void lcomm_ucx_devices_select(const interfaces *all, int size, int rank,
                              const lcomm_ucx_names *names, char *devices) {
  devices[0] = '\0';
  if (!has_other_hosts(all, size, rank)) {
    bool known = all[rank].count > 0; /* else a host without IPv4 is like all others */
    snprintf(devices, LCOMM_UCX_DEVICES_MAX, "%s", known ? LOOPBACK : "");
    return;
  }
  list_by(IN_ALL_NETWORKS, all, size, rank, names, devices);
  if (devices[0] == '\0') {
    list_by(UNIQUE_ADDRESS, all, size, rank, names, devices);
  }
}
