/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/shards/staleness.h"

lcomm_quorum_rule lcomm_stale_quorum(const lcomm_stale_rule *rule, int ranks, const uint8_t *apart,
                                     unsigned kept) {
  unsigned share = kept / lcomm_stale_lanes(rule);
  int contributors = ranks - (apart ? lcomm_quorum_mask_count(apart, ranks) : 0);
  return (lcomm_quorum_rule){.ranks = ranks,
                             .needed = contributors,
                             .kept = rule->drops && share > 1 ? share : 1,
                             .apart = apart};
}

bool lcomm_stale_must_wait(const lcomm_stale_rule *rule, const lcomm_stale_rank *rank) {
  return rank->contributed - rank->taken > rule->steps;
}

uint64_t lcomm_stale_age(const lcomm_stale_rank *rank) {
  return rank->contributed - rank->taken;
}

float lcomm_stale_share(uint64_t age) {
  return 1.0f / (float)(1 + age);
}

/* To which a rank has contributed. */
static uint64_t count_rounds(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, int rank) {
  uint64_t count = 0;
  for (unsigned i = 0; i < lcomm_stale_lanes(rule); i++) {
    count += lanes[i]->ranks[rank].came;
  }
  return count;
}

static bool is_majority(const lcomm_quorum *quorum, int contributors) {
  return 2 * contributors > quorum->contributors;
}

/* Have more than half of the contributors come to the open round of a lane, and to one `steps`
 * after the newest that any of those which are missing there will come to next? */
static bool is_outrun(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane) {
  int ranks = lanes[lane]->rule.ranks, ahead = 0;
  uint64_t round = lcomm_stale_round(rule, lane, lanes[lane]->open), newest = 0;
  for (int rank = 0; rank < ranks; rank++) {
    uint64_t next = count_rounds(rule, lanes, rank);
    newest = next <= round && next > newest ? next : newest;
  }
  uint64_t front = newest + rule->steps > round ? newest + rule->steps : round;
  for (int rank = 0; rank < ranks; rank++) {
    ahead += count_rounds(rule, lanes, rank) > front;
  }
  return is_majority(lanes[lane], ahead);
}

bool lcomm_stale_may_close(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane,
                           double now_s) {
  const lcomm_quorum *quorum = lanes[lane];
  if (lcomm_quorum_may_close(quorum, now_s)) {
    return true;
  }
  bool may_be = rule->drops && is_majority(quorum, quorum->there);
  return may_be && lcomm_quorum_has_room(quorum) && is_outrun(rule, lanes, lane);
}

bool lcomm_stale_is_next(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane) {
  uint64_t closed = 0;
  for (unsigned i = 0; i < lcomm_stale_lanes(rule); i++) {
    closed += lanes[i]->open;
  }
  return closed == lcomm_stale_round(rule, lane, lanes[lane]->open);
}

uint64_t lcomm_stale_closed(const lcomm_stale_rule *rule, uint64_t round, uint64_t beyond) {
  return round + 1 + beyond * lcomm_stale_lanes(rule);
}
