/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Racks: made of one name for each node, which ranks say (LCOMM_RACK) or a text does. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/topo/topo_internal.h"

/* ------------------------------------------------------------------ making */

typedef struct named_node {
  const char *name;
  int node;
} named_node;

static int by_name_then_node(const void *left, const void *right) {
  const named_node *a = left, *b = right;
  int order = strcmp(a->name, b->name);
  return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

/* Racks are numbered by their lowest node: of[] is first that node, then the number. */
static void number(lcomm_racks *racks, named_node *order, int nodes) {
  qsort(order, (size_t)nodes, sizeof *order, by_name_then_node);
  for (int i = 0, lowest = 0; i < nodes; i++) {
    lowest = strcmp(order[i].name, order[lowest].name) == 0 ? lowest : i;
    racks->of[order[i].node] = order[lowest].node;
  }
  for (int node = 0; node < nodes; node++) {
    bool is_lowest = racks->of[node] == node;
    racks->of[node] = is_lowest ? racks->count++ : racks->of[racks->of[node]];
  }
}

static void index_racks(lcomm_racks *racks, const char (*names)[LCOMM_RACK_MAX], int nodes) {
  for (int node = 0; node < nodes; node++) {
    int rack = racks->of[node];
    racks->place[node] = racks->first[rack + 1]++;
    if (racks->place[node] == 0) {
      memcpy(racks->name[rack], names[node], LCOMM_RACK_MAX);
    }
  }
  for (int rack = 0; rack < racks->count; rack++) {
    racks->first[rack + 1] += racks->first[rack];
  }
  for (int node = 0; node < nodes; node++) {
    racks->members[racks->first[racks->of[node]] + racks->place[node]] = node;
  }
}

lcomm_status lcomm_racks_make(lcomm_racks *racks, const char (*names)[LCOMM_RACK_MAX], int nodes) {
  size_t n = (size_t)nodes;
  *racks = (lcomm_racks){.of = calloc(n, sizeof *racks->of),
                         .place = calloc(n, sizeof *racks->place),
                         .members = calloc(n, sizeof *racks->members),
                         .first = calloc(n + 1, sizeof *racks->first),
                         .name = calloc(n, sizeof *racks->name)};
  named_node *order = calloc(n, sizeof *order);
  if (!order || !racks->of || !racks->place || !racks->members || !racks->first || !racks->name) {
    free(order);
    lcomm_racks_free(racks);
    return LCOMM_ERR_MEMORY;
  }
  for (int node = 0; node < nodes; node++) {
    order[node] = (named_node){names[node], node};
  }
  number(racks, order, nodes);
  index_racks(racks, names, nodes);
  free(order);
  return LCOMM_OK;
}

void lcomm_racks_free(lcomm_racks *racks) {
  free(racks->of);
  free(racks->place);
  free(racks->members);
  free(racks->first);
  free(racks->name);
  *racks = (lcomm_racks){0};
}

/* --------------------------------------------------------- from identities */

/* The first rank that names a rack, or none, where rank 0 does not; -1: all do as rank 0 does. */
static int find_other(const lcomm_identity *identities, int size) {
  for (int rank = 1; rank < size; rank++) {
    if ((identities[rank].rack[0] == '\0') != (identities[0].rack[0] == '\0')) {
      return rank;
    }
  }
  return -1;
}

static lcomm_status differ(const char *one, const char *other, int first, int rank, int node,
                           lcomm_why *error) {
  return lcomm_why_set(error, LCOMM_ERR_ARGUMENT,
                       "ranks %d and %d are on node %d, but LCOMM_RACK names rack %s of one and %s "
                       "of the other; all ranks of a node are in one rack",
                       first, rank, node, one, other);
}

/* The name that all ranks of each node say. */
static lcomm_status name_nodes(const lcomm_identity *identities, const lcomm_topo *topo,
                               char (*names)[LCOMM_RACK_MAX], lcomm_why *error) {
  char name[LCOMM_RACK_MAX];
  for (int rank = 0; rank < topo->size; rank++) {
    int node = topo->node[rank], first = topo->members[topo->first[node]];
    lcomm_rack_copy(name, identities[rank].rack, sizeof identities[rank].rack);
    if (rank == first) {
      memcpy(names[node], name, LCOMM_RACK_MAX);
    } else if (strcmp(names[node], name) != 0) {
      return differ(names[node], name, first, rank, node, error);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_topo_add_racks(const lcomm_identity *identities, lcomm_topo *topo,
                                  lcomm_why *error) {
  int other = find_other(identities, topo->size);
  bool first_names = identities[0].rack[0] != '\0';
  if (other >= 0) {
    return lcomm_why_set(error, LCOMM_ERR_ARGUMENT,
                         "rank %d names its rack (LCOMM_RACK), rank %d does not; set LCOMM_RACK on "
                         "all ranks or on none",
                         first_names ? 0 : other, first_names ? other : 0);
  }
  if (!first_names) {
    return LCOMM_OK;
  }
  char(*names)[LCOMM_RACK_MAX] = calloc((size_t)topo->nodes, sizeof *names);
  lcomm_status status = names ? name_nodes(identities, topo, names, error) : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    status = lcomm_racks_make(&topo->racks, (const char(*)[LCOMM_RACK_MAX])names, topo->nodes);
  }
  free(names);
  return status == LCOMM_ERR_MEMORY
             ? lcomm_why_set(error, status, "topology: no memory for the racks of %d nodes",
                             topo->nodes)
             : status;
}

/* ----------------------------------------------------------------- looking */

int lcomm_racks_smallest(const lcomm_racks *racks) {
  int smallest = racks->count > 0 ? lcomm_rack_size(racks, 0) : 0;
  for (int rack = 1; rack < racks->count; rack++) {
    int size = lcomm_rack_size(racks, rack);
    smallest = size < smallest ? size : smallest;
  }
  return smallest;
}

int lcomm_racks_largest(const lcomm_racks *racks) {
  int largest = 0;
  for (int rack = 0; rack < racks->count; rack++) {
    int size = lcomm_rack_size(racks, rack);
    largest = size > largest ? size : largest;
  }
  return largest;
}

bool lcomm_topo_shares_rack(const lcomm_topo *topo, int a, int b) {
  int one = topo->node[a], other = topo->node[b];
  return topo->racks.count > 0 && one != other && topo->racks.of[one] == topo->racks.of[other];
}
