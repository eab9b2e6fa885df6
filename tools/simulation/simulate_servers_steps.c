/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The steps of workers and servers, for one bucket. */

#include "libcomm/engine/pair_header.h"
#include "libcomm/shards/shard_header.h"
#include "tools/simulation/simulate_servers_internal.h"

static const simulate_travel *between(const simulate_service *it, int worker, int server) {
  const int *node = it->request->topo->node;
  return node[worker] == node[server] ? &it->exact : &it->net;
}

static uint32_t number_of(const simulate_service *it, uint32_t chunk, int owner) {
  return it->numbers[(size_t)chunk * (size_t)it->roles->ranks + (size_t)owner];
}

/* -------------------------------------------------------------------- steps */

static simulate_step computation(const simulate_service *it, lcomm_step_kind kind, uint64_t count,
                                 double memory_gb_s, double cache_gb_s) {
  simulate_time launch = simulate_time_of(it->request->speeds->launch_us * 1e-6);
  return (simulate_step){.kind = (uint8_t)kind,
                         .work = simulate_speeds_time((double)count, memory_gb_s) + launch,
                         .cached = simulate_speeds_time((double)count, cache_gb_s) + launch,
                         .vector = (float)((double)count / (double)it->count)};
}

static simulate_step message(const simulate_service *it, lcomm_step_kind kind, int rank, int peer,
                             uint32_t number, uint64_t size) {
  const lcomm_topo *topo = it->request->topo;
  return (simulate_step){.kind = (uint8_t)kind,
                         .work = size + LCOMM_PAIR_HEADER_SIZE,
                         .peer = (uint32_t)peer,
                         .message = number,
                         .link = (uint8_t)lcomm_topo_link(topo, rank, peer)};
}

/* Header and payload, the n-th such pair to that peer. Returns the second of both steps. */
static uint32_t send_pair(const simulate_service *it, simulate_steps *steps, int rank, int peer,
                          uint32_t n, uint64_t size, uint32_t after) {
  uint64_t header = lcomm_shard_header_size(it->roles->ranks);
  uint32_t first =
      simulate_steps_add(steps, message(it, LCOMM_STEP_SEND, rank, peer, 2 * n, header));
  uint32_t second =
      simulate_steps_add(steps, message(it, LCOMM_STEP_SEND, rank, peer, 2 * n + 1, size));
  simulate_steps_order(steps, after, first);
  simulate_steps_order(steps, after, second);
  return second;
}

/* There is a place for the payload when its header has come. */
static uint32_t receive_pair(const simulate_service *it, simulate_steps *steps, int rank, int peer,
                             uint32_t n, uint64_t size) {
  uint64_t header = lcomm_shard_header_size(it->roles->ranks);
  uint32_t first =
      simulate_steps_add(steps, message(it, LCOMM_STEP_RECV, rank, peer, 2 * n, header));
  uint32_t second =
      simulate_steps_add(steps, message(it, LCOMM_STEP_RECV, rank, peer, 2 * n + 1, size));
  simulate_steps_order(steps, first, second);
  return second;
}

/* ------------------------------------------------------------------ a worker */

static void contribute(const simulate_service *it, int rank, uint32_t chunk, int server,
                       simulate_steps *steps) {
  const simulate_travel *by = between(it, rank, server);
  uint64_t count = simulate_piece(it, chunk, server)->count;
  if (count > 0) {
    simulate_step encode =
        computation(it, LCOMM_STEP_ENCODE, count, by->memory.encode_gb_s, by->cache.encode_gb_s);
    encode.residual = encode.vector;
    send_pair(it, steps, rank, server, number_of(it, chunk, server), simulate_payload(by, count),
              simulate_steps_add(steps, encode));
  }
}

static void take_result(const simulate_service *it, int rank, uint32_t chunk, int server,
                        simulate_steps *steps) {
  const simulate_travel *by = &it->result;
  uint64_t count = simulate_piece(it, chunk, server)->count;
  if (count > 0) {
    uint32_t here = receive_pair(it, steps, rank, server, number_of(it, chunk, server),
                                 simulate_payload(by, count));
    simulate_step decode =
        computation(it, LCOMM_STEP_DECODE, count, by->memory.decode_gb_s, by->cache.decode_gb_s);
    simulate_steps_order(steps, here, simulate_steps_add(steps, decode));
  }
}

/* All chunks are sent before results are looked at. */
void simulate_servers_work(const simulate_service *it, int rank, simulate_steps *steps) {
  for (uint32_t chunk = 0; chunk < it->chunks; chunk++) {
    for (int server = 0; server < it->roles->ranks; server++) {
      contribute(it, rank, chunk, server, steps);
    }
  }
  for (uint32_t chunk = 0; chunk < it->chunks; chunk++) {
    for (int server = 0; server < it->roles->ranks; server++) {
      take_result(it, rank, chunk, server, steps);
    }
  }
}

/* ------------------------------------------------------------------ a server */

/* What has come from all workers, one after the other. */
static simulate_step sum_of(const simulate_service *it, int rank, uint64_t count) {
  simulate_step sum = computation(it, LCOMM_STEP_REDUCE, count, 0, 0);
  for (int worker = 0; worker < it->roles->ranks; worker++) {
    if (!lcomm_shard_roles_serves(it->roles, worker)) {
      const simulate_travel *by = between(it, worker, rank);
      sum.work += simulate_speeds_time((double)count, by->memory.add_gb_s);
      sum.cached += simulate_speeds_time((double)count, by->cache.add_gb_s);
    }
  }
  return sum;
}

static void serve_chunk(const simulate_service *it, int rank, uint32_t chunk,
                        simulate_steps *steps) {
  const simulate_travel *by = &it->result;
  uint64_t count = simulate_piece(it, chunk, rank)->count;
  uint32_t number = number_of(it, chunk, rank);
  uint32_t sum = simulate_steps_add(steps, sum_of(it, rank, count));
  uint32_t made =
      simulate_steps_add(steps, computation(it, LCOMM_STEP_ENCODE, count, by->memory.encode_gb_s,
                                            by->cache.encode_gb_s));
  simulate_steps_order(steps, sum, made);
  for (int i = 0; i < it->roles->ranks; i++) {
    int worker = (rank + i) % it->roles->ranks; /* or all would answer the first one first */
    if (!lcomm_shard_roles_serves(it->roles, worker)) {
      uint64_t size = simulate_payload(between(it, worker, rank), count);
      simulate_steps_order(steps, receive_pair(it, steps, rank, worker, number, size), sum);
      send_pair(it, steps, rank, worker, number, simulate_payload(by, count), made);
    }
  }
}

void simulate_servers_serve(const simulate_service *it, int rank, simulate_steps *steps) {
  for (uint32_t chunk = 0; chunk < it->chunks; chunk++) {
    if (simulate_piece(it, chunk, rank)->count > 0) {
      serve_chunk(it, rank, chunk, steps);
    }
  }
}
