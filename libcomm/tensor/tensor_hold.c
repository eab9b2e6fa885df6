/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What ranks remember of tensors and calls, held until newcomers have theirs: the step that groups
 * tensors first shares it out, or the first call with a residual. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/tensor/residual_carry.h"
#include "libcomm/tensor/saved_state.h"

void lcomm_carry_release(lcomm_comm *comm) {
  lcomm_carry_held *held = comm->changes.held;
  if (!held) {
    return;
  }
  for (uint32_t i = 0; i < held->count; i++) {
    free(held->mine[i].bytes);
  }
  free(held->mine);
  free(held->counts);
  free(held);
  comm->changes.held = NULL;
}

static bool copy_block(const lcomm_carry_block *from, lcomm_carry_block *to) {
  to->bytes = malloc(from->size);
  to->size = from->size;
  if (to->bytes) {
    memcpy(to->bytes, from->bytes, from->size);
  }
  return to->bytes != NULL;
}

lcomm_status lcomm_carry_hold(lcomm_comm *comm, const lcomm_carry_held *held) {
  size_t ranks = (size_t)comm->size;
  lcomm_carry_held *made = calloc(1, sizeof *made);
  comm->changes.held = made;
  if (!made) {
    return LCOMM_ERR_MEMORY;
  }
  made->ranks_before = held->ranks_before;
  made->remembered = held->remembered;
  made->mine = calloc(held->count + 1, sizeof *made->mine);
  made->counts = calloc(ranks, sizeof *made->counts);
  bool whole = made->mine && made->counts;
  for (; whole && made->count < held->count; made->count++) {
    whole = copy_block(&held->mine[made->count], &made->mine[made->count]);
  }
  if (!whole) {
    return LCOMM_ERR_MEMORY;
  }
  memcpy(made->counts, held->counts, ranks * sizeof *made->counts);
  LCOMM_TRY(lcomm_enter(comm));
  if (comm->tensors->count > 0) {
    lcomm_expect_overlap(comm);
  }
  lcomm_exit(comm);
  return LCOMM_OK;
}

/* ---------------------------------------------------------------- resuming */

static lcomm_status load(lcomm_comm *comm) {
  const lcomm_carry_held *held = comm->changes.held;
  lcomm_carry_blocks blocks = {.mine = held->mine, .counts = held->counts};
  return lcomm_carry_bring(comm, &blocks, held->ranks_before, lcomm_saved_state_resume);
}

/* Frozen tensors take part until they have what is theirs. */
lcomm_status lcomm_carry_resume(lcomm_comm *comm) {
  lcomm_tensor_set *tensors = comm->tensors;
  if (!comm->changes.held) {
    return LCOMM_OK;
  }
  for (size_t i = 0; i < tensors->count; i++) {
    tensors->list[i]->planned = true;
  }
  LCOMM_TRY(lcomm_buckets_plan(comm));
  LCOMM_TRY(lcomm_residuals_number(comm));
  tensors->regrouping = true;
  LCOMM_TRY(load(comm));
  tensors->regrouping = false;
  lcomm_carry_release(comm);
  return LCOMM_OK;
}

lcomm_status lcomm_residual_prepare_use(lcomm_comm *comm) {
  if (!comm->changes.held) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(comm));
  lcomm_status status = lcomm_control_receive(comm);
  status = status == LCOMM_OK ? lcomm_tensors_plan(comm) : status;
  lcomm_exit(comm);
  return status;
}
