/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What goes over: all survivors finish the step in flight, or undo it; then their tensors and
 * residuals, with what error feedback remembers, become those of the next communicator. */

#include <stdlib.h>

#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/tensor/residual_carry.h"

/* ---------------------------------------------------------------- deciding */

bool lcomm_shrink_decide(const lcomm_standing *all, int count, uint64_t *steps) {
  uint64_t least = UINT64_MAX, most = 0;
  bool all_complete = true;
  for (int i = 0; i < count; i++) {
    least = all[i].steps < least ? all[i].steps : least;
    most = all[i].steps > most ? all[i].steps : most;
  }
  for (int i = 0; i < count; i++) {
    all_complete &= all[i].steps > least || all[i].complete;
  }
  *steps = all_complete ? least + 1 : least;
  return most == least || (most == least + 1 && all_complete);
}

/* Does this rank bring what a rank has given it before it left? Who has come nevertheless brings it
 * itself. */
static bool inherits(const lcomm_shrinking *it, const lcomm_reunion_leaver *leaver) {
  return leaver->block.bytes && !lcomm_shrink_lists(it, leaver->seat);
}

static void add_inherited(const lcomm_shrinking *it, lcomm_standing *standing) {
  lcomm_remembered *sum = &standing->remembered;
  for (int i = 0; i < it->reunion->leaver_count; i++) {
    const lcomm_reunion_leaver *leaver = &it->reunion->leavers[i];
    if (inherits(it, leaver)) {
      sum->kept += leaver->remembered.kept;
      sum->squares += leaver->remembered.squares;
      sum->all = sum->all > leaver->remembered.all ? sum->all : leaver->remembered.all;
      standing->blocks++;
    }
  }
  /* Of tensors whose residual only one of the two keeps, each knows its own. */
  sum->all = sum->all > sum->kept ? sum->all : sum->kept;
}

static bool exchange(const lcomm_shrinking *it, lcomm_standing *all) {
  uint8_t mine[LCOMM_REUNION_STANDING_SIZE];
  int count = lcomm_shrink_count(it);
  lcomm_standing standing = {.steps = 0};
  if (it->base) {
    standing = lcomm_standing_get(it->base);
    add_inherited(it, &standing);
  }
  uint8_t *bytes = calloc((size_t)count, sizeof(mine));
  lcomm_reunion_pack_standing(&standing, mine);
  bool good = bytes && lcomm_store_allgather(it->found.store, mine, bytes, sizeof(mine)) == 0;
  for (int i = 0; good && i < count; i++) {
    good = lcomm_reunion_read_standing(bytes + (size_t)i * sizeof(mine), &all[i]) == LCOMM_OK;
  }
  free(bytes);
  return good;
}

/* What the survivors keep together. */
static lcomm_remembered sum_of(const lcomm_standing *all, int count) {
  lcomm_remembered sum = {.kept = 0};
  for (int i = 0; i < count; i++) {
    const lcomm_remembered *one = &all[i].remembered;
    sum.kept += one->kept;
    sum.squares += one->squares;
    sum.all = one->all > sum.all ? one->all : sum.all;
  }
  return sum;
}

/* The share of it that is carried over, and how large the rest is. */
static void weigh(lcomm_shrinking *it, const lcomm_standing *all, int count) {
  lcomm_remembered sum = sum_of(all, count);
  bool loses = sum.all > 0 && sum.kept < sum.all;
  it->carried = loses ? (double)sum.kept / (double)sum.all : 1;
  it->losing = lcomm_remembered_lost(&sum);
  if (it->empty) {
    it->carried = 0;
    it->losing += sum.squares;
  }
}

/* What one of them says counts for all. */
static void find_troubles(lcomm_shrinking *it, const lcomm_standing *all, int count) {
  it->empty = it->holds = false;
  for (int i = 0; i < count; i++) {
    it->empty |= all[i].regrouping;
    it->holds |= all[i].holds;
  }
}

/* From the same standings on all ranks. Share of the base's residuals that is carried over. */
static lcomm_status settle(lcomm_shrinking *it, const lcomm_standing *all) {
  int count = it->found.list.survivors;
  if (!lcomm_shrink_decide(all, count, &it->steps)) {
    return lcomm_error_thread(LCOMM_ERR_MISMATCH,
                              "the survivors have finished different numbers of steps; all ranks "
                              "make the same steps");
  }
  find_troubles(it, all, count);
  for (int i = 0; i < count; i++) {
    it->blocks[i] = all[i].blocks;
  }
  weigh(it, all, count);
  it->finished |= it->base && lcomm_standing_settle(it->base, it->steps);
  return LCOMM_OK;
}

