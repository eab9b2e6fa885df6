/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_SHARDS_INTERNAL_H
#define LCOMM_SHARDS_SHARDS_INTERNAL_H

/* What the files of shards.h share.
 *
 * The program's thread works on values and residuals; whoever moves the service works on what the
 * owner of a piece has, and on messages, in the service's turn. They meet where `here` of a vector
 * is set. */

#include <pthread.h>

#include "codecs/codec_topk.h"
#include "libcomm/engine/pair.h"
#include "libcomm/shards/quorum.h"
#include "libcomm/shards/shard_header.h"
#include "libcomm/shards/shards.h"

/* Sums in a row for which a rank was late until that is logged. */
enum { LCOMM_SHARD_STREAK_NAMED = 50 };

/* A piece, as bytes of one format. */
typedef struct lcomm_shard_coding {
  lcomm_format format;
  uint64_t count;
  lcomm_topk *topk; /* the encoder of a sparse format */
  size_t room;      /* bytes of the largest payload */
} lcomm_shard_coding;

/* Header and payload on their way to a peer. */
typedef struct lcomm_shard_sending {
  uint8_t *header;
  lcomm_pair_message *messages[2]; /* NULL: over */
} lcomm_shard_sending;

/* A piece, as its contributor sees it. */
typedef struct lcomm_shard_piece {
  uint64_t first;
  uint64_t bytes;            /* see lcomm_shard_cut_piece */
  lcomm_shard_coding coding; /* of the contribution; no element: no piece */
  uint8_t *payload;
  size_t size;
  lcomm_shard_sending sending;
  lcomm_format result_format;
  uint8_t *result;
  size_t result_room, result_size;
  uint64_t closed;          /* by its owner when it answered */
  uint8_t *used;            /* set of ranks */
  lcomm_shard_vector *next; /* whose result comes from this owner after that of this vector */
} lcomm_shard_piece;

/* What the owner of a piece has of one rank. */
typedef struct lcomm_shard_contribution {
  lcomm_format format;
  uint8_t *payload;
  size_t room, size;
  lcomm_shard_sending answer;
  bool answers;             /* under way */
  lcomm_shard_vector *next; /* to which the rank has contributed after this one */
} lcomm_shard_contribution;

typedef struct lcomm_shard_result {
  uint8_t *payload;
  size_t size;
  uint32_t used;
  bool is_ready; /* false: its round is closed, and it is being computed */
} lcomm_shard_result;

/* The piece that this rank owns. */
typedef struct lcomm_shard_owned {
  lcomm_quorum quorum;
  lcomm_shard_coding coding;       /* of results */
  lcomm_shard_contribution *ranks; /* [size] */
  lcomm_shard_result results[LCOMM_SHARD_KEPT];
  float *sum;   /* [coding.count] */
  float *error; /* [coding.count], in units of a sum: what no contributor was told of yet */
  float *left;  /* [coding.count] of top-k: what one result leaves out */
} lcomm_shard_owned;

struct lcomm_shard_vector {
  lcomm_comm *comm;
  lcomm_shard_vector *head, *following; /* chunks of one vector, see shard_chunks.c */
  uint32_t number;
  uint64_t first, count; /* of the vector */
  lcomm_op op;
  uint64_t round; /* sums that this rank has begun */
  unsigned left;  /* pieces of its result that are not here */
  atomic_bool here;
  double begun_s;
  lcomm_shard_piece *pieces; /* [size], by owner */
  lcomm_shard_owned owned;   /* coding.count is 0 where this rank owns none */
  float *scratch;            /* [of the longest piece] */
  uint64_t skips_until;      /* a round: before it gradients of this rank come too late */
  bool retired;              /* this rank makes no more sums of it */
  lcomm_quorum **lanes;      /* of those that take turns with it; NULL: no round of it closes */
  unsigned lane;             /* its own of these */
};

/* Vectors in the order of their contributions, linked by the `next` of a rank. */
typedef struct lcomm_shard_queue {
  lcomm_shard_vector *first, *last;
} lcomm_shard_queue;

/* Of a peer. */
typedef struct lcomm_shard_peer {
  uint8_t *bytes;              /* of a header */
  lcomm_pair_message *message; /* that is received; NULL: none */
  lcomm_shard_vector *vector;  /* whose payload it is; NULL: it is a header */
  lcomm_shard_kind kind;
  lcomm_shard_queue results; /* that this rank expects from it */
  lcomm_shard_queue waiting; /* to which it has contributed, and has no result */
  uint64_t late_sums, late_pieces, streak;
  bool named;
} lcomm_shard_peer;

struct lcomm_shards {
  lcomm_comm *comm, *service;
  lcomm_shard_roles roles;
  lcomm_quorum_rule rule;
  lcomm_shard_staleness stale;
  char word[24];                /* of the policy that asks for all this, such as quorum=7 */
  atomic_bool served;           /* see lcomm_shards_are_served() */
  bool updated;                 /* see lcomm_shards_are_updated() */
  bool rounds_wait;             /* for the thread that serves; guarded by `lock` */
  lcomm_shard_vector **vectors; /* [count] by number; NULL: freed, or not made */
  uint32_t count, room;
  uint32_t made[LCOMM_SEQUENCE_SPACE_COUNT]; /* vectors so far */
  lcomm_shard_peer *peers;                   /* [size] */
  uint64_t saved_bytes[LCOMM_LINK_COUNT];    /* by codecs, of what was sent */
  uint64_t sums, pieces;                     /* whose results this rank has */
  pthread_mutex_t lock;                      /* of `news`, and `rounds_wait` */
  pthread_cond_t news;                       /* a result is here, or the service has failed */
};

