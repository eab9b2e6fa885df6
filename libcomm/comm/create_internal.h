/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_CREATE_INTERNAL_H
#define LCOMM_COMM_CREATE_INTERNAL_H

/* What the files that make a communicator share. */

#include "libcomm/comm/handshake.h"
#include "libcomm/engine/engine.h"

/* What is known while a communicator is made, besides the communicator itself. */
typedef struct lcomm_create_context {
  const lcomm_bootstrap *base;
  lcomm_summary_mode summary;
  lcomm_topo topo_file; /* of LCOMM_TOPO_FILE, or empty */
  lcomm_handshake *all, *mine;
} lcomm_create_context;

/* Set the error of this thread, with who says it. Returns `status`. */
lcomm_status lcomm_create_complain(int rank, const lcomm_identity *identity, lcomm_status status,
                                   const char *sentence);

/* Choose who moves operations, and how a rank waits that has no processor to itself; start the
 * progress thread where it was asked for. Not collective: one rank alone can fail.
 */
lcomm_status lcomm_create_choose_waiting(lcomm_comm *comm, const lcomm_create_context *m);

/* Can that fail on some rank? Alike on all. */
bool lcomm_create_waiting_may_fail(const lcomm_comm *comm, const lcomm_create_context *m);

#endif
