/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A store over connections that are there: of ranks that have met in another way. */

#include <limits.h>
#include <stdio.h>

#include "libcomm/bootstrap/store/store_internal.h"

lcomm_status lcomm_store_star(int rank, int size, const int *fds, double timeout_s,
                              lcomm_store **store) {
  const lcomm_launcher_env place = {.rank = rank, .world_size = size};
  const lcomm_store_shape shape = {.star_most = INT_MAX, .fan_out = 4};
  LCOMM_TRY(lcomm_store_begin(&place, timeout_s, shape, store));
  snprintf((*store)->where, sizeof((*store)->where), "the meeting of survivors");
  for (int other = 1; rank == 0 && other < size; other++) {
    (*store)->peers[other].fd = fds[other];
  }
  if (rank > 0) {
    (*store)->fd = fds[0];
  }
  return LCOMM_OK;
}
