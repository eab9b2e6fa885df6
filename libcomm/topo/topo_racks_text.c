/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Racks in the text form of a topology, and what a run takes of them:
 *
 *   rack r07 nodes 0 1
 *   rack r08 nodes 2 3
 *
 * Every node stands in one of these lines, or there are none.
 */

#include <stdlib.h>
#include <string.h>

#include "libcomm/topo/topo_file.h"
#include "libcomm/topo/topo_read.h"

/* ----------------------------------------------------------------- reading */

static lcomm_status no_memory(const lcomm_topo_reader *r) {
  return lcomm_why_set(r->error, LCOMM_ERR_MEMORY,
                       "topology, line %d: no memory for the racks; free some memory on this host",
                       r->line);
}

static lcomm_status load_name(lcomm_topo_reader *r, char rack[LCOMM_RACK_MAX]) {
  lcomm_topo_word name = lcomm_topo_next(r);
  if (name.length == 0) {
    return lcomm_topo_unexpected(r, name, "the name of a rack");
  }
  if (name.length >= LCOMM_RACK_MAX) {
    return lcomm_topo_wrong(r, "a rack's name of %zu bytes is too long; use at most %d",
                            name.length, LCOMM_RACK_MAX - 1);
  }
  lcomm_rack_copy(rack, name.text, name.length);
  if (memcmp(rack, name.text, name.length) != 0) {
    return lcomm_topo_wrong(r, "rack '%s' has bytes that are not visible ASCII; use another name",
                            rack);
  }
  return lcomm_topo_expect(r, "nodes");
}

lcomm_status lcomm_topo_load_rack(lcomm_topo_reader *r, lcomm_topo *topo) {
  char name[LCOMM_RACK_MAX];
  r->example = "rack r07 nodes 0 1";
  r->racks = r->racks ? r->racks : calloc((size_t)topo->nodes, sizeof *r->racks);
  if (!r->racks) {
    return no_memory(r);
  }
  LCOMM_TRY(load_name(r, name));
  for (int count = 0;; count++) {
    lcomm_topo_word w = lcomm_topo_next(r);
    if (w.length == 0 && count > 0) {
      return LCOMM_OK;
    }
    int node = lcomm_topo_word_number(w, topo->nodes);
    if (node < 0) {
      return lcomm_topo_unexpected(r, w, "a node that was listed");
    }
    if (r->racks[node][0] != '\0') {
      return lcomm_topo_wrong(r, "node %d is already in rack %s; list every node once", node,
                              r->racks[node]);
    }
    memcpy(r->racks[node], name, LCOMM_RACK_MAX);
  }
}

lcomm_status lcomm_topo_end_racks(lcomm_topo_reader *r, lcomm_topo *topo) {
  for (int node = 0; r->racks && node < topo->nodes; node++) {
    if (r->racks[node][0] == '\0') {
      return lcomm_topo_wrong(r, "node %d is in no rack; list every node, or no rack", node);
    }
  }
  if (r->racks && lcomm_racks_make(&topo->racks, (const char(*)[LCOMM_RACK_MAX])r->racks,
                                   topo->nodes) != LCOMM_OK) {
    return no_memory(r);
  }
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- printing */

void lcomm_topo_print_racks(lcomm_writer *w, const lcomm_racks *racks) {
  for (int rack = 0; rack < racks->count; rack++) {
    lcomm_write(w, "rack %s nodes", racks->name[rack]);
    for (int i = racks->first[rack]; i < racks->first[rack + 1]; i++) {
      lcomm_write(w, " %d", racks->members[i]);
    }
    lcomm_write(w, "\n");
  }
}

/* ------------------------------------------------------------------ taking */

typedef struct racked_host {
  const char *host, *rack;
} racked_host;

static int by_host(const void *left, const void *right) {
  const racked_host *a = left, *b = right;
  int order = strcmp(a->host, b->host);
  return order != 0 ? order : strcmp(a->rack, b->rack);
}

/* The hosts of a file, sorted. */
static racked_host *list_hosts(const lcomm_topo *file) {
  racked_host *hosts = calloc((size_t)file->size, sizeof *hosts);
  for (int rank = 0; hosts && rank < file->size; rank++) {
    int rack = file->racks.of[file->node[rank]];
    hosts[rank] = (racked_host){file->host[rank], file->racks.name[rack]};
  }
  if (hosts) {
    qsort(hosts, (size_t)file->size, sizeof *hosts, by_host);
  }
  return hosts;
}

/* The rack of a host; NULL where the file has no such host, or has it in several racks. */
static const char *rack_of(const racked_host *hosts, int count, const char *host) {
  int low = 0, high = count;
  while (low < high) {
    int middle = low + (high - low) / 2;
    bool before = strcmp(hosts[middle].host, host) < 0;
    low = before ? middle + 1 : low;
    high = before ? high : middle;
  }
  const char *rack = low < count && strcmp(hosts[low].host, host) == 0 ? hosts[low].rack : NULL;
  for (int i = low; rack && i < count && strcmp(hosts[i].host, host) == 0; i++) {
    rack = strcmp(hosts[i].rack, rack) == 0 ? rack : NULL;
  }
  return rack;
}

/* All ranks of a node must have hosts of one rack. */
static bool name_nodes(const racked_host *hosts, int count, const lcomm_topo *topo,
                       char (*names)[LCOMM_RACK_MAX]) {
  for (int rank = 0; rank < topo->size; rank++) {
    char *name = names[topo->node[rank]];
    const char *rack = rack_of(hosts, count, topo->host[rank]);
    if (!rack || (name[0] != '\0' && strcmp(name, rack) != 0)) {
      return false;
    }
    lcomm_rack_copy(name, rack, strlen(rack));
  }
  return true;
}

bool lcomm_topo_take_racks(lcomm_topo *topo, const lcomm_topo *file) {
  if (file->size == 0 || file->racks.count == 0 || topo->racks.count > 0) {
    return false;
  }
  racked_host *hosts = list_hosts(file);
  char(*names)[LCOMM_RACK_MAX] = calloc((size_t)topo->nodes, sizeof *names);
  bool taken =
      hosts && names && name_nodes(hosts, file->size, topo, names) &&
      lcomm_racks_make(&topo->racks, (const char(*)[LCOMM_RACK_MAX])names, topo->nodes) == LCOMM_OK;
  free(hosts);
  free(names);
  return taken;
}
