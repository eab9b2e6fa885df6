/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_SHARDS_SHARDS_H
#define LCOMM_SHARDS_SHARDS_H

/* Sums of vectors of float32 through owners of their pieces, without waiting for the slowest rank
 * (quorum= and stale= of the policy), or by servers (algo=servers). Each rank, or each server, owns
 * a piece of each vector. It is sent the contributions of all ranks, or workers, to it, sums them
 * by the rule of quorum.h, and answers each with the result. Ranks of another node contribute and
 * are answered together (node_quorum.h), but for servers and with stale=N:drop.
 *
 * Messages between two ranks carry both, in a communicator of the same ranks that has nothing else
 * to do, the *service*. Its progress thread serves peers while the program computes. Vectors of
 * buckets come in the same order on all ranks, vectors of calls in another one, and so do the sums
 * of each vector.
 *
 * shards.c has the life of all this and what goes wrong, shard_roles.c who owns what,
 * shard_chunks.c a vector in chunks, shard_vector.c the life of a chunk, shard_lanes.c those that
 * take turns with stale=, shard_sum.c a sum as its contributors see it, shard_owner.c as the owner
 * of a piece does, shard_collect.c as the collector of a node does, shard_server.c as a server
 * does, shard_serve.c and shard_receive.c the messages, shard_late.c who is late. */

#include "codecs/codec.h"
#include "libcomm/engine/engine.h"
#include "libcomm/shards/shard_roles.h"
#include "libcomm/shards/staleness.h"

typedef struct lcomm_shards lcomm_shards;
typedef struct lcomm_shard_vector lcomm_shard_vector;

/* ------------------------------------------------------------------- life */

/* Give `comm` shards by a service of the same ranks in the same order, which has a progress thread,
 * and roles, which are the shards' from then on. MEMORY; the service and the roles are still the
 * caller's then. */
lcomm_status lcomm_shards_make(lcomm_comm *comm, lcomm_comm *service, lcomm_shard_roles *roles);

/* No sum is in flight on any rank, or the communicator has failed; its vectors are freed. Returns
 * the service, the caller's again, in which nothing is in flight; NULL: there are no shards. */
lcomm_comm *lcomm_shards_take_down(lcomm_comm *comm);

/* Are calls with a residual summed so, too? With quorum= alone; shards may be NULL. */
bool lcomm_shards_sum_calls(const lcomm_shards *shards);

/* What a vector is. */
typedef struct lcomm_shard_request {
  uint64_t count;
  lcomm_op op;                  /* SUM or AVG: of as many as were used */
  lcomm_format format;          /* between nodes */
  bool exact_results;           /* what owners send is float32 */
  const uint64_t *segment_ends; /* of top-k, see lcomm_topk_shape; only read by make */
  size_t segments;
  uint64_t first; /* 0; of chunks: the element that it begins with, where segments are counted */
  const lcomm_shard_vector *like; /* whose pieces it has, of the same count; NULL: its own */
  lcomm_sequence_space space;     /* in whose order all ranks make it */
} lcomm_shard_request;

/* Make the vectors of one bucket, one for each lane of staleness.h, which is one without stale=: on
 * all ranks, and no rank begins a sum of them before all have made them. The array is theirs, freed
 * with them. MEMORY, not sticky. */
lcomm_status lcomm_shard_lanes_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                    lcomm_shard_vector ***lanes);

/* NULL ok. No sum of them is in flight on any rank, or the communicator has failed. */
void lcomm_shard_lanes_free(lcomm_comm *comm, lcomm_shard_vector **lanes);

/* This rank makes no more sums of them, and others may be behind: what this rank owns goes on being
 * served. Have all ranks the results of all sums that this rank has made? They can be freed then.
 */
void lcomm_shard_lanes_retire(lcomm_shard_vector **lanes);
bool lcomm_shard_lanes_are_settled(lcomm_comm *comm, lcomm_shard_vector **lanes);

/* ------------------------------------------------------------------- sums */

/* Begin the next sum: this rank contributes share * values + residual, of which the residual keeps
 * what the codec leaves out. Both have `count` elements; the values are scaled. Errors are the
 * communicator's. */
lcomm_status lcomm_shard_sum_begin(lcomm_shard_vector *vector, float *values, float *residual,
                                   float share);

