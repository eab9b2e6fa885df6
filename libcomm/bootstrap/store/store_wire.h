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
 *          88 process u64   96 token, zeros behind it (256 bytes)   352 port u32   356 zero u32
 *   header  0 "lcsf"       4 kind u32       8 size u64
 *   place   0 way u32      4 port u32       8 address (16 bytes)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"
#include "libcomm/bootstrap/launcher_env.h"
#include "libcomm/topo/topo.h"

enum {
  LCOMM_STORE_VERSION = 3,
  LCOMM_STORE_MAGIC_SIZE = 8,
  LCOMM_STORE_HANDSHAKE_SIZE = 104 + LCOMM_TOKEN_MAX,
  LCOMM_STORE_HEADER_SIZE = 16,
  LCOMM_STORE_PLACE_SIZE = 24,
  LCOMM_STORE_NOTE_SIZE = 8,                   /* of ENTER and ACCUSE */
  LCOMM_STORE_LIST_MAX = 1 << 22,              /* bytes of a list, whole words */
  LCOMM_STORE_REASON_MAX = 4 + LCOMM_ERROR_MAX /* of a status and its sentence */
};

typedef struct lcomm_store_handshake {
  uint32_t rank, world_size;
  char host[LCOMM_HOST_MAX]; /* printable, terminated */
  uint8_t token[LCOMM_TOKEN_MAX];
  uint64_t process; /* random: who greets again has the same number ... */
  uint32_t attempt; /* ... and a higher one here */
  uint32_t port;    /* where it takes its children in the tree; 0: nowhere */
} lcomm_store_handshake;

#define LCOMM_STORE_OTHER_VERSION                                                                  \
  "another version of libcomm greets; install the same one on all hosts"

/* The rank of one that wants to join a job that is under way (store_door.h). */
#define LCOMM_STORE_NEWCOMER UINT32_MAX

/* The status with which a rank is refused whose token is another one. */
#define LCOMM_STORE_OTHER_JOB LCOMM_ERR_STATE

/* Kinds of frames, and which side sends them. */
typedef enum lcomm_store_kind {
  LCOMM_STORE_WAIT = 1,    /* rank 0: I am here, others are not yet; empty */
  LCOMM_STORE_WELCOME = 2, /* rank 0: all have come; the place of the rank's parent */
  LCOMM_STORE_REFUSED = 3, /* rank 0, a parent: a reason, to one it does not let in */
  LCOMM_STORE_FAILED = 4,  /* rank 0: a reason, to all: it is over */
  LCOMM_STORE_DATA = 5,    /* all: bytes of an allgather */
  LCOMM_STORE_LINKED = 6,  /* others: my parent and my children are connected to me; empty */
  LCOMM_STORE_ALONE = 7,   /* others: I do not reach my parent, or was told STAR before; empty */
  LCOMM_STORE_TREE = 8,    /* rank 0: all are linked, allgathers go along the tree; empty */
  LCOMM_STORE_STAR = 9,    /* rank 0: somebody is not, they go through rank 0; empty */
  LCOMM_STORE_ENTER = 10,  /* others: I am in an allgather; bytes of a rank u64 */
  LCOMM_STORE_PASSED = 11, /* others: my parent has the parts of all below me; empty */
  LCOMM_STORE_ACCUSE = 12, /* others: a neighbour u32, and what is wrong with it u32 */
  LCOMM_STORE_DONE = 13,   /* rank 0: I leave, and gave everything out; empty */
  LCOMM_STORE_WHOLE = 14,  /* rank 0: I have all parts, the whole comes from your parent; empty */
  LCOMM_STORE_LIST = 15    /* who hosts a meeting of survivors: who they are (../elastic/) */
} lcomm_store_kind;

/* How a rank reaches its parent. */
typedef enum lcomm_store_way {
  LCOMM_STORE_WAY_STAR,   /* there is no tree */
  LCOMM_STORE_WAY_ROOT,   /* it is rank 0 */
  LCOMM_STORE_WAY_BESIDE, /* on rank 0's host: at the address at which rank 0 was reached */
  LCOMM_STORE_WAY_IPV4,
  LCOMM_STORE_WAY_IPV6
} lcomm_store_way;

typedef struct lcomm_store_place {
  lcomm_store_way way;
  uint16_t port;
  uint8_t address[16]; /* in network byte order, zeros behind it */
} lcomm_store_place;

/* What a rank says of a neighbour in the tree. */
typedef enum lcomm_store_charge {
  LCOMM_STORE_LOST = 1,   /* the connection with it has ended */
  LCOMM_STORE_STRANGE = 2 /* it sends what is no message, or does not belong here */
} lcomm_store_charge;

typedef struct lcomm_store_accusation {
  uint32_t rank;
  lcomm_store_charge charge;
} lcomm_store_accusation;

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

/* LCOMM_STORE_PLACE_SIZE bytes: the body of WELCOME. Reading: WIRE for what is no place. */
void lcomm_store_pack_place(const lcomm_store_place *place, uint8_t *bytes);
lcomm_status lcomm_store_read_place(const uint8_t *bytes, lcomm_store_place *place);

/* LCOMM_STORE_NOTE_SIZE bytes: the body of ACCUSE. Reading: WIRE for a charge that is none, and for
 * a rank that is not in a world of `size`. */
void lcomm_store_pack_accusation(lcomm_store_accusation it, uint8_t *bytes);
lcomm_status lcomm_store_read_accusation(const uint8_t *bytes, int size,
                                         lcomm_store_accusation *it);

/* In a time that does not depend on where they differ. */
bool lcomm_store_same_token(const uint8_t a[LCOMM_TOKEN_MAX], const uint8_t b[LCOMM_TOKEN_MAX]);

#endif
