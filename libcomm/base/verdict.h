/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BASE_VERDICT_H
#define LCOMM_BASE_VERDICT_H

/* One verdict on all ranks: every rank gives its status, and each checks all statuses in
 * the same way, so all name the same first rank that failed. */

#include <stdbool.h>
#include <stddef.h>

#include "libcomm/base/status.h"
#include "libcomm/include/libcomm.h"

typedef struct lcomm_verdict {
  lcomm_status status;              /* of the first rank that failed, LCOMM_OK if none did */
  int rank;                         /* its rank, -1 if none failed */
  bool known;                       /* what it gave is a status; else status is LCOMM_ERR_WIRE */
  char text[LCOMM_STATUS_TEXT_MAX]; /* the status in words, or what is wrong with it */
} lcomm_verdict;

/* Check the statuses of `size` ranks: int32_t, one every `stride` bytes, as peers sent them. */
lcomm_verdict lcomm_verdict_of(const void *statuses, size_t stride, int size);

/* Gather the status of every rank, and check them. What is returned says whether that worked:
 * LCOMM_ERR_MEMORY, or LCOMM_ERR_TRANSPORT when the allgather failed; then there is no verdict. */
lcomm_status lcomm_verdict_gather(const lcomm_bootstrap *bootstrap, lcomm_status mine,
                                  lcomm_verdict *verdict);

#endif
