/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_HANDSHAKE_H
#define LCOMM_COMM_HANDSHAKE_H

/* The handshake: what each rank tells all others while a communicator is made. */

#include "libcomm/engine/engine.h"
#include "libcomm/topo/processors.h"
#include "libcomm/transport/bootstrap_object.h"
#include "libcomm/transport/links.h"

enum { LCOMM_TOPO_NAME_MAX = 96 };

/* What a rank knows of itself, and of each of the others once they have met. */
typedef struct lcomm_handshake {
  char magic[8];
  int32_t version, wire_version;
  int32_t status; /* of the rank's own preparation */
  int32_t nodes;
  int32_t progress; /* lcomm_progress_mode as asked for, never DEFAULT */
  int32_t mpi;      /* has a communicator of MPI */
  int32_t traced;
  int32_t elastic; /* the communicator may lose ranks */
  lcomm_world_rank world;
  uint64_t number; /* rank 0's names the communicator */
  uint64_t run_cache_bytes;
  char error[LCOMM_WHY_MAX]; /* with LCOMM_OK: why the rank goes on without a trace */
  char policy[LCOMM_POLICY_MAX];
  char transport[LCOMM_TRANSPORT_NAMES_MAX];
  char topo_file[LCOMM_TOPO_NAME_MAX]; /* LCOMM_TOPO_FILE, for people; "" for none */
  uint64_t topo_hash;                  /* of what it says; 0: there is none */
  lcomm_identity identity;
  lcomm_processors processors;
  lcomm_transport_introduction introduction;
} lcomm_handshake;

/* What travels first: of the texts, which as a rule are equal, a hash. Fixed size, no pointers, no
 * padding. */
typedef struct lcomm_handshake_brief {
  char magic[8];
  int32_t version, wire_version;
  int32_t status, nodes, progress, mpi, traced;
  int32_t has_error;  /* a sentence, also with LCOMM_OK */
  int32_t has_device; /* the device of the identity is not empty */
  lcomm_world_rank world;
  int32_t elastic;
  uint64_t number, run_cache_bytes, texts_hash, topo_hash, host_hash, pid;
  char host[LCOMM_HOST_MAX], rack[LCOMM_RACK_MAX];
  lcomm_processors processors;
  lcomm_transport_introduction introduction;
} lcomm_handshake_brief;

/* What travels after it where some rank has an error, or another hash than rank 0. */
typedef struct lcomm_handshake_texts {
  char error[LCOMM_WHY_MAX];
  char policy[LCOMM_POLICY_MAX];
  char transport[LCOMM_TRANSPORT_NAMES_MAX];
  char topo_file[LCOMM_TOPO_NAME_MAX];
} lcomm_handshake_texts;

/* Read the configuration and the environment, store them in `comm`, *summary and *topo_file (of
 * LCOMM_TOPO_FILE, else empty; the caller frees it), and write into `mine` what the others must
 * know. An error is written there too, not returned, so that all ranks come to one verdict.
 */
void lcomm_handshake_prepare(lcomm_comm *comm, const lcomm_config *given,
                             lcomm_summary_mode *summary, lcomm_topo *topo_file,
                             lcomm_handshake *mine);

/* Fill in the handshakes of all ranks: one allgather where all have the same texts and no rank has
 * a device, else up to two more, decided by all ranks alike. Texts that did not travel are those of
 * `mine`; what is filled in may hold any bytes. TRANSPORT, MEMORY, with *failed_size: of
 * the allgather. */
lcomm_status lcomm_handshake_gather(const lcomm_bootstrap *base, const lcomm_handshake *mine,
                                    lcomm_handshake *all, size_t *failed_size);

/* Check the handshakes of all ranks, in rank order; they may hold any bytes. Texts in them are made
 * fit to be shown. LCOMM_OK when every rank has prepared itself and all have the same
 * configuration; else the status, equal on all ranks, and the sentence as the thread's error, in
 * the words of `rank`, names the lowest rank that is wrong. A number of a peer that is no status is
 * WIRE. */
lcomm_status lcomm_handshake_check(lcomm_handshake *all, int size, int rank);

#endif