static inline size_t lcomm_shards_mask(const lcomm_shards *shards) {
  return lcomm_quorum_mask_size(shards->service->size);
}

/* ------------------------------------------------------------- shards.c */

/* Wake whoever waits. */
void lcomm_shards_tell(lcomm_shards *shards);

/* The failure of the service becomes that of the communicator. */
lcomm_status lcomm_shards_follow_failure(lcomm_shards *shards);

/* ------------------------------------------------------- shard_serve.c */

/* Serve: the hook of the service, see lcomm_deferred. */
lcomm_status lcomm_shards_serve(lcomm_comm *service);

/* Send a header, which is written, and a payload of so many elements. */
lcomm_status lcomm_shard_send(lcomm_shards *shards, int peer, lcomm_shard_sending *sending,
                              uint8_t *payload, size_t size, uint64_t count);

/* Is it over? */
lcomm_status lcomm_shard_send_ends(lcomm_shards *shards, lcomm_shard_sending *sending, bool *over);

void lcomm_shard_queue_add(lcomm_shard_queue *queue, lcomm_shard_vector *vector,
                           lcomm_shard_vector **next_of_last);

/* A peer has sent what no rank sends. WIRE. */
lcomm_status lcomm_shards_refuse(lcomm_shards *shards, int peer, const char *what);

/* Does the payload of a piece have this length, and can it be decoded? */
bool lcomm_shard_is_size(const lcomm_format *format, uint64_t count, size_t room, uint64_t size);
bool lcomm_shard_is_payload(const lcomm_format *format, uint64_t count, const uint8_t *payload,
                            size_t size);

/* ------------------------------------------------------- shard_owner.c */

/* All of a contribution of a peer is here. */
lcomm_status lcomm_shard_owner_take(lcomm_shard_vector *vector, int peer);

/* Does time, or a message that came, let the open round close? Its number. Its contributions do not
 * change from then on; then the result is computed, which needs no turn, and is ready. */
bool lcomm_shard_owner_may_close(const lcomm_shard_vector *vector, double now_s);
uint64_t lcomm_shard_owner_close(lcomm_shard_vector *vector);
int lcomm_shard_owner_compute(lcomm_shard_vector *vector, uint64_t round, lcomm_shard_update update,
                              void *context);

/* What is over, and who is waited for too long; *due_s is when to look again, 0: when a message
 * comes. */
lcomm_status lcomm_shard_owner_look(lcomm_shard_vector *vector, double now_s, double *due_s);

/* Answer a peer that waits for results that are ready. */
lcomm_status lcomm_shard_owner_answer(lcomm_shards *shards, int peer);

/* ------------------------------------------------------ shard_server.c */

/* The service has looked, and some rounds may close: tell the thread that serves. */
void lcomm_shards_ask_server(lcomm_shards *shards);

/* ------------------------------------------------------ shard_coding.c */

/* The elements of a piece that begin at `first` of a vector, in a format. MEMORY; what is made is
 * the caller's. */
lcomm_status lcomm_shard_coding_make(const lcomm_shard_request *request, const lcomm_format *format,
                                     uint64_t first, uint64_t count, lcomm_shard_coding *coding);

/* By what a rank contributes to the piece of an owner: exact inside a node. By what owners send
 * results: exact where there is one node. */
lcomm_format lcomm_shard_format_between(const lcomm_comm *comm, const lcomm_shard_request *request,
                                        int rank, int owner);
lcomm_format lcomm_shard_format_of_results(const lcomm_comm *comm,
                                           const lcomm_shard_request *request);

/* Bytes of a contribution and a result of the whole vector between nodes, about. */
uint64_t lcomm_shard_bytes(const lcomm_comm *comm, const lcomm_shard_request *request);

/* values = what a payload says. */
void lcomm_shard_decode(const lcomm_comm *comm, const lcomm_format *format, uint64_t count,
                        const uint8_t *payload, float *values);

/* ------------------------------------------------------ shard_chunks.c */

/* MEMORY, not sticky. */
lcomm_status lcomm_shard_vector_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                     lcomm_shard_vector **vector);
/* NULL ok. */
void lcomm_shard_vector_free(lcomm_shard_vector *vector);

/* -------------------------------------- shard_vector.c, shard_sum.c: of one chunk */

lcomm_status lcomm_shard_chunk_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                    lcomm_shard_vector **chunk);
void lcomm_shard_chunk_free(lcomm_shard_vector *chunk);
lcomm_status lcomm_shard_chunk_begin(lcomm_shard_vector *chunk, float *values, float *residual,
                                     float share);
bool lcomm_shard_chunk_is_here(const lcomm_shard_vector *chunk);
lcomm_status lcomm_shard_chunk_wait(lcomm_shard_vector *chunk, double until_s);
lcomm_status lcomm_shard_chunk_end(lcomm_shard_vector *chunk, float *values, float *residual);

/* -------------------------------------------------------- shard_late.c */

/* A sum has ended: who was not used in it? */
void lcomm_shards_count_late(lcomm_shards *shards, lcomm_shard_vector *vector);

#endif
