/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Newcomers are introduced: all learn what they make, and where newcomers can be met later; these
 * learn it of all. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/api/policy_query.h"
#include "libcomm/base/verdict.h"
#include "libcomm/bootstrap/elastic/shrink.h"

typedef lcomm_reunion_introduction introduction;

static int posed_nodes(const lcomm_shrinking *it, const int *ranks) {
  return lcomm_policy_query_posed_nodes(it->base, ranks, it->found.list.survivors);
}

lcomm_config lcomm_shrink_config(const lcomm_shrinking *it, const int *ranks) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  if (it->found.list.newcomers > 0) {
    config.policy = it->first.policy;
    config.transport = it->first.transport;
    config.timeout_s = it->first.timeout_s;
    config.progress = (lcomm_progress_mode)it->first.progress;
    config.nodes = (int)it->first.nodes;
    return config;
  }
  const lcomm_comm_settings *settings = &it->base->settings;
  config.policy = settings->policy_text;
  config.transport = settings->transport;
  config.timeout_s = settings->timeout_s;
  config.progress = settings->progress;
  config.nodes = posed_nodes(it, ranks);
  return config;
}

/* Ranks that left so far, and those that this list leaves out. */
static int count_left(const lcomm_shrinking *it) {
  int left = it->left;
  for (int i = 0; i < it->reunion->leaver_count; i++) {
    left += !lcomm_shrink_lists(it, it->reunion->leavers[i].seat);
  }
  return left;
}

/* Of a newcomer only the address counts. */
static introduction make_own(const lcomm_shrinking *it, const int *ranks) {
  introduction mine = {.address = lcomm_reunion_address_here(it->reunion, it->found.store),
                       .timeout_s = it->timeout_s};
  if (!it->base) {
    return mine;
  }
  const lcomm_comm_settings *settings = &it->base->settings;
  mine.timeout_s = settings->timeout_s;
  mine.progress = (uint32_t)settings->progress;
  mine.nodes = (uint32_t)posed_nodes(it, ranks);
  mine.ranks_before = (uint32_t)it->comm->size;
  mine.left = (uint32_t)count_left(it);
  snprintf(mine.transport, sizeof(mine.transport), "%s", settings->transport);
  snprintf(mine.name, sizeof(mine.name), "%s", it->base->identity.name);
  snprintf(mine.policy, sizeof(mine.policy), "%s", settings->policy_text);
  return mine;
}

static lcomm_status exchange(const lcomm_shrinking *it, const int *ranks, uint8_t *all, bool *met) {
  uint8_t *mine = calloc(1, LCOMM_REUNION_INTRODUCTION_SIZE);
  if (!mine) {
    *met = false; /* the others cannot go on either */
    return LCOMM_OK;
  }
  introduction own = make_own(it, ranks);
  lcomm_reunion_pack_introduction(&own, mine);
  *met = lcomm_store_allgather(it->found.store, mine, all, LCOMM_REUNION_INTRODUCTION_SIZE) == 0;
  free(mine);
  return LCOMM_OK;
}

static lcomm_status make_room(lcomm_shrinking *it) {
  int seats = it->found.list.world + it->found.list.newcomers;
  LCOMM_TRY(lcomm_reunion_make_room(it->reunion, seats));
  int *members = realloc(it->prepared.members, (size_t)it->reunion->seats * sizeof *members);
  it->prepared.members = members ? members : it->prepared.members;
  return members ? LCOMM_OK : LCOMM_ERR_MEMORY;
}

/* Those that were here before know where they meet each other. */
static lcomm_status take_address(lcomm_shrinking *it, int rank, lcomm_reunion_address address) {
  const lcomm_reunion_list *list = &it->found.list;
  bool is_new = rank >= list->survivors;
  int seat = is_new ? list->world + rank - list->survivors : list->seats[rank];
  if (it->base && !is_new) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_reunion_resolve(it->found.store, rank, &address));
  it->reunion->places[seat] = address.place;
  if (rank == it->found.rank) {
    it->reunion->seat = seat;
  }
  return LCOMM_OK;
}

static lcomm_status take_all(lcomm_shrinking *it, const uint8_t *all) {
  introduction *one = malloc(sizeof *one);
  lcomm_status status = one ? make_room(it) : LCOMM_ERR_MEMORY;
  for (int rank = 0; status == LCOMM_OK && rank < lcomm_shrink_count(it); rank++) {
    status =
        lcomm_reunion_read_introduction(all + (size_t)rank * LCOMM_REUNION_INTRODUCTION_SIZE, one);
    if (status == LCOMM_OK) {
      status = take_address(it, rank, one->address);
    }
    if (status == LCOMM_OK && rank == 0) {
      it->first = *one;
    }
  }
  free(one);
  return status;
}

/* All ranks say how it went. */
static lcomm_status agree(const lcomm_shrinking *it, lcomm_status mine, bool *met) {
  lcomm_verdict verdict;
  lcomm_bootstrap among = {.rank = it->found.rank,
                           .world_size = lcomm_shrink_count(it),
                           .context = it->found.store,
                           .allgather = lcomm_store_allgather};
  *met = lcomm_verdict_gather(&among, mine, &verdict) == LCOMM_OK;
  if (!*met || verdict.status == LCOMM_OK) {
    return LCOMM_OK;
  }
  return lcomm_error_thread(verdict.status,
                            "rank %d of %d, newcomers included, could not take down where all "
                            "ranks can be met: %s",
                            verdict.rank, lcomm_shrink_count(it), verdict.text);
}

lcomm_status lcomm_shrink_introduce(lcomm_shrinking *it, const int *ranks, bool *met) {
  size_t count = (size_t)lcomm_shrink_count(it);
  uint8_t *all = calloc(count, LCOMM_REUNION_INTRODUCTION_SIZE);
  if (!all) {
    *met = false;
    return LCOMM_OK;
  }
  lcomm_status status = exchange(it, ranks, all, met);
  if (*met) {
    status = agree(it, take_all(it, all), met);
  }
  free(all);
  return status;
}
