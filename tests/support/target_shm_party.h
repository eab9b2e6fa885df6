/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_SUPPORT_TARGET_SHM_PARTY_H
#define LCOMM_TESTS_SUPPORT_TARGET_SHM_PARTY_H

/* Between the parts of the fuzz target target_shm.h: we, and a peer that writes what the
 * input says. */

#include "libcomm/transport/shm/shm_internal.h"
#include "tests/support/fuzz_bytes.h"

enum { FUZZ_SHM_TRANSFERS = 16, FUZZ_SHM_RANKS = 2, FUZZ_SHM_TAGS = 8 };

/* A message that we wait for, or send. */
typedef struct fuzz_pending {
  bool in_use, zcopy;
  uint8_t *bytes; /* of exactly `room` */
  size_t room;
  lcomm_transfer transfer;
} fuzz_pending;

typedef struct fuzz_party {
  fuzz_bytes *in;
  uint8_t how; /* byte 0 */
  lcomm_identity identities[FUZZ_SHM_RANKS];
  lcomm_transport *t;
  const lcomm_transport_table *v;
  lcomm_shm_peer *peer;
  lcomm_shm_writer out;  /* the peer's, into our ring */
  lcomm_shm_reader back; /* likewise, of its own ring */
  lcomm_shm_long known;  /* a long message that we have sent */
  uint8_t *memory;       /* that peers can view */
  fuzz_pending pendings[FUZZ_SHM_TRANSFERS];
} fuzz_party;

/* The peer takes the next entry that we have written to it: size and bytes, or -1. */
int fuzz_shm_hear_entry(fuzz_party *p, uint32_t *kind, uint32_t *tag, uint32_t *generation,
                        uint8_t data[LCOMM_SHM_INLINE]);

/* The peer writes: `what` below FUZZ_SHM_WRITES. */
enum { FUZZ_SHM_WRITES = 9 };
void fuzz_shm_write(fuzz_party *p, unsigned what);

#endif
