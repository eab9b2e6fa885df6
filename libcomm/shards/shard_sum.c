/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A sum as its contributors see it: encoded and sent, waited for, ended. */

#include <math.h>
#include <string.h>
#include <time.h>

#include "codecs/codec_residual.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/operation.h"
#include "libcomm/engine/siblings.h"
#include "libcomm/shards/shards_internal.h"

/* -------------------------------------------------------------------- begin */

static void encode(lcomm_shard_vector *vector, int owner, const float *values, float *residual) {
  const lcomm_comm *comm = vector->comm;
  lcomm_shard_piece *it = &vector->pieces[owner];
  const float *source = values + it->first;
  float *kept = residual + it->first;
  uint64_t seed = (uint64_t)vector->number << 48 ^ vector->round << 16 ^ (uint64_t)comm->rank << 1;
  if (it->coding.topk) {
    lcomm_topk_encode(it->coding.topk, comm->kernels, source, kept, kept, LCOMM_TOPK_RELEASE,
                      &it->payload, &it->size);
    return;
  }
  lcomm_residual_encode(&it->coding.format, comm->kernels, source, kept, kept,
                        lcomm_range_whole(it->coding.count), seed + ((uint64_t)owner << 40),
                        it->payload);
  it->size = it->coding.room;
}

/* The sum before has ended, so its messages have arrived; the transport may not have said so. */
static lcomm_status finish_before(lcomm_shards *shards, lcomm_shard_piece *piece) {
  bool over = false;
  LCOMM_TRY(lcomm_shard_send_ends(shards, &piece->sending, &over));
  while (!over) {
    (void)lcomm_engine_progress(shards->service);
    LCOMM_TRY((lcomm_status)atomic_load(&shards->service->errors.status));
    LCOMM_TRY(lcomm_shard_send_ends(shards, &piece->sending, &over));
  }
  return LCOMM_OK;
}

static lcomm_status finish_all_before(lcomm_shards *shards, lcomm_shard_vector *vector) {
  lcomm_status status = LCOMM_OK;
  LCOMM_TRY(lcomm_enter(shards->service));
  for (int owner = 0; owner < vector->comm->size && status == LCOMM_OK; owner++) {
    status = finish_before(shards, &vector->pieces[owner]);
  }
  lcomm_exit(shards->service);
  return status;
}

static lcomm_status contribute(lcomm_shards *shards, lcomm_shard_vector *vector, int owner) {
  lcomm_shard_piece *it = &vector->pieces[owner];
  lcomm_shard_peer *peer = &shards->peers[it->via];
  lcomm_shard_header header = {.kind = LCOMM_SHARD_CONTRIBUTION,
                               .vector = vector->number,
                               .owner = (uint32_t)owner,
                               .used = 1,
                               .round = vector->round - 1,
                               .size = it->size,
                               .mask = shards->self};
  lcomm_shard_header_write(&header, shards->service->size, it->sending.header);
  it->is_expected = true;
  *(it->via == owner ? &peer->own : &peer->passed_on) += 1;
  return lcomm_shard_send(shards, it->via, &it->sending, it->payload, it->size, it->coding.count);
}

/* Each rank begins with another owner, or all would send to the first at once. */
static lcomm_status contribute_all(lcomm_shards *shards, lcomm_shard_vector *vector) {
  int size = vector->comm->size;
  lcomm_status status = LCOMM_OK;
  LCOMM_TRY(lcomm_enter(shards->service));
  vector->round++;
  vector->left = 0;
  for (int owner = 0; owner < size; owner++) {
    vector->left += vector->pieces[owner].coding.count > 0;
  }
  atomic_store(&vector->here, vector->left == 0);
  for (int i = 0; i < size && status == LCOMM_OK; i++) {
    int owner = (vector->comm->rank + i) % size;
    status = vector->pieces[owner].coding.count > 0 ? contribute(shards, vector, owner) : LCOMM_OK;
  }
  lcomm_exit(shards->service);
  lcomm_progress_thread_wake(shards->service->progress.thread);
  return status;
}

lcomm_status lcomm_shard_chunk_begin(lcomm_shard_vector *vector, float *values, float *residual,
                                     float share) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_status status = finish_all_before(shards, vector);
  uint32_t environment = lcomm_fp_enter();
  vector->begun_s = lcomm_clock_s();
  if (share < 1) {
    vector->comm->kernels->f32_scale(values, share, values, vector->count);
  }
  for (int owner = 0; owner < vector->comm->size && status == LCOMM_OK; owner++) {
    if (vector->pieces[owner].coding.count > 0) {
      encode(vector, owner, values, residual);
    }
  }
  lcomm_fp_leave(environment);
  status = status == LCOMM_OK ? contribute_all(shards, vector) : status;
  return status == LCOMM_OK ? LCOMM_OK : lcomm_shards_follow_failure(shards);
}

/* ------------------------------------------------------------------ waiting */

bool lcomm_shard_chunk_is_here(const lcomm_shard_vector *vector) {
  return atomic_load(&vector->here);
}

/* Until the service has news, but not for long: operations of the communicator move by calls. */
static void sleep_until_news(lcomm_shards *shards, const lcomm_shard_vector *vector,
                             double left_s) {
  bool is_busy = lcomm_comm_is_busy(shards->comm);
  const double limit_s = is_busy ? 0.0005 : 0.02;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += (long)(1e9 * (left_s < limit_s ? left_s : limit_s));
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  pthread_mutex_lock(&shards->lock);
  if (!lcomm_shard_chunk_is_here(vector)) {
    (void)pthread_cond_timedwait(&shards->news, &shards->lock, &until);
  }
  pthread_mutex_unlock(&shards->lock);
}

