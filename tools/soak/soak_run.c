/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/soak/soak_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/soak/soak_model.h"

enum { BATCH = 5, BATCH_COUNT = 4000, LATE_ONE_IN = 200, ELEMENT_MAX = 8 };

typedef struct call_kind {
  int share; /* of 100 */
  lcomm_status (*run)(soak *run, soak_world *world, soak_call *call);
} call_kind;

/* ------------------------------------------------------------------- making */

static lcomm_status add_tensors(soak_world *world) {
  static const uint64_t counts[SOAK_TENSORS] = {3000, 1, 17, 9000, 640};
  for (int i = 0; i < SOAK_TENSORS; i++) {
    char name[32];
    snprintf(name, sizeof name, "gradient.%d", i);
    world->counts[i] = counts[i];
    world->gradients[i] = calloc(counts[i], sizeof(float));
    if (!world->gradients[i]) {
      return LCOMM_ERR_MEMORY;
    }
    lcomm_status status = lcomm_tensor_add(world->comm, name, world->gradients[i], counts[i],
                                           LCOMM_FLOAT32, LCOMM_AVG, &world->tensors[i]);
    if (status != LCOMM_OK) {
      return status;
    }
  }
  return LCOMM_OK;
}

/* As many nodes as there are ranks for. */
static lcomm_status make_world(soak *run, int i, const lcomm_config *common) {
  static const char *const policies[SOAK_WORLDS] = {"", "net=int8 min=0", "net=bf16 min=1K",
                                                    "net=topk:0.05,values=int8+ef min=0"};
  static const int nodes[SOAK_WORLDS] = {1, 2, 3, 2};
  soak_world *world = &run->worlds[i];
  lcomm_config config = *common;
  config.policy = policies[i];
  config.nodes = nodes[i] < run->ranks ? nodes[i] : run->ranks;
  world->lossy = i > 0;
  lcomm_status status = lcomm_split(run->control, 0, run->rank, &config, &world->comm);
  if (status != LCOMM_OK) {
    run->failed = run->control;
    return status;
  }
  run->failed = world->comm;
  return add_tensors(world);
}

lcomm_status soak_begin(soak *run, uint64_t seed, const char *transport,
                        lcomm_progress_mode progress) {
  size_t size = (size_t)SOAK_COUNT_MAX * ELEMENT_MAX;
  lcomm_config config = LCOMM_CONFIG_INIT;
  *run = (soak){.drawn = seed, .send = malloc(size), .receive = malloc(size)};
  config.transport = transport;
  config.progress = progress;
  config.policy = "";
  if (!run->send || !run->receive) {
    return LCOMM_ERR_MEMORY;
  }
  lcomm_status status = lcomm_create_env(&config, &run->control);
  if (status != LCOMM_OK) {
    return status;
  }
  run->failed = run->control;
  run->rank = lcomm_rank(run->control);
  run->ranks = lcomm_size(run->control);
  for (int i = 0; status == LCOMM_OK && i < SOAK_WORLDS; i++) {
    status = run->ranks <= SOAK_RANKS_MAX ? make_world(run, i, &config) : LCOMM_ERR_ARGUMENT;
  }
  return status;
}

void soak_end(soak *run) {
  for (int i = 0; i < SOAK_WORLDS; i++) {
    (void)lcomm_destroy(run->worlds[i].comm); /* what failed was told */
    for (int k = 0; k < SOAK_TENSORS; k++) {
      free(run->worlds[i].gradients[k]);
    }
  }
  (void)lcomm_destroy(run->control);
  free(run->send);
  free(run->receive);
}

const char *soak_sentence(const soak *run) {
  return lcomm_last_error(run->failed);
}

/* -------------------------------------------------------------------- calls */

static uint64_t below(soak *run, uint64_t end) {
  return soak_draw(&run->drawn) % end;
}

static void add_to_hash(soak *run, const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < size; i++) {
    run->hash = (run->hash ^ at[i]) * UINT64_C(0x100000001b3);
  }
}

