/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One round of a shrink: the survivors meet, vote (shrink_vote.c), make a communicator, and confirm
 * it. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/base/verdict.h"
#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/comm/create.h"
#include "libcomm/comm/measure.h"

bool (*lcomm_shrink_watch)(lcomm_shrink_moment moment);

/* False: a test has cut the connections here. */
static bool passes(lcomm_shrink_moment moment) {
  return !lcomm_shrink_watch || lcomm_shrink_watch(moment);
}

void lcomm_shrink_drop(lcomm_shrink_prepared *prepared) {
  lcomm_carry_undo(&prepared->carry);
  if (prepared->comm) {
    lcomm_retire(prepared->comm);
    lcomm_release(prepared->comm);
  }
  prepared->comm = NULL;
  prepared->generation = 0;
}

/* ----------------------------------------------------------------- preparing */

/* The survivors' ranks in the base; who was given up with it is none of them. */
static bool find_ranks(const lcomm_shrinking *it, int *ranks) {
  const lcomm_reunion_list *list = &it->found.list;
  for (int i = 0; i < list->survivors; i++) {
    int rank = 0;
    while (rank < it->reunion->count && it->reunion->members[rank] != list->seats[i]) {
      rank++;
    }
    if (rank == it->reunion->count) {
      return false;
    }
    ranks[i] = rank;
  }
  return true;
}

static lcomm_status make(lcomm_shrinking *it, const int *ranks, lcomm_comm **made) {
  lcomm_config config = lcomm_shrink_config(it, ranks);
  lcomm_bootstrap_object bootstrap = {.base = {.rank = it->found.rank,
                                               .world_size = lcomm_shrink_count(it),
                                               .context = it->found.store,
                                               .allgather = lcomm_store_allgather},
                                      .elastic = true,
                                      .world = {.rank = -1}};
  const char *name = it->base ? it->base->identity.name : it->first.name;
  LCOMM_TRY(lcomm_comm_create(&bootstrap, &config, made));
  return name[0] ? lcomm_name_set(*made, name) : LCOMM_OK;
}

static void keep(lcomm_shrinking *it, lcomm_comm *made) {
  const lcomm_reunion_list *list = &it->found.list;
  it->prepared.comm = made;
  it->prepared.generation = it->generation;
  it->prepared.count = lcomm_shrink_count(it);
  it->prepared.newcomers = list->newcomers;
  it->prepared.kept = it->kept;
  it->prepared.lost_squares = it->lost_squares;
  memcpy(it->prepared.members, list->seats, (size_t)list->survivors * sizeof(int));
  for (int i = 0; i < list->newcomers; i++) {
    it->prepared.members[list->survivors + i] = list->world + i;
  }
}

static bool has_store_failed(const lcomm_shrinking *it) {
  const char *sentence = "";
  return lcomm_store_failure(it->found.store, &sentence) != LCOMM_OK;
}

/* What its links cost, and its tensors. An operation fails where somebody has died. */
static lcomm_status fill(lcomm_shrinking *it, bool *met) {
  lcomm_comm *made = it->prepared.comm;
  lcomm_status status = lcomm_costs_measure(made);
  if (status == LCOMM_OK && it->found.list.newcomers > 0) {
    status = lcomm_shrink_hold(it);
  } else if (status == LCOMM_OK) {
    status = lcomm_shrink_carry(it);
  }
  if (status == LCOMM_OK) {
    return LCOMM_OK;
  }
  *met = status != LCOMM_ERR_TRANSPORT && status != LCOMM_ERR_TIMEOUT;
  return *met ? lcomm_error_thread(status, "%s", made->errors.text) : LCOMM_OK;
}

/* *met becomes false where somebody has died. */
static lcomm_status prepare(lcomm_shrinking *it, const int *ranks, bool *met) {
  lcomm_comm *made = NULL;
  lcomm_status status = make(it, ranks, &made);
  if (made) {
    keep(it, made);
  }
  if (status != LCOMM_OK) {
    *met = !has_store_failed(it);
    return *met ? status : LCOMM_OK;
  }
  *met = passes(LCOMM_SHRINK_MADE);
  return *met ? fill(it, met) : LCOMM_OK;
}

static lcomm_status introduce_and_prepare(lcomm_shrinking *it, bool *met) {
  int *ranks = calloc((size_t)it->found.list.survivors, sizeof *ranks);
  if (!ranks) {
    return lcomm_error_thread(LCOMM_ERR_MEMORY, "%s: out of memory", it->call);
  }
  lcomm_status status =
      !it->base || find_ranks(it, ranks)
          ? LCOMM_OK
          : lcomm_error_thread(LCOMM_ERR_TIMEOUT, "a rank that was given up came to the meeting of "
                                                  "the survivors; start it anew");
  if (status == LCOMM_OK && it->found.list.newcomers > 0) {
    status = lcomm_shrink_introduce(it, ranks, met);
  }
  *met = *met && passes(LCOMM_SHRINK_SETTLED);
  if (status == LCOMM_OK && *met) {
    status = prepare(it, ranks, met);
  }
  free(ranks);
  return status;
}