/* Whoever owes this rank a result of its own piece, or of one that it collects. */
static int find_debtor(const lcomm_shards *shards, bool of_collectors) {
  for (int rank = 0; rank < shards->service->size; rank++) {
    const lcomm_shard_peer *peer = &shards->peers[rank];
    if ((of_collectors ? peer->passed_on : peer->own) > 0) {
      return rank;
    }
  }
  return -1;
}

/* Owners and collectors look after ranks that do not contribute; this is for one that does not
 * answer. */
static lcomm_status check_debtor(lcomm_shards *shards, const lcomm_shard_vector *vector,
                                 double waited_s, lcomm_shard_patience with) {
  bool collects = with == LCOMM_SHARD_FOR_COLLECTOR;
  lcomm_comm *service = shards->service;
  char who[96];
  if (waited_s < lcomm_shards_patience_s(shards, with)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_enter(service));
  int rank = find_debtor(shards, collects);
  lcomm_status status = LCOMM_OK;
  if (rank >= 0) {
    status = lcomm_fail_peer(
        service, LCOMM_ERR_TIMEOUT, rank,
        "a sum of %llu elements with %s waits for %s, which %s a piece of it and has not "
        "answered for %g s. LCOMM_TIMEOUT_S sets the time-out.",
        (unsigned long long)vector->count, shards->word,
        lcomm_comm_who(service, rank, who, sizeof(who)),
        collects ? "passes on to its node" : "owns", waited_s);
  }
  lcomm_exit(service);
  return status;
}

lcomm_status lcomm_shard_sum_check(const lcomm_shard_vector *vector, double looked_s) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  (void)check_debtor(shards, vector, looked_s, LCOMM_SHARD_FOR_OWNER);
  (void)check_debtor(shards, vector, looked_s, LCOMM_SHARD_FOR_COLLECTOR);
  LCOMM_TRY(lcomm_control_receive(vector->comm));
  return lcomm_shards_follow_failure(shards);
}

lcomm_status lcomm_shard_chunk_wait(lcomm_shard_vector *vector, double until_s) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  lcomm_comm *comm = vector->comm;
  double since_s = lcomm_clock_s(), now_s = since_s;
  while (!lcomm_shard_chunk_is_here(vector) && now_s < until_s) {
    if (!lcomm_engine_progress(comm) && !lcomm_siblings_move(comm)) {
      sleep_until_news(shards, vector, until_s - now_s);
    }
    now_s = lcomm_clock_s();
    LCOMM_TRY(lcomm_shard_sum_check(vector, now_s - since_s));
  }
  comm->stats.wait_s += lcomm_clock_s() - since_s;
  return LCOMM_OK;
}

/* ---------------------------------------------------------------------- end */

/* What is not finite stays nowhere. */
static void give_back(lcomm_shard_vector *vector, const lcomm_shard_piece *piece, float *residual) {
  lcomm_shard_decode(vector->comm, &piece->coding.format, piece->coding.count, piece->payload,
                     vector->scratch);
  for (uint64_t i = 0; i < piece->coding.count; i++) {
    float sum = residual[piece->first + i] + vector->scratch[i];
    residual[piece->first + i] = isfinite(sum) ? sum : 0;
  }
}

static void end_piece(lcomm_shard_vector *vector, const lcomm_shard_piece *piece, float *values,
                      float *residual) {
  const lcomm_comm *comm = vector->comm;
  lcomm_shard_decode(comm, &piece->result_format, piece->coding.count, piece->result,
                     values + piece->first);
  if (!lcomm_quorum_mask_has(piece->used, comm->rank)) {
    give_back(vector, piece, residual);
  }
}

static void take_error(const lcomm_shard_vector *vector, int owner, float *error, float *residual) {
  const lcomm_shard_piece *piece = &vector->pieces[owner];
  vector->comm->kernels->f32_add(error, 1.0f, residual + piece->first, piece->coding.count);
  memset(error, 0, piece->coding.count * sizeof(float));
}

/* The service may add to the errors of this piece, and of those that this rank collects, while this
 * rank is between two sums. */
static lcomm_status take_errors(lcomm_shards *shards, lcomm_shard_vector *vector, float *residual) {
  LCOMM_TRY(lcomm_enter(shards->service));
  if (vector->owned.coding.count > 0) {
    take_error(vector, vector->comm->rank, vector->owned.error, residual);
  }
  for (int owner = 0; vector->collected && owner < vector->comm->size; owner++) {
    if (vector->collected[owner]) {
      take_error(vector, owner, vector->collected[owner]->error, residual);
    }
  }
  lcomm_exit(shards->service);
  return LCOMM_OK;
}

lcomm_status lcomm_shard_chunk_end(lcomm_shard_vector *vector, float *values, float *residual) {
  lcomm_shards *shards = vector->comm->deferred.shards;
  uint32_t environment = lcomm_fp_enter();
  for (int owner = 0; owner < vector->comm->size; owner++) {
    if (vector->pieces[owner].coding.count > 0) {
      end_piece(vector, &vector->pieces[owner], values, residual);
    }
  }
  lcomm_status status = take_errors(shards, vector, residual);
  lcomm_fp_leave(environment);
  lcomm_shards_count_late(shards, vector);
  return status;
}
