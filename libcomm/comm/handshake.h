/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_HANDSHAKE_H
#define LCOMM_COMM_HANDSHAKE_H

/* What a rank says of itself when a communicator is made. */

#include "libcomm/engine/engine.h"
#include "libcomm/topo/processors.h"

enum { LCOMM_TOPO_NAME_MAX = 96 };

/* What a rank tells the others. Fixed size, no pointers. */
typedef struct lcomm_handshake {
  char magic[8];
  int32_t version, wire_version;
  int32_t status; /* of the rank's own preparation */
  int32_t nodes;
  int32_t progress; /* lcomm_progress_mode as asked for, never DEFAULT */
  int32_t mpi;      /* has a communicator of MPI */
  int32_t traced;
  uint64_t number; /* rank 0's names the communicator */
  uint64_t run_cache_bytes;
  char error[LCOMM_POLICY_ERROR_MAX]; /* with LCOMM_OK: why the rank goes on without a trace */
  char policy[LCOMM_POLICY_MAX];
  char transport[LCOMM_TRANSPORT_NAMES_MAX];
  char topo_file[LCOMM_TOPO_NAME_MAX]; /* LCOMM_TOPO_FILE, for people; "" for none */
  uint64_t topo_hash;                  /* of what it says; 0: there is none */
  lcomm_identity identity;
  lcomm_processors processors;
} lcomm_handshake;

/* Read the configuration and the environment, take them over into `comm`, *summary and
 * *topo_file (of LCOMM_TOPO_FILE, else empty; the caller frees it), and say in `mine` what the
 * others must know. What goes wrong is said there too, not returned: all ranks judge it together.
 */
void lcomm_handshake_prepare(lcomm_comm *comm, const lcomm_config *given,
                             lcomm_summary_mode *summary, lcomm_topo *topo_file,
                             lcomm_handshake *mine);

/* What all ranks have said, in rank order, as it came from them: any bytes. Their
 * texts are made fit to be shown. LCOMM_OK when all could prepare themselves and were
 * told the same; else the status, equal on all ranks, and the sentence as the
 * thread's error, told by `rank`, names the lowest rank that is wrong. Never a
 * number of a peer that is no status: that is WIRE. */
lcomm_status lcomm_handshake_check(lcomm_handshake *all, int size, int rank);

#endif
