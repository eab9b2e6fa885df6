/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The text form of a topology: first a line for each node,
 *
 *   node 0 host alpha ranks 0 1 2 3
 *   node 1 host beta ranks 4 5 host gamma ranks 6 7
 *
 * of which the second is a node whose ranks live on two hosts, as LCOMM_NODES
 * can make it; then racks (topo_racks_text.c), and what is known of devices and links
 * (topo_more.c). Lines that begin with '#' are for people. A loaded text comes from a file and may
 * hold anything.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/error.h"
#include "libcomm/topo/topo_read.h"

/* NAME ranks, after the word host. */
static lcomm_status load_host(lcomm_topo_reader *r, char host[LCOMM_HOST_MAX]) {
  lcomm_topo_word name = lcomm_topo_next(r);
  if (name.length == 0) {
    return lcomm_topo_unexpected(r, name, "a host name");
  }
  if (name.length >= LCOMM_HOST_MAX) {
    return lcomm_topo_wrong(r, "a host name of %zu bytes is too long; use at most %d", name.length,
                            LCOMM_HOST_MAX - 1);
  }
  lcomm_host_copy(host, name.text, name.length);
  if (memcmp(host, name.text, name.length) != 0) {
    return lcomm_topo_wrong(
        r, "host name '%s' has bytes that are not visible ASCII; use another name", host);
  }
  return lcomm_topo_expect(r, "ranks");
}

/* Ranks up to the end of the line or the word host, which is then *end. Until
 * all lines are read, node[] holds node + 1, so that 0 is a rank not seen. */
static lcomm_status load_ranks(lcomm_topo_reader *r, const char *host, int node, lcomm_topo *topo,
                               lcomm_topo_word *end) {
  int before = r->ranks;
  for (;;) {
    lcomm_topo_word w = lcomm_topo_next(r);
    if (r->ranks > before && (w.length == 0 || lcomm_topo_word_is(w, "host"))) {
      *end = w;
      return LCOMM_OK;
    }
    int rank = lcomm_topo_word_number(w, LCOMM_TOPO_RANKS_MAX);
    if (rank < 0) {
      return lcomm_topo_unexpected(r, w, "a rank below 1048576");
    }
    if (rank >= topo->size) {
      return lcomm_topo_wrong(
          r, "rank %d, but the whole text has too few ranks for that; number them from 0", rank);
    }
    if (topo->node[rank] != 0) {
      return lcomm_topo_wrong(r, "rank %d is already on node %d; list every rank once", rank,
                              topo->node[rank] - 1);
    }
    topo->node[rank] = node + 1;
    memcpy(topo->host[rank], host, LCOMM_HOST_MAX);
    r->ranks++;
  }
}

static lcomm_status load_node(lcomm_topo_reader *r, lcomm_topo *topo) {
  char host[LCOMM_HOST_MAX];
  int node = topo->nodes;
  lcomm_topo_word w = lcomm_topo_next(r);
  int number = lcomm_topo_word_number(w, LCOMM_TOPO_RANKS_MAX);
  if (number < 0) {
    return lcomm_topo_unexpected(r, w, "the number of a node");
  }
  if (number != node) {
    return lcomm_topo_wrong(r, "node %d where node %d is expected; number nodes from 0, in order",
                            number, node);
  }
  w = lcomm_topo_next(r);
  if (!lcomm_topo_word_is(w, "host")) {
    return lcomm_topo_unexpected(r, w, "'host'");
  }
  while (w.length > 0) {
    lcomm_status status = load_host(r, host);
    if (status == LCOMM_OK) {
      status = load_ranks(r, host, node, topo, &w);
    }
    if (status != LCOMM_OK) {
      return status;
    }
  }
  topo->first[++topo->nodes] = r->line;
  return LCOMM_OK;
}

/* No rank is missing, and nodes are numbered by their lowest rank. Until the
 * topology is indexed, first[node + 1] is the node's line. */
