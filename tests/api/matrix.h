/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_API_MATRIX_H
#define LCOMM_TESTS_API_MATRIX_H

/* What the cases of mpi_matrix.c share: the inputs of all ranks, which every rank
 * knows, what their sums are, where ranks are placed, and a record of the
 * results, in which transports are compared with each other. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tests/support/mpi_property.h"

enum { RANKS_MAX = 8, LONG = 600001, MIDDLE = 65537, RECORDS_MAX = 2048 };

/* ------------------------------------------------------------------ places */

typedef struct place {
  const char *name;
  int nodes;           /* pose as that many */
  bool hosts;          /* unless ranks say that they are on different hosts */
  int node[RANKS_MAX]; /* of each rank */
} place;

static place places[] = {{.name = "one node", .nodes = 1},
                         {.name = "two nodes", .nodes = 2},
                         {.name = "two uneven hosts", .hosts = true}};

enum { PLACES = sizeof(places) / sizeof(places[0]) };

/* Ranks of the two hosts are not neighbours, and there are not equally many. */
static inline int host_of(int rank) {
  return rank % 3 == 0 ? 0 : 1;
}

static inline void fill_places(void) {
  for (int rank = 0; rank < mpi_size; rank++) {
    places[1].node[rank] = rank < (mpi_size + 1) / 2 ? 0 : 1;
    places[2].node[rank] = host_of(rank);
  }
}

/* One rank is a node of its own. */
static inline int place_count(void) {
  return mpi_size < 2 ? 1 : PLACES;
}

static inline lcomm_comm *make_place(const place *where, const char *policy,
                                     const char *transport) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.transport = transport;
  config.nodes = where->nodes;
  if (where->hosts) {
    setenv("LCOMM_HOSTID", host_of(mpi_rank) == 0 ? "first" : "second", 1);
  }
  lcomm_comm *comm = make_comm_if_possible(&config);
  unsetenv("LCOMM_HOSTID");
  return comm;
}

/* ------------------------------------------------------------------ inputs */

static float *input[RANKS_MAX]; /* LONG elements of each rank */
static float *flat;             /* their float32 sums in rank order */
static float *grouped;          /* sums of the nodes' sums, at the place of the last group_sums() */
static double *total, *mass;    /* their sums, and the sums of their magnitudes */
static float *result;

static inline float draw(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  float value = (float)((int64_t)*state >> 36) * 0x1p-36f; /* up to 2^-9 */
  return (*state & 63) == 0 ? 8 * value : value;
}

static inline float *room(uint64_t count, size_t element) {
  void *memory = calloc(count, element);
  if (!memory) {
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

/* Once; the memory stays to the end. */
static inline void fill_inputs(void) {
  if (flat) {
    return;
  }
  flat = room(LONG, sizeof(float));
  grouped = room(LONG, sizeof(float));
  result = room(LONG, sizeof(float));
  total = (double *)room(LONG, sizeof(double));
  mass = (double *)room(LONG, sizeof(double));
  for (int rank = 0; rank < mpi_size; rank++) {
    uint64_t state = UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)(rank + 1);
    input[rank] = room(LONG, sizeof(float));
    for (uint64_t i = 0; i < LONG; i++) {
      float value = input[rank][i] = draw(&state);
      flat[i] = rank == 0 ? value : flat[i] + value;
      total[i] += (double)value;
      mass[i] += fabs((double)value);
    }
  }
}

/* The sum of one element inside every node, and then of the nodes, in order. */
static inline void group_sums(const place *where) {
  for (uint64_t i = 0; i < LONG; i++) {
    float sums[2] = {0, 0};
    bool any[2] = {false, false};
    for (int rank = 0; rank < mpi_size; rank++) {
      int node = where->node[rank];
      sums[node] = any[node] ? sums[node] + input[rank][i] : input[rank][i];
      any[node] = true;
    }
    grouped[i] = any[1] ? sums[0] + sums[1] : sums[0];
  }
}

/* ----------------------------------------------------------------- records */

typedef struct record {
  uint64_t hash;
  uint64_t replicated; /* the same on all ranks */
  char what[192];
} record;

static record records[RECORDS_MAX], expected[RECORDS_MAX];
static int record_count, expected_count;
static const char *expected_from; /* a transport; NULL before the first one is through */

/* Where we are, for the sentences. */
static char here[128];

static inline void write_down(uint64_t count, bool replicated, const char *call) {
  require(record_count < RECORDS_MAX, "too many records");
  if (record_count < RECORDS_MAX) {
    record *it = &records[record_count++];
    memset(it, 0, sizeof *it);
    it->hash = XXH3_64bits(result, count * sizeof(float));
    it->replicated = replicated;
    snprintf(it->what, sizeof(it->what), "%s, %s of %llu", here, call, (unsigned long long)count);
  }
}

static inline void compare_ranks(void) {
  static record first[RECORDS_MAX];
  memcpy(first, records, sizeof(first));
  MPI_Bcast(first, (int)sizeof(first), MPI_BYTE, 0, MPI_COMM_WORLD);
  for (int i = 0; i < record_count; i++) {
    require(!records[i].replicated || records[i].hash == first[i].hash,
            "%s: the result differs from that of rank 0", records[i].what);
  }
}

/* With what the first transport gave for the same calls; later ones may have left
 * some out. */
static inline void compare_transports(const char *transport) {
  if (!expected_from) {
    memcpy(expected, records, sizeof(expected));
    expected_count = record_count;
    expected_from = transport;
    return;
  }
  int at = 0;
  for (int i = 0; i < record_count; i++, at++) {
    while (at < expected_count && strcmp(expected[at].what, records[i].what) != 0) {
      at++;
    }
    require(at < expected_count, "%s: not done over %s", records[i].what, expected_from);
    require(at >= expected_count || records[i].hash == expected[at].hash,
            "%s: other bits over %s than over %s", records[i].what, transport, expected_from);
  }
}

#endif
