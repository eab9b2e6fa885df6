/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_PLAN_PAIRS_H
#define LCOMM_PLAN_PAIRS_H

/* Which exchange of an exact sum over `ranks` hosts costs a rank least: with every peer
 * (gather, direct), or with log2 of them (doubling, halving). */

#include "libcomm/sched/exchange.h"

/* size: bytes of the span. Never a ring, which is for long spans. */
lcomm_exchange_kind lcomm_cheapest_exchange(int ranks, uint64_t size);

#endif
