/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/shards/node_quorum.h"

#include <stdlib.h>
#include <string.h>

bool lcomm_node_quorum_make(lcomm_node_quorum *node, int ranks, int needed, unsigned kept,
                            double tell_s) {
  lcomm_quorum_rule rule = {.ranks = ranks, .needed = needed, .kept = kept};
  *node = (lcomm_node_quorum){.tell_s = tell_s};
  bool whole = lcomm_quorum_make(&node->ranks, &rule);
  node->sent = calloc(1, lcomm_quorum_mask_size(ranks));
  return whole && node->sent;
}

void lcomm_node_quorum_free(lcomm_node_quorum *node) {
  lcomm_quorum_free(&node->ranks);
  free(node->sent);
  node->sent = NULL;
}

lcomm_quorum_verdict lcomm_node_quorum_contribute(lcomm_node_quorum *node, int rank, double now_s) {
  return lcomm_quorum_contribute(&node->ranks, rank, now_s);
}

/* ---------------------------------------------------------------- the owner */

bool lcomm_node_quorum_ask(lcomm_node_quorum *node, uint64_t round) {
  if (round != node->ranks.open || node->told == 0) {
    return false;
  }
  node->is_asked = true;
  return true;
}

/* What the owner is told of has a place for its result, before it can ask for it. */
bool lcomm_node_quorum_may_send(const lcomm_node_quorum *node) {
  bool wants = node->is_asked || node->ranks.there == node->ranks.rule.ranks;
  return wants && !node->is_sent && lcomm_quorum_has_room(&node->ranks);
}

static void note_told(lcomm_node_quorum *node, double now_s) {
  node->since_s = node->told == 0 ? now_s : node->since_s;
  node->told = node->ranks.there;
}

void lcomm_node_quorum_send(lcomm_node_quorum *node, double now_s) {
  int ranks = node->ranks.rule.ranks;
  memset(node->sent, 0, lcomm_quorum_mask_size(ranks));
  for (int rank = 0; rank < ranks; rank++) {
    node->sent[rank / 8] |= (uint8_t)(lcomm_quorum_is_in(&node->ranks, rank) << rank % 8);
  }
  node->is_sent = true;
  note_told(node, now_s);
}

static bool has_news(const lcomm_node_quorum *node) {
  return !node->is_sent && !node->is_asked && node->ranks.there > node->told &&
         node->ranks.there < node->ranks.rule.ranks && lcomm_quorum_has_room(&node->ranks);
}

bool lcomm_node_quorum_may_tell(const lcomm_node_quorum *node, double now_s) {
  bool enough = node->ranks.there >= node->ranks.rule.needed;
  return has_news(node) && (enough || now_s >= node->ranks.since_s + node->tell_s);
}

void lcomm_node_quorum_tell(lcomm_node_quorum *node, double now_s) {
  note_told(node, now_s);
}

double lcomm_node_quorum_due_s(const lcomm_node_quorum *node) {
  bool enough = node->ranks.there >= node->ranks.rule.needed;
  return has_news(node) && !enough ? node->ranks.since_s + node->tell_s : 0;
}

bool lcomm_node_quorum_waits(const lcomm_node_quorum *node) {
  return node->told > 0;
}

void lcomm_node_quorum_close(lcomm_node_quorum *node) {
  lcomm_quorum_close(&node->ranks);
  node->told = 0;
  node->is_asked = node->is_sent = false;
}
