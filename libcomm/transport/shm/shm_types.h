/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_SHM_SHM_TYPES_H
#define LCOMM_TRANSPORT_SHM_SHM_TYPES_H

/* The private memory of the shared-memory transport: nobody else writes here. */

#include <sys/types.h>

#include "libcomm/transport/shm/shm_ring.h"
#include "libcomm/transport/transport.h"

enum {
  LCOMM_SHM_BUCKETS = 32,        /* lists of messages by tag */
  LCOMM_SHM_UNASKED_MAX = 16384, /* messages of one peer that nobody has asked for */
  LCOMM_SHM_CONTROLS = 2,        /* control messages of one peer that wait to be heard */
  LCOMM_SHM_SMALL = 64,          /* bytes a record has room for */
  LCOMM_SHM_COPY = 1 << 20,      /* bytes that one call copies */
  LCOMM_SHM_PIECE_SIZE = 4096,   /* bytes of a piece of a stream */
  LCOMM_SHM_BOUNCE_CLASSES = 10, /* 8 KiB, 16 KiB .. 4 MiB */
  LCOMM_SHM_BOUNCE_SMALLEST = 8192,
  LCOMM_SHM_BOUNCE_RECENT = 8, /* last copies that serve a send of the same bytes, too */
  /* Kept free in a ring so that control messages find room. */
  LCOMM_SHM_SPARE = 4096
};

_Static_assert((int)LCOMM_SHM_ERROR == (int)LCOMM_CONTROL_SIZE, "an error is a control message");

typedef struct lcomm_shm lcomm_shm;
typedef struct lcomm_shm_peer lcomm_shm_peer;
typedef struct lcomm_shm_record lcomm_shm_record;

/* How long messages travel; tests change it to force each way. */
typedef struct lcomm_shm_ways {
  size_t bounce_longest; /* private messages up to this are copied to where peers see them */
  size_t bounce_total;   /* bytes of all such copies */
  bool single_copy;      /* the receiver may read the sender's private memory */
  bool views;            /* peers' regions are mapped */
} lcomm_shm_ways;

/* Why nothing more comes from a peer. */
typedef enum lcomm_shm_fault {
  LCOMM_SHM_FINE,
  LCOMM_SHM_ENDED,     /* its process is gone */
  LCOMM_SHM_CLOSED,    /* it has closed its end */
  LCOMM_SHM_MALFORMED, /* it wrote what cannot be */
  LCOMM_SHM_FLOODED,   /* it sent far more than was asked for */
  LCOMM_SHM_NO_MEMORY  /* its messages find no memory here */
} lcomm_shm_fault;

/* A peer's region as we see it, read-only. */
typedef struct lcomm_shm_mapping {
  unsigned char *base;
  size_t size;
  uint32_t generation, users;
  bool stale; /* unmapped when the last user is gone */
  struct lcomm_shm_mapping *next;
} lcomm_shm_mapping;

/* A buffer: a free one, a gathered message, or the copy of a message that is sent. */
typedef struct lcomm_shm_buffer {
  struct lcomm_shm_buffer *next;
  struct lcomm_shm_buffer *older; /* among all gathers */
  size_t size;
  void *bytes;
  /* Of a copy: how many sends use it; of which bytes it is, while these stay as they are. */
  uint32_t users;
  const unsigned char *source;
  size_t source_size;
} lcomm_shm_buffer;

typedef struct lcomm_shm_list {
  lcomm_shm_record *first, *last;
} lcomm_shm_list;

typedef enum lcomm_shm_kind {
  LCOMM_SHM_SEND,
  LCOMM_SHM_RECEIVE,
  LCOMM_SHM_ZCOPY,
  LCOMM_SHM_UNASKED /* arrived before it was asked for */
} lcomm_shm_kind;

typedef enum lcomm_shm_state {
  LCOMM_SHM_QUEUED,    /* a send that waits for room */
  LCOMM_SHM_PUBLISHED, /* a long send; the answer will come */
  LCOMM_SHM_STREAMING, /* its pieces are in flight */
  LCOMM_SHM_POSTED,    /* a receive that waits for its message */
  LCOMM_SHM_COPYING,   /* its message is there and is copied by test */
  LCOMM_SHM_OVER,
  LCOMM_SHM_WRONG_SIZE, /* over, but the message did not fit */
  LCOMM_SHM_STARVED,    /* over, but there was no memory */
  LCOMM_SHM_LOST        /* will not come: the peer was given up */
} lcomm_shm_state;