/* Codecs act on sums of real numbers of up to 32 bits. */
static double tolerance_of(const soak_world *world, const soak_call *call) {
  bool is_coded = call->dtype <= LCOMM_BFLOAT16 && call->op <= LCOMM_AVG;
  return world->lossy && is_coded ? 0.05 * soak_largest(call) : 0.0;
}

/* Top-k withholds most of a sum that has no residual only where it is told to; plain
 * calls under +ef are exact. */
static lcomm_status allreduce(soak *run, soak_world *world, soak_call *call) {
  bool in_place = below(run, 2);
  void *receive = in_place ? run->send : run->receive;
  soak_fill(call, run->rank, 0, call->count, run->send);
  lcomm_status status =
      lcomm_allreduce(world->comm, run->send, receive, call->count, call->dtype, call->op);
  if (status == LCOMM_OK) {
    run->wrong += soak_count_wrong(call, 0, call->count, tolerance_of(world, call), receive) > 0;
    add_to_hash(run, receive, call->count * lcomm_dtype_size(call->dtype));
  }
  return status;
}

/* Several in flight, waited for in another order. */
static lcomm_status batch(soak *run, soak_world *world, soak_call *call) {
  lcomm_request requests[BATCH];
  float *values = run->send;
  lcomm_status status = LCOMM_OK;
  call->dtype = LCOMM_FLOAT32;
  call->count %= BATCH_COUNT;
  soak_fill(call, run->rank, 0, BATCH * call->count, values);
  for (int i = 0; i < BATCH && status == LCOMM_OK; i++) {
    status = lcomm_iallreduce(world->comm, values + i * call->count, values + i * call->count,
                              call->count, call->dtype, call->op, &requests[i]);
  }
  for (int i = 0; i < BATCH && status == LCOMM_OK; i++) {
    status = lcomm_wait(world->comm, &requests[(i * 3 + run->rank) % BATCH]);
  }
  if (status == LCOMM_OK) {
    run->wrong +=
        soak_count_wrong(call, 0, BATCH * call->count, tolerance_of(world, call), values) > 0;
    add_to_hash(run, values, BATCH * call->count * sizeof(float));
  }
  return status;
}

static lcomm_status reduce_scatter(soak *run, soak_world *world, soak_call *call) {
  uint64_t part = call->count / (uint64_t)run->ranks;
  soak_fill(call, run->rank, 0, part * (uint64_t)run->ranks, run->send);
  lcomm_status status =
      lcomm_reduce_scatter(world->comm, run->send, run->receive, part, call->dtype, call->op);
  if (status == LCOMM_OK) {
    run->wrong += soak_count_wrong(call, part * (uint64_t)run->rank, part,
                                   tolerance_of(world, call), run->receive) > 0;
  }
  return status;
}

/* Each rank another number of elements. */
static lcomm_status allgatherv(soak *run, soak_world *world, soak_call *call) {
  uint64_t counts[SOAK_RANKS_MAX], all = 0, wrong = 0;
  size_t size = lcomm_dtype_size(call->dtype);
  for (int rank = 0; rank < run->ranks; rank++) {
    counts[rank] = below(run, call->count / (uint64_t)run->ranks + 1);
  }
  soak_fill(call, run->rank, 0, counts[run->rank], run->send);
  lcomm_status status = lcomm_allgatherv(world->comm, run->send, run->receive, counts, call->dtype);
  for (int rank = 0; status == LCOMM_OK && rank < run->ranks; all += counts[rank++]) {
    wrong += soak_count_other(call, rank, 0, counts[rank], (char *)run->receive + all * size);
  }
  run->wrong += wrong > 0;
  return status;
}

static lcomm_status alltoall(soak *run, soak_world *world, soak_call *call) {
  uint64_t part = call->count / (uint64_t)run->ranks, wrong = 0;
  size_t size = lcomm_dtype_size(call->dtype);
  soak_fill(call, run->rank, 0, part * (uint64_t)run->ranks, run->send);
  lcomm_status status = lcomm_alltoall(world->comm, run->send, run->receive, part, call->dtype);
  for (int rank = 0; status == LCOMM_OK && rank < run->ranks; rank++) {
    wrong += soak_count_other(call, rank, part * (uint64_t)run->rank, part,
                              (char *)run->receive + (size_t)rank * part * size);
  }
  run->wrong += wrong > 0;
  return status;
}

