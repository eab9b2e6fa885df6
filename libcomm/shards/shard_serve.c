/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The service of shards: what is sent, and what is looked after when it moves. shard_receive.c has
 * what comes. */

#include <string.h>

#include "libcomm/base/clock.h"
#include "libcomm/shards/shards_internal.h"

/* ------------------------------------------------------------------ sending */

lcomm_status lcomm_shard_begin_message(lcomm_shards *shards, bool is_send, int peer, uint8_t *bytes,
                                       size_t size, lcomm_pair_message **message) {
  lcomm_pair_call call = {.is_send = is_send,
                          .is_kept = true,
                          .data = {.data = bytes, .count = size, .dtype = LCOMM_UINT8},
                          .peer = peer};
  return lcomm_pair_begin(shards->service, &call, message);
}

/* What a rank sends to itself travels nowhere. */
static void count_saved(lcomm_shards *shards, int peer, size_t size, uint64_t count) {
  const lcomm_comm *service = shards->service;
  if (peer != service->rank) {
    lcomm_link link = lcomm_topo_link(&service->topo, service->rank, peer);
    shards->saved_bytes[link] += count * sizeof(float) - size;
  }
}

lcomm_status lcomm_shard_send(lcomm_shards *shards, int peer, lcomm_shard_sending *sending,
                              uint8_t *payload, size_t size, uint64_t count) {
  LCOMM_TRY(lcomm_shard_begin_message(shards, true, peer, sending->header,
                                      lcomm_shard_header_size(shards->service->size),
                                      &sending->messages[0]));
  if (size == 0) {
    return LCOMM_OK;
  }
  count_saved(shards, peer, size, count);
  return lcomm_shard_begin_message(shards, true, peer, payload, size, &sending->messages[1]);
}

lcomm_status lcomm_shard_send_ends(lcomm_shards *shards, lcomm_shard_sending *sending, bool *over) {
  lcomm_status status = LCOMM_OK;
  *over = true;
  for (int i = 0; i < 2; i++) {
    if (sending->messages[i] && *lcomm_pair_over(sending->messages[i])) {
      status =
          lcomm_first_failure(status, lcomm_pair_collect(shards->service, sending->messages[i]));
      sending->messages[i] = NULL;
    }
    *over &= !sending->messages[i];
  }
  return status;
}

lcomm_status lcomm_shard_answer_ends(lcomm_shards *shards, lcomm_shard_contribution *to,
                                     lcomm_quorum *quorum, int source, bool *over) {
  lcomm_status status = lcomm_shard_send_ends(shards, &to->answer, over);
  if (to->answers && *over) {
    to->answers = false;
    lcomm_quorum_answered(quorum, source);
  }
  return status;
}

/* ------------------------------------------------------------------- the hook */

/* A server's rounds are closed by the thread that serves. */
static lcomm_status look_after(lcomm_shards *shards, lcomm_shard_vector *vector, double now_s,
                               double *due_s, bool *asks) {
  LCOMM_TRY(lcomm_shard_owner_look(vector, now_s, due_s));
  if (!lcomm_shard_owner_may_close(vector, now_s)) {
    return LCOMM_OK;
  }
  if (lcomm_shards_is_server(shards)) {
    *asks = true;
    return LCOMM_OK;
  }
  uint64_t round = lcomm_shard_owner_close(vector);
  (void)lcomm_shard_owner_compute(vector, round, NULL, NULL);
  vector->owned.results[round % shards->rule.kept].is_ready = true;
  return lcomm_shard_owner_look(vector, now_s, due_s);
}

static lcomm_status answer(lcomm_shards *shards, double now_s, double *due_s) {
  for (uint32_t i = 0; i < shards->count; i++) {
    lcomm_shard_vector *it = shards->vectors[i];
    bool owns = it && it->lanes && it->owned.coding.count > 0;
    LCOMM_TRY(owns ? lcomm_shard_owner_answer(it) : LCOMM_OK);
    LCOMM_TRY(it && it->lanes && it->collected ? lcomm_shard_collect_look(it, now_s, due_s)
                                               : LCOMM_OK);
  }
  return LCOMM_OK;
}

static lcomm_status serve(lcomm_shards *shards) {
  double due_s = 0, now_s;
  bool asks = false;
  int size = shards->service->size;
  for (int peer = 0; peer < size; peer++) {
    LCOMM_TRY(lcomm_shard_receive(shards, peer));
  }
  now_s = lcomm_clock_s();
  for (uint32_t i = 0; i < shards->count; i++) {
    bool owns = shards->vectors[i] && shards->vectors[i]->lanes &&
                shards->vectors[i]->owned.coding.count > 0;
    LCOMM_TRY(owns ? look_after(shards, shards->vectors[i], now_s, &due_s, &asks) : LCOMM_OK);
  }
  if (asks) {
    lcomm_shards_ask_server(shards);
  }
  LCOMM_TRY(answer(shards, now_s, &due_s));
  shards->service->deferred.due_s = due_s;
  return LCOMM_OK;
}

lcomm_status lcomm_shards_serve(lcomm_comm *service) {
  lcomm_shards *shards = service->deferred.shards;
  lcomm_status status = serve(shards);
  if (status != LCOMM_OK) {
    lcomm_shards_tell(shards);
  }
  return status;
}
