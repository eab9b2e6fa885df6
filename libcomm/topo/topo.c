/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/topo/topo_internal.h"

/* Measured on no machine in particular: what processors, PCIe of the fourth
 * generation, NVLink of the third and 25 Gbit/s Ethernet are expected to do with
 * one message. */
lcomm_link_cost lcomm_link_cost_assumed(lcomm_link link) {
  static const lcomm_link_cost assumed[LCOMM_LINK_COUNT] = {
      [LCOMM_LINK_SELF] = {0.1, 10, true, 0},  [LCOMM_LINK_SAME_DEVICE] = {5, 1000, true, 0},
      [LCOMM_LINK_NVLINK] = {5, 200, true, 0}, [LCOMM_LINK_PCIE] = {8, 20, true, 0},
      [LCOMM_LINK_SHM] = {0.5, 8, true, 0},    [LCOMM_LINK_NET] = {20, 3, true, 0},
  };
  return (unsigned)link < LCOMM_LINK_COUNT ? assumed[link] : assumed[LCOMM_LINK_NET];
}

static bool is_reserved(const lcomm_topo *topo) {
  return topo->node && topo->local && topo->node_size && topo->members && topo->first &&
         topo->host && topo->device && topo->device_members;
}

lcomm_status lcomm_topo_reserve(lcomm_topo *topo, int size) {
  size_t n = (size_t)size;
  *topo = (lcomm_topo){.size = size};
  topo->node = calloc(n, sizeof *topo->node);
  topo->local = calloc(n, sizeof *topo->local);
  topo->node_size = calloc(n, sizeof *topo->node_size);
  topo->members = calloc(n, sizeof *topo->members);
  topo->first = calloc(n + 1, sizeof *topo->first);
  topo->host = calloc(n, sizeof *topo->host);
  topo->device = calloc(n, sizeof *topo->device);
  topo->device_members = calloc(n, sizeof *topo->device_members);
  if (!is_reserved(topo)) {
    lcomm_topo_free(topo);
    return LCOMM_ERR_MEMORY;
  }
  for (int rank = 0; rank < size; rank++) {
    topo->device[rank] = -1;
  }
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    topo->cost[link] = lcomm_link_cost_assumed((lcomm_link)link);
  }
  topo->hidden_from = LCOMM_AUTO_CODECS;
  return LCOMM_OK;
}

void lcomm_topo_free(lcomm_topo *topo) {
  if (!topo) {
    return;
  }
  free(topo->node);
  free(topo->local);
  free(topo->node_size);
  free(topo->members);
  free(topo->first);
  free(topo->host);
  free(topo->device);
  free(topo->device_members);
  free(topo->device_list);
  free(topo->pair_list);
  lcomm_racks_free(&topo->racks);
  *topo = (lcomm_topo){0};
}

void lcomm_topo_index(lcomm_topo *topo) {
  for (int rank = 0; rank < topo->size; rank++) {
    topo->local[rank] = topo->node_size[topo->node[rank]]++;
  }
  for (int node = 0; node < topo->nodes; node++) {
    topo->first[node + 1] = topo->first[node] + topo->node_size[node];
  }
  for (int rank = 0; rank < topo->size; rank++) {
    topo->members[topo->first[topo->node[rank]] + topo->local[rank]] = rank;
  }
}

typedef struct host_of_rank {
  uint64_t hash;
  int rank;
} host_of_rank;