/* Are all pieces of the result here? Any thread. */
bool lcomm_shard_sum_is_here(const lcomm_shard_vector *vector);

/* Wait for that, or until a time of clock.h, which may be INFINITY. The caller has entered the
 * communicator, whose operations move meanwhile. */
lcomm_status lcomm_shard_sum_wait(lcomm_shard_vector *vector, double until_s);

/* For who looks now and then instead, since so many seconds: errors as of a wait. */
lcomm_status lcomm_shard_sum_check(const lcomm_shard_vector *vector, double looked_s);

/* End a sum whose result is here: it goes into the values, and into the residual what was not used
 * of this rank's contribution, and what the codec left out of the piece that this rank owns. */
lcomm_status lcomm_shard_sum_end(lcomm_shard_vector *vector, float *values, float *residual);

/* With stale=: where this rank stands, the same in all vectors. The room above moves it. */
typedef struct lcomm_shard_staleness {
  lcomm_stale_rule rule; /* of 0 steps without stale= */
  lcomm_stale_rank rank;
  uint64_t closed;                 /* rounds that are known to be */
  uint64_t hash;                   /* of all results that were taken */
  uint64_t age, age_most, age_sum; /* of the last contribution, and of all */
} lcomm_shard_staleness;
lcomm_shard_staleness *lcomm_shards_stale(lcomm_shards *shards);
/* The same of a communicator; NULL without stale=. */
lcomm_shard_staleness *lcomm_shards_stale_of(const lcomm_comm *comm);

/* Rounds that all owners had closed beyond that of the result that is here, in the lane of it. */
uint64_t lcomm_shard_closed_beyond(const lcomm_shard_vector *vector);

/* ----------------------------------------------------------------- servers */

/* Who this rank is; shards may be NULL. */
bool lcomm_shards_have_servers(const lcomm_shards *shards);
bool lcomm_shards_is_server(const lcomm_shards *shards);
bool lcomm_shards_serves(const lcomm_shards *shards, int rank);
int lcomm_shards_servers(const lcomm_shards *shards);

/* Has this rank begun sums that servers have to serve until it says that it makes no more? */
bool lcomm_shards_are_served(const lcomm_shards *shards);
void lcomm_shards_set_served(lcomm_shards *shards, bool served);

/* Does an update make what workers receive? Known on all ranks when vectors are made. */
bool lcomm_shards_are_updated(const lcomm_shards *shards);
void lcomm_shards_set_updated(lcomm_shards *shards, bool updated);

/* What a server makes of the result of a round before workers receive it: `values` are those of its
 * piece of a vector. Not 0: it failed. */
typedef struct lcomm_shard_round {
  const lcomm_shard_vector *vector;
  unsigned lane;         /* its own of those that take turns */
  uint64_t first, count; /* of the vector */
  float *values;         /* [count] */
  uint64_t number;       /* of all lanes; those of a vector come in this order */
  uint32_t used;         /* workers */
} lcomm_shard_round;
typedef int (*lcomm_shard_update)(void *context, const lcomm_shard_round *round);

/* On a server: close the rounds that may close, those of each bucket in order, each by `update`
 * unless that is NULL, on this thread; where there is none, wait for one, but not for long. Errors
 * are the communicator's. */
lcomm_status lcomm_shards_serve_rounds(lcomm_comm *comm, lcomm_shard_update update, void *context);

/* Of a server that does not serve, what its codec has left out is in a residual of the bucket, as
 * on workers: take it from there for the next round, and put it there again, of all lanes. */
void lcomm_shard_server_begin(lcomm_shard_vector **lanes, float *residual);
void lcomm_shard_server_end(lcomm_shard_vector **lanes, float *residual);

/* -------------------------------------------------------------- who is late */

/* See lcomm_behind() in libcomm_stats.h. */
uint64_t lcomm_shards_behind(const lcomm_shards *shards);

/* Add the messages of the service to the counters of the communicator; they begin at 0 again. */
void lcomm_shards_add_stats(const lcomm_comm *comm, lcomm_stats *stats);
void lcomm_shards_reset_stats(const lcomm_comm *comm);

/* What the results that this rank has say of a rank. */
void lcomm_shards_lateness(const lcomm_shards *shards, int rank, lcomm_lateness *lateness);

#endif