lcomm_status lcomm_shrink_settle(lcomm_shrinking *it, bool *met) {
  size_t count = (size_t)lcomm_shrink_count(it);
  lcomm_standing *all = calloc(count, sizeof *all);
  free(it->blocks);
  it->blocks = calloc(count, sizeof *it->blocks);
  *met = all && it->blocks && exchange(it, all);
  lcomm_status status = *met ? settle(it, all) : LCOMM_OK;
  if (status == LCOMM_OK && *met) {
    status = lcomm_shrink_settle_calls(it, all, met);
  }
  free(all);
  return status;
}

/* ---------------------------------------------------------------- carrying */

/* What this rank brings. */
typedef struct bringing {
  lcomm_carry_block own;   /* written here */
  lcomm_carry_block *mine; /* all of them, others' memory */
  uint32_t count;
} bringing;

static void add(bringing *it, const lcomm_carry_block *blocks, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    it->mine[it->count++] = blocks[i];
  }
}

/* What was held for newcomers, or what this rank writes; and what it inherits. */
static lcomm_status find_blocks(const lcomm_shrinking *it, bringing *b) {
  const lcomm_carry_held *held = it->base ? it->base->changes.held : NULL;
  size_t most = (size_t)it->reunion->leaver_count + (held ? held->count : 1);
  b->mine = calloc(most + 1, sizeof *b->mine);
  if (!b->mine) {
    return LCOMM_ERR_MEMORY;
  }
  if (held) {
    add(b, held->mine, held->count);
  } else if (it->base && lcomm_carry_has_any(it->base)) {
    LCOMM_TRY(lcomm_carry_write(it->base, it->empty, &b->own));
    add(b, &b->own, 1);
  }
  for (int i = 0; i < it->reunion->leaver_count; i++) {
    if (inherits(it, &it->reunion->leavers[i])) {
      add(b, &it->reunion->leavers[i].block, 1);
    }
  }
  return LCOMM_OK;
}

/* What the base has goes over; the others wait for a rank where this fails. */
static lcomm_status bring_over(lcomm_shrinking *it, bringing *b) {
  lcomm_comm *to = it->prepared.comm;
  lcomm_status status = find_blocks(it, b);
  if (status == LCOMM_OK && it->base) {
    status = lcomm_carry_move(&it->prepared.carry, it->base, to);
  }
  it->prepared.kept = it->kept * it->carried;
  it->prepared.lost_squares = it->lost_squares + it->losing;
  return status == LCOMM_OK
             ? LCOMM_OK
             : lcomm_fail(to, status, "%s: out of memory for what is carried over", it->call);
}

lcomm_status lcomm_shrink_carry(lcomm_shrinking *it) {
  bringing b = {.count = 0};
  lcomm_status status = bring_over(it, &b);
  if (status == LCOMM_OK) {
    lcomm_carry_blocks blocks = {.mine = b.mine, .counts = it->blocks};
    status = it->holds ? lcomm_residuals_number(it->prepared.comm) : LCOMM_OK;
    status = status == LCOMM_OK ? lcomm_carry_load(&it->prepared.carry, &blocks) : status;
  }
  free(b.own.bytes);
  free(b.mine);
  return status;
}

static lcomm_status hold(lcomm_shrinking *it, const bringing *b) {
  lcomm_comm *to = it->prepared.comm;
  const lcomm_carry_held *before = it->base ? it->base->changes.held : NULL;
  lcomm_carry_held held = {.mine = b->mine,
                           .count = b->count,
                           .counts = it->blocks,
                           .ranks_before =
                               before ? before->ranks_before : (int)it->first.ranks_before};
  if (it->base) {
    lcomm_standing standing = lcomm_standing_get(it->base);
    add_inherited(it, &standing);
    held.remembered = standing.remembered;
  }
  uint32_t all = 0;
  for (int rank = 0; rank < to->size; rank++) {
    all += it->blocks[rank];
  }
  if (all == 0) { /* there are no tensors and no residuals */
    return LCOMM_OK;
  }
  to->deferred.step = it->steps;
  lcomm_carry_freeze(&it->prepared.carry);
  return lcomm_carry_hold(to, &held) == LCOMM_OK
             ? LCOMM_OK
             : lcomm_fail(to, LCOMM_ERR_MEMORY, "%s: out of memory for what is carried over",
                          it->call);
}

lcomm_status lcomm_shrink_hold(lcomm_shrinking *it) {
  bringing b = {.count = 0};
  lcomm_status status = bring_over(it, &b);
  if (status == LCOMM_OK) {
    status = hold(it, &b);
  }
  free(b.own.bytes);
  free(b.mine);
  return status;
}
