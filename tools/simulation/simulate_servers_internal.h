/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SIMULATION_SIMULATE_SERVERS_INTERNAL_H
#define LCOMM_TOOLS_SIMULATION_SIMULATE_SERVERS_INTERNAL_H

/* What the files of simulate_servers.h share. */

#include "tools/simulation/simulate_servers.h"
#include "tools/simulation/simulate_steps.h"

/* How values travel. */
typedef struct simulate_travel {
  lcomm_format format;
  simulate_speed memory, cache;
  double density; /* of top-k */
} simulate_travel;

/* A bucket of one shape: what all ranks do for it. */
typedef struct simulate_service {
  const simulate_world_request *request;
  const lcomm_shard_roles *roles;
  uint64_t count;
  simulate_travel net, exact, result;
  uint32_t chunks;
  lcomm_shard_cut_piece *pieces; /* of chunk c and owner r: [c * ranks + r] */
  uint32_t *numbers;             /* likewise: how many pieces of that owner are before it */
  simulate_program whole;        /* of a plan for it: copies, and what it says of itself */
} simulate_service;

static inline const lcomm_shard_cut_piece *simulate_piece(const simulate_service *it,
                                                          uint32_t chunk, int owner) {
  return &it->pieces[(size_t)chunk * (size_t)it->roles->ranks + (size_t)owner];
}

/* Bytes of a payload of so many elements. */
uint64_t simulate_payload(const simulate_travel *by, uint64_t count);

/* ---- simulate_servers_steps.c: what a worker does, and a server. */
void simulate_servers_work(const simulate_service *it, int rank, simulate_steps *steps);
void simulate_servers_serve(const simulate_service *it, int rank, simulate_steps *steps);

#endif
