/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/support/target_topo.h"

#include "libcomm/topo/topo.h"
#include "tests/support/fuzz_promise.h"

static char *text_of(const uint8_t *data, size_t size) {
  char *text = fuzz_allocate(size + 1);
  if (size > 0) {
    memcpy(text, data, size);
  }
  return text;
}

static bool is_printable(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text < 0x20 || *text >= 0x7f) {
      return false;
    }
  }
  return true;
}

static char *print_topo(const lcomm_topo *topo) {
  size_t size = lcomm_topo_print(topo, NULL, 0) + 1;
  char *text = fuzz_allocate(size);
  fuzz_require(lcomm_topo_print(topo, text, size) == size - 1, "print knows its length");
  fuzz_require(strlen(text) == size - 1, "print fills its length");
  return text;
}

static void check_link(const lcomm_topo *topo, const lcomm_topo *loaded, int a, int b) {
  lcomm_link link = lcomm_topo_link(topo, a, b);
  fuzz_require(link == lcomm_topo_link(topo, b, a), "a link is the same from both ends");
  fuzz_require(link == lcomm_topo_link(loaded, a, b), "link classes survive their text");
  fuzz_require((link == LCOMM_LINK_SELF) == (a == b), "self is a rank with itself");
  fuzz_require(topo->node[a] == topo->node[b] ? link != LCOMM_LINK_NET
                                              : link == LCOMM_LINK_NET || link == LCOMM_LINK_NVLINK,
               "only nvlink is both inside nodes and between them");
}

static void check_links(const lcomm_topo *topo, const lcomm_topo *loaded) {
  enum { LOOKED_AT = 32 };
  for (int a = 0; a < topo->size && a < LOOKED_AT; a++) {
    for (int b = 0; b < topo->size && b < LOOKED_AT; b++) {
      check_link(topo, loaded, a, b);
    }
  }
  for (int rank = 0; rank < topo->size; rank++) {
    fuzz_require(topo->device[rank] == loaded->device[rank] && topo->device[rank] >= -1 &&
                     topo->device[rank] < topo->devices,
                 "the device of every rank survives its text");
  }
  for (int i = 0; i < topo->devices; i++) {
    fuzz_require(topo->device_list[i].ranks > 0 && lcomm_pci_is_valid(topo->device_list[i].pci),
                 "every device has a name and a rank");
  }
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    fuzz_require(topo->cost[link].bandwidth_gb_s > 0 && topo->cost[link].latency_us >= 0 &&
                     topo->cost[link].bandwidth_gb_s == loaded->cost[link].bandwidth_gb_s &&
                     topo->cost[link].latency_us == loaded->cost[link].latency_us,
                 "costs make sense and survive their text");
  }
}

static void check_racks(const lcomm_topo *topo, const lcomm_topo *loaded) {
  const lcomm_racks *racks = &topo->racks;
  fuzz_require(racks->count == loaded->racks.count, "racks survive their text");
  for (int rack = 0; rack < racks->count; rack++) {
    fuzz_require(lcomm_rack_size(racks, rack) > 0 && racks->name[rack][0] != '\0' &&
                     strcmp(racks->name[rack], loaded->racks.name[rack]) == 0,
                 "every rack has a name and a node");
  }
  for (int node = 0; racks->count > 0 && node < topo->nodes; node++) {
    int rack = racks->of[node];
    fuzz_require(rack == loaded->racks.of[node] &&
                     racks->members[racks->first[rack] + racks->place[node]] == node,
                 "every node has its place in a rack");
  }
}

static void check_matrix(const lcomm_topo *topo) {
  size_t size = lcomm_topo_matrix(topo, NULL, 0) + 1;
  char *text = fuzz_allocate(size);
  fuzz_require(lcomm_topo_matrix(topo, text, size) == size - 1, "the matrix knows its length");
  for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
    fuzz_require(*line == '#' && strchr(line, '\n') != NULL, "a matrix is lines for people");
  }
  free(text);
}