static lcomm_status check_ranks(lcomm_topo_reader *r, lcomm_topo *topo) {
  int nodes = 0;
  topo->size = r->ranks;
  for (int rank = 0; rank < topo->size; rank++) {
    int node = topo->node[rank] - 1;
    if (node < 0) {
      return lcomm_topo_wrong(r,
                              "rank %d is missing among %d ranks; number ranks from 0 without gaps",
                              rank, topo->size);
    }
    if (node > nodes) {
      r->line = topo->first[node + 1];
      return lcomm_topo_wrong(
          r,
          "node %d has rank %d, which is below all ranks of node %d; number nodes by "
          "their lowest rank",
          node, rank, nodes);
    }
    nodes += node == nodes;
    topo->node[rank] = node;
  }
  return LCOMM_OK;
}

/* The end of the nodes: from here on all ranks are known. */
static lcomm_status close_nodes(lcomm_topo_reader *r, lcomm_topo *topo) {
  int line = r->line;
  r->line = topo->first[topo->nodes];
  lcomm_status status = check_ranks(r, topo);
  if (status == LCOMM_OK) {
    r->line = line;
    lcomm_topo_index(topo);
  }
  return status;
}

static lcomm_status load_line(lcomm_topo_reader *r, lcomm_topo *topo, bool *nodes_known) {
  lcomm_topo_word w = lcomm_topo_next(r);
  if (w.length > 0 && w.text[0] == '#') {
    r->at += strcspn(r->at, "\n");
    return LCOMM_OK;
  }
  if (lcomm_topo_word_is(w, "node") && !*nodes_known) {
    return load_node(r, topo);
  }
  if (topo->nodes == 0) {
    return lcomm_topo_unexpected(r, w, "'node'");
  }
  if (!*nodes_known) {
    LCOMM_TRY(close_nodes(r, topo));
    *nodes_known = true;
  }
  return lcomm_topo_load_more(r, w, topo);
}

static lcomm_status load_lines(lcomm_topo_reader *r, lcomm_topo *topo) {
  static const char example[] = "node 0 host NAME ranks 0 1";
  bool nodes_known = false;
  r->example = example;
  while (*r->at != '\0') {
    LCOMM_TRY(load_line(r, topo, &nodes_known));
    if (*r->at == '\n') {
      r->at++;
      r->line++;
    }
  }
  if (topo->nodes == 0) {
    return lcomm_topo_unexpected(r, (lcomm_topo_word){r->at, 0}, "'node'");
  }
  if (!nodes_known) {
    LCOMM_TRY(close_nodes(r, topo));
  }
  LCOMM_TRY(lcomm_topo_end_racks(r, topo));
  return lcomm_topo_take_pairs(r, topo);
}

/* No text has more ranks than words. */
static size_t count_words(const char *text) {
  size_t words = 0;
  while (*text != '\0') {
    text += strspn(text, " \t\n");
    words += *text != '\0';
    text += strcspn(text, " \t\n");
  }
  return words;
}

lcomm_status lcomm_topo_load(const char *text, lcomm_topo *topo, lcomm_why *error) {
  *topo = (lcomm_topo){0};
  error->text[0] = '\0';
  size_t words = count_words(text);
  int room = words < LCOMM_TOPO_RANKS_MAX ? (int)words + 1 : LCOMM_TOPO_RANKS_MAX;
  lcomm_status status = lcomm_topo_reserve(topo, room);
  if (status != LCOMM_OK) {
    return lcomm_why_set(
        error, status,
        "topology: no memory for the tables of %d ranks; free some memory on this host", room);
  }
  lcomm_topo_reader r = {.at = text, .line = 1, .error = error};
  status = load_lines(&r, topo);
  free(r.said);
  free(r.racks);
  if (status != LCOMM_OK) {
    lcomm_topo_free(topo);
  }
  return status;
}