static int by_hash_then_rank(const void *left, const void *right) {
  const host_of_rank *a = left, *b = right;
  if (a->hash != b->hash) {
    return a->hash < b->hash ? -1 : 1;
  }
  return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Ranks with the same hash form a node. In `order`, room for all ranks, they
 * become neighbours, the lowest rank first. */
static void group_by_host(const lcomm_identity *identities, host_of_rank *order, lcomm_topo *topo) {
  for (int rank = 0; rank < topo->size; rank++) {
    order[rank] = (host_of_rank){identities[rank].host_hash, rank};
  }
  qsort(order, (size_t)topo->size, sizeof *order, by_hash_then_rank);

  int *lowest = topo->node; /* of each rank's host, replaced by the node below */
  for (int i = 0, leader = 0; i < topo->size; i++) {
    if (order[i].hash != order[leader].hash) {
      leader = i;
    }
    lowest[order[i].rank] = order[leader].rank;
  }
  for (int rank = 0; rank < topo->size;
       rank++) { /* lowest[rank] <= rank: it has its node already */
    topo->node[rank] = lowest[rank] == rank ? topo->nodes++ : topo->node[lowest[rank]];
  }
}

static void cut_into_nodes(int nodes, lcomm_topo *topo) {
  int length = topo->size / nodes, longer = topo->size % nodes;
  int rank = 0;
  for (int node = 0; node < nodes; node++) {
    int end = rank + length + (node < longer);
    while (rank < end) {
      topo->node[rank++] = node;
    }
  }
  topo->nodes = nodes;
}

static lcomm_status no_memory(int size, lcomm_why *error) {
  return lcomm_why_set(
      error, LCOMM_ERR_MEMORY,
      "topology: no memory for the tables of %d ranks; free some memory on this host", size);
}

static lcomm_status check_numbers(int size, int forced_nodes, lcomm_why *error) {
  if (size <= 0) {
    return lcomm_why_set(error, LCOMM_ERR_ARGUMENT,
                         "topology: %d ranks cannot form a communicator; use at least 1", size);
  }
  if (forced_nodes < 0) {
    return lcomm_why_set(
        error, LCOMM_ERR_ARGUMENT,
        "LCOMM_NODES=%d is no number of nodes; use 1 to %d, or 0 for the real hosts", forced_nodes,
        size);
  }
  if (forced_nodes > size) {
    int empty = forced_nodes - size;
    return lcomm_why_set(error, LCOMM_ERR_ARGUMENT,
                         "LCOMM_NODES=%d with %d %s would leave %d %s without a rank; use 1 to %d",
                         forced_nodes, size, size == 1 ? "rank" : "ranks", empty,
                         empty == 1 ? "node" : "nodes", size);
  }
  return LCOMM_OK;
}

lcomm_status lcomm_topo_create(const lcomm_identity *identities, int size, int forced_nodes,
                               lcomm_topo *topo, lcomm_why *error) {
  *topo = (lcomm_topo){0};
  error->text[0] = '\0';
  LCOMM_TRY(check_numbers(size, forced_nodes, error));
  host_of_rank *order = calloc((size_t)size, sizeof *order);
  if (!order || lcomm_topo_reserve(topo, size) != LCOMM_OK) {
    free(order);
    return no_memory(size, error);
  }
  if (forced_nodes > 0) {
    cut_into_nodes(forced_nodes, topo);
  } else {
    group_by_host(identities, order, topo);
  }
  free(order);
  for (int rank = 0; rank < size; rank++) {
    lcomm_host_copy(topo->host[rank], identities[rank].host, sizeof identities[rank].host);
  }
  lcomm_topo_index(topo);
  lcomm_status status = lcomm_topo_add_racks(identities, topo, error);
  if (status != LCOMM_OK) {
    lcomm_topo_free(topo);
    return status;
  }
  status = lcomm_topo_add_devices(identities, forced_nodes > 0, topo);
  if (status != LCOMM_OK) {
    lcomm_topo_free(topo);
    return no_memory(size, error);
  }
  return LCOMM_OK;
}

int lcomm_topo_rank(const lcomm_topo *topo, int node, int local) {
  return topo->members[topo->first[node] + local];
}

lcomm_group lcomm_topo_node_group(const lcomm_topo *topo, int node, int rank) {
  lcomm_group group = {topo->members + topo->first[node], topo->node_size[node], -1};
  if (rank >= 0 && rank < topo->size && topo->node[rank] == node) {
    group.me = topo->local[rank];
  }
  return group;
}
