/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The votes of a round.
 *
 * Who hears that all are prepared has it confirmed. The host may die while it says so: then some
 * know it and some do not, and they meet again, as members of different generations. The highest
 * one that any of them has confirmed is the base of all: who has only prepared it takes it over. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/bootstrap/elastic/shrink.h"

/* May others have gone on with what this rank has prepared? */
static bool must_refuse(const lcomm_shrinking *it) {
  const lcomm_shrink_prepared *prepared = &it->prepared;
  return prepared->comm &&
         !lcomm_reunion_list_suffices(&it->found.list, prepared->members, prepared->count);
}

static bool exchange_votes(lcomm_shrinking *it, lcomm_reunion_vote *votes) {
  uint8_t mine[LCOMM_REUNION_VOTE_SIZE];
  int count = lcomm_shrink_count(it);
  lcomm_reunion_vote vote = {.confirmed = it->reunion->generation,
                             .prepared = it->prepared.generation,
                             .refuses = must_refuse(it)};
  uint8_t *all = calloc((size_t)count, sizeof(mine));
  lcomm_reunion_pack_vote(&vote, mine);
  bool good = all && lcomm_store_allgather(it->found.store, mine, all, sizeof(mine)) == 0;
  for (int i = 0; good && i < count; i++) {
    good = lcomm_reunion_read_vote(all + (size_t)i * sizeof(mine), &votes[i]) == LCOMM_OK;
  }
  free(all);
  return good;
}

/* From the same votes on all ranks; newcomers have none. */
static lcomm_status count_votes(const lcomm_shrinking *it, const lcomm_reunion_vote *votes,
                                uint32_t *confirmed, uint32_t *highest) {
  int count = it->found.list.survivors;
  *confirmed = *highest = 0;
  for (int i = 0; i < count; i++) {
    uint32_t last = votes[i].prepared > 0 ? votes[i].prepared : votes[i].confirmed;
    *confirmed = votes[i].confirmed > *confirmed ? votes[i].confirmed : *confirmed;
    *highest = last > *highest ? last : *highest;
  }
  for (int i = 0; i < count; i++) {
    bool knows = votes[i].confirmed == *confirmed || votes[i].prepared == *confirmed;
    if (!knows || (votes[i].refuses && votes[i].prepared != *confirmed)) {
      return lcomm_error_thread(
          LCOMM_ERR_TIMEOUT,
          "of the survivors that came to the meeting, the one that was rank %d "
          "may have been left by others that are silent and went on; so these "
          "do not: see whether the network between the hosts is down",
          it->found.list.seats[i]);
    }
  }
  return LCOMM_OK;
}

static bool contains(const int *seats, int count, int seat) {
  int i = 0;
  while (i < count && seats[i] != seat) {
    i++;
  }
  return i < count;
}

bool lcomm_shrink_lists(const lcomm_shrinking *it, int seat) {
  return contains(it->found.list.seats, it->found.list.survivors, seat);
}

void lcomm_shrink_take_over(lcomm_shrinking *it) {
  lcomm_reunion *reunion = it->reunion;
  lcomm_comm *before = it->base;
  lcomm_carry_finish(&it->prepared.carry);
  it->kept = it->prepared.kept;
  it->lost_squares = it->prepared.lost_squares;
  it->base = it->prepared.comm;
  for (int i = 0; i < reunion->leaver_count; i++) {
    it->left += !contains(it->prepared.members, it->prepared.count, reunion->leavers[i].seat);
  }
  lcomm_reunion_forget_leavers(reunion);
  reunion->generation = it->prepared.generation;
  reunion->count = it->prepared.count;
  memcpy(reunion->members, it->prepared.members, (size_t)reunion->count * sizeof(int));
  it->prepared.comm = NULL;
  it->prepared.generation = 0;
  if (before && before != it->comm) {
    lcomm_retire(before);
    lcomm_release(before);
  }
}

lcomm_status lcomm_shrink_vote(lcomm_shrinking *it, bool *met) {
  uint32_t confirmed = 0, highest = 0;
  lcomm_reunion_vote *votes = calloc((size_t)lcomm_shrink_count(it), sizeof *votes);
  *met = votes && exchange_votes(it, votes);
  lcomm_status status =
      *met ? count_votes(it, votes, &confirmed, &highest) : LCOMM_OK; /* the others notice */
  free(votes);
  if (status != LCOMM_OK || !*met) {
    return status;
  }
  if (it->prepared.generation == confirmed && it->reunion->generation < confirmed) {
    lcomm_shrink_take_over(it);
  }
  lcomm_shrink_drop(&it->prepared);
  it->generation = highest + 1;
  return LCOMM_OK;
}
