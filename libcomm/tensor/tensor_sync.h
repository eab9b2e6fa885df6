/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_TENSOR_SYNC_H
#define LCOMM_TENSOR_TENSOR_SYNC_H

/* Where ranks compare the results that they were handed out. Servers, which take no results, take
 * part: they have begun the same operation before they serve, and begin it again after it, until
 * workers end with it. */

#include "libcomm/call/call.h"

/* What ranks come together for. */
typedef enum lcomm_sync_word {
  LCOMM_SYNC_COMPARES, /* lcomm_tensors_sync */
  LCOMM_SYNC_ENDS      /* lcomm_server_end, or lcomm_destroy */
} lcomm_sync_word;

/* Of one rank, as it travels. */
typedef struct lcomm_sync_entry {
  uint64_t word, steps, hash; /* `hash`: of all results that it was handed out */
} lcomm_sync_entry;

/* Gather the entries of all ranks and come to a verdict on those of workers, the same on all ranks:
 * MISMATCH where their words or what they compare differ. Collective; errors are sticky. */
lcomm_status lcomm_sync_make(lcomm_comm *comm, lcomm_sync_word word);

/* The parts of it, for a server: the operation, whose memory is the caller's until it is over, and
 * the verdict on all[size]. */
lcomm_call lcomm_sync_call(const lcomm_comm *comm, const lcomm_sync_entry *mine,
                           lcomm_sync_entry *all);
lcomm_status lcomm_sync_verdict(lcomm_comm *comm, const lcomm_sync_entry *all,
                                lcomm_sync_word *word);

#endif
