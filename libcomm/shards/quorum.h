/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_QUORUM_H
#define LCOMM_SHARDS_QUORUM_H

/* The rule by which the owner of a piece sums it without waiting for the slowest: synchronous SGD
 * with spare replicas (Chen et al. 2016), where what comes too late is given back and not lost.
 *
 * Sums of a piece are numbered from 0: its *rounds*. One of them is open; those before it are
 * closed and have a result. Each rank contributes to round after round, once to each, and not to
 * the next one before it has the result of the last; some ranks may be set apart, which never do.
 * The open round may close when all have contributed, or `late_s` after so many have as are needed.
 * A contribution to the open round counts; one to a closed round is late, and its rank keeps it.
 * Each rank is answered in its own order, with the result of the round that it has contributed to.
 *
 * A result is kept until all ranks have it, but `kept` at most: a rank that is so many rounds
 * behind is waited for. That bounds the memory of an owner.
 *
 * Ranks of a node may contribute together, by one of them, the *source* of all (node_quorum.h). It
 * gives notice of ranks that are there, contributes once to each round for those that are, when all
 * are or the owner asks, and is answered for all of its ranks. Ranks count when notice of them
 * comes; a round closes when the contributions for all that count are there.
 *
 * This is a state and its transitions. It moves no byte and reads no clock. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lcomm_quorum_rule {
  int ranks;
  int needed;           /* 1 to those that contribute */
  double late_s;        /* 0 or more */
  unsigned kept;        /* results, 1 or more */
  const uint8_t *apart; /* set of ranks that never contribute, which outlives this; NULL: none */
  const int *source;    /* [ranks] of each rank, likewise; NULL: each contributes itself */
} lcomm_quorum_rule;

/* Of one rank. */
typedef struct lcomm_quorum_rank {
  uint64_t came;     /* contributions so far: the next one is to this round */
  uint64_t answered; /* rounds whose results it has been given */
  /* Of a source: */
  int waiting;    /* its ranks that have come, and have no result */
  bool announced; /* it has given notice, and its contribution is not there */
} lcomm_quorum_rank;

typedef struct lcomm_quorum {
  lcomm_quorum_rule rule;
  int contributors;         /* ranks that are not apart */
  uint64_t open;            /* the round that is open */
  int there;                /* contributions to it */
  double since_s;           /* when the first of them came */
  double enough_s;          /* when the last that was needed came; meaningless before */
  lcomm_quorum_rank *ranks; /* [rule.ranks] */
  uint8_t *used;            /* [rule.kept][lcomm_quorum_mask_size()]: bit r: of rank r */
} lcomm_quorum;

typedef enum lcomm_quorum_verdict {
  LCOMM_QUORUM_COUNTS, /* it is in the open round */
  LCOMM_QUORUM_LATE,   /* its round is closed */
  LCOMM_QUORUM_REFUSED /* no rank sends that, such as one that has not been answered */
} lcomm_quorum_verdict;

/* Bytes of a set of ranks. */
static inline size_t lcomm_quorum_mask_size(int ranks) {
  return ((size_t)ranks + 7) / 8;
}

static inline bool lcomm_quorum_mask_has(const uint8_t *mask, int rank) {
  return (mask[rank / 8] >> rank % 8 & 1) != 0;
}

int lcomm_quorum_mask_count(const uint8_t *mask, int ranks);

/* False without memory; lcomm_quorum_free() frees what there is. */
bool lcomm_quorum_make(lcomm_quorum *quorum, const lcomm_quorum_rule *rule);
void lcomm_quorum_free(lcomm_quorum *quorum);

/* The next contribution of a rank has come, all of it. */
lcomm_quorum_verdict lcomm_quorum_contribute(lcomm_quorum *quorum, int rank, double now_s);

/* A source gives notice of a set of its ranks, or contributes for a set, to a round. All ranks that
 * it gave notice of before are in the set. */
lcomm_quorum_verdict lcomm_quorum_notice(lcomm_quorum *quorum, int source, uint64_t round,
                                         const uint8_t *set, double now_s);
lcomm_quorum_verdict lcomm_quorum_contribute_for(lcomm_quorum *quorum, int source, uint64_t round,
                                                 const uint8_t *set, double now_s);

/* Is a rank one of those for whom a source contributes? */
bool lcomm_quorum_is_of(const lcomm_quorum *quorum, int rank, int source);

/* Must a source be asked for its contribution? Its round is closed, or the open one may close. */
bool lcomm_quorum_must_ask(const lcomm_quorum *quorum, int source, double now_s);

/* May the open round close, and are all contributions there for ranks that count in it? */
bool lcomm_quorum_is_whole(const lcomm_quorum *quorum, double now_s);

/* May the open round close? */
bool lcomm_quorum_may_close(const lcomm_quorum *quorum, double now_s);

/* Is there a place for the result of the open round? Else a rank that is far behind is waited for.
 */
bool lcomm_quorum_has_room(const lcomm_quorum *quorum);

/* When time alone will let the open round close; 0: it will not. */
double lcomm_quorum_due_s(const lcomm_quorum *quorum);

/* The lowest rank that the open round waits for, or its source unless that is in it, and since when
 * the others do; -1: none, or nobody waits. */
int lcomm_quorum_awaits(const lcomm_quorum *quorum, double *since_s);

/* Has a rank contributed to the open round? */
bool lcomm_quorum_is_in(const lcomm_quorum *quorum, int rank);

/* The open round, which may close, does; the next one is open. */
void lcomm_quorum_close(lcomm_quorum *quorum);

/* Who was used in a closed round whose result is kept. */
const uint8_t *lcomm_quorum_used(const lcomm_quorum *quorum, uint64_t round);

/* Is there a result that a source waits for? It is that of round ranks[source].answered. */
bool lcomm_quorum_may_answer(const lcomm_quorum *quorum, int source);

/* A source has been given that result: nothing reads it for its ranks any more. */
void lcomm_quorum_answered(lcomm_quorum *quorum, int source);

#endif
