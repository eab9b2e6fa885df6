/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A topology as text that loads back. */

#include <string.h>

#include "libcomm/base/writer.h"
#include "libcomm/topo/topo_internal.h"

static void print_node(lcomm_writer *w, const lcomm_topo *topo, int node) {
  const char *host = "";
  lcomm_write(w, "node %d", node);
  for (int local = 0; local < topo->node_size[node]; local++) {
    int rank = lcomm_topo_rank(topo, node, local);
    if (strcmp(host, topo->host[rank]) != 0) {
      host = topo->host[rank];
      lcomm_write(w, " host %s ranks", host);
    }
    lcomm_write(w, " %d", rank);
  }
  lcomm_write(w, "\n");
}

static void print_device(lcomm_writer *w, const lcomm_topo *topo, int number) {
  const lcomm_topo_device *device = &topo->device_list[number];
  char pci[LCOMM_PCI_TEXT_MAX], uuid[LCOMM_UUID_TEXT_MAX];
  lcomm_write(w, "device %d pci %s", number, lcomm_pci_format(device->pci, pci));
  if (!lcomm_uuid_is_zero(device->uuid)) {
    lcomm_write(w, " uuid %s", lcomm_uuid_format(device->uuid, uuid));
  }
  if (device->index >= 0) {
    lcomm_write(w, " index %d", device->index);
  }
  if (device->switched > 0) {
    lcomm_write(w, " switched %d", device->switched);
  }
  if (!lcomm_uuid_is_zero(device->cluster)) {
    lcomm_write(w, " cluster %s clique %u", lcomm_uuid_format(device->cluster, uuid),
                device->clique);
  }
  lcomm_write(w, " ranks");
  for (int i = 0; i < device->ranks; i++) {
    lcomm_write(w, " %d", topo->device_members[device->first + i]);
  }
  lcomm_write(w, "\n");
}

/* All that one device can reach on one line, then its NVLinks. Pairs are
 * sorted, so those of one device are neighbours. */
static int print_pairs(lcomm_writer *w, const lcomm_topo *topo, int begin) {
  const lcomm_topo_pair *pairs = topo->pair_list;
  int end = begin, reached = 0;
  for (; end < topo->pairs && pairs[end].first == pairs[begin].first; end++) {
    if (!pairs[end].p2p) {
      continue;
    }
    if (reached++ == 0) {
      lcomm_write(w, "p2p %d", pairs[end].first);
    }
    lcomm_write(w, " %d", pairs[end].second);
  }
  if (reached > 0) {
    lcomm_write(w, "\n");
  }
  for (int i = begin; i < end; i++) {
    if (pairs[i].nvlinks > 0) {
      lcomm_write(w, "nvlink %d %d links %d\n", pairs[i].first, pairs[i].second, pairs[i].nvlinks);
    }
  }
  return end;
}

static void print_cost(lcomm_writer *w, const lcomm_topo *topo, lcomm_link link) {
  if (topo->cost[link].assumed) {
    return;
  }
  lcomm_write(w, "link %s latency ", lcomm_link_name(link));
  lcomm_write_decimal(w, topo->cost[link].latency_us);
  lcomm_write(w, " us bandwidth ");
  lcomm_write_decimal(w, topo->cost[link].bandwidth_gb_s);
  lcomm_write(w, " GB/s\n");
}

size_t lcomm_topo_print(const lcomm_topo *topo, char *text, size_t size) {
  lcomm_writer w = lcomm_writer_begin(text, size);
  for (int node = 0; node < topo->nodes; node++) {
    print_node(&w, topo, node);
  }
  lcomm_topo_print_racks(&w, &topo->racks);
  for (int device = 0; device < topo->devices; device++) {
    print_device(&w, topo, device);
  }
  for (int next = 0; next < topo->pairs;) {
    next = print_pairs(&w, topo, next);
  }
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    print_cost(&w, topo, (lcomm_link)link);
  }
  return w.length;
}
