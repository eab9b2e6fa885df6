/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_STALENESS_H
#define LCOMM_SHARDS_STALENESS_H

/* The rule of bounded staleness (stale synchronous parallel, Ho et al. 2013): a rank goes on for up
 * to `steps` steps without the newest results.
 *
 * A rank contributes to rounds 0, 1, 2, ... and takes their results in the same order, each once.
 * `steps` + 1 rounds at most are under way: contributed to, and without a result that was taken.
 * The *age* of a contribution is the number of rounds before its own whose results its rank had not
 * taken when it computed: 0 to `steps`. An old one counts less.
 *
 * Rounds take turns in `steps` + 1 *lanes*, each of which has a quorum (quorum.h) of all ranks: a
 * rank contributes to a lane again when it has taken the result before, as a quorum asks for. A
 * round closes when all ranks have contributed to it. Where late contributions are dropped it
 * closes without ranks that are `steps` rounds behind: more than half of the ranks have contributed
 * to it, and to the round `steps` after the one that such a rank comes to next. So a rank is waited
 * for once, and not again in each round until it has caught up.
 *
 * No byte moves here and no clock is read. */

#include "libcomm/shards/quorum.h"

typedef struct lcomm_stale_rule {
  unsigned steps; /* 0: every rank waits for each result */
  bool drops;     /* who is farther behind than that is not waited for */
} lcomm_stale_rule;

/* Of one rank: rounds it has contributed to, and those whose results it has taken. */
typedef struct lcomm_stale_rank {
  uint64_t contributed, taken;
} lcomm_stale_rank;

static inline unsigned lcomm_stale_lanes(const lcomm_stale_rule *rule) {
  return rule->steps + 1;
}

static inline unsigned lcomm_stale_lane(const lcomm_stale_rule *rule, uint64_t round) {
  return (unsigned)(round % lcomm_stale_lanes(rule));
}

/* The round of all lanes that is so many rounds after the first one of a lane. */
static inline uint64_t lcomm_stale_round(const lcomm_stale_rule *rule, unsigned lane,
                                         uint64_t round_of_lane) {
  return round_of_lane * lcomm_stale_lanes(rule) + lane;
}

/* The quorum of each lane, of all ranks but those of a set `apart` (quorum.h). Results are kept for
 * ranks that may be late: `kept` of all lanes. */
lcomm_quorum_rule lcomm_stale_quorum(const lcomm_stale_rule *rule, int ranks, const uint8_t *apart,
                                     unsigned kept);

/* Must a rank take another result before it contributes again? */
bool lcomm_stale_must_wait(const lcomm_stale_rule *rule, const lcomm_stale_rank *rank);

/* The age of the next contribution. */
uint64_t lcomm_stale_age(const lcomm_stale_rank *rank);

/* What a contribution is multiplied with: 1/(1+age). */
float lcomm_stale_share(uint64_t age);

/* May the open round of lane `lane` close? lanes[lcomm_stale_lanes()]. */
bool lcomm_stale_may_close(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane,
                           double now_s);

/* Are all rounds closed that come before the open one of a lane? A server that makes weights of
 * sums closes no other, as its steps have an order. */
bool lcomm_stale_is_next(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane);

/* The rounds that are known to be closed by a result of a round, whose lane had closed so many
 * beyond it. */
uint64_t lcomm_stale_closed(const lcomm_stale_rule *rule, uint64_t round, uint64_t beyond);

#endif
