/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Worlds of the simulator: who is in them, what the vectors hold at first, and
 * whether they hold what they should in the end. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/topo/topo_internal.h"
#include "tests/support/simulator.h"

/* The node of each rank: a row of ranks has one, or ranks have one in turn as long as it has room.
 */
static void find_nodes(const int *node_sizes, int nodes, bool in_turn, int size, int *node_of) {
  for (int turn = 0, rank = 0; rank < size; turn++) {
    for (int node = 0; node < nodes; node++) {
      int ranks = in_turn ? turn < node_sizes[node] : turn == 0 ? node_sizes[node] : 0;
      for (; ranks > 0; ranks--) {
        node_of[rank++] = node;
      }
    }
  }
}

static int make_world(sim_world *world, const int *node_sizes, int nodes, bool in_turn) {
  lcomm_why error;
  memset(world, 0, sizeof *world);
  for (int i = 0; i < nodes; i++) {
    world->size += node_sizes[i];
  }
  lcomm_identity *identities = calloc((size_t)world->size, sizeof *identities);
  world->schedules = calloc((size_t)world->size, sizeof *world->schedules);
  world->vectors = calloc((size_t)world->size, sizeof *world->vectors);
  int *node_of = calloc((size_t)world->size, sizeof *node_of);
  find_nodes(node_sizes, nodes, in_turn, world->size, node_of);
  for (int rank = 0; rank < world->size; rank++) {
    snprintf(identities[rank].host, sizeof(identities[rank].host), "node%d", node_of[rank]);
    identities[rank].host_hash = (uint64_t)node_of[rank] + 1;
  }
  lcomm_status status = lcomm_topo_create(identities, world->size, 0, &world->topo, &error);
  free(node_of);
  free(identities);
  return status == LCOMM_OK ? 0 : -1;
}

int sim_world_make(sim_world *world, const int *node_sizes, int nodes) {
  return make_world(world, node_sizes, nodes, false);
}

int sim_world_make_in_turn(sim_world *world, const int *node_sizes, int nodes) {
  return make_world(world, node_sizes, nodes, true);
}

int sim_world_put_into_racks(sim_world *world, const int *racks) {
  int nodes = world->topo.nodes;
  char(*names)[LCOMM_RACK_MAX] = calloc((size_t)nodes, sizeof *names);
  for (int node = 0; names && node < nodes; node++) {
    snprintf(names[node], LCOMM_RACK_MAX, "rack%d", racks[node]);
  }
  lcomm_status status =
      names ? lcomm_racks_make(&world->topo.racks, (const char(*)[LCOMM_RACK_MAX])names, nodes)
            : LCOMM_ERR_MEMORY;
  free(names);
  return status == LCOMM_OK ? 0 : -1;
}

void sim_world_free(sim_world *world) {
  for (int rank = 0; rank < world->size; rank++) {
    lcomm_schedule_free(&world->schedules[rank]);
    free(world->vectors[rank]);
  }
  free(world->schedules);
  free(world->vectors);
  lcomm_topo_free(&world->topo);
}

/* First value of element `index` of a rank. */
typedef double value_of_element(int rank, uint64_t index);

static void fill(sim_world *world, value_of_element *value_of) {
  for (int rank = 0; rank < world->size; rank++) {
    uint64_t count = world->schedules[rank].count;
    free(world->vectors[rank]);
    world->vectors[rank] = calloc(count + 1, sizeof(sim_element));
    for (uint64_t i = 0; i < count; i++) {
      world->vectors[rank][i] = (sim_element){sim_token(world, rank), value_of(rank, i)};
    }
  }
}

static double contribution(int rank, uint64_t index) {
  return 0.37 * (rank + 1) + 0.013 * (double)(index % 91);
}

void sim_fill_contributions(sim_world *world) {
  fill(world, contribution);
}

double sim_label(int rank, uint64_t index) {
  return (double)rank * 4294967296.0 + (double)index;
}

void sim_fill_labels(sim_world *world) {
  fill(world, sim_label);
}

uint64_t sim_token(const sim_world *world, int rank) {
  if (world->size <= SIM_RANKS_OF_BITS) {
    return UINT64_C(1) << rank;
  }
  uint64_t mixed = ((uint64_t)rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
  mixed = (mixed ^ mixed >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  mixed = (mixed ^ mixed >> 27) * UINT64_C(0x94d049bb133111eb);
  return mixed ^ mixed >> 31;
}

uint64_t sim_everyone(const sim_world *world) {
  uint64_t sum = 0;
  for (int rank = 0; rank < world->size; rank++) {
    sum += sim_token(world, rank);
  }
  return sum;
}

int sim_check_allreduce(const sim_world *world, char *why, size_t size) {
  uint64_t everyone = sim_everyone(world);
  for (int rank = 0; rank < world->size; rank++) {
    for (uint64_t i = 0; i < world->schedules[rank].count; i++) {
      const sim_element *here = &world->vectors[rank][i], *first = &world->vectors[0][i];
      if (here->ranks != everyone) {
        snprintf(why, size, "rank %d, element %llu: the sum lacks a rank, or has one twice", rank,
                 (unsigned long long)i);
        return -1;
      }
      if (memcmp(&here->value, &first->value, sizeof(double)) != 0) {
        snprintf(why, size, "element %llu differs between rank 0 and rank %d",
                 (unsigned long long)i, rank);
        return -1;
      }
    }
  }
  return 0;
}

int sim_check_moved(const sim_world *world, int rank, uint64_t index, int from, uint64_t there,
                    char *why, size_t size) {
  const sim_element *here = &world->vectors[rank][index];
  if (here->ranks == sim_token(world, from) && here->value == sim_label(from, there)) {
    return 0;
  }
  snprintf(why, size, "rank %d, element %llu: not element %llu of rank %d", rank,
           (unsigned long long)index, (unsigned long long)there, from);
  return -1;
}
