/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The handshakes of all ranks: one verdict, the same on all ranks. */

#include <stdio.h>
#include <string.h>

#include "libcomm/base/text.h"
#include "libcomm/base/verdict.h"
#include "libcomm/comm/handshake.h"

/* Everything here came from peers, what this rank says itself included. */
static void sanitize(lcomm_handshake *all, int size) {
  for (int i = 0; i < size; i++) {
    lcomm_handshake *it = &all[i];
    lcomm_text_sanitize(it->error, sizeof(it->error));
    lcomm_text_sanitize(it->policy, sizeof(it->policy));
    lcomm_text_sanitize(it->transport, sizeof(it->transport));
    lcomm_text_sanitize(it->topo_file, sizeof(it->topo_file));
    lcomm_text_sanitize(it->identity.host, sizeof(it->identity.host));
  }
}

static lcomm_status complain(const lcomm_handshake *all, int rank, lcomm_status status,
                             const char *sentence) {
  return lcomm_error_thread(status, "rank %d (host %s): %s", rank, all[rank].identity.host,
                            sentence);
}

/* A rank that could not prepare itself stops all; the lowest one is named. */
static lcomm_status check_preparations(const lcomm_handshake *all, int size, int rank) {
  char sentence[LCOMM_WHY_MAX + 160];
  for (int i = 0; i < size; i++) {
    if (memcmp(all[i].magic, "libcomm", 8) != 0) {
      snprintf(sentence, sizeof(sentence), "rank %d does not speak libcomm's handshake", i);
      return complain(all, rank, LCOMM_ERR_MISMATCH, sentence);
    }
  }
  lcomm_verdict verdict = lcomm_verdict_of(&all->status, sizeof *all, size);
  if (verdict.status == LCOMM_OK) {
    return LCOMM_OK;
  }
  const lcomm_handshake *failed = &all[verdict.rank];
  snprintf(sentence, sizeof(sentence), "%s", failed->error);
  if (verdict.rank != rank || !verdict.known) {
    snprintf(sentence, sizeof(sentence), "rank %d (host %s) reports: %s", verdict.rank,
             failed->identity.host, verdict.known ? failed->error : verdict.text);
  }
  return complain(all, rank, verdict.status, sentence);
}

/* In what rank `other` differs from rank 0; false: in nothing. */
static bool find_difference(const lcomm_handshake *all, int other, char *sentence, size_t size) {
  const lcomm_handshake *first = &all[0], *it = &all[other];
  if (it->version != first->version || it->wire_version != first->wire_version) {
    return snprintf(sentence, size,
                    "rank 0 runs libcomm %d (wire %d), rank %d runs %d (wire %d); install the same "
                    "libcomm on all hosts",
                    first->version, first->wire_version, other, it->version, it->wire_version) > 0;
  }
  if (it->elastic != first->elastic) {
    int with = first->elastic ? 0 : other, without = first->elastic ? other : 0;
    return snprintf(sentence, size,
                    "rank %d is to go on when a rank is lost (LCOMM_ELASTIC=on), rank %d is not; "
                    "give all ranks the same LCOMM_ELASTIC",
                    with, without) > 0;
  }
  if (memcmp(it->policy, first->policy, sizeof(first->policy)) != 0) {
    return snprintf(sentence, size,
                    "the policy of rank 0 is \"%.300s\", that of rank %d is \"%.300s\"; give all "
                    "ranks the same policy",
                    first->policy, other, it->policy) > 0;
  }
  if (it->topo_hash != first->topo_hash) {
    return snprintf(sentence, size,
                    "the measured topology of rank 0 (LCOMM_TOPO_FILE=%s) is not that of rank %d "
                    "(LCOMM_TOPO_FILE=%s); give all ranks the same file, with the same contents on "
                    "every host",
                    first->topo_file, other, it->topo_file) > 0;
  }
  if (it->nodes != first->nodes) {
    return snprintf(sentence, size,
                    "rank 0 poses as %d nodes, rank %d as %d; give all ranks the same LCOMM_NODES",
                    first->nodes, other, it->nodes) > 0;
  }
  return memcmp(it->transport, first->transport, sizeof(first->transport)) != 0 &&
         snprintf(sentence, size,
                  "the transports of rank 0 are '%.63s', those of rank %d are '%.63s'; give all "
                  "ranks the same LCOMM_TRANSPORT",
                  first->transport, other, it->transport) > 0;
}

/* The first rank that differs from rank 0 is named, with both values. */
static lcomm_status check_equality(const lcomm_handshake *all, int size, int rank) {
  char sentence[2 * LCOMM_POLICY_MAX + 160];
  for (int i = 1; i < size; i++) {
    if (find_difference(all, i, sentence, sizeof(sentence))) {
      return complain(all, rank, LCOMM_ERR_MISMATCH, sentence);
    }
  }
  return LCOMM_OK;
}

lcomm_status lcomm_handshake_check(lcomm_handshake *all, int size, int rank) {
  sanitize(all, size);
  LCOMM_TRY(check_preparations(all, size, rank));
  return check_equality(all, size, rank);
}