static lcomm_status broadcast(soak *run, soak_world *world, soak_call *call) {
  int root = (int)below(run, (uint64_t)run->ranks);
  memset(run->send, 0, call->count * lcomm_dtype_size(call->dtype));
  if (run->rank == root) {
    soak_fill(call, root, 0, call->count, run->send);
  }
  lcomm_status status = lcomm_broadcast(world->comm, run->send, call->count, call->dtype, root);
  if (status == LCOMM_OK) {
    run->wrong += soak_count_other(call, root, 0, call->count, run->send) > 0;
  }
  return status;
}

static lcomm_status barrier(soak *run, soak_world *world, soak_call *call) {
  (void)run;
  (void)call;
  return lcomm_barrier(world->comm);
}

/* A training step; tensors become ready in an order of each rank's own. */
static lcomm_status train(soak *run, soak_world *world, soak_call *call) {
  lcomm_status status = LCOMM_OK;
  call->dtype = LCOMM_FLOAT32;
  call->op = LCOMM_AVG;
  for (int k = 0; k < SOAK_TENSORS && status == LCOMM_OK; k++) {
    int i = (k * 2 + run->rank) % SOAK_TENSORS;
    soak_fill(call, run->rank, 0, world->counts[i], world->gradients[i]);
    status = lcomm_tensor_ready(world->comm, world->tensors[i]);
  }
  if (status == LCOMM_OK) {
    status = lcomm_tensors_wait(world->comm);
  }
  for (int i = 0; status == LCOMM_OK && i < SOAK_TENSORS; i++) {
    add_to_hash(run, world->gradients[i], world->counts[i] * sizeof(float));
    if (!world->lossy) {
      run->wrong += soak_count_wrong(call, 0, world->counts[i], 0.0, world->gradients[i]) > 0;
    }
  }
  return status;
}

/* Now and then this rank has something else to do first. */
static void come_late(uint64_t key, int rank) {
  uint64_t own = key + (uint64_t)rank;
  if (soak_draw(&own) % LATE_ONE_IN == 0) {
    struct timespec moment = {0, (long)(soak_draw(&own) % 5000000)};
    nanosleep(&moment, NULL);
  }
}

lcomm_status soak_step(soak *run) {
  static const call_kind kinds[] = {{40, allreduce},  {15, batch},   {10, reduce_scatter},
                                    {10, allgatherv}, {7, alltoall}, {8, broadcast},
                                    {3, barrier},     {7, train}};
  static const uint64_t ends[] = {20, 1100, 5000, SOAK_COUNT_MAX};
  soak_world *world = &run->worlds[below(run, SOAK_WORLDS)];
  soak_call call = {.key = soak_draw(&run->drawn),
                    .count = below(run, ends[below(run, 4)]),
                    .dtype = (lcomm_dtype)below(run, 6),
                    .op = (lcomm_op)below(run, 4),
                    .ranks = run->ranks};
  int share = (int)below(run, 100), kind = 0;
  while (share >= kinds[kind].share) {
    share -= kinds[kind++].share;
  }
  come_late(call.key, run->rank);
  run->failed = world->comm;
  return kinds[kind].run(run, world, &call);
}

/* ------------------------------------------------------ between the operations */

lcomm_status soak_compare(soak *run) {
  int64_t ends[2];
  memcpy(&ends[0], &run->hash, sizeof ends[0]);
  ends[1] = ~ends[0]; /* whose largest is the smallest of the other */
  run->hash = 0;
  lcomm_status status = soak_share_largest(run, ends, 2);
  run->drifted += status == LCOMM_OK && ends[1] != ~ends[0];
  return status;
}

lcomm_status soak_share_largest(soak *run, int64_t *values, int count) {
  run->failed = run->control;
  return lcomm_allreduce(run->control, values, values, (uint64_t)count, LCOMM_INT64, LCOMM_MAX);
}
