/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_FLOW_INTERNAL_H
#define LCOMM_ENGINE_FLOW_INTERNAL_H

/* What the files of flow control share. */

#include "libcomm/engine/flow.h"

/* Operations, and the bytes of their messages, since the communicator was made.
 * A credit is one of these as plain bytes. */
typedef struct lcomm_flow_amount {
  uint64_t operations, bytes;
} lcomm_flow_amount;

/* One direction of one sequence space between this rank and a peer. */
typedef struct lcomm_flow_way {
  lcomm_flow_amount begun;    /* here */
  lcomm_flow_amount last_due; /* begun when the last credit became due */
  lcomm_flow_amount credited; /* what the receiver has taken, as the last credit says */
  uint32_t due;               /* credits that have not come; receiver: that have not left */
  bool in_flight;             /* the next of them */
  lcomm_flow_amount message;  /* ... its bytes */
  lcomm_transfer transfer;
} lcomm_flow_way;

struct lcomm_flow_pair {
  lcomm_flow_way out[LCOMM_SEQUENCE_SPACE_COUNT], in[LCOMM_SEQUENCE_SPACE_COUNT];
};

/* A peer that a plan only sends to, or only receives from. */
struct lcomm_flow_part {
  int peer;
  bool out;
  uint64_t bytes;
  bool due;               /* of this operation: a credit at its end */
  lcomm_flow_amount with; /* begun, this operation included */
};

#endif
