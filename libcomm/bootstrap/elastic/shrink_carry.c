/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What goes over: all survivors finish the step in flight, or undo it; then their tensors, with
 * what error feedback remembers, become those of the next communicator. */

#include <stdlib.h>

#include "libcomm/bootstrap/elastic/shrink.h"

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
  for (int i = 0; i < it->reunion->leaver_count; i++) {
    const lcomm_reunion_leaver *leaver = &it->reunion->leavers[i];
    if (inherits(it, leaver)) {
      standing->kept += leaver->kept;
      standing->blocks++;
    }
  }
}

static bool exchange(const lcomm_shrinking *it, lcomm_standing *all) {
  uint8_t mine[LCOMM_REUNION_STANDING_SIZE];
  int count = it->found.list.survivors;
  lcomm_standing standing = lcomm_standing_get(it->base);
  add_inherited(it, &standing);
  uint8_t *bytes = calloc((size_t)count, sizeof(mine));
  lcomm_reunion_pack_standing(&standing, mine);
  bool good = bytes && lcomm_store_allgather(it->found.store, mine, bytes, sizeof(mine)) == 0;
  for (int i = 0; good && i < count; i++) {
    good = lcomm_reunion_read_standing(bytes + (size_t)i * sizeof(mine), &all[i]) == LCOMM_OK;
  }
  free(bytes);
  return good;
}

/* The share of the residuals that the survivors keep. */
static double count_kept(const lcomm_standing *all, int count) {
  uint64_t kept = 0, most = 0;
  for (int i = 0; i < count; i++) {
    kept += all[i].kept;
    most = all[i].all > most ? all[i].all : most;
  }
  return most > 0 && kept < most ? (double)kept / (double)most : 1;
}

static bool any_regroups(const lcomm_standing *all, int count) {
  int i = 0;
  while (i < count && !all[i].regrouping) {
    i++;
  }
  return i < count;
}

/* From the same standings on all ranks. Share of the base's residuals that is carried over. */
static lcomm_status settle(lcomm_shrinking *it, const lcomm_standing *all) {
  int count = it->found.list.survivors;
  uint64_t steps = 0;
  if (!lcomm_shrink_decide(all, count, &steps)) {
    return lcomm_error_thread(LCOMM_ERR_MISMATCH,
                              "the survivors have finished different numbers of steps; all ranks "
                              "make the same steps");
  }
  it->empty = any_regroups(all, count);
  for (int i = 0; i < count; i++) {
    it->blocks[i] = all[i].blocks;
  }
  it->carried = it->empty ? 0 : count_kept(all, count);
  it->finished |= lcomm_standing_settle(it->base, steps);
  return LCOMM_OK;
}

lcomm_status lcomm_shrink_settle(lcomm_shrinking *it, bool *met) {
  size_t count = (size_t)it->found.list.survivors;
  lcomm_standing *all = calloc(count, sizeof *all);
  free(it->blocks);
  it->blocks = calloc(count, sizeof *it->blocks);
  *met = all && it->blocks && exchange(it, all);
  lcomm_status status = *met ? settle(it, all) : LCOMM_OK;
  free(all);
  return status;
}

/* ---------------------------------------------------------------- carrying */

/* The first of the blocks is this rank's own, and the caller's to free. */
static lcomm_status write_blocks(const lcomm_shrinking *it, lcomm_carry_block *blocks) {
  int count = 1;
  LCOMM_TRY(lcomm_carry_write(it->base, it->empty, &blocks[0]));
  for (int i = 0; i < it->reunion->leaver_count; i++) {
    if (inherits(it, &it->reunion->leavers[i])) {
      blocks[count++] = it->reunion->leavers[i].block;
    }
  }
  return LCOMM_OK;
}

static lcomm_status move_and_load(lcomm_shrinking *it, lcomm_carry_block *mine) {
  lcomm_comm *to = it->prepared.comm;
  lcomm_carry_blocks blocks = {.mine = mine, .counts = it->blocks};
  lcomm_status status = mine ? write_blocks(it, mine) : LCOMM_ERR_MEMORY;
  if (status == LCOMM_OK) {
    status = lcomm_carry_move(&it->prepared.carry, it->base, to);
  }
  if (status != LCOMM_OK) { /* the others wait for this rank */
    return lcomm_fail(to, status, "%s: out of memory for the tensors' state", it->call);
  }
  return lcomm_carry_load(&it->prepared.carry, &blocks);
}

lcomm_status lcomm_shrink_carry(lcomm_shrinking *it) {
  lcomm_carry_block *mine = calloc((size_t)it->reunion->leaver_count + 1, sizeof *mine);
  lcomm_status status = move_and_load(it, mine);
  if (mine) {
    free(mine[0].bytes);
  }
  free(mine);
  it->prepared.kept = it->kept * it->carried;
  return status;
}
