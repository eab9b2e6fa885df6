/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 4 6 8 */

/* Sums of several chunks, which go in pieces inside four nodes, over slots that take each other's
 * memory, are right to the bit. */

#include "tests/engine/progress_model.h"

enum { EACH = 2, COUNT = EACH * 800000, ROUNDS = 3 };

static float mine[COUNT], result[COUNT];

static int share_of(uint64_t i, int round, int local) {
  return (int)((i * 2654435761u + (uint64_t)local * 40503u + (uint64_t)round * 977u) >> 7 & 15);
}

/* What a node contributes: integers, of which each block has one 127. So int8 is exact. */
static int node_value(uint64_t i, int round) {
  int sum = 0;
  for (int local = 0; local < EACH; local++) {
    sum += share_of(i, round, local);
  }
  return i % 32 == 0 ? 127 : sum;
}

/* Of that, what a rank does. */
static int value(uint64_t i, int round, int local) {
  int second = share_of(i, round, 1);
  return local == 0 ? node_value(i, round) - second : second;
}

static void require_right_sum(lcomm_comm *comm, int nodes, int round, uint64_t count) {
  uint64_t wrong = 0;
  for (uint64_t i = 0; i < count; i++) {
    mine[i] = (float)value(i, round, mpi_rank % EACH);
  }
  require_fine(comm, lcomm_allreduce(comm, mine, result, count, LCOMM_FLOAT32, LCOMM_SUM));
  for (uint64_t i = 0; i < count; i++) {
    wrong += result[i] != (float)(nodes * node_value(i, round));
  }
  require(wrong == 0, "%d nodes, round %d: %llu of %llu elements are wrong", nodes, round,
          (unsigned long long)wrong, (unsigned long long)count);
}

static void require_pieces(const lcomm_comm *comm, int nodes) {
  uint32_t wanted = nodes == 4 ? 4 : 0;
  lcomm_why why;
  lcomm_policy policy;
  lcomm_plan *plan = NULL;
  lcomm_plan_request request = {.collective = LCOMM_COLLECTIVE_ALLREDUCE,
                                .count = COUNT,
                                .dtype = LCOMM_FLOAT32,
                                .op = LCOMM_SUM};
  require(lcomm_policy_parse("net=int8 algo=direct min=1", &policy, &why) == LCOMM_OK, "policy");
  require(lcomm_plan_create(&request, &policy, &comm->topo, mpi_rank, &plan, &why) == LCOMM_OK,
          "%s", why.text);
  require(plan->shape.chunks > 2 && plan->shape.pieces == wanted, "%d nodes: %u chunks, %u pieces",
          nodes, plan->shape.chunks, plan->shape.pieces);
  lcomm_plan_destroy(plan);
}

static void require_pieces_over(int nodes, const char *transport) {
  lcomm_comm *comm =
      make_nodes(nodes, "net=int8 algo=direct min=1", transport, LCOMM_PROGRESS_CALLS, 60);
  if (!comm) {
    return;
  }
  require_pieces(comm, nodes);
  for (int round = 0; round < ROUNDS; round++) {
    require_right_sum(comm, nodes, round, COUNT);
  }
  require_right_sum(comm, nodes, ROUNDS, 12345);
  require_fine(NULL, lcomm_destroy(comm));
}

static void sums_in_pieces_are_right(void) {
  int nodes = mpi_size / EACH;
  require_pieces_over(nodes, "shm");
  if (lcomm_ucx_version()) {
    require_pieces_over(nodes, "ucx");
  }
}

static const mpi_property properties[] = {
    PROPERTY(sums_in_pieces_are_right),
};
RUN_PROPERTIES(mpi_property_main, properties)
