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
#include "libcomm/shards/node_quorum.h"
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

/* Header and payload, if it has one, on their way to a peer. */
typedef struct lcomm_shard_sending {
  uint8_t *header;
  lcomm_pair_message *messages[2]; /* NULL: over */
} lcomm_shard_sending;

/* A piece, as its contributor sees it. */
typedef struct lcomm_shard_piece {
  uint64_t first;
  uint64_t bytes;            /* see lcomm_shard_cut_piece */
  int via;                   /* its owner, or the collector that adds up for this node */
  lcomm_shard_coding coding; /* of the contribution; no element: no piece */
  uint8_t *payload;
  size_t size;
  lcomm_shard_sending sending;
  lcomm_format result_format;
  uint8_t *result;
  size_t result_room, result_size;
  bool is_expected; /* the result, from `via` */
  uint64_t closed;  /* by its owner when it answered */
  uint8_t *used;    /* set of ranks */
} lcomm_shard_piece;

/* What the owner of a piece, or a collector, has of a rank that contributes to it. */
typedef struct lcomm_shard_contribution {
  lcomm_format format;
  uint8_t *payload; /* NULL: the rank contributes by a collector, or not at all */
  size_t room, size;
  lcomm_shard_sending answer;
  bool answers;                /* under way */
  lcomm_shard_sending request; /* to a collector, */
  double asked_s;              /* since when it has been asked; 0: it is not */
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
  int *source;                     /* of quorum.rule; NULL: all contribute themselves */
  lcomm_shard_coding coding;       /* of results */
  lcomm_shard_contribution *ranks; /* [size] */
  lcomm_shard_result results[LCOMM_SHARD_KEPT];
  float *sum;   /* [coding.count] */
  float *error; /* [coding.count], in units of a sum: what no contributor was told of yet */
  float *left;  /* [coding.count] of top-k: what one result leaves out */
} lcomm_shard_owned;

/* A result that a collector keeps for the ranks of its node. */
typedef struct lcomm_shard_kept {
  uint8_t *payload;
  size_t size;
  uint64_t round;
  bool is_set;
  uint32_t used;
  uint8_t *set; /* of ranks, who was used */
} lcomm_shard_kept;

/* A piece of an owner on another node, for which this rank is the collector of its node. */
typedef struct lcomm_shard_collected {
  int owner;
  lcomm_node_quorum quorum;
  lcomm_shard_contribution *ranks; /* [of the node] */
  lcomm_shard_coding coding;       /* of the contribution of the node */
  uint8_t *payload;
  size_t size;
  uint8_t *set; /* of ranks, whom the last message named */
  lcomm_shard_sending sending, notice;
  lcomm_shard_kept results[LCOMM_SHARD_KEPT];
  lcomm_shard_kept *coming; /* that is received */
  uint64_t closed;          /* by the owner, as far as this rank knows */
  float *left;              /* [coding.count] what the codec left out of the contribution */
  float *error;             /* [coding.count] the same of those that were used */
} lcomm_shard_collected;

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
  lcomm_shard_piece *pieces;         /* [size], by owner */
  lcomm_shard_owned owned;           /* coding.count is 0 where this rank owns none */
  lcomm_shard_collected **collected; /* [size], by owner; NULL: this rank does not collect */
  float *node_sum;                   /* [of the longest piece] */
  float *scratch;                    /* likewise */
  uint64_t skips_until;              /* a round: before it gradients of this rank come too late */
  bool retired;                      /* this rank makes no more sums of it */
  lcomm_quorum **lanes; /* of those that take turns with it; NULL: no round of it closes */
  unsigned lane;        /* its own of these */
};

/* Of a peer. */
typedef struct lcomm_shard_peer {
  uint8_t *bytes;              /* of a header */
  lcomm_shard_header header;   /* that was read from them last */
  lcomm_pair_message *message; /* that is received; NULL: none */
  lcomm_shard_vector *vector;  /* whose payload it is; NULL: it is a header */
  /* Results that this rank expects from it, of its own pieces and of those that it collects. */
  unsigned own, passed_on;
  uint64_t late_sums, late_pieces, streak;
  bool named;
} lcomm_shard_peer;

