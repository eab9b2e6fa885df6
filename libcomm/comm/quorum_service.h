/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_QUORUM_SERVICE_H
#define LCOMM_COMM_QUORUM_SERVICE_H

/* The communicator beside one with quorum=, stale= or algo=servers of the policy, over which owners
 * of pieces and contributors send to each other (shards/shards.h). */

#include "libcomm/engine/engine.h"

/* Part of making a communicator: does nothing without those, and for one rank.
 * Collective; ARGUMENT (more ranks are needed than there are, servers that cannot be), UNSUPPORTED
 * (no progress thread can be; elastic), what lcomm_split fails with: all ranks or none. */
lcomm_status lcomm_quorum_service_begin(lcomm_comm *comm);

/* Part of freeing it; its vectors are gone. orderly: all ranks have come to this, and no sum is in
 * flight. */
void lcomm_quorum_service_end(lcomm_comm *comm, bool orderly);

#endif
