/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Residuals of calls: survivors tell each other how many calls with each they have finished, and
 * stand alike then. */

#include <stdlib.h>

#include "libcomm/bootstrap/elastic/shrink.h"
#include "libcomm/tensor/residual_carry.h"

/* The most that a survivor has. */
static size_t find_most(const lcomm_standing *all, int survivors) {
  uint32_t most = 0;
  for (int i = 0; i < survivors; i++) {
    most = all[i].residuals > most ? all[i].residuals : most;
  }
  return most;
}

/* A newcomer has none. */
static bool exchange(const lcomm_shrinking *it, size_t each, lcomm_call_standing *all) {
  size_t ranks = (size_t)lcomm_shrink_count(it), size = each * LCOMM_REUNION_CALLS_SIZE;
  uint8_t *mine = calloc(size, 1), *bytes = calloc(ranks, size);
  bool good = mine && bytes;
  if (good && it->base) {
    lcomm_residuals_stand(it->base, all);
    lcomm_reunion_pack_calls(all, lcomm_residuals_count(it->base), mine);
  }
  good = good && lcomm_store_allgather(it->found.store, mine, bytes, size) == 0;
  for (size_t i = 0; good && i < ranks; i++) {
    good = lcomm_reunion_read_calls(bytes + i * size, each, all + i * each) == LCOMM_OK;
  }
  free(mine);
  free(bytes);
  return good;
}

lcomm_status lcomm_shrink_settle_calls(lcomm_shrinking *it, const lcomm_standing *all, bool *met) {
  int survivors = it->found.list.survivors;
  size_t each = find_most(all, survivors);
  if (each == 0 || it->holds) { /* no call was made since newcomers came */
    return LCOMM_OK;
  }
  lcomm_call_standing *calls = calloc((size_t)lcomm_shrink_count(it) * each, sizeof *calls);
  *met = calls && exchange(it, each, calls);
  lcomm_status status =
      *met && it->base ? lcomm_residuals_settle(it->base, calls, each, survivors) : LCOMM_OK;
  free(calls);
  return status;
}
