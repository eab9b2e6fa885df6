/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Servers of tensors, and the end of what workers do with them. */

#include <stdlib.h>

#include "libcomm/engine/entry.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/tensor_sync.h"

int lcomm_is_server(const lcomm_comm *comm) {
  return comm && lcomm_shards_is_server(comm->deferred.shards);
}

/* ------------------------------------------------------------------- updates */

/* What the program gave to lcomm_server_run. */
typedef struct server_program {
  lcomm_comm *comm;
  lcomm_server_update update;
  void *context;
} server_program;

static const lcomm_bucket *find_bucket(const lcomm_comm *comm, const lcomm_shard_round *round) {
  const lcomm_bucket *bucket = comm->tensors->buckets;
  while (bucket->shards[round->lane] != round->vector) {
    bucket++;
  }
  return bucket;
}

/* A piece of a bucket, tensor by tensor. */
static int update_tensors(void *context, const lcomm_shard_round *round) {
  const server_program *program = context;
  const lcomm_bucket *bucket = find_bucket(program->comm, round);
  uint64_t last = round->first + round->count;
  int failed = 0;
  for (size_t i = 0; i < bucket->tensor_count && !failed; i++) {
    lcomm_tensor *it = bucket->tensors[i];
    uint64_t begin = it->offset > round->first ? it->offset : round->first;
    uint64_t end = it->offset + it->count < last ? it->offset + it->count : last;
    if (begin < end) {
      lcomm_server_piece piece = {.tensor = it,
                                  .name = it->name,
                                  .first = begin - it->offset,
                                  .count = end - begin,
                                  .values = round->values + (begin - round->first),
                                  .step = round->number,
                                  .used = (int)round->used};
      failed = program->update(program->context, &piece);
    }
  }
  return failed;
}

/* ------------------------------------------------------------------- serving */

static lcomm_status check_server(lcomm_comm *comm, bool updates) {
  if (!lcomm_is_server(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_server_run: rank %d is no server; name it in servers= of the "
                        "policy, with algo=servers",
                        comm->rank);
  }
  if (comm->tensors->count == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_server_run: there are no tensors; add those of the workers first, "
                        "in the same order");
  }
  if (comm->tensors->grouped && lcomm_shards_are_updated(comm->deferred.shards) != updates) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_server_run: there was %s update function in the call before, so "
                        "there must be %s now",
                        updates ? "no" : "an", updates ? "none" : "one");
  }
  return (lcomm_status)atomic_load(&comm->errors.status);
}

/* Servers say whether workers receive gradients or what updates make of them. */
lcomm_status lcomm_servers_agree(lcomm_comm *comm) {
  lcomm_shards *shards = comm->deferred.shards;
  int32_t updates = lcomm_is_server(comm) && lcomm_shards_are_updated(shards);
  int servers = lcomm_shards_servers(shards);
  lcomm_call call =
      lcomm_call_of(LCOMM_COLLECTIVE_ALLREDUCE, &updates, &updates, 1, LCOMM_INT32, LCOMM_SUM);
  call.op_kind = LCOMM_OP_KIND_TENSORS;
  LCOMM_TRY(lcomm_tensors_call(comm, &call));
  if (updates != 0 && updates != servers) {
    return lcomm_fail(comm, LCOMM_ERR_MISMATCH,
                      "%d of %d servers have given an update function to lcomm_server_run; all of "
                      "them must, or none",
                      (int)updates, servers);
  }
  lcomm_shards_set_updated(shards, updates != 0);
  return LCOMM_OK;
}

static void for_buckets(lcomm_comm *comm, void (*move)(lcomm_shard_vector **, float *)) {
  for (size_t i = 0; i < comm->tensors->bucket_count; i++) {
    lcomm_bucket *bucket = &comm->tensors->buckets[i];
    move(bucket->shards, bucket->ef.state.feedback->residual.now);
  }
}

/* Whatever workers do meanwhile, no time-out counts here. */
static lcomm_status serve_until(const server_program *program, const lcomm_operation *end) {
  lcomm_comm *comm = program->comm;
  lcomm_shard_update update = program->update ? update_tensors : NULL;
  while (!end->over) {
    LCOMM_TRY(lcomm_shards_serve_rounds(comm, update, (void *)(uintptr_t)program));
    (void)lcomm_engine_progress(comm);
    LCOMM_TRY(lcomm_control_receive(comm));
  }
  return end->status;
}

