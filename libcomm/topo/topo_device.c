/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The devices of ranks, and the link classes that follow from them. What ranks
 * say of their devices comes from peers and may be anything. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/topo/topo_internal.h"

/* ---------------------------------------------------------------- devices */

/* A rank's claim to a device. */
typedef struct claim {
  uint64_t host;
  const lcomm_device_identity *device;
  int rank;
} claim;

static bool is_sane(const lcomm_device_identity *device) {
  if (!lcomm_pci_is_valid(device->pci) || device->peers > LCOMM_DEVICE_PEERS_MAX ||
      device->switched > LCOMM_NVLINKS_MAX || device->index < -1 ||
      device->index > LCOMM_DEVICE_INDEX_MAX) {
    return false;
  }
  for (uint32_t i = 0; i < device->peers; i++) {
    const lcomm_device_peer *peer = &device->peer[i];
    if (!lcomm_pci_is_valid(peer->pci) || peer->nvlinks > LCOMM_NVLINKS_MAX || peer->p2p > 1) {
      return false;
    }
  }
  return true;
}

static int compare_places(const claim *a, uint64_t host, lcomm_pci pci) {
  if (a->host != host) {
    return a->host < host ? -1 : 1;
  }
  return a->device->pci < pci ? -1 : a->device->pci > pci;
}

static int compare_devices(const claim *a, const claim *b) {
  int order = compare_places(a, b->host, b->device->pci);
  return order != 0 ? order : memcmp(a->device->uuid, b->device->uuid, LCOMM_UUID_SIZE);
}

static int by_device_then_rank(const void *left, const void *right) {
  const claim *a = left, *b = right;
  int order = compare_devices(a, b);
  return order != 0 ? order : a->rank < b->rank ? -1 : a->rank > b->rank;
}

static int sort_claims(const lcomm_identity *identities, int size, claim *claims) {
  int count = 0;
  for (int rank = 0; rank < size; rank++) {
    const lcomm_identity *identity = &identities[rank];
    if (is_sane(&identity->device)) {
      claims[count++] = (claim){identity->host_hash, &identity->device, rank};
    }
  }
  qsort(claims, (size_t)count, sizeof *claims, by_device_then_rank);
  return count;
}

static void describe_device(const lcomm_device_identity *from, bool posed, lcomm_topo_device *to) {
  *to =
      (lcomm_topo_device){.pci = from->pci, .index = from->index, .switched = (int)from->switched};
  memcpy(to->uuid, from->uuid, sizeof(to->uuid));
  if (!posed && !lcomm_uuid_is_zero(from->cluster)) {
    memcpy(to->cluster, from->cluster, sizeof(to->cluster));
    to->clique = from->clique;
  }
}

/* Devices are numbered by their lowest rank. */
static void number_devices(const lcomm_identity *identities, const claim *claims, int count,
                           bool posed, lcomm_topo *topo) {
  int *lowest = topo->device; /* of each rank's device, replaced by the device below */
  for (int i = 0, leader = 0; i < count; i++) {
    leader = compare_devices(&claims[i], &claims[leader]) == 0 ? leader : i;
    lowest[claims[i].rank] = claims[leader].rank;
  }
  for (int rank = 0; rank < topo->size; rank++) { /* lowest[rank] <= rank: it has its device */
    if (lowest[rank] == rank) {
      describe_device(&identities[rank].device, posed, &topo->device_list[topo->devices]);
      topo->device[rank] = topo->devices++;
    } else if (lowest[rank] >= 0) {
      topo->device[rank] = topo->device[lowest[rank]];
    }
  }
}

void lcomm_topo_index_devices(lcomm_topo *topo) {
  topo->all_have_devices = true;
  for (int rank = 0; rank < topo->size; rank++) {
    topo->all_have_devices &= topo->device[rank] >= 0;
    if (topo->device[rank] >= 0) {
      topo->device_list[topo->device[rank]].ranks++;
    }
  }
  for (int i = 0, first = 0; i < topo->devices; i++) {
    topo->device_list[i].first = first;
    first += topo->device_list[i].ranks;
    topo->device_list[i].ranks = 0;
  }
  for (int rank = 0; rank < topo->size; rank++) {
    if (topo->device[rank] >= 0) {
      lcomm_topo_device *device = &topo->device_list[topo->device[rank]];
      topo->device_members[device->first + device->ranks++] = rank;
    }
  }
}

/* ------------------------------------------------------------------ pairs */