/* How long somebody is waited for. Who is nearer to a rank that is missing names it before the
 * others lose patience with him. */
typedef enum lcomm_shard_patience {
  LCOMM_SHARD_FOR_RANKS, /* of its node, or where each contributes itself */
  LCOMM_SHARD_FOR_NODES,
  LCOMM_SHARD_FOR_OWNER,
  LCOMM_SHARD_FOR_COLLECTOR
} lcomm_shard_patience;

struct lcomm_shards {
  lcomm_comm *comm, *service;
  lcomm_shard_roles roles;
  lcomm_quorum_rule rule;
  lcomm_shard_staleness stale;
  bool collects;      /* ranks of a node contribute together, where they are more than one */
  uint8_t *self;      /* set of this rank alone */
  char word[24];      /* of the policy that asks for all this, such as quorum=7 */
  atomic_bool served; /* see lcomm_shards_are_served() */
  bool updated;       /* see lcomm_shards_are_updated() */
  bool rounds_wait;   /* for the thread that serves; guarded by `lock` */
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

/* Seconds. */
double lcomm_shards_patience_s(const lcomm_shards *shards, lcomm_shard_patience whom);

/* `there` of `all` ranks, of the communicator or " of its node", have waited for a rank too long:
 * TIMEOUT, with a sentence. */
lcomm_status lcomm_shards_accuse(lcomm_shards *shards, int rank, int there, int all,
                                 const char *where, double waited_s);

/* The failure of the service becomes that of the communicator. */
lcomm_status lcomm_shards_follow_failure(lcomm_shards *shards);

/* ------------------------------------- shard_serve.c, shard_receive.c */

/* Serve: the hook of the service, see lcomm_deferred. */
lcomm_status lcomm_shards_serve(lcomm_comm *service);

/* Begin a message of the service. */
lcomm_status lcomm_shard_begin_message(lcomm_shards *shards, bool is_send, int peer, uint8_t *bytes,
                                       size_t size, lcomm_pair_message **message);

/* Take what has come from a peer. */
lcomm_status lcomm_shard_receive(lcomm_shards *shards, int from);

/* Send a header, which is written, and a payload of so many elements; of no byte: the header alone.
 */
lcomm_status lcomm_shard_send(lcomm_shards *shards, int peer, lcomm_shard_sending *sending,
                              uint8_t *payload, size_t size, uint64_t count);

/* Is it over? */
lcomm_status lcomm_shard_send_ends(lcomm_shards *shards, lcomm_shard_sending *sending, bool *over);

/* The same of an answer to a source of a quorum, which then has it. */
lcomm_status lcomm_shard_answer_ends(lcomm_shards *shards, lcomm_shard_contribution *to,
                                     lcomm_quorum *quorum, int source, bool *over);

/* May a contribution to a round come now from a source of a quorum? */
bool lcomm_shard_is_next(const lcomm_shard_contribution *from, const lcomm_quorum_rank *source,
                         uint64_t round);

/* A peer has sent what no rank sends. WIRE. */
lcomm_status lcomm_shards_refuse(lcomm_shards *shards, int peer, const char *what);

/* Does the payload of a piece have this length, and can it be decoded? */
bool lcomm_shard_is_size(const lcomm_format *format, uint64_t count, size_t room, uint64_t size);
bool lcomm_shard_is_payload(const lcomm_format *format, uint64_t count, const uint8_t *payload,
                            size_t size);

/* ------------------------------- shard_owner.c, shard_owner_close.c */

/* The header of a contribution has come, *target is where its payload is to go; all of it is here;
 * a notice has come. */
lcomm_status lcomm_shard_owner_accept(lcomm_shard_vector *vector, int peer,
                                      const lcomm_shard_header *header, uint8_t **target);
lcomm_status lcomm_shard_owner_take(lcomm_shard_vector *vector, int peer,
                                    const lcomm_shard_header *header);
lcomm_status lcomm_shard_owner_note(lcomm_shard_vector *vector, int peer,
                                    const lcomm_shard_header *header);

/* Does time, or a message that came, let the open round close? Its number. Its contributions do not
 * change from then on; then the result is computed, which needs no turn, and is ready. */
bool lcomm_shard_owner_may_close(const lcomm_shard_vector *vector, double now_s);
uint64_t lcomm_shard_owner_close(lcomm_shard_vector *vector);
int lcomm_shard_owner_compute(lcomm_shard_vector *vector, uint64_t round, lcomm_shard_update update,
                              void *context);

/* What is over, and who is waited for too long; *due_s is when to look again, 0: when a message
 * comes. */
lcomm_status lcomm_shard_owner_look(lcomm_shard_vector *vector, double now_s, double *due_s);

/* Answer those that wait for results that are ready. */
lcomm_status lcomm_shard_owner_answer(lcomm_shard_vector *vector);

/* ------------------ shard_collect.c, shard_collect_memory.c, shard_pass_on.c */

/* Make what this rank collects of a vector whose pieces are cut. MEMORY; free it in any case. */
lcomm_status lcomm_shard_collected_make(lcomm_shard_vector *vector,
                                        const lcomm_shard_request *request);
void lcomm_shard_collected_free(lcomm_shard_vector *vector);

/* Does a message of it still read or write its memory? */
bool lcomm_shard_collected_sends(lcomm_shard_vector *vector);

/* As those of the owner: of a contribution of a rank of this node, */
lcomm_status lcomm_shard_collect_accept(lcomm_shard_vector *vector, int peer,
                                        const lcomm_shard_header *header, uint8_t **target);
lcomm_status lcomm_shard_collect_take(lcomm_shard_vector *vector, int peer,
                                      const lcomm_shard_header *header);
bool lcomm_shard_collect_is_answered(lcomm_shard_vector *vector, int peer, int owner);
/* of the result of an owner, */
lcomm_status lcomm_shard_collect_accept_result(lcomm_shard_vector *vector, int owner,
                                               const lcomm_shard_header *header, uint8_t **target);
lcomm_status lcomm_shard_collect_take_result(lcomm_shard_vector *vector, int owner);
/* and an owner's request. */
lcomm_status lcomm_shard_collect_ask(lcomm_shard_vector *vector, int owner,
                                     const lcomm_shard_header *header);

/* Pass results on to those that wait for them. */
lcomm_status lcomm_shard_collect_pass_on(lcomm_shard_vector *vector, lcomm_shard_collected *it);

/* Ranks of the node, and the number of one of them in the communicator. */
static inline int lcomm_shard_node_ranks(const lcomm_shard_collected *it) {
  return it->quorum.ranks.rule.ranks;
}
static inline int lcomm_shard_node_rank(const lcomm_shard_vector *vector, int local) {
  const lcomm_topo *topo = &vector->comm->topo;
  return lcomm_topo_rank(topo, topo->node[vector->comm->rank], local);
}

/* What this rank collects: what is over, contribute, tell, answer; see lcomm_shard_owner_look(). */
lcomm_status lcomm_shard_collect_look(lcomm_shard_vector *vector, double now_s, double *due_s);

/* ------------------------------------------------------ shard_server.c */

/* The service has looked, and some rounds may close: tell the thread that serves. */
void lcomm_shards_ask_server(lcomm_shards *shards);

/* ------------------------------------------------------ shard_coding.c */

/* The elements of a piece that begin at `first` of a vector, in a format. MEMORY; what is made is
 * the caller's. */
lcomm_status lcomm_shard_coding_make(const lcomm_shard_request *request, const lcomm_format *format,
                                     uint64_t first, uint64_t count, lcomm_shard_coding *coding);

/* How payloads of contributions travel from a rank to another: exact inside a node. By what owners
 * send results: exact where there is one node. */
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
