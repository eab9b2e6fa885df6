/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_PAIR_INTERNAL_H
#define LCOMM_ENGINE_PAIR_INTERNAL_H

/* What the files of pair.h share. */

#include "codecs/lossless.h"
#include "libcomm/device/device.h"
#include "libcomm/engine/pair.h"
#include "libcomm/engine/pair_header.h"

/* float32, float16 and bfloat16, which are encoded. */
enum { LCOMM_PAIR_CODED_TYPES = 3 };

/* Numbers in pinned memory, which only grow; but those of a message that a graph holds are put back
 * between its replays, and only that has the last two (pair_recording.h). */
typedef struct lcomm_pair_numbers {
  uint32_t there; /* how much is in the block: written by the device of a sender, or for that of a
                   * receiver */
  uint32_t begun; /* a receiver's stream has come to the message; in a graph a sender's, too */
  uint32_t left;  /* it is through */
  uint32_t free;  /* the message of the replay before is over */
  uint32_t seen;  /* whoever moves messages has seen `begun` */
} lcomm_pair_numbers;

/* Pinned memory for one message. */
typedef struct lcomm_pair_block {
  struct lcomm_pair_block *next;
  lcomm_pair_numbers *numbers; /* at the beginning of its memory */
  uint8_t *bytes;
  size_t room;
  uint32_t base;     /* of the numbers of its next message */
  uint32_t end;      /* `left` when its last message is out of it */
  bool passes;       /* all that a device awaits is there, for good */
  void *came, *done; /* events: a stream of the program has come to it; the device is through */
} lcomm_pair_block;

typedef enum lcomm_pair_phase {
  LCOMM_PAIR_WAITS,  /* for its turn, or data */
  LCOMM_PAIR_HEADER, /* the header is on its way */
  LCOMM_PAIR_PIECES
} lcomm_pair_phase;

/* lcomm_trace_event.message of all of them: no number of a message of an operation. */
enum { LCOMM_PAIR_TRACED_AS = 1 << 20 };

/* Pieces on their way at a time: one is encoded or decoded while another one travels. */
enum { LCOMM_PAIR_WINDOW = 2 };

/* What is in flight. */
typedef struct lcomm_pair_transfers {
  bool header_posted, request_posted, piece_posted[LCOMM_PAIR_WINDOW];
  lcomm_transfer header, request, piece[LCOMM_PAIR_WINDOW];
} lcomm_pair_transfers;

/* Who waits for a message, and what it took. */
typedef struct lcomm_pair_end {
  bool is_kept;       /* somebody has a request of it, and gives it back */
  bool is_grouped;    /* it belongs to a group */
  bool is_awaited;    /* the time-out counts for it */
  bool counts_device; /* in comm->runs.device_works */
  bool over;
  lcomm_status status; /* once over */
  double waits_s;      /* since when for the peer; 0: it does not */
  double begun_s;
  uint64_t wire_bytes; /* of its pieces, so far */
  double coding_s;     /* spent on encoding or decoding them */
} lcomm_pair_end;

struct lcomm_pair_message {
  struct lcomm_pair_message *next, *next_made;
  lcomm_comm *owner;
  bool is_send;
  int peer;
  lcomm_pair_header what;
  lcomm_format format; /* of its pieces */
  uint64_t size;       /* bytes of the data */
  size_t piece_size;
  uint32_t pieces, piece, posted; /* all, those that are over, and those that were begun */
  uint8_t *data;                  /* in memory of the host, pinned or the program's */
  lcomm_channel *channel;         /* NULL: without error feedback */
  uint8_t *wire;                  /* pair_frame.h; NULL: pieces travel as they are */
  lcomm_lossless *lossless;       /* of frames; NULL: they have no such stage */
  uint32_t graph_channel;         /* pair_recording.h: its messages have tags of their own; 0: it is
                                   * in no graph */
  lcomm_pair_block *block;        /* NULL without data on a device */
  uint32_t base;
  bool is_streamed;
  lcomm_pair_phase phase;
  lcomm_pair_transfers in_flight;
  uint32_t request;
  lcomm_pair_end end;
  uint8_t bytes[LCOMM_PAIR_SHORT_MAX];
};

typedef struct lcomm_pair_queue {
  lcomm_pair_message *first, *last;
  uint32_t next;     /* number of the next message */
  uint32_t captured; /* messages of this direction of the pair that graphs have got, ever */
  uint8_t *wire;     /* of framed pieces; NULL: none so far */
} lcomm_pair_queue;

/* Calls between the begin and the end of a group. */
typedef struct lcomm_pair_group {
  unsigned depth;
  unsigned in_flight;        /* messages of groups that are not over */
  bool is_over;              /* there are none */
  lcomm_pair_call *receives; /* on streams, which begin behind the sends */
  size_t count, room;
} lcomm_pair_group;

/* Memory to encode and decode in (pair_frame.c), made by the first message that needs it. */
typedef struct lcomm_pair_coder {
  float *values;    /* of a piece */
  uint8_t *payload; /* before the lossless stage */
  lcomm_lossless *lossless[LCOMM_PAIR_CODED_TYPES];
  lcomm_format formats[LCOMM_PAIR_CODED_TYPES]; /* of these */
} lcomm_pair_coder;