static int find_claim(const claim *claims, int count, uint64_t host, lcomm_pci pci) {
  int low = 0, high = count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (compare_places(&claims[middle], host, pci) < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low < count && compare_places(&claims[low], host, pci) == 0 ? low : -1;
}

static const lcomm_device_peer *find_peer(const lcomm_device_identity *device, lcomm_pci pci) {
  for (uint32_t i = 0; i < device->peers; i++) {
    if (device->peer[i].pci == pci) {
      return &device->peer[i];
    }
  }
  return NULL;
}

static void add_pair(const claim *claims, int count, const claim *mine,
                     const lcomm_device_peer *peer, lcomm_topo *topo) {
  int found = find_claim(claims, count, mine->host, peer->pci);
  if (found < 0) {
    return;
  }
  int first = topo->device[mine->rank], second = topo->device[claims[found].rank];
  const lcomm_device_peer *back = find_peer(claims[found].device, mine->device->pci);
  if (first >= second || !back) {
    return;
  }
  lcomm_topo_pair pair = {.first = first,
                          .second = second,
                          .nvlinks =
                              (int)(peer->nvlinks < back->nvlinks ? peer->nvlinks : back->nvlinks),
                          .p2p = peer->p2p && back->p2p};
  if (pair.nvlinks > 0 || pair.p2p) {
    topo->pair_list[topo->pairs++] = pair;
  }
}

static int by_devices(const void *left, const void *right) {
  const lcomm_topo_pair *a = left, *b = right;
  return a->first != b->first ? (a->first < b->first ? -1 : 1)
                              : (a->second > b->second) - (a->second < b->second);
}

/* Of two that join the same devices the first stays. */
static void sort_pairs(lcomm_topo *topo) {
  int kept = 0;
  qsort(topo->pair_list, (size_t)topo->pairs, sizeof *topo->pair_list, by_devices);
  for (int i = 0; i < topo->pairs; i++) {
    if (i == 0 || by_devices(&topo->pair_list[i], &topo->pair_list[kept - 1]) != 0) {
      topo->pair_list[kept++] = topo->pair_list[i];
    }
  }
  topo->pairs = kept;
}

static lcomm_status add_pairs(const claim *claims, int count, lcomm_topo *topo) {
  size_t room = 1;
  for (int i = 0; i < count; i++) {
    room += claims[i].device->peers;
  }
  topo->pair_list = calloc(room, sizeof *topo->pair_list);
  if (!topo->pair_list) {
    return LCOMM_ERR_MEMORY;
  }
  for (int i = 0; i < count; i++) {
    bool leads = i == 0 || compare_devices(&claims[i], &claims[i - 1]) != 0;
    for (uint32_t j = 0; leads && j < claims[i].device->peers; j++) {
      add_pair(claims, count, &claims[i], &claims[i].device->peer[j], topo);
    }
  }
  sort_pairs(topo);
  return LCOMM_OK;
}

lcomm_status lcomm_topo_add_devices(const lcomm_identity *identities, bool posed,
                                    lcomm_topo *topo) {
  claim *claims = calloc((size_t)topo->size, sizeof *claims);
  int count = claims ? sort_claims(identities, topo->size, claims) : 0;
  lcomm_status status = claims ? LCOMM_OK : LCOMM_ERR_MEMORY;
  if (count > 0) {
    topo->device_list = calloc((size_t)count, sizeof *topo->device_list);
    status = topo->device_list ? LCOMM_OK : LCOMM_ERR_MEMORY;
  }
  if (status == LCOMM_OK && count > 0) {
    number_devices(identities, claims, count, posed, topo);
    lcomm_topo_index_devices(topo);
    status = add_pairs(claims, count, topo);
  }
  free(claims);
  return status;
}

/* ----------------------------------------------------------- link classes */

static const lcomm_topo_pair *find_pair(const lcomm_topo *topo, int a, int b) {
  lcomm_topo_pair key = {.first = a < b ? a : b, .second = a < b ? b : a};
  return topo->pairs > 0 ? bsearch(&key, topo->pair_list, (size_t)topo->pairs,
                                   sizeof *topo->pair_list, by_devices)
                         : NULL;
}

static bool share_domain(const lcomm_topo *topo, int a, int b) {
  const lcomm_topo_device *one = &topo->device_list[a], *other = &topo->device_list[b];
  return !lcomm_uuid_is_zero(one->cluster) && one->clique == other->clique &&
         memcmp(one->cluster, other->cluster, sizeof(one->cluster)) == 0;
}

static lcomm_link device_link(const lcomm_topo *topo, int a, int b) {
  if (a == b) {
    return LCOMM_LINK_SAME_DEVICE;
  }
  const lcomm_topo_pair *pair = find_pair(topo, a, b);
  bool switched = topo->device_list[a].switched > 0 && topo->device_list[b].switched > 0;
  if (pair && pair->p2p) {
    return pair->nvlinks > 0 || switched ? LCOMM_LINK_NVLINK : LCOMM_LINK_PCIE;
  }
  return share_domain(topo, a, b) ? LCOMM_LINK_NVLINK : LCOMM_LINK_SHM;
}

lcomm_link lcomm_topo_link(const lcomm_topo *topo, int a, int b) {
  if (a == b) {
    return LCOMM_LINK_SELF;
  }
  int mine = topo->device[a], peer = topo->device[b];
  bool have_devices = mine >= 0 && peer >= 0;
  if (topo->node[a] == topo->node[b]) {
    return have_devices ? device_link(topo, mine, peer) : LCOMM_LINK_SHM;
  }
  return have_devices && mine != peer && share_domain(topo, mine, peer) ? LCOMM_LINK_NVLINK
                                                                        : LCOMM_LINK_NET;
}
