/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_ANNOUNCE_H
#define LCOMM_COMM_ANNOUNCE_H

/* What a new communicator writes into the log: version, policy and ranks; this rank's links; the
 * traces that ranks go on without. `all`: the handshakes of all ranks. */

#include "libcomm/comm/handshake.h"
#include "libcomm/engine/engine.h"

void lcomm_comm_announce(const lcomm_comm *comm, const lcomm_handshake *all);

#endif