/* Until workers come together, with what is said by `all`. */
static lcomm_status serve_until_sync(const server_program *program, lcomm_sync_entry *all,
                                     lcomm_sync_word *word) {
  lcomm_comm *comm = program->comm;
  const lcomm_sync_entry mine = {0};
  lcomm_request request = {0};
  lcomm_call call = lcomm_sync_call(comm, &mine, all);
  LCOMM_TRY(lcomm_call_start(comm, &call, &request));
  lcomm_status status = request.internal ? serve_until(program, request.internal) : LCOMM_OK;
  status = lcomm_first_failure(status, lcomm_wait(comm, &request));
  return status == LCOMM_OK ? lcomm_sync_verdict(comm, all, word) : status;
}

static lcomm_status serve_until_end(const server_program *program) {
  lcomm_comm *comm = program->comm;
  lcomm_sync_entry *all = calloc((size_t)comm->size, sizeof *all);
  lcomm_sync_word word = LCOMM_SYNC_COMPARES;
  lcomm_status status = LCOMM_OK;
  if (!all) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "out of memory to serve");
  }
  while (status == LCOMM_OK && word != LCOMM_SYNC_ENDS) {
    status = serve_until_sync(program, all, &word);
  }
  free(all);
  return status;
}

static lcomm_status serve(const server_program *program) {
  lcomm_comm *comm = program->comm;
  lcomm_shards_set_updated(comm->deferred.shards, program->update != NULL);
  LCOMM_TRY(lcomm_tensors_plan(comm));
  for_buckets(comm, lcomm_shard_server_begin);
  lcomm_status status = serve_until_end(program);
  for_buckets(comm, lcomm_shard_server_end);
  return status;
}

lcomm_status lcomm_server_run(lcomm_comm *comm, lcomm_server_update update, void *context) {
  server_program program = {.comm = comm, .update = update, .context = context};
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_server_run"));
  lcomm_status status = check_server(comm, update != NULL);
  status = status == LCOMM_OK ? serve(&program) : status;
  lcomm_exit(comm);
  return status;
}

/* ------------------------------------------------------------------- workers */

/* Workers sync before their first step, too: servers serve from then on. */
lcomm_status lcomm_servers_meet(lcomm_comm *comm) {
  lcomm_shards *shards = comm->deferred.shards;
  if (!lcomm_shards_have_servers(shards) || lcomm_shards_are_served(shards)) {
    return LCOMM_OK;
  }
  LCOMM_TRY(lcomm_servers_check(comm, "lcomm_tensors_sync"));
  if (comm->tensors->count == 0) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_tensors_sync: there are no tensors; with algo=servers add them "
                        "first, on all ranks");
  }
  LCOMM_TRY(lcomm_tensors_plan(comm));
  lcomm_shards_set_served(shards, true);
  return LCOMM_OK;
}

lcomm_status lcomm_servers_leave(lcomm_comm *comm) {
  lcomm_shards *shards = comm->deferred.shards;
  if (!lcomm_shards_are_served(shards)) {
    return LCOMM_OK;
  }
  lcomm_status status = lcomm_sync_make(comm, LCOMM_SYNC_ENDS);
  lcomm_shards_set_served(shards, false);
  return status;
}

static lcomm_status check_worker(lcomm_comm *comm) {
  if (!lcomm_shards_have_servers(comm->deferred.shards) || lcomm_is_server(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_server_end: rank %d is no worker with algo=servers", comm->rank);
  }
  if (lcomm_results_are_under_way(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_server_end: results are under way, which servers have to send; call "
                        "lcomm_tensors_sync until it hands out no more");
  }
  if (atomic_load(&comm->deferred.open)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_server_end: a step is in flight; call it between the steps");
  }
  return (lcomm_status)atomic_load(&comm->errors.status);
}

lcomm_status lcomm_server_end(lcomm_comm *comm) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_server_end"));
  lcomm_status status = check_worker(comm);
  status = status == LCOMM_OK ? lcomm_servers_leave(comm) : status;
  lcomm_exit(comm);
  return status;
}

lcomm_status lcomm_servers_check(lcomm_comm *comm, const char *call) {
  if (lcomm_is_server(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "%s: rank %d is a server, which brings no gradients; call lcomm_server_run",
                        call, comm->rank);
  }
  if (lcomm_shards_are_served(comm->deferred.shards) && !lcomm_tensors_are_planned(comm)) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "%s: tensors were added, frozen or unfrozen while servers serve; call "
                        "lcomm_server_end on all workers first",
                        call);
  }
  return LCOMM_OK;
}