/* --------------------------------------------------------------- confirming */

/* What there was before; a newcomer has it from rank 0. */
static void tell_changes(lcomm_shrinking *it) {
  lcomm_regrouped *told = &it->reunion->regrouped;
  int joined = it->found.list.newcomers;
  *told = (lcomm_regrouped){.ranks_before = it->comm ? it->comm->size : (int)it->first.ranks_before,
                            .left = it->comm ? it->left : (int)it->first.left,
                            .joined = joined,
                            .is_newcomer = !it->comm,
                            .steps = it->steps};
  told->lost = told->ranks_before - (it->base->size - joined) - told->left;
}

static void confirm(lcomm_shrinking *it) {
  lcomm_reunion *reunion = it->reunion;
  lcomm_shrink_take_over(it);
  tell_changes(it);
  it->base->bootstrap.reunion = reunion;
  it->base->bootstrap.look = lcomm_reunion_look;
  it->base->bootstrap.release = lcomm_reunion_release;
  if (!it->comm) {
    return;
  }
  reunion->shrunk = (lcomm_shrunk){.ranks_before = it->comm->size,
                                   .lost = reunion->regrouped.lost,
                                   .steps = it->base->deferred.step,
                                   .finished = it->finished,
                                   .lost_residual = 1 - it->kept,
                                   .lost_norm = sqrt(it->lost_squares)};
  it->comm->bootstrap.reunion = NULL;
  atomic_store(&it->base->changes.asked, atomic_load(&it->comm->changes.asked));
}

/* All are prepared, or nobody goes on with this. */
static lcomm_status agree(lcomm_shrinking *it, bool *over) {
  lcomm_verdict verdict;
  lcomm_bootstrap among = {.rank = it->found.rank,
                           .world_size = lcomm_shrink_count(it),
                           .context = it->found.store,
                           .allgather = lcomm_store_allgather};
  lcomm_status status = lcomm_verdict_gather(&among, LCOMM_OK, &verdict);
  if (status == LCOMM_OK && passes(LCOMM_SHRINK_CONFIRMED)) {
    confirm(it);
    *over = true;
  }
  return LCOMM_OK;
}

static lcomm_status go_on(lcomm_shrinking *it, bool *over) {
  bool met = passes(LCOMM_SHRINK_MET);
  LCOMM_TRY(met ? lcomm_shrink_vote(it, &met) : LCOMM_OK);
  met = met && passes(LCOMM_SHRINK_VOTED);
  LCOMM_TRY(met ? lcomm_shrink_settle(it, &met) : LCOMM_OK);
  LCOMM_TRY(met ? introduce_and_prepare(it, &met) : LCOMM_OK);
  if (!met) {
    lcomm_shrink_drop(&it->prepared);
    return LCOMM_OK;
  }
  return passes(LCOMM_SHRINK_PREPARED) ? agree(it, over) : LCOMM_OK;
}

static void end_meeting(lcomm_shrinking *it) {
  lcomm_store_close(it->found.store);
  it->found.store = NULL;
}

/* Newcomers with whom it fails hurt nobody: the others meet again without any. */
static lcomm_status go_on_without_newcomers(lcomm_shrinking *it, lcomm_status status) {
  if (status == LCOMM_OK || it->found.list.newcomers == 0) {
    return status;
  }
  lcomm_shrink_drop(&it->prepared);
  it->reunion->admits = false;
  return LCOMM_OK;
}

lcomm_status lcomm_shrink_round(lcomm_shrinking *it, bool *over) {
  const lcomm_shrink_prepared *prepared = &it->prepared;
  *over = false;
  if (!passes(LCOMM_SHRINK_BEGUN)) {
    return LCOMM_OK;
  }
  it->reunion->guest_count = prepared->comm ? prepared->newcomers : 0;
  it->reunion->guests = prepared->members + prepared->count - it->reunion->guest_count;
  LCOMM_TRY(lcomm_reunion_meet(it->reunion, it->timeout_s, it->until_s, &it->found));
  lcomm_status status = go_on(it, over);
  end_meeting(it);
  return go_on_without_newcomers(it, status);
}

lcomm_status lcomm_shrink_arrive(lcomm_shrinking *it, bool *over) {
  *over = false;
  lcomm_status status = go_on(it, over);
  end_meeting(it);
  lcomm_shrink_drop(&it->prepared);
  return status;
}
