/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/tensor/tensor_sync.h"

#include <stdlib.h>

#include "libcomm/tensor/bucket.h"

lcomm_call lcomm_sync_call(const lcomm_comm *comm, const lcomm_sync_entry *mine,
                           lcomm_sync_entry *all) {
  const lcomm_shards *shards = comm->deferred.shards;
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLGATHER, mine, all,
                                  sizeof *mine / sizeof(float), LCOMM_FLOAT32, LCOMM_SUM);
  bool serves = lcomm_shards_is_server(shards) || lcomm_shards_are_served(shards);
  call.op_kind = serves ? LCOMM_OP_KIND_SERVE : LCOMM_OP_KIND_SYNC;
  return call;
}

/* ------------------------------------------------------------------- verdict */

static bool is_known(uint64_t word) {
  return word == LCOMM_SYNC_COMPARES || word == LCOMM_SYNC_ENDS;
}

static const char *say(uint64_t word) {
  if (!is_known(word)) {
    return "something else";
  }
  return word == LCOMM_SYNC_ENDS ? "lcomm_server_end or lcomm_destroy" : "lcomm_tensors_sync";
}

static int next_worker(const lcomm_comm *comm, int rank) {
  while (rank < comm->size && lcomm_shards_serves(comm->deferred.shards, rank)) {
    rank++;
  }
  return rank;
}

/* What workers compare in the end is the word alone: with results under way, in lcomm_destroy, they
 * may have been handed out more or less. */
static bool are_equal(const lcomm_sync_entry *a, const lcomm_sync_entry *b) {
  bool ends = a->word == LCOMM_SYNC_ENDS;
  return a->word == b->word && (ends || (a->steps == b->steps && a->hash == b->hash));
}

static lcomm_status refuse(lcomm_comm *comm, const lcomm_sync_entry *all, int first, int other) {
  const lcomm_sync_entry *a = &all[first], *b = &all[other];
  if (a->word != b->word) {
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "rank %d called %s where rank %d called %s; all workers make the same calls "
                      "after the same steps",
                      other, say(b->word), first, say(a->word));
  }
  if (a->steps != b->steps) {
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "lcomm_tensors_sync: rank %d has made %llu steps, and rank %d %llu; all "
                      "ranks must make the same steps",
                      other, (unsigned long long)b->steps, first, (unsigned long long)a->steps);
  }
  return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                    "lcomm_tensors_sync: after %llu steps rank %d was handed out other results "
                    "than rank %d, so their replicas differ. Check the memory of both, and the "
                    "network; check=xxhash of the policy checks messages",
                    (unsigned long long)a->steps, other, first);
}

lcomm_status lcomm_sync_verdict(lcomm_comm *comm, const lcomm_sync_entry *all,
                                lcomm_sync_word *word) {
  int first = next_worker(comm, 0), other = next_worker(comm, first + 1);
  while (other < comm->size && are_equal(&all[first], &all[other])) {
    other = next_worker(comm, other + 1);
  }
  if (other < comm->size) {
    return refuse(comm, all, first, other);
  }
  if (!is_known(all[first].word)) {
    return lcomm_fail(comm, LCOMM_ERR_WIRE,
                      "rank %d called something that this libcomm does not know, where ranks "
                      "compare results. Check that all ranks run the same libcomm",
                      first);
  }
  *word = (lcomm_sync_word)all[first].word;
  return LCOMM_OK;
}

lcomm_status lcomm_sync_make(lcomm_comm *comm, lcomm_sync_word word) {
  const lcomm_shard_staleness *stale = lcomm_shards_stale_of(comm);
  const lcomm_sync_entry mine = {
      .word = word, .steps = comm->deferred.step, .hash = stale ? stale->hash : 0};
  lcomm_sync_entry *all = calloc((size_t)comm->size, sizeof *all);
  if (!all) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory to compare the results of ranks");
  }
  lcomm_call call = lcomm_sync_call(comm, &mine, all);
  lcomm_status status = lcomm_tensors_call(comm, &call);
  if (status == LCOMM_OK) {
    status = lcomm_sync_verdict(comm, all, &word);
  }
  free(all);
  return status;
}
