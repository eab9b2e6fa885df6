/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The text form of a topology, one line for each node:
 *
 *   node 0 host alpha ranks 0 1 2 3
 *   node 1 host beta ranks 4 5 host gamma ranks 6 7
 *
 * The second line is a node whose ranks live on two hosts, as LCOMM_NODES can
 * make it. A loaded text comes from a file and may hold anything.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/topo/topo_internal.h"

enum { RANKS_MAX = 1 << 20 };

/* ------------------------------------------------------------------ print */

typedef struct writer {
  char *text;
  size_t size, length; /* length: needed so far, may be more than size */
} writer;

__attribute__((format(printf, 2, 3))) static void put(writer *w, const char *format, ...) {
  va_list arguments;
  size_t room = w->length < w->size ? w->size - w->length : 0;
  va_start(arguments, format);
  int n = vsnprintf(room > 0 ? w->text + w->length : NULL, room, format, arguments);
  va_end(arguments);
  w->length += n > 0 ? (size_t)n : 0;
}

size_t lcomm_topo_print(const lcomm_topo *topo, char *text, size_t size) {
  writer w = {text, size, 0};
  if (size > 0)
    text[0] = '\0';
  for (int node = 0; node < topo->nodes; node++) {
    const char *host = "";
    put(&w, "node %d", node);
    for (int local = 0; local < topo->node_size[node]; local++) {
      int rank = lcomm_topo_rank(topo, node, local);
      if (strcmp(host, topo->host[rank]) != 0) {
        host = topo->host[rank];
        put(&w, " host %s ranks", host);
      }
      put(&w, " %d", rank);
    }
    put(&w, "\n");
  }
  return w.length;
}

/* ------------------------------------------------------------------- load */

typedef struct word {
  const char *text;
  size_t length; /* 0 at the end of a line */
} word;

typedef struct reader {
  const char *at;
  int line; /* 1-based */
  int ranks;
  char *error;
} reader;

__attribute__((format(printf, 2, 3))) static lcomm_status fail(const reader *r, const char *format,
                                                               ...) {
  char what[LCOMM_TOPO_ERROR_MAX];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  snprintf(r->error, LCOMM_TOPO_ERROR_MAX, "topology, line %d: %.400s", r->line, what);
  return LCOMM_ERR_WIRE;
}

/* The next word of this line. */
static word next_word(reader *r) {
  while (*r->at == ' ' || *r->at == '\t')
    r->at++;
  word w = {r->at, strcspn(r->at, " \t\n")};
  r->at += w.length;
  return w;
}

static bool word_is(word w, const char *text) {
  return w.length == strlen(text) && memcmp(w.text, text, w.length) == 0;
}

/* A number below RANKS_MAX, or -1. */
static int word_number(word w) {
  int number = 0;
  if (w.length == 0)
    return -1;
  for (size_t i = 0; i < w.length; i++) {
    if (w.text[i] < '0' || w.text[i] > '9')
      return -1;
    number = number * 10 + (w.text[i] - '0');
    if (number >= RANKS_MAX)
      return -1;
  }
  return number;
}

static lcomm_status unexpected(const reader *r, word found, const char *expected) {
  char shown[LCOMM_HOST_MAX];
  if (found.length == 0)
    return fail(r, "the line ends where %s is expected; write: node 0 host NAME ranks 0 1",
                expected);
  lcomm_host_copy(shown, found.text, found.length);
  return fail(r, "'%s' where %s is expected; write: node 0 host NAME ranks 0 1", shown, expected);
}

/* NAME ranks, after the word host. */
static lcomm_status load_host(reader *r, char host[LCOMM_HOST_MAX]) {
  word name = next_word(r);
  if (name.length == 0)
    return unexpected(r, name, "a host name");
  if (name.length >= LCOMM_HOST_MAX)
    return fail(r, "a host name of %zu bytes is too long; use at most %d", name.length,
                LCOMM_HOST_MAX - 1);
  lcomm_host_copy(host, name.text, name.length);
  if (memcmp(host, name.text, name.length) != 0)
    return fail(r, "host name '%s' has bytes that are not visible ASCII; use another name", host);
  word ranks = next_word(r);
  return word_is(ranks, "ranks") ? LCOMM_OK : unexpected(r, ranks, "'ranks'");
}

