/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/shards/staleness.h"

lcomm_quorum_rule lcomm_stale_quorum(const lcomm_stale_rule *rule, int ranks, unsigned kept) {
  unsigned share = kept / lcomm_stale_lanes(rule);
  return (lcomm_quorum_rule){
      .ranks = ranks, .needed = ranks, .kept = rule->drops && share > 1 ? share : 1};
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

/* Ranks that have contributed to a round of a lane. */
static int count_came(const lcomm_quorum *lane, uint64_t round) {
  int count = 0;
  for (int rank = 0; rank < lane->rule.ranks; rank++) {
    count += lane->ranks[rank].came > round;
  }
  return count;
}

/* The round `steps` after the open one of a lane is in the lane before it, in the next turn unless
 * that is the last lane. */
static bool is_outrun(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane) {
  const lcomm_quorum *ahead = lanes[(lane + rule->steps) % lcomm_stale_lanes(rule)];
  uint64_t round = lanes[lane]->open + (lane > 0);
  return 2 * count_came(ahead, round) > ahead->rule.ranks;
}

bool lcomm_stale_may_close(const lcomm_stale_rule *rule, lcomm_quorum *const *lanes, unsigned lane,
                           double now_s) {
  const lcomm_quorum *quorum = lanes[lane];
  if (lcomm_quorum_may_close(quorum, now_s)) {
    return true;
  }
  return rule->drops && lcomm_quorum_has_room(quorum) && is_outrun(rule, lanes, lane);
}

uint64_t lcomm_stale_closed(const lcomm_stale_rule *rule, uint64_t round, uint64_t beyond) {
  return round + 1 + beyond * lcomm_stale_lanes(rule);
}
