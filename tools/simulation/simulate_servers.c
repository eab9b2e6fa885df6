/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/shards/shard_header.h"
#include "tools/simulation/simulate_servers_internal.h"

/* Bits of an entry of top-k, as in README.md. */
static const double ENTRY_BITS = 25.4;

bool simulate_servers_sum(const simulate_world_request *request) {
  return !request->calls && lcomm_policy_has_servers(request->policy);
}

/* ------------------------------------------------------------------ payloads */

static simulate_travel travel_of(const simulate_world_request *request,
                                 const lcomm_codec_spec *choice, uint64_t count) {
  const simulate_speeds *cached = request->cached ? request->cached : request->speeds;
  const lcomm_format *format = &choice->format;
  double kept = count > 0 ? (double)format->kept / (double)count : 1;
  double density = format->density > 0 ? format->density : kept;
  return (simulate_travel){.format = *format,
                           .memory = simulate_speeds_of(request->speeds, choice),
                           .cache = simulate_speeds_of(cached, choice),
                           .density = density < 1 ? density : 1};
}

uint64_t simulate_payload(const simulate_travel *by, uint64_t count) {
  if (!lcomm_format_is_sparse(&by->format)) {
    return lcomm_payload_size(&by->format, count);
  }
  return (uint64_t)(by->density * (double)count * ENTRY_BITS / 8 + 1);
}

/* ------------------------------------------------------------------ cutting */

/* Bytes that a server receives from a worker and sends it back. */
static uint64_t bytes_of(const simulate_service *it, uint64_t count) {
  return simulate_payload(&it->net, count) + simulate_payload(&it->result, count);
}

static void number_pieces(simulate_service *it, int owner) {
  uint32_t number = 0;
  for (uint32_t chunk = 0; chunk < it->chunks; chunk++) {
    it->numbers[(size_t)chunk * (size_t)it->roles->ranks + (size_t)owner] = number;
    number += simulate_piece(it, chunk, owner)->count > 0;
  }
}

static bool cut(simulate_service *it, lcomm_shard_roles *roles) {
  it->chunks = (uint32_t)((it->count + LCOMM_SHARD_CHUNK - 1) / LCOMM_SHARD_CHUNK);
  size_t all = (size_t)it->chunks * (size_t)roles->ranks;
  it->pieces = calloc(all + 1, sizeof *it->pieces);
  it->numbers = calloc(all + 1, sizeof *it->numbers);
  if (!it->pieces || !it->numbers) {
    return false;
  }
  for (uint32_t chunk = 0; chunk < it->chunks; chunk++) {
    uint64_t left = it->count - (uint64_t)chunk * LCOMM_SHARD_CHUNK;
    uint64_t count = left < LCOMM_SHARD_CHUNK ? left : LCOMM_SHARD_CHUNK;
    lcomm_shard_cut(roles, count, bytes_of(it, count),
                    &it->pieces[(size_t)chunk * (size_t)roles->ranks]);
  }
  for (int owner = 0; owner < roles->ranks; owner++) {
    number_pieces(it, owner);
  }
  return true;
}

/* ----------------------------------------------------------------- programs */

/* Of a worker: what its codec leaves out, and one payload each way. Of a server, for each element
 * of its pieces: a contribution of each worker, its sum, what it leaves out, and the results that
 * it keeps. */
static uint64_t memory_of(const simulate_service *it, int rank) {
  uint64_t count = 0;
  if (!lcomm_shard_roles_serves(it->roles, rank)) {
    return it->whole.memory_size + it->count * sizeof(float) + bytes_of(it, it->count);
  }
  for (uint32_t chunk = 0; chunk < it->chunks; chunk++) {
    count += simulate_piece(it, chunk, rank)->count;
  }
  return (uint64_t)it->roles->workers * simulate_payload(&it->net, count) +
         2 * count * sizeof(float) + LCOMM_SHARD_KEPT * simulate_payload(&it->result, count);
}

/* Only workers have tensors, which are copied into the bucket and back. */
static bool make_program(const simulate_service *it, int rank, simulate_program *program,
                         char *why) {
  simulate_steps steps = {0};
  if (lcomm_shard_roles_serves(it->roles, rank)) {
    simulate_servers_serve(it, rank, &steps);
  } else {
    program->stage_in = it->whole.stage_in;
    program->stage_out = it->whole.stage_out;
    program->fill = it->whole.fill;
    simulate_servers_work(it, rank, &steps);
  }
  program->block = 1;
  program->data_size = it->whole.data_size;
  program->memory_size = memory_of(it, rank);
  memcpy(program->codec, it->whole.codec, sizeof program->codec);
  snprintf(program->reason, sizeof program->reason, "algo=servers: %d servers, %d workers",
           it->roles->servers, it->roles->workers);
  return simulate_steps_finish(&steps, program, why);
}

/* What a plan says of the same bucket: the codec, and copies of tensors. Not its steps. */
static bool ask_plan(simulate_service *it, const simulate_bucket *bucket, char *why) {
  const simulate_world_request *request = it->request;
  lcomm_plan_request asked = simulate_bucket_request(request, bucket);
  lcomm_codec_spec exact = {.format = lcomm_format_exact(LCOMM_FLOAT32)};
  lcomm_plan *plan = NULL;
  lcomm_why reason;
  if (lcomm_plan_create(&asked, request->policy, request->topo, 0, &plan, &reason) != LCOMM_OK) {
    snprintf(why, SIMULATE_WHY_MAX, "no plan: %.480s", reason.text);
    return false;
  }
  bool is_exact = bucket->exact || request->topo->nodes == 1;
  lcomm_codec_spec net = is_exact ? exact : plan->stages[LCOMM_STAGE_NET];
  bool made =
      simulate_program_make(plan, request->topo, request->speeds, request->cached, &it->whole, why);
  lcomm_plan_destroy(plan);
  it->net = travel_of(request, &net, it->count);
  it->exact = travel_of(request, &exact, it->count);
  it->result = it->net;
  it->whole.memory_size = it->whole.stage_in.memory > 0 ? it->whole.data_size : 0;
  return made;
}

bool simulate_servers_make(const simulate_world_request *request, const simulate_bucket *bucket,
                           lcomm_shard_roles *roles, simulate_program *programs, char *why) {
  simulate_service it = {.request = request, .roles = roles, .count = bucket->count};
  bool good = ask_plan(&it, bucket, why);
  if (good && !cut(&it, roles)) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for the pieces of %llu elements",
             (unsigned long long)bucket->count);
    good = false;
  }
  for (int rank = 0; good && rank < roles->ranks; rank++) {
    good = make_program(&it, rank, &programs[rank], why);
  }
  if (good && !simulate_routes_make(request->topo, programs, roles->ranks, SIMULATE_MIRROR_NONE)) {
    snprintf(why, SIMULATE_WHY_MAX, "out of memory for the messages of servers");
    good = false;
  }
  simulate_program_free(&it.whole);
  free(it.pieces);
  free(it.numbers);
  return good;
}
