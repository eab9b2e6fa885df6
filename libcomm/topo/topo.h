/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_TOPO_H
#define LCOMM_TOPO_TOPO_H

/* Which rank is where, and which link lies between two ranks. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/include/libcomm.h"

enum { LCOMM_HOST_MAX = 64, LCOMM_TOPO_ERROR_MAX = 512 };

/* What a rank knows of itself before it has met the others; exchanged as
 * plain bytes, so it has no pointers and no padding that is not zeroed. */
typedef struct lcomm_identity {
  char host[LCOMM_HOST_MAX]; /* host name for people, zero-terminated */
  uint64_t host_hash;        /* hostname + boot id + device of /dev/shm, or LCOMM_HOSTID */
  uint64_t pid;
} lcomm_identity;

/* Find out the identity of this process. LCOMM_HOSTID replaces the whole
 * identity and is then also shown as the host. Cannot fail: what cannot be
 * read counts as empty. */
void lcomm_identity_self(lcomm_identity *identity);

/* Processors that this process may use, at least 1. */
int lcomm_topo_processors(void);

/* Are there more ranks on this rank's host than processors? */
bool lcomm_topo_is_crowded(const lcomm_identity *identities, int size, int rank);

typedef struct lcomm_topo {
  int size;       /* ranks */
  int nodes;      /* nodes, numbered by their lowest rank */
  int *node;      /* node of each rank */
  int *local;     /* local rank of each rank, in rank order inside the node */
  int *node_size; /* ranks of each node */
  int *members;   /* ranks sorted by node, then rank */
  int *first;     /* index into members of each node's first rank; nodes + 1 entries */
  char (*host)[LCOMM_HOST_MAX]; /* host name of each rank */
} lcomm_topo;

/* Group the identities of all ranks. forced_nodes > 0 poses as that many
 * nodes instead: ranks are cut into that many runs of equal length, the first
 * size % forced_nodes of them one longer. Errors, with a sentence in `error`
 * (LCOMM_TOPO_ERROR_MAX bytes): ARGUMENT if a node would have no rank,
 * MEMORY. Free with lcomm_topo_free. */
lcomm_status lcomm_topo_create(const lcomm_identity *identities, int size, int forced_nodes,
                               lcomm_topo *topo, char *error);
void lcomm_topo_free(lcomm_topo *topo);

/* Link class between two ranks: self, shm inside a node, net between nodes. */
lcomm_link lcomm_topo_link(const lcomm_topo *topo, int a, int b);

/* Rank number `local` of node `node`. */
int lcomm_topo_rank(const lcomm_topo *topo, int node, int local);

/* A group: an ordered list of ranks and my place in it. Views, owns nothing. */
typedef struct lcomm_group {
  const int *ranks; /* size entries */
  int size;
  int me; /* my index, or -1 when I am not in it */
} lcomm_group;

/* The ranks of one node, in rank order. */
lcomm_group lcomm_topo_node_group(const lcomm_topo *topo, int node, int rank);

/* Text form: one line per node, `node N host NAME ranks A B C`; loads back
 * into an equal topology. print returns the length needed without the
 * terminator and writes at most size bytes. load: WIRE for any malformed
 * text (with a sentence in error), MEMORY. */
size_t lcomm_topo_print(const lcomm_topo *topo, char *text, size_t size);
lcomm_status lcomm_topo_load(const char *text, lcomm_topo *topo, char *error);

#endif