/* Ranks up to the end of the line or the word host, which is then *end. Until
 * all lines are read, node[] holds node + 1, so that 0 is a rank not seen. */
static lcomm_status load_ranks(reader *r, const char *host, int node, lcomm_topo *topo, word *end) {
  int before = r->ranks;
  for (;;) {
    word w = next_word(r);
    if (r->ranks > before && (w.length == 0 || word_is(w, "host"))) {
      *end = w;
      return LCOMM_OK;
    }
    int rank = word_number(w);
    if (rank < 0)
      return unexpected(r, w, "a rank below 1048576");
    if (rank >= topo->size)
      return fail(r, "rank %d, but the whole text has too few ranks for that; number them from 0",
                  rank);
    if (topo->node[rank] != 0)
      return fail(r, "rank %d is already on node %d; list every rank once", rank,
                  topo->node[rank] - 1);
    topo->node[rank] = node + 1;
    memcpy(topo->host[rank], host, LCOMM_HOST_MAX);
    r->ranks++;
  }
}

static lcomm_status load_line(reader *r, lcomm_topo *topo) {
  char host[LCOMM_HOST_MAX];
  int node = topo->nodes;
  word w = next_word(r);
  if (!word_is(w, "node"))
    return unexpected(r, w, "'node'");
  w = next_word(r);
  int number = word_number(w);
  if (number < 0)
    return unexpected(r, w, "the number of a node");
  if (number != node)
    return fail(r, "node %d where node %d is expected; number nodes from 0, in order", number,
                node);
  w = next_word(r);
  if (!word_is(w, "host"))
    return unexpected(r, w, "'host'");
  while (w.length > 0) {
    lcomm_status status = load_host(r, host);
    if (status == LCOMM_OK)
      status = load_ranks(r, host, node, topo, &w);
    if (status != LCOMM_OK)
      return status;
  }
  topo->nodes++;
  return LCOMM_OK;
}

/* No rank is missing, and nodes are numbered by their lowest rank. */
static lcomm_status check_ranks(reader *r, lcomm_topo *topo) {
  int nodes = 0;
  topo->size = r->ranks;
  for (int rank = 0; rank < topo->size; rank++) {
    int node = topo->node[rank] - 1;
    if (node < 0)
      return fail(r, "rank %d is missing among %d ranks; number ranks from 0 without gaps", rank,
                  topo->size);
    if (node > nodes) {
      r->line = node + 1;
      return fail(r,
                  "node %d has rank %d, which is below all ranks of node %d; number nodes by "
                  "their lowest rank",
                  node, rank, nodes);
    }
    nodes += node == nodes;
    topo->node[rank] = node;
  }
  return LCOMM_OK;
}

static lcomm_status load_lines(const char *text, lcomm_topo *topo, char *error) {
  reader r = {text, 1, 0, error};
  while (*r.at != '\0') {
    lcomm_status status = load_line(&r, topo);
    if (status != LCOMM_OK)
      return status;
    if (*r.at == '\n') {
      r.at++;
      r.line++;
    }
  }
  if (topo->nodes == 0)
    return unexpected(&r, (word){text, 0}, "'node'");
  r.line = topo->nodes;
  return check_ranks(&r, topo);
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

lcomm_status lcomm_topo_load(const char *text, lcomm_topo *topo, char *error) {
  *topo = (lcomm_topo){0};
  error[0] = '\0';
  size_t words = count_words(text);
  int room = words < RANKS_MAX ? (int)words + 1 : RANKS_MAX;
  lcomm_status status = lcomm_topo_reserve(topo, room);
  if (status != LCOMM_OK) {
    snprintf(error, LCOMM_TOPO_ERROR_MAX,
             "topology: no memory for the tables of %d ranks; free some memory on this host", room);
    return status;
  }
  status = load_lines(text, topo, error);
  if (status != LCOMM_OK) {
    lcomm_topo_free(topo);
    return status;
  }
  lcomm_topo_index(topo);
  return LCOMM_OK;
}
