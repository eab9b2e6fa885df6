/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/shards/quorum.h"

#include <stdlib.h>
#include <string.h>

int lcomm_quorum_mask_count(const uint8_t *mask, int ranks) {
  int count = 0;
  for (int rank = 0; rank < ranks; rank++) {
    count += lcomm_quorum_mask_has(mask, rank);
  }
  return count;
}

bool lcomm_quorum_make(lcomm_quorum *quorum, const lcomm_quorum_rule *rule) {
  int apart = rule->apart ? lcomm_quorum_mask_count(rule->apart, rule->ranks) : 0;
  *quorum = (lcomm_quorum){.rule = *rule, .contributors = rule->ranks - apart};
  quorum->ranks = calloc((size_t)rule->ranks, sizeof *quorum->ranks);
  quorum->used = calloc(rule->kept, lcomm_quorum_mask_size(rule->ranks));
  return quorum->ranks && quorum->used;
}

void lcomm_quorum_free(lcomm_quorum *quorum) {
  free(quorum->ranks);
  free(quorum->used);
  quorum->ranks = NULL;
  quorum->used = NULL;
}

/* ------------------------------------------------------------ contributions */

bool lcomm_quorum_is_in(const lcomm_quorum *quorum, int rank) {
  return quorum->ranks[rank].came == quorum->open + 1;
}

static int source_of(const lcomm_quorum *quorum, int rank) {
  return quorum->rule.source ? quorum->rule.source[rank] : rank;
}

lcomm_quorum_verdict lcomm_quorum_contribute(lcomm_quorum *quorum, int rank, double now_s) {
  lcomm_quorum_rank *it = &quorum->ranks[rank];
  if (it->came != it->answered) {
    return LCOMM_QUORUM_REFUSED;
  }
  it->came++;
  quorum->ranks[source_of(quorum, rank)].waiting++;
  if (it->came <= quorum->open) {
    return LCOMM_QUORUM_LATE;
  }
  quorum->since_s = quorum->there == 0 ? now_s : quorum->since_s;
  quorum->there++;
  if (quorum->there == quorum->rule.needed) {
    quorum->enough_s = now_s;
  }
  return LCOMM_QUORUM_COUNTS;
}

/* -------------------------------------------------- sources of several ranks */

bool lcomm_quorum_is_of(const lcomm_quorum *quorum, int rank, int source) {
  return source_of(quorum, rank) == source;
}

/* A set of ranks of a source, all those among them that are there by an earlier notice? */
static bool is_set_of(const lcomm_quorum *quorum, int source, const uint8_t *set) {
  for (int rank = 0; rank < quorum->rule.ranks; rank++) {
    bool has = lcomm_quorum_mask_has(set, rank);
    bool is_its = lcomm_quorum_is_of(quorum, rank, source);
    bool was_there = quorum->ranks[rank].came > quorum->ranks[rank].answered;
    if (has != is_its && (has || was_there)) {
      return false;
    }
  }
  return true;
}

lcomm_quorum_verdict lcomm_quorum_notice(lcomm_quorum *quorum, int source, uint64_t round,
                                         const uint8_t *set, double now_s) {
  lcomm_quorum_rank *it = &quorum->ranks[source];
  bool is_next = it->answered == round && (it->announced || it->waiting == 0);
  if (!is_next || !is_set_of(quorum, source, set)) {
    return LCOMM_QUORUM_REFUSED;
  }
  for (int rank = 0; rank < quorum->rule.ranks; rank++) {
    if (lcomm_quorum_mask_has(set, rank) &&
        quorum->ranks[rank].came == quorum->ranks[rank].answered) {
      (void)lcomm_quorum_contribute(quorum, rank, now_s);
    }
  }
  it->announced = true;
  return round < quorum->open ? LCOMM_QUORUM_LATE : LCOMM_QUORUM_COUNTS;
}

lcomm_quorum_verdict lcomm_quorum_contribute_for(lcomm_quorum *quorum, int source, uint64_t round,
                                                 const uint8_t *set, double now_s) {
  lcomm_quorum_verdict verdict = lcomm_quorum_notice(quorum, source, round, set, now_s);
  if (verdict != LCOMM_QUORUM_REFUSED) {
    quorum->ranks[source].announced = false;
  }
  return verdict;
}

bool lcomm_quorum_must_ask(const lcomm_quorum *quorum, int source, double now_s) {
  const lcomm_quorum_rank *it = &quorum->ranks[source];
  return it->announced && (it->answered < quorum->open || lcomm_quorum_may_close(quorum, now_s));
}

