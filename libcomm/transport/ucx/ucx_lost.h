/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_UCX_UCX_LOST_H
#define LCOMM_TRANSPORT_UCX_UCX_LOST_H

/* Rails that a job does without: one host's card is down, or leads nowhere. All ranks have the same
 * list, because it comes from what all know: who has which cards, and who reached whom. */

#include "libcomm/transport/ucx/ucx_cards.h"

typedef struct lcomm_ucx_loss {
  lcomm_ucx_rail rail;
  int rank;   /* of the host whose card it is */
  int other;  /* it does not reach the host of this rank, nor that one it: either may be it; -1 */
  bool known; /* its card is down, or a rank knew of it; else it was found out just now */
} lcomm_ucx_loss;

typedef struct lcomm_ucx_lost {
  int count;
  lcomm_ucx_loss of[2 * LCOMM_UCX_RAILS_MAX];
} lcomm_ucx_lost;

/* Begin with what would be rails if no card were down or known to be broken. */
void lcomm_ucx_lost_find(const lcomm_ucx_cards *cards, lcomm_ucx_lost *lost);

/* The rails of `used` over which two ranks did not reach each other that have no other one. They
 * are added to the list. reached: of each rank a row, with 1 for a peer that it has reached. */
uint32_t lcomm_ucx_lost_judge(const lcomm_ucx_cards *cards, uint32_t used,
                              const unsigned char *reached, lcomm_ucx_lost *lost);

/* Say it, on rank 0 as a warning, the first time in this process; and remember cards that lead
 * nowhere for what is opened later. Collective, an allgather, where the list is not empty. */
void lcomm_ucx_lost_tell(const lcomm_ucx_cards *cards, const lcomm_transport_setup *setup,
                         const lcomm_ucx_lost *lost);

/* Mark the cards that this process remembers. Any thread. */
void lcomm_ucx_lost_recall(lcomm_ucx_interfaces *own);

#endif
