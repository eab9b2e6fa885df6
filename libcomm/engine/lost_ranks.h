/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_LOST_RANKS_H
#define LCOMM_ENGINE_LOST_RANKS_H

/* Lost ranks: processes that a communicator of this process has given up, because they are dead or
 * were silent for the whole time-out. Its other communicators need not wait for them again when
 * they are destroyed. Any thread may call these functions. */

#include "libcomm/engine/engine.h"

/* Remember the culprit of a fault, if that is another process that broke off or was
 * silent. */
void lcomm_lost_ranks_add(const lcomm_comm *comm, const lcomm_fault *fault);

/* Is a rank of this communicator a lost process? Fills in the fault, or returns false. */
bool lcomm_lost_ranks_find(const lcomm_comm *comm, lcomm_fault *fault);

/* Forget the processes of a new communicator: they have just answered. */
void lcomm_lost_ranks_forget(const lcomm_comm *comm);

#endif
