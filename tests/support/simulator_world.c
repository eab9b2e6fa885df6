/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Worlds of the simulator: who is in them, what the vectors hold at first, and
 * whether they hold what they should in the end. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/topo/topo_internal.h"
#include "tests/support/simulator.h"

int sim_world_make(sim_world *world, const int *node_sizes, int nodes) {
  lcomm_why error;
  memset(world, 0, sizeof *world);
  for (int i = 0; i < nodes; i++) {
    world->size += node_sizes[i];
  }
  lcomm_identity *identities = calloc((size_t)world->size, sizeof *identities);
  world->schedules = calloc((size_t)world->size, sizeof *world->schedules);
  world->vectors = calloc((size_t)world->size, sizeof *world->vectors);
  for (int node = 0, rank = 0; node < nodes; node++) {
    for (int i = 0; i < node_sizes[node]; i++, rank++) {
      snprintf(identities[rank].host, sizeof(identities[rank].host), "node%d", node);
      identities[rank].host_hash = (uint64_t)node + 1;
    }
  }
  lcomm_status status = lcomm_topo_create(identities, world->size, 0, &world->topo, &error);
  free(identities);
  return status == LCOMM_OK ? 0 : -1;
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
      world->vectors[rank][i] = (sim_element){UINT64_C(1) << rank, value_of(rank, i)};
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

uint64_t sim_everyone(const sim_world *world) {
  return world->size == 64 ? UINT64_MAX : (UINT64_C(1) << world->size) - 1;
}

int sim_check_allreduce(const sim_world *world, char *why, size_t size) {
  for (int rank = 0; rank < world->size; rank++) {
    for (uint64_t i = 0; i < world->schedules[rank].count; i++) {
      const sim_element *here = &world->vectors[rank][i], *first = &world->vectors[0][i];
      if (here->ranks != sim_everyone(world)) {
        snprintf(why, size, "rank %d, element %llu: the sum lacks a rank", rank,
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
  if (here->ranks == UINT64_C(1) << from && here->value == sim_label(from, there)) {
    return 0;
  }
  snprintf(why, size, "rank %d, element %llu: not element %llu of rank %d", rank,
           (unsigned long long)index, (unsigned long long)there, from);
  return -1;
}
