/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/call/call_changes.h"

enum { LEAVING, WAITING };

/* Rank 0 looks for newcomers. */
lcomm_call lcomm_changes_begin(lcomm_comm *comm, lcomm_changes_barrier *it) {
  *it = (lcomm_changes_barrier){.leaves = atomic_load(&comm->changes.asked)};
  it->counts[LEAVING] = it->leaves;
  if (comm->rank == 0 && comm->bootstrap.look) {
    it->counts[WAITING] = comm->bootstrap.look(&comm->bootstrap);
  }
  return lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, it->counts, it->counts, LCOMM_CHANGES_COUNTS,
                       LCOMM_INT32, LCOMM_SUM);
}

void lcomm_changes_end(lcomm_comm *comm, const lcomm_changes_barrier *it) {
  comm->changes.leaves = it->leaves;
  comm->changes.leaving = it->counts[LEAVING];
  comm->changes.waiting = it->counts[WAITING];
}