static void check_topo(const lcomm_topo *topo) {
  lcomm_why error;
  lcomm_topo loaded;
  char *text = print_topo(topo);
  check_matrix(topo);
  fuzz_require(lcomm_topo_load(text, &loaded, &error) == LCOMM_OK, "printed topologies load");
  char *again = print_topo(&loaded);
  fuzz_require(strcmp(text, again) == 0, "printed topologies print the same again");
  fuzz_require(topo->size == loaded.size && topo->nodes == loaded.nodes,
               "sizes survive their text");
  for (int rank = 0; rank < topo->size; rank++) {
    fuzz_require(topo->node[rank] == loaded.node[rank] &&
                     memcmp(topo->host[rank], loaded.host[rank], LCOMM_HOST_MAX) == 0,
                 "the place of every rank survives its text");
  }
  check_links(topo, &loaded);
  check_racks(topo, &loaded);
  for (int node = 0; node < topo->nodes; node++) {
    lcomm_group group = lcomm_topo_node_group(topo, node, lcomm_topo_rank(topo, node, 0));
    fuzz_require(group.size > 0 && group.me == 0, "every node has a first rank");
    fuzz_require(lcomm_topo_link(topo, group.ranks[0], group.ranks[group.size - 1]) !=
                     LCOMM_LINK_NET,
                 "no network inside a node");
  }
  free(text);
  free(again);
  lcomm_topo_free(&loaded);
}

static void load_text(const uint8_t *data, size_t size) {
  char *text = text_of(data, size);
  lcomm_why error;
  lcomm_topo topo;
  if (lcomm_topo_load(text, &topo, &error) == LCOMM_OK) {
    check_topo(&topo);
  } else {
    fuzz_require(strncmp(error.text, "topology, line ", 15) == 0,
                 "a topology error names its line");
    fuzz_require(is_printable(error.text), "a topology error is printable");
  }
  lcomm_topo_free(&topo);
  free(text);
}

/* Names that any bytes would never hit: few hosts, few devices, few numbers. */
static void make_likely(lcomm_identity *identity, int rank) {
  lcomm_device_identity *device = &identity->device;
  identity->host_hash %= 8;
  if (rank % 4 == 3) {
    return;
  }
  device->pci = device->pci % 8 + lcomm_pci_parse("0:1:0.0", 7);
  memset(device->uuid + 1, 0, sizeof device->uuid - 1);
  memset(device->cluster + 1, 0, sizeof device->cluster - 1);
  device->clique %= 2;
  device->index %= LCOMM_DEVICE_INDEX_MAX;
  device->switched %= 4;
  device->peers %= LCOMM_DEVICE_PEERS_MAX + 2;
  for (int i = 0; i < LCOMM_DEVICE_PEERS_MAX; i++) {
    lcomm_device_peer *peer = &device->peer[i];
    peer->pci = peer->pci % 8 + lcomm_pci_parse("0:1:0.0", 7);
    peer->nvlinks %= 4;
    peer->p2p %= rank == 0 ? 3 : 2;
  }
}

/* Few racks, and hosts that are each in one; or none. */
static void name_rack(lcomm_identity *identity, bool has_one) {
  memset(identity->rack, 0, sizeof identity->rack);
  identity->rack[0] = (char)(has_one ? 'a' + identity->host_hash % 3 : 0);
}

/* Byte 0: ranks, byte 1: forced nodes, byte 2: odd for likely identities, in racks by bit 1, then
 * what peers say of themselves, over and over. */
static void create_from_peers(const uint8_t *data, size_t size) {
  enum { RANKS = 32 };
  lcomm_identity identities[RANKS];
  lcomm_why error;
  lcomm_topo topo;
  if (size < 4) {
    return;
  }
  int ranks = data[0] % (RANKS + 1), forced_nodes = (int8_t)data[1] / 4;
  uint8_t *bytes = (uint8_t *)identities;
  for (size_t i = 0; i < sizeof identities; i++) {
    bytes[i] = data[3 + i % (size - 3)];
  }
  for (int rank = 0; rank < ranks; rank++) {
    identities[rank].host_hash %= 8; /* so that hosts repeat */
    if (data[2] % 2 == 1) {
      make_likely(&identities[rank], rank);
      name_rack(&identities[rank], data[2] & 2);
    }
  }
  if (lcomm_topo_create(identities, ranks, forced_nodes, &topo, &error) == LCOMM_OK) {
    check_topo(&topo);
  } else {
    fuzz_require(is_printable(error.text) && error.text[0] != '\0',
                 "a topology error is a sentence");
  }
  lcomm_topo_free(&topo);
}

void lcomm_fuzz_topo(const uint8_t *data, size_t size) {
  load_text(data, size);
  create_from_peers(data, size);
}
