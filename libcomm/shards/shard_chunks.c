/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A vector in chunks, each of which is summed by itself. Where servers sum, results of a chunk come
 * back while the next one is still sent to them, so that their links are busy both ways. Else a
 * vector is one chunk.
 *
 *   first   | chunk 0 (head) | chunk 1 | chunk 2 |   linked by `following` */

#include "libcomm/shards/shards_internal.h"

void lcomm_shard_vector_free(lcomm_shard_vector *vector) {
  while (vector) {
    lcomm_shard_vector *following = vector->following;
    lcomm_shard_chunk_free(vector);
    vector = following;
  }
}

/* `*place`: where the chunk is linked. */
static lcomm_status make_chunk(lcomm_comm *comm, const lcomm_shard_request *request,
                               lcomm_shard_vector **head, lcomm_shard_vector **place) {
  LCOMM_TRY(lcomm_shard_chunk_make(comm, request, place));
  (*place)->head = *head;
  return LCOMM_OK;
}

lcomm_status lcomm_shard_vector_make(lcomm_comm *comm, const lcomm_shard_request *request,
                                     lcomm_shard_vector **vector) {
  lcomm_shard_vector *head = NULL, **place = &head;
  lcomm_shard_request chunk = *request;
  bool splits = lcomm_shards_have_servers(comm->deferred.shards);
  do {
    uint64_t left = request->count - chunk.first;
    chunk.count = splits && left > LCOMM_SHARD_CHUNK ? LCOMM_SHARD_CHUNK : left;
    lcomm_status status = make_chunk(comm, &chunk, &head, place);
    if (status != LCOMM_OK) {
      lcomm_shard_vector_free(head);
      return status;
    }
    place = &(*place)->following;
    chunk.first += chunk.count;
    chunk.like = chunk.like ? chunk.like->following : NULL;
  } while (chunk.first < request->count);
  *vector = head;
  return LCOMM_OK;
}

lcomm_status lcomm_shard_sum_begin(lcomm_shard_vector *vector, float *values, float *residual,
                                   float share) {
  for (lcomm_shard_vector *it = vector; it; it = it->following) {
    LCOMM_TRY(lcomm_shard_chunk_begin(it, values + it->first, residual + it->first, share));
  }
  return LCOMM_OK;
}

bool lcomm_shard_sum_is_here(const lcomm_shard_vector *vector) {
  bool is_here = true;
  for (const lcomm_shard_vector *it = vector; it; it = it->following) {
    is_here &= lcomm_shard_chunk_is_here(it);
  }
  return is_here;
}

lcomm_status lcomm_shard_sum_wait(lcomm_shard_vector *vector, double until_s) {
  for (lcomm_shard_vector *it = vector; it; it = it->following) {
    LCOMM_TRY(lcomm_shard_chunk_wait(it, until_s));
  }
  return LCOMM_OK;
}

lcomm_status lcomm_shard_sum_end(lcomm_shard_vector *vector, float *values, float *residual) {
  for (lcomm_shard_vector *it = vector; it; it = it->following) {
    LCOMM_TRY(lcomm_shard_chunk_end(it, values + it->first, residual + it->first));
  }
  return LCOMM_OK;
}
