/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/nccl/nccl_backing_agree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_environment.h"
#include "libcomm/interpose/nccl/nccl_over.h"

typedef struct handshake {
  int32_t color, mode, required, controlled;
  uint64_t process; /* drawn by lot */
  char name[LCOMM_NCCL_NAME_MAX];
} handshake;

static handshake handshake_of(const lcomm_nccl_origin *origin) {
  handshake mine = {.color = origin->is_split ? origin->color : 0,
                    .mode = (int32_t)lcomm_nccl_over_mode(),
                    .required = lcomm_interpose_is_required(),
                    .controlled = lcomm_interpose_control_wanted(),
                    .process = lcomm_nccl_process_number()};
  snprintf(mine.name, sizeof(mine.name), "%s", origin->name);
  return mine;
}

/* All ranks see all handshakes, and come to the same answers. */
static bool is_agreed(const handshake *all, int ranks) {
  for (int i = 1; i < ranks; i++) {
    if (all[i].mode != all[0].mode || all[i].required != all[0].required ||
        all[i].controlled != all[0].controlled) {
      return false;
    }
  }
  return true;
}

static bool is_named(const handshake *all, int ranks, const handshake *mine) {
  for (int i = 0; i < ranks; i++) {
    if (all[i].color == mine->color && memcmp(all[i].name, mine->name, sizeof(mine->name)) != 0) {
      return false;
    }
  }
  return true;
}

static int order(const void *a, const void *b) {
  uint64_t first = ((const handshake *)a)->process, second = ((const handshake *)b)->process;
  return (first > second) - (first < second);
}

/* The first call of a shape gets memory, for which CUDA may wait until devices are idle: what
 * another rank of the process has put there must not wait for that call. Sorts them. */
static lcomm_nccl_manner manner_of(handshake *all, int ranks) {
  qsort(all, (size_t)ranks, sizeof *all, order);
  for (int i = 1; i < ranks; i++) {
    if (all[i].process == all[i - 1].process) {
      return LCOMM_NCCL_HOST_WAITS;
    }
  }
  return LCOMM_NCCL_IN_STREAMS;
}

lcomm_status lcomm_nccl_agree(lcomm_comm *from, const lcomm_nccl_origin *origin,
                              lcomm_nccl_agreement *agreement) {
  handshake mine = handshake_of(origin);
  int ranks = lcomm_size(from);
  handshake *all = calloc((size_t)ranks, sizeof *all);
  *agreement = (lcomm_nccl_agreement){.color = mine.color};
  if (!all) {
    lcomm_abort(from, "a rank has no memory to make a communicator");
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = lcomm_allgather(from, &mine, all, sizeof(mine), LCOMM_UINT8);
  if (status == LCOMM_OK) {
    bool named = is_named(all, ranks, &mine);
    snprintf(agreement->name, sizeof(agreement->name), "%s", named ? mine.name : "");
    agreement->is_agreed = is_agreed(all, ranks);
    agreement->manner = manner_of(all, ranks);
  }
  free(all);
  return status;
}