bool lcomm_quorum_is_whole(const lcomm_quorum *quorum, double now_s) {
  if (!lcomm_quorum_may_close(quorum, now_s)) {
    return false;
  }
  for (int rank = 0; rank < quorum->rule.ranks; rank++) {
    if (quorum->ranks[rank].announced && quorum->ranks[rank].answered == quorum->open) {
      return false;
    }
  }
  return true;
}

/* ------------------------------------------------------------------ closing */

static bool is_apart(const lcomm_quorum *quorum, int rank) {
  return quorum->rule.apart && lcomm_quorum_mask_has(quorum->rule.apart, rank);
}

/* A rank that has not been given the result whose place the open round needs; -1: there is none. */
static int find_farthest(const lcomm_quorum *quorum) {
  for (int rank = 0; rank < quorum->rule.ranks; rank++) {
    if (!is_apart(quorum, rank) &&
        quorum->open - quorum->ranks[rank].answered >= quorum->rule.kept) {
      return rank;
    }
  }
  return -1;
}

bool lcomm_quorum_has_room(const lcomm_quorum *quorum) {
  return find_farthest(quorum) < 0;
}

bool lcomm_quorum_may_close(const lcomm_quorum *quorum, double now_s) {
  const lcomm_quorum_rule *rule = &quorum->rule;
  bool enough = quorum->there == quorum->contributors ||
                (quorum->there >= rule->needed && now_s >= quorum->enough_s + rule->late_s);
  return enough && find_farthest(quorum) < 0;
}

double lcomm_quorum_due_s(const lcomm_quorum *quorum) {
  const lcomm_quorum_rule *rule = &quorum->rule;
  bool waits = quorum->there >= rule->needed && quorum->there < quorum->contributors;
  return waits && find_farthest(quorum) < 0 ? quorum->enough_s + rule->late_s : 0;
}

/* A source that gave no notice of itself keeps back its ranks, or waits for itself, too. */
static int name(const lcomm_quorum *quorum, int rank) {
  int source = rank >= 0 ? source_of(quorum, rank) : -1;
  return source < 0 || lcomm_quorum_is_in(quorum, source) ? rank : source;
}

int lcomm_quorum_awaits(const lcomm_quorum *quorum, double *since_s) {
  *since_s = quorum->since_s;
  if (quorum->there == 0) {
    return -1;
  }
  if (quorum->there >= quorum->rule.needed) {
    *since_s = quorum->enough_s;
    return name(quorum, find_farthest(quorum));
  }
  int rank = 0;
  while (is_apart(quorum, rank) || lcomm_quorum_is_in(quorum, rank)) {
    rank++;
  }
  return name(quorum, rank);
}

static uint8_t *mask_of(const lcomm_quorum *quorum, uint64_t round) {
  return quorum->used + round % quorum->rule.kept * lcomm_quorum_mask_size(quorum->rule.ranks);
}

void lcomm_quorum_close(lcomm_quorum *quorum) {
  uint8_t *used = mask_of(quorum, quorum->open);
  memset(used, 0, lcomm_quorum_mask_size(quorum->rule.ranks));
  for (int rank = 0; rank < quorum->rule.ranks; rank++) {
    used[rank / 8] |= (uint8_t)(lcomm_quorum_is_in(quorum, rank) << rank % 8);
  }
  quorum->open++;
  quorum->there = 0;
}

const uint8_t *lcomm_quorum_used(const lcomm_quorum *quorum, uint64_t round) {
  return mask_of(quorum, round);
}

/* ---------------------------------------------------------------- answering */

bool lcomm_quorum_may_answer(const lcomm_quorum *quorum, int source) {
  const lcomm_quorum_rank *it = &quorum->ranks[source];
  return it->answered < quorum->open && !it->announced && it->waiting > 0;
}

static void set_answered(lcomm_quorum *quorum, int rank, uint64_t answered) {
  quorum->ranks[rank].came = answered;
  quorum->ranks[rank].answered = answered;
}

/* Those of its ranks that have not come to the round are late to it. */
void lcomm_quorum_answered(lcomm_quorum *quorum, int source) {
  uint64_t answered = quorum->ranks[source].answered + 1;
  quorum->ranks[source].waiting = 0;
  set_answered(quorum, source, answered);
  for (int rank = 0; quorum->rule.source && rank < quorum->rule.ranks; rank++) {
    if (quorum->rule.source[rank] == source) {
      set_answered(quorum, rank, answered);
    }
  }
}