/* A message in flight, on either side. */
struct lcomm_shm_record {
  lcomm_shm_record *next, *previous;
  lcomm_shm_peer *peer;
  lcomm_shm_kind kind;
  lcomm_shm_state state;
  uint32_t tag;
  uint32_t way;         /* LCOMM_SHM_MESSAGE, VIEW, READ, STREAM */
  unsigned char *bytes; /* of the caller: sent from, or received into */
  size_t capacity;      /* of these; expected size of a zero-copy message */
  size_t size;          /* of the message */
  size_t done;          /* bytes copied or sent so far */
  uint32_t generation;  /* of the slot */
  uint16_t slot;
  bool detached;              /* no transfer belongs to it any more */
  lcomm_transfer *watched;    /* its transfer, where somebody watches it; else NULL */
  lcomm_shm_buffer *bounce;   /* send: the copy peers look at */
  lcomm_shm_buffer *own;      /* the message, when it is kept here */
  lcomm_shm_mapping *mapping; /* receive: of the peer's region */
  const unsigned char *view;  /* receive: the message, NULL when it must be read */
  union {
    lcomm_shm_long there;                 /* unasked: where it is */
    unsigned char small[LCOMM_SHM_SMALL]; /* kept here, when it is short */
  };
};

/* The next message, while the caller looks at it in place. */
typedef struct lcomm_shm_peeked {
  bool active;
  size_t size;
  lcomm_shm_record
      *unasked; /* it lies here, progress() has taken it in before; NULL: in the ring */
} lcomm_shm_peeked;

/* Long sends to a peer: their slots, as bits and as records. */
typedef struct lcomm_shm_sends {
  uint64_t used[LCOMM_SHM_SLOTS / 64];
  uint32_t used_count;
  uint32_t answers_seen; /* of those in the lane */
  lcomm_shm_record *records[LCOMM_SHM_SLOTS];
  uint32_t generations[LCOMM_SHM_SLOTS];
} lcomm_shm_sends;

/* Control messages of a pair. */
typedef struct lcomm_shm_pair_control {
  unsigned char received[LCOMM_SHM_CONTROLS][LCOMM_CONTROL_SIZE];
  uint32_t received_count;
  unsigned char waiting[LCOMM_CONTROL_SIZE]; /* for room in the ring */
  bool waits;
  bool error_sent, error_received; /* the one error of each direction has been */
} lcomm_shm_pair_control;

struct lcomm_shm_peer {
  lcomm_shm_reader in;
  uint32_t posted_count, unasked_count;
  lcomm_shm_peeked peek;
  lcomm_shm_fault fault;

  lcomm_shm_writer out;
  _Atomic uint32_t *sleeping; /* of the peer */
  int pipe;                   /* of the peer, written to when it sleeps */
  lcomm_shm_list queue;       /* sends that wait for room, in order */
  lcomm_shm_list streams;     /* sends whose pieces are in flight */

  lcomm_shm_sends sends;
  lcomm_shm_record *incoming[LCOMM_SHM_SLOTS]; /* streams of the peer, by its slot */
  lcomm_shm_list posted[LCOMM_SHM_BUCKETS], unasked[LCOMM_SHM_BUCKETS];

  int rank;
  pid_t pid;
  int pidfd;                  /* of shm_pidfd.c; -1 where there are none */
  bool may_read;              /* we may read its private memory */
  bool reads_us;              /* it may read ours */
  lcomm_shm_segment *segment; /* of the peer */
  lcomm_shm_lane *there;      /* our lane in it */
  lcomm_shm_lane *here;       /* its lane in ours */
  lcomm_shm_mapping *mappings[LCOMM_SHM_REGIONS];
  uint32_t answers; /* that we have given */
  lcomm_shm_pair_control control;
};

/* How this rank is woken. */
typedef struct lcomm_shm_wakeup {
  int pipe;  /* both ends in one descriptor */
  int epoll; /* of the pipe, and the pidfds of peers */
  int timer; /* in it too, for peers without a pidfd; else -1 */
  uint32_t until_check;
  double next_check_s;
} lcomm_shm_wakeup;

/* Records and buffers, in use and free. */
typedef struct lcomm_shm_memory {
  lcomm_shm_buffer *bounces[LCOMM_SHM_BOUNCE_CLASSES];
  size_t bounce_size;
  lcomm_shm_buffer *recent[LCOMM_SHM_BOUNCE_RECENT];
  uint32_t recent_next;
  lcomm_shm_record *free_records;
  lcomm_shm_buffer *free_shorts;  /* for messages from the ring */
  lcomm_shm_buffer *free_gathers; /* for long ones that came in pieces */
  lcomm_shm_buffer *gathers;      /* all of those, used or free */
  lcomm_shm_buffer *free_heads;   /* without bytes */
  lcomm_shm_mapping *stale;       /* old mappings that are still used */
  struct lcomm_shm_slab *slabs;   /* what records and buffers are cut from */
} lcomm_shm_memory;

struct lcomm_shm {
  lcomm_transport base;
  lcomm_shm_peer **of;      /* per rank; NULL where it does not reach */
  lcomm_shm_peer **reached; /* reached_count of them */
  int reached_count;
  bool news;            /* something has come since the last arm */
  uint32_t errors_seen; /* segment->errors when all lanes were last looked at */
  int rank, size;
  double timeout_s;
  lcomm_shm_ways ways;

  lcomm_shm_segment *segment;
  size_t segment_size;
  int file; /* of the segment, until all peers have opened it; else -1 */
  int lanes;
  lcomm_shm_wakeup wakeup;
  lcomm_shm_memory memory;
  unsigned char token[LCOMM_SHM_TOKEN];
};

#endif
