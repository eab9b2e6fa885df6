/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* All-gather in log2 steps (Bruck and others 1997). In step k a party sends all that it has to the
 * one 2^k before it, and hears as much from the one 2^k behind: fewest messages, and links to few
 * peers, for short parts.
 *
 * Parties are the nodes, whose first ranks speak for them, where the ranks of each node are
 * neighbours; else all ranks. So what a party has is a row of parts, around the end of the vector
 * in two pieces.
 */

#include <stdlib.h>

#include "libcomm/sched/move_parts.h"

typedef struct bruck {
  lcomm_schedule *schedule;
  const uint64_t *begins; /* of the parts */
  int *first;             /* rank of each party, and how many ranks there are */
  int parties, mine;
} bruck;

bool lcomm_topo_nodes_in_row(const lcomm_topo *topo) {
  for (int rank = 1; rank < topo->size; rank++) {
    if (topo->node[rank] < topo->node[rank - 1]) {
      return false;
    }
  }
  return true;
}

static void find_parties(bruck *b, const lcomm_topo *topo) {
  bool are_nodes = lcomm_topo_nodes_in_row(topo);
  for (int rank = 0; rank < topo->size; rank++) {
    if (!are_nodes || rank == 0 || topo->node[rank] != topo->node[rank - 1]) {
      b->first[b->parties++] = rank;
    }
    b->mine = rank == b->schedule->rank ? b->parties - 1 : b->mine;
  }
  b->first[b->parties] = topo->size;
}

/* The parts of parties from .. end - 1. */
static lcomm_span row_of(const bruck *b, int from, int end) {
  uint64_t begin = b->begins[b->first[from]];
  return lcomm_span_whole(begin, b->begins[b->first[end]] - begin);
}

static void tell(const bruck *b, lcomm_span span, int rank) {
  if (span.count > 0) {
    uint32_t slot = lcomm_schedule_slot(b->schedule, LCOMM_STAGE_RESULT, span.count);
    lcomm_schedule_encode(b->schedule, span, slot, 1, LCOMM_FEEDBACK_NONE);
    lcomm_schedule_send(b->schedule, slot, rank);
  }
}

static void hear(const bruck *b, lcomm_span span, int rank) {
  if (span.count > 0) {
    (void)lcomm_part_receive(b->schedule, span, rank);
  }
}

/* The parts of `count` parties, of which `from` is the first, around the end. */
static void for_row(const bruck *b, int from, int count, int party,
                    void (*pass)(const bruck *, lcomm_span, int)) {
  int end = from + count;
  if (end <= b->parties) {
    pass(b, row_of(b, from, end), b->first[party]);
    return;
  }
  pass(b, row_of(b, from, b->parties), b->first[party]);
  pass(b, row_of(b, 0, end - b->parties), b->first[party]);
}

static void exchange_rows(const bruck *b) {
  for (int distance = 1; distance < b->parties; distance *= 2) {
    int left = b->parties - distance, count = distance < left ? distance : left;
    int before = (b->mine + left) % b->parties, behind = (b->mine + distance) % b->parties;
    for_row(b, b->mine, count, before, tell);
    for_row(b, behind, count, behind, hear);
  }
}

/* The first rank of a party hears all others of it, and tells them everything. */
static void exchange(const bruck *b) {
  int me = b->schedule->rank, first = b->first[b->mine], end = b->first[b->mine + 1];
  lcomm_span all = lcomm_span_whole(0, b->schedule->count);
  if (me != first) {
    tell(b, lcomm_part_of(b->begins, me), first);
    hear(b, all, first);
    return;
  }
  for (int rank = first + 1; rank < end; rank++) {
    hear(b, lcomm_part_of(b->begins, rank), rank);
  }
  exchange_rows(b);
  if (end - first == 1 || all.count == 0) {
    return;
  }
  uint32_t slot = lcomm_schedule_slot(b->schedule, LCOMM_STAGE_RESULT, all.count);
  lcomm_schedule_encode(b->schedule, all, slot, 1, LCOMM_FEEDBACK_NONE);
  for (int rank = first + 1; rank < end; rank++) {
    lcomm_schedule_send(b->schedule, slot, rank);
  }
}

lcomm_status lcomm_allgather_bruck(lcomm_schedule *schedule, const lcomm_topo *topo,
                                   const uint64_t *begins) {
  bruck b = {.schedule = schedule, .begins = begins};
  b.first = malloc(((size_t)topo->size + 1) * sizeof *b.first);
  if (!b.first) {
    return schedule->status = LCOMM_ERR_MEMORY;
  }
  find_parties(&b, topo);
  exchange(&b);
  free(b.first);
  return schedule->status;
}
