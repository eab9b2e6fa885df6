/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A server: the thread that serves closes rounds, by the program's function where there is one,
 * while the service moves messages. */

#include <string.h>
#include <time.h>

#include "libcomm/base/clock.h"
#include "libcomm/engine/entry.h"
#include "libcomm/shards/shards_internal.h"

/* -------------------------------------------------------------------- roles */

bool lcomm_shards_have_servers(const lcomm_shards *shards) {
  return shards && shards->roles.servers > 0;
}

bool lcomm_shards_is_server(const lcomm_shards *shards) {
  return shards && lcomm_shards_serves(shards, shards->comm->rank);
}

bool lcomm_shards_serves(const lcomm_shards *shards, int rank) {
  return lcomm_shards_have_servers(shards) && lcomm_shard_roles_serves(&shards->roles, rank);
}

int lcomm_shards_servers(const lcomm_shards *shards) {
  return shards ? shards->roles.servers : 0;
}

bool lcomm_shards_are_served(const lcomm_shards *shards) {
  return shards && atomic_load(&shards->served);
}

void lcomm_shards_set_served(lcomm_shards *shards, bool served) {
  atomic_store(&shards->served, served && lcomm_shards_have_servers(shards));
}

bool lcomm_shards_are_updated(const lcomm_shards *shards) {
  return shards && shards->updated;
}

void lcomm_shards_set_updated(lcomm_shards *shards, bool updated) {
  shards->updated = updated;
}

/* ------------------------------------------------------------------- rounds */

void lcomm_shards_ask_server(lcomm_shards *shards) {
  pthread_mutex_lock(&shards->lock);
  shards->rounds_wait = true;
  pthread_cond_broadcast(&shards->news);
  pthread_mutex_unlock(&shards->lock);
}

/* Not for long: operations of the communicator move by this thread, too. */
static void sleep_until_rounds_wait(lcomm_shards *shards) {
  static const long LIMIT_NS = 20 * 1000 * 1000;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += LIMIT_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&shards->lock);
  if (!shards->rounds_wait) {
    (void)pthread_cond_timedwait(&shards->news, &shards->lock, &until);
  }
  shards->rounds_wait = false;
  pthread_mutex_unlock(&shards->lock);
}

static lcomm_status refuse_update(lcomm_shards *shards, const lcomm_shard_vector *vector,
                                  uint64_t round, int failed) {
  char who[96];
  return lcomm_fail(shards->service, LCOMM_ERR_ABORTED,
                    "the function that %s gave to lcomm_server_run has failed with %d, in round "
                    "%llu of a sum of %llu elements",
                    lcomm_comm_who(shards->comm, shards->comm->rank, who, sizeof(who)), failed,
                    (unsigned long long)lcomm_stale_round(&shards->stale.rule, vector->lane, round),
                    (unsigned long long)vector->count);
}

/* The service goes on while the result is computed. */
static lcomm_status close_round(lcomm_shards *shards, lcomm_shard_vector *vector,
                                lcomm_shard_update update, void *context) {
  uint64_t round = 0;
  LCOMM_TRY(lcomm_enter(shards->service));
  bool closes = lcomm_shard_owner_may_close(vector, lcomm_clock_s());
  round = closes ? lcomm_shard_owner_close(vector) : 0;
  lcomm_exit(shards->service);
  if (!closes) {
    return LCOMM_OK;
  }
  int failed = lcomm_shard_owner_compute(vector, round, update, context);
  LCOMM_TRY(lcomm_enter(shards->service));
  vector->owned.results[round % shards->rule.kept].is_ready = true;
  lcomm_status status =
      failed ? refuse_update(shards, vector, round, failed) : lcomm_shard_owner_answer(vector);
  lcomm_exit(shards->service);
  lcomm_progress_thread_wake(shards->service->progress.thread);
  return status;
}

lcomm_status lcomm_shards_serve_rounds(lcomm_comm *comm, lcomm_shard_update update, void *context) {
  lcomm_shards *shards = comm->deferred.shards;
  sleep_until_rounds_wait(shards);
  for (uint32_t i = 0; i < shards->count; i++) {
    if (shards->vectors[i]) {
      (void)close_round(shards, shards->vectors[i], update, context); /* a failure stays */
    }
  }
  return lcomm_shards_follow_failure(shards);
}

/* --------------------------------------------------------------- at the ends */

/* Of the piece of a chunk that this rank owns. */
static float *residual_of(const lcomm_shard_vector *chunk, float *residual) {
  return residual + chunk->first + chunk->pieces[chunk->comm->rank].first;
}

/* Between two runs nobody else touches the errors of a server. */
static void move_values(const lcomm_shard_vector *vector, float *from, float *to) {
  uint64_t count = vector->owned.coding.count;
  if (count == 0) {
    return;
  }
  vector->comm->kernels->f32_add(from, 1.0f, to, count);
  memset(from, 0, count * sizeof(float));
}

void lcomm_shard_server_begin(lcomm_shard_vector **lanes, float *residual) {
  const lcomm_stale_rule *rule = &lanes[0]->comm->deferred.shards->stale.rule;
  unsigned next = 0;
  while (!lcomm_stale_is_next(rule, lanes[next]->lanes, next)) {
    next++;
  }
  for (lcomm_shard_vector *it = lanes[next]; it; it = it->following) {
    move_values(it, residual_of(it, residual), it->owned.error);
  }
}

void lcomm_shard_server_end(lcomm_shard_vector **lanes, float *residual) {
  unsigned count = lcomm_stale_lanes(&lanes[0]->comm->deferred.shards->stale.rule);
  for (unsigned i = 0; i < count; i++) {
    for (lcomm_shard_vector *it = lanes[i]; it; it = it->following) {
      move_values(it, it->owned.error, residual_of(it, residual));
    }
  }
}
