/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_NODE_QUORUM_H
#define LCOMM_SHARDS_NODE_QUORUM_H

/* The rule by which a rank adds up what the ranks of its node contribute to a piece of an owner on
 * another node, so that one contribution of a node leaves it in each round: it is the *collector*
 * of its node for this piece, and a source of the owner's quorum (quorum.h).
 *
 * It contributes when all ranks of the node are there, or when the owner asks, for those that are
 * there then; who comes after that is late. The owner must know before that whom it can ask for: it
 * is told when so many are there that it may go on with them, of each one that comes, and of fewer
 * when they have waited for a while. It closes the round, which the collector learns by its result,
 * keeps that, and answers the ranks of its node. So the owner decides by ranks, as if each had come
 * to it, and where all come a round takes one message each way.
 *
 * This is a state and its transitions. It moves no byte and reads no clock. */

#include "libcomm/shards/quorum.h"

typedef struct lcomm_node_quorum {
  lcomm_quorum ranks; /* of the node, in their order; the round without a result here is open */
  double tell_s;      /* how long ranks are there until the owner is told in any case */
  int told;           /* ranks of the open round that the owner knows of */
  bool is_asked, is_sent;
  uint8_t *sent;  /* set of ranks of the node: for whom the node has contributed */
  double since_s; /* when the owner was first told of the open round; meaningless before */
} lcomm_node_quorum;

/* Ranks of the node, those without which no round can close, and results that are kept. False
 * without memory; lcomm_node_quorum_free() frees what there is. */
bool lcomm_node_quorum_make(lcomm_node_quorum *node, int ranks, int needed, unsigned kept,
                            double tell_s);
void lcomm_node_quorum_free(lcomm_node_quorum *node);

/* The next contribution of a rank of the node is here. */
lcomm_quorum_verdict lcomm_node_quorum_contribute(lcomm_node_quorum *node, int rank, double now_s);

/* The owner asks for a contribution to a round. False: no owner does, as it was told of none. */
bool lcomm_node_quorum_ask(lcomm_node_quorum *node, uint64_t round);

/* Is the node to contribute? Then it does, for the ranks that are `sent` from then on. */
bool lcomm_node_quorum_may_send(const lcomm_node_quorum *node);
void lcomm_node_quorum_send(lcomm_node_quorum *node, double now_s);

/* Is the owner to be told who is there? Then it is. When time alone will ask for it; 0: it will
 * not. */
bool lcomm_node_quorum_may_tell(const lcomm_node_quorum *node, double now_s);
void lcomm_node_quorum_tell(lcomm_node_quorum *node, double now_s);
double lcomm_node_quorum_due_s(const lcomm_node_quorum *node);

/* Does the collector wait for the owner? since_s, then. */
bool lcomm_node_quorum_waits(const lcomm_node_quorum *node);

/* The result of the open round is here. The answers are those of a quorum, of node->ranks. */
void lcomm_node_quorum_close(lcomm_node_quorum *node);

#endif
