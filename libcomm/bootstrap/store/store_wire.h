/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_BOOTSTRAP_STORE_STORE_WIRE_H
#define LCOMM_BOOTSTRAP_STORE_STORE_WIRE_H

/* The bytes between the ranks that meet at a TCP store. All numbers are
 * little-endian. Readers take any bytes: they return a status, and read
 * nothing outside of what they were given.
 *
 * A rank says one HELLO; everything else, in both directions, is frames: a
 * header, then as many bytes as it says.
 *
 *   HELLO   0 "lcommtcp"   8 version u32   12 rank u32   16 world size u32
 *          20 attempt u32   24 host, text, zeros behind it (64 bytes)
 *          88 process u64   96 token, zeros behind it (256 bytes)
 *   header  0 "lcsf"       4 kind u32       8 size u64
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"
#include "libcomm/bootstrap/launcher_env.h"
#include "libcomm/topo/topo.h"

enum {
  LCOMM_STORE_VERSION = 2,
  LCOMM_STORE_MAGIC_SIZE = 8,
  LCOMM_STORE_HANDSHAKE_SIZE = 96 + LCOMM_TOKEN_MAX,
  LCOMM_STORE_HEADER_SIZE = 16,
  LCOMM_STORE_REASON_MAX = 4 + LCOMM_ERROR_MAX /* of a status and its sentence */
};

typedef struct lcomm_store_handshake {
  uint32_t rank, world_size;
  char host[LCOMM_HOST_MAX]; /* printable, terminated */
  uint8_t token[LCOMM_TOKEN_MAX];
  uint64_t process; /* random: who greets again has the same number ... */
  uint32_t attempt; /* ... and a higher one here */
} lcomm_store_handshake;

#define LCOMM_STORE_OTHER_VERSION                                                                  \
  "another version of libcomm greets; install the same one on all hosts"

/* The status with which a rank is refused whose token is another one. */
#define LCOMM_STORE_OTHER_JOB LCOMM_ERR_STATE

/* Kinds of frames, and which side sends them. */
typedef enum lcomm_store_kind {
  LCOMM_STORE_WAIT = 1,    /* rank 0: I am here, others are not yet; empty */
  LCOMM_STORE_WELCOME = 2, /* rank 0: all have come; empty */
  LCOMM_STORE_REFUSED = 3, /* rank 0: a reason, to one it does not let in */
  LCOMM_STORE_FAILED = 4,  /* rank 0: a reason, to all: it is over */
  LCOMM_STORE_DATA = 5     /* both: bytes of an allgather */
} lcomm_store_kind;

typedef struct lcomm_store_frame {
  lcomm_store_kind kind;
  uint64_t size; /* of what follows; its limit depends on the kind, DATA has none */
} lcomm_store_frame;

/* A status and a sentence: the bytes of REFUSED and FAILED. */
typedef struct lcomm_store_reason {
  lcomm_status status;
  char text[LCOMM_ERROR_MAX]; /* printable, terminated */
} lcomm_store_reason;

void lcomm_store_pack_handshake(const lcomm_store_handshake *handshake, uint8_t *bytes);
void lcomm_store_pack_frame(lcomm_store_frame frame, uint8_t *bytes);

/* Header and reason in one: returns the size, at most LCOMM_STORE_HEADER_SIZE +
 * LCOMM_STORE_REASON_MAX. The kind is REFUSED or FAILED. */
size_t lcomm_store_pack_reason(lcomm_store_kind kind, lcomm_status status, const char *text,
                               uint8_t *bytes);

/* Can these first bytes become a HELLO, of this version? Both look at as many as
 * there are. */
bool lcomm_store_begins_handshake(const uint8_t *bytes, size_t size);
bool lcomm_store_knows_version(const uint8_t *bytes, size_t size);

/* LCOMM_STORE_HANDSHAKE_SIZE bytes. WIRE, UNSUPPORTED for another version; a phrase
 * in `why` (static). */
lcomm_status lcomm_store_read_handshake(const uint8_t *bytes, lcomm_store_handshake *handshake,
                                        const char **why);

/* LCOMM_STORE_HEADER_SIZE bytes. WIRE, also for a size that the kind cannot have. */
lcomm_status lcomm_store_read_frame(const uint8_t *bytes, lcomm_store_frame *frame);

/* What follows the header of a REFUSED or FAILED frame. WIRE. */
lcomm_status lcomm_store_read_reason(const uint8_t *bytes, size_t size, lcomm_store_reason *reason);

/* In a time that does not depend on where they differ. */
bool lcomm_store_same_token(const uint8_t a[LCOMM_TOKEN_MAX], const uint8_t b[LCOMM_TOKEN_MAX]);

#endif
