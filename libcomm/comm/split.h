/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_SPLIT_H
#define LCOMM_COMM_SPLIT_H

/* The rendezvous of a split: the ranks of one color exchange bytes over the links of the parent
 * before they are a communicator. Only they wait for each other. */

#include "libcomm/engine/operation.h"

/* What every rank of the parent sends. */
typedef struct lcomm_split_color_key {
  int32_t color, key;
} lcomm_split_color_key;

/* From the colors and keys of `size` ranks (any numbers), find the ranks of `rank`'s color, ordered
 * by key, then by rank. Fills in members (room for `size`) and the position of `rank` among them;
 * returns how many there are, 0 without memory. */
int lcomm_split_members(const lcomm_split_color_key *wishes, int size, int rank, int *members,
                        int *me);

enum { LCOMM_SPLIT_CHILDREN_MAX = 31 };

/* One message between a member and one beside it in the tree. */
typedef struct lcomm_split_message {
  int peer; /* in the parent */
  bool in_flight, receives;
  size_t size;
  double patience_s; /* for the peer */
  lcomm_transfer transfer;
} lcomm_split_message;

/* The members of one color. */
typedef struct lcomm_split_rendezvous {
  lcomm_comm *parent;
  int count, me;
  int *members;                                           /* their ranks in the parent */
  lcomm_split_message messages[LCOMM_SPLIT_CHILDREN_MAX]; /* in flight, or done */
  int message_count;
} lcomm_split_rendezvous;

/* The all-gather of lcomm_bootstrap; the context is an lcomm_split_rendezvous *. An error here is a
 * failure of the parent, and a failure of the parent ends it. Bytes go up a binomial tree over the
 * members and down again, so no member has more than log2(count) + 1 messages each way. */
int lcomm_split_gather(void *context, const void *send, void *receive, size_t size);

#endif