struct lcomm_pairs {
  lcomm_pair_queue *out, *in; /* per peer */
  int ordinal;                /* of the device; LCOMM_DEVICE_NONE: no data so far */
  void *sending, *receiving;  /* streams */
  lcomm_pair_block *idle, *draining;
  lcomm_pair_message *spare, *made; /* to be used again; all */
  lcomm_channel *channels;
  lcomm_pair_coder coder;
  lcomm_pair_group group;
  unsigned in_flight;
  unsigned streamed; /* of those, in order with streams */
  bool is_idle;      /* streamed == 0, for waits */
};

static inline lcomm_pair_queue *lcomm_pair_queue_of(const lcomm_comm *comm, bool is_send,
                                                    int peer) {
  return is_send ? &comm->pairs->out[peer] : &comm->pairs->in[peer];
}

/* pair.c. Say what a message is; it is not in a queue before it is appended. */
void lcomm_pair_describe(lcomm_comm *comm, lcomm_pair_message *message,
                         const lcomm_pair_call *call);
void lcomm_pair_append(lcomm_comm *comm, lcomm_pair_queue *queue, lcomm_pair_message *message);

/* The communicator has failed at the begin of a message. */
lcomm_status lcomm_pair_failed(lcomm_comm *comm, const lcomm_pair_call *call, lcomm_status status);

/* Do what can be done for the first messages of a queue without waiting; for those of two that this
 * rank sends to itself; end them all, after a failure. */
lcomm_status lcomm_pair_queue_move(lcomm_comm *comm, lcomm_pair_queue *queue, bool *moved);
lcomm_status lcomm_pair_queue_move_own(lcomm_comm *comm, lcomm_pair_queue *out,
                                       lcomm_pair_queue *in, bool *moved);
void lcomm_pair_queue_cancel(lcomm_comm *comm, lcomm_pair_queue *queue);

/* pair_wait.c: TIMEOUT if the first one's peer has been waited for too long. */
lcomm_status lcomm_pair_queue_check(lcomm_comm *comm, const lcomm_pair_queue *queue, double now_s);

/* pair_staging.c: pinned memory, numbers and events. In the device's turn; CUDA may wait for the
 * whole device meanwhile. NULL, and *error: what CUDA has against it, or -1 without memory. */
lcomm_pair_block *lcomm_pair_block_get(lcomm_comm *comm, int ordinal, uint64_t size, int *error);
void lcomm_pair_block_free(const lcomm_device_table *table, lcomm_pair_block *block);

/* All pieces between the data on the device and the block, in a stream of work, by numbers from
 * message->base on. What CUDA has against it, or 0. */
int lcomm_pair_play_pieces(const lcomm_device_table *table, const lcomm_pair_message *message,
                           uint8_t *data, void *stream);

/* pair_staging.c: pinned memory for the data of a message, and what its device does. SYSTEM with
 * the thread's sentence. */
lcomm_status lcomm_pair_stage(lcomm_comm *comm, lcomm_pair_message *message, int ordinal);
lcomm_status lcomm_pair_play(lcomm_comm *comm, const lcomm_pair_message *message,
                             const lcomm_pair_call *call);
/* The message is over: its memory may serve another one. */
void lcomm_pair_unstage(lcomm_comm *comm, lcomm_pair_message *message);
void lcomm_pairs_free_staging(lcomm_comm *comm);

/* Part of lcomm_pairs_free. */
void lcomm_pair_channels_free(lcomm_comm *comm);

/* pair_account.c: a message has begun; it is over: add one that went well to the statistics and the
 * trace. */
void lcomm_pair_account_begin(lcomm_comm *comm, lcomm_pair_message *message);
void lcomm_pair_account_end(lcomm_comm *comm, const lcomm_pair_message *message,
                            lcomm_status status);

/* Bytes of a piece, and where they are. */
static inline size_t lcomm_pair_piece(const lcomm_pair_message *it, uint32_t piece, uint8_t **at) {
  uint64_t first = (uint64_t)piece * it->piece_size, left = it->size - first;
  *at = it->data + first;
  return left < it->piece_size ? (size_t)left : it->piece_size;
}

/* Has a number come so far? */
static inline bool lcomm_pair_reached(const uint32_t *number, uint32_t least) {
  return (int32_t)(__atomic_load_n(number, __ATOMIC_ACQUIRE) - least) >= 0;
}

/* Are so many pieces in the memory of a message that is sent? So many are in that of one that is
 * received. The program's is always there. */
static inline bool lcomm_pair_has(const lcomm_pair_message *it, uint32_t pieces) {
  return pieces == 0 || !it->block ||
         lcomm_pair_reached(&it->block->numbers->there, it->base + pieces);
}

static inline void lcomm_pair_gives(const lcomm_pair_message *it, uint32_t pieces) {
  if (pieces > 0 && it->block && !it->block->passes) {
    __atomic_store_n(&it->block->numbers->there, it->base + pieces, __ATOMIC_RELEASE);
  }
}

#endif
