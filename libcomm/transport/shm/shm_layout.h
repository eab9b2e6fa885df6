/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_SHM_SHM_LAYOUT_H
#define LCOMM_TRANSPORT_SHM_SHM_LAYOUT_H

/* What lies in shared memory. Every rank makes one segment; in it each rank of
 * the machine has a lane, in which it writes to the owner. Both sides keep all
 * that they rely on in private memory: what is read here was written by
 * somebody else and is checked like the bytes of a socket.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

enum {
  LCOMM_SHM_LINE = 64,          /* bytes of a cache line */
  LCOMM_SHM_RING = 64 * 1024,   /* bytes of a ring */
  LCOMM_SHM_INLINE = 4096 + 64, /* longest message that travels in the ring itself */
  LCOMM_SHM_SLOTS = 4096,       /* long messages in flight from one rank to another */
  LCOMM_SHM_REGIONS = 256,      /* regions of memory that one rank shares */
  LCOMM_SHM_ERROR = 1152,       /* bytes of an error control message */
  LCOMM_SHM_TOKEN = 16          /* random bytes by which a segment is known */
};

#define LCOMM_SHM_MAGIC UINT64_C(0x346d68736d6f636c) /* "lcomshm4" */

/* Messages longer than this are no messages. */
#define LCOMM_SHM_LONGEST ((uint64_t)1 << 46)

/* What an entry of a ring is. */
enum {
  LCOMM_SHM_MESSAGE = 1, /* bytes of a message */
  LCOMM_SHM_MAPPED,      /* lcomm_shm_long: the bytes are in a region of the sender */
  LCOMM_SHM_READ,        /* lcomm_shm_long: in its private memory, which may be read */
  LCOMM_SHM_STREAM,      /* lcomm_shm_long: they are sent in pieces when asked for */
  LCOMM_SHM_PIECE,       /* a piece of those: offset (8 bytes), bytes; tag: the slot */
  LCOMM_SHM_CONTROL,     /* a control message */
  LCOMM_SHM_PAD          /* nothing up to the end of the ring */
};

/* An entry: this header, then its bytes, up to the next whole line. A short
 * message is one line. `word` holds the stamp (32 bits), kind (8) and size
 * (24) and is written last; the stamp of an entry to come is 0. */
typedef struct lcomm_shm_entry {
  _Atomic uint64_t word;
  uint32_t tag;
  uint32_t generation; /* of the slot, for long messages and pieces */
} lcomm_shm_entry;

enum { LCOMM_SHM_HEADER = sizeof(lcomm_shm_entry) };
_Static_assert(LCOMM_SHM_HEADER == 16, "48 bytes and their header are one line");

/* A long message. */
typedef struct lcomm_shm_long {
  uint64_t size;
  uint64_t address;           /* of the bytes, in the sender */
  uint64_t offset;            /* VIEW: of the bytes in the region */
  uint64_t region_size;       /* VIEW */
  uint32_t region_generation; /* VIEW: counts the uses of this region number */
  int32_t file;               /* VIEW: file descriptor of the region, in the sender */
  uint16_t region;            /* VIEW: its number */
  uint16_t slot;              /* of the sender, where the answer is written */
  uint32_t zero;
} lcomm_shm_long;
_Static_assert(sizeof(lcomm_shm_long) + LCOMM_SHM_HEADER == LCOMM_SHM_LINE, "one line");

/* What a receiver writes into an answer: generation << 2 | one of these. */
enum { LCOMM_SHM_ANSWER_STREAM = 1, LCOMM_SHM_ANSWER_DONE = 2 };

/* What one rank shares with the owner of a segment. An odd number of lines, so
 * that the lines which are polled at the same time spread over the cache. */
typedef struct lcomm_shm_lane {
  /* Written by the owner: how far it has read the ring. */
  alignas(LCOMM_SHM_LINE) _Atomic uint64_t tail;
  /* Written by the peer: how many answers it has given. */
  alignas(LCOMM_SHM_LINE) _Atomic uint32_t answered;
  alignas(LCOMM_SHM_LINE) _Atomic uint64_t answers[LCOMM_SHM_SLOTS]; /* by the peer */
  alignas(LCOMM_SHM_LINE) unsigned char ring[LCOMM_SHM_RING];        /* by the peer */
  /* Written by the peer, once: the control message of an error, whole when has_error is 1. */
  alignas(LCOMM_SHM_LINE) _Atomic uint32_t has_error;
  alignas(LCOMM_SHM_LINE) unsigned char error[LCOMM_SHM_ERROR];
} lcomm_shm_lane;
_Static_assert(sizeof(lcomm_shm_lane) / LCOMM_SHM_LINE % 2 == 1, "an odd number of lines");

typedef struct lcomm_shm_segment {
  alignas(LCOMM_SHM_LINE) uint64_t magic;
  unsigned char token[LCOMM_SHM_TOKEN];
  alignas(LCOMM_SHM_LINE) _Atomic uint32_t sleeping; /* ring the doorbell when you have written */
  alignas(LCOMM_SHM_LINE) _Atomic uint32_t closed;   /* the owner has gone */
  alignas(LCOMM_SHM_LINE) _Atomic uint32_t errors;   /* grows with each error in a lane */
  alignas(LCOMM_SHM_LINE) _Atomic uint32_t stopped_reading; /* the owner, after a failure */
  lcomm_shm_lane lanes[];                                   /* one for each rank of the machine */
} lcomm_shm_segment;

#endif
