/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 8 */

/* Reduce-scatter, all-gather, broadcast, barrier; many at once; bootstrap. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "libcomm/base/clock.h"
#include "tests/support/mpi_property.h"

enum { MOST = 8, SEGMENT_MAX = 5000 };

static const uint64_t counts[] = {0, 1, 7, 130, 5000};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static float send[MOST * SEGMENT_MAX], receive[MOST * SEGMENT_MAX];

static int node_limit(void) {
  return mpi_size < 4 ? mpi_size : 4;
}

static float contribution(int rank, uint64_t element) {
  return (float)(rank + 1) * 0.5f + (float)(element % 97);
}

static void reduce_scatter_gives_each_rank_its_segment(void) {
  for (int nodes = 1; nodes <= node_limit(); nodes++) {
    lcomm_comm *comm = make_comm("net=none", nodes);
    for (int c = 0; c < COUNTS; c++) {
      uint64_t whole = counts[c] * (uint64_t)mpi_size;
      for (uint64_t i = 0; i < whole; i++) {
        send[i] = contribution(mpi_rank, i);
      }
      require(lcomm_reduce_scatter(comm, send, receive, counts[c], LCOMM_FLOAT32, LCOMM_SUM) ==
                  LCOMM_OK,
              "%s", lcomm_last_error(comm));
      for (uint64_t i = 0; i < counts[c]; i++) {
        float wanted = 0;
        for (int rank = 0; rank < mpi_size; rank++) {
          wanted += contribution(rank, counts[c] * (uint64_t)mpi_rank + i);
        }
        require(receive[i] == wanted, "%d nodes, element %llu: %g, not %g", nodes,
                (unsigned long long)i, receive[i], wanted);
      }
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

static void reduce_scatter_works_in_place_and_compressed(void) {
  lcomm_comm *comm = make_comm("net=int8 min=1", node_limit());
  uint64_t whole = 5000 * (uint64_t)mpi_size;
  for (uint64_t i = 0; i < whole; i++) {
    send[i] = contribution(mpi_rank, i);
  }
  float *mine = send + 5000 * (uint64_t)mpi_rank;
  require(lcomm_reduce_scatter(comm, send, mine, 5000, LCOMM_FLOAT32, LCOMM_AVG) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  for (uint64_t i = 0; i < 5000; i++) {
    float wanted = 0;
    for (int rank = 0; rank < mpi_size; rank++) {
      wanted += contribution(rank, 5000 * (uint64_t)mpi_rank + i) / (float)mpi_size;
    }
    require(fabsf(mine[i] - wanted) <= 1.0f, "element %llu: %g, not %g", (unsigned long long)i,
            mine[i], wanted);
  }
  lcomm_destroy(comm);
}

static void allgather_brings_every_segment_to_every_rank(void) {
  for (int nodes = 1; nodes <= node_limit(); nodes++) {
    lcomm_comm *comm = make_comm("net=topk:0.01 min=1", nodes); /* must stay exact */
    for (int c = 0; c < COUNTS; c++) {
      for (uint64_t i = 0; i < counts[c]; i++) {
        send[i] = contribution(mpi_rank, i) / 3;
      }
      require(lcomm_allgather(comm, send, receive, counts[c], LCOMM_FLOAT32) == LCOMM_OK, "%s",
              lcomm_last_error(comm));
      for (uint64_t i = 0; i < counts[c] * (uint64_t)mpi_size; i++) {
        float wanted = contribution((int)(i / counts[c]), i % counts[c]) / 3;
        require(receive[i] == wanted, "%d nodes, element %llu: %g", nodes, (unsigned long long)i,
                receive[i]);
      }
    }
    lcomm_destroy(comm);
  }
}

/* Every bit pattern of a 16-bit type, NaNs included, odd counts too. */
static void moves_keep_every_bit(void) {
  static uint16_t words[65535], gathered[MOST * 65535];
  lcomm_comm *comm = make_comm("net=int8 min=1", node_limit());
  for (int i = 0; i < 65535; i++) {
    words[i] = (uint16_t)(i + mpi_rank);
  }
  require(lcomm_allgather(comm, words, gathered, 65535, LCOMM_FLOAT16) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  for (int i = 0; i < 65535 * mpi_size; i++) {
    require(gathered[i] == (uint16_t)(i % 65535 + i / 65535), "word %d is %u", i, gathered[i]);
  }
  require(lcomm_broadcast(comm, words, 65535, LCOMM_BFLOAT16, mpi_size - 1) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  for (int i = 0; i < 65535; i++) {
    require(words[i] == (uint16_t)(i + mpi_size - 1), "word %d is %u", i, words[i]);
  }
  lcomm_destroy(comm);
}

static void broadcast_copies_the_root_to_all(void) {
  for (int nodes = 1; nodes <= node_limit(); nodes++) {
    lcomm_comm *comm = make_comm("net=none", nodes);
    for (int root = 0; root < mpi_size; root++) {
      for (uint64_t i = 0; i < 5000; i++) {
        receive[i] = mpi_rank == root ? contribution(root, i) : -1;
      }
      require(lcomm_broadcast(comm, receive, 5000, LCOMM_FLOAT32, root) == LCOMM_OK, "%s",
              lcomm_last_error(comm));
      for (uint64_t i = 0; i < 5000; i++) {
        require(receive[i] == contribution(root, i), "root %d element %llu", root,
                (unsigned long long)i);
      }
    }
    lcomm_destroy(comm);
  }
}

static void many_operations_are_in_flight_at_once(void) {
  enum { FLYING = 24, COUNT = 1000 };
  static float data[FLYING][COUNT];
  lcomm_request requests[FLYING] = {0};
  lcomm_comm *comm = make_comm("net=none", node_limit());
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < FLYING; i++) {
      for (int j = 0; j < COUNT; j++) {
        data[i][j] = (float)(i + mpi_rank);
      }
      require(lcomm_iallreduce(comm, data[i], data[i], COUNT, LCOMM_FLOAT32, LCOMM_SUM,
                               &requests[i]) == LCOMM_OK,
              "%s", lcomm_last_error(comm));
    }
    for (int i = FLYING - 1; i >= 0; i -= 2) { /* some are tested, some waited for */
      int done = 0;
      while (!done) {
        require(lcomm_test(comm, &requests[i], &done) == LCOMM_OK, "%s", lcomm_last_error(comm));
      }
    }
    for (int i = 0; i < FLYING; i++) {
      require(lcomm_wait(comm, &requests[i]) == LCOMM_OK, "%s", lcomm_last_error(comm));
      float wanted = (float)(i * mpi_size + mpi_size * (mpi_size - 1) / 2);
      require(data[i][0] == wanted && data[i][COUNT - 1] == wanted, "operation %d: %g", i,
              data[i][0]);
    }
  }
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
}

static void nobody_leaves_a_barrier_early(void) {
  lcomm_comm *comm = make_comm("net=none", node_limit());
  for (int last = 0; last < mpi_size; last++) {
    double entered = 0, latest = 0;
    double until = lcomm_clock_s() + (mpi_rank == last ? 0.05 : 0);
    while (lcomm_clock_s() < until) {
    }
    entered = lcomm_clock_s();
    require(lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
    double left = lcomm_clock_s();
    MPI_Allreduce(&entered, &latest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    require(left >= latest, "left %g s before the last one entered", latest - left);
  }
  lcomm_destroy(comm);
}

static int gather_callback(void *context, const void *mine, void *all, size_t size) {
  return MPI_Allgather(mine, (int)size, MPI_BYTE, all, (int)size, MPI_BYTE, *(MPI_Comm *)context) !=
         MPI_SUCCESS;
}

/* Ranks in the opposite order of MPI's, through a bootstrap of the caller. */
static void a_bootstrap_callback_makes_a_communicator(void) {
  MPI_Comm turned;
  lcomm_comm *comm = NULL;
  float value = (float)mpi_rank;
  MPI_Comm_split(MPI_COMM_WORLD, 0, mpi_size - mpi_rank, &turned);
  lcomm_bootstrap boot = {mpi_size - 1 - mpi_rank, mpi_size, &turned, gather_callback};
  require(lcomm_create(&boot, NULL, &comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
  require(lcomm_rank(comm) == mpi_size - 1 - mpi_rank && lcomm_size(comm) == mpi_size, "rank %d",
          lcomm_rank(comm));
  require(lcomm_broadcast(comm, &value, 1, LCOMM_FLOAT32, 0) == LCOMM_OK, "%s",
          lcomm_last_error(comm));
  require(value == (float)(mpi_size - 1), "rank 0 is %g", value);
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  boot.world_size = 0;
  require(lcomm_create(&boot, NULL, &comm) == LCOMM_ERR_ARGUMENT, "no ranks were fine");
  MPI_Comm_free(&turned);
}

static void nodes_and_local_ranks_are_as_posed(void) {
  for (int nodes = 1; nodes <= mpi_size; nodes++) {
    lcomm_comm *comm = make_comm(NULL, nodes);
    require(lcomm_nodes(comm) == nodes, "%d nodes, not %d", lcomm_nodes(comm), nodes);
    require(lcomm_node(comm) >= 0 && lcomm_node(comm) < nodes, "node %d", lcomm_node(comm));
    require(lcomm_local_rank(comm) <= mpi_size / nodes, "local rank %d", lcomm_local_rank(comm));
    char plan[2048];
    require(lcomm_plan_print(comm, 1000000, LCOMM_FLOAT32, 0, plan, sizeof(plan)) == LCOMM_OK, "%s",
            lcomm_last_error(comm));
    require(strstr(plan, "because") != NULL, "%s", plan);
    lcomm_destroy(comm);
  }
}

static const mpi_property properties[] = {
    PROPERTY(reduce_scatter_gives_each_rank_its_segment),
    PROPERTY(reduce_scatter_works_in_place_and_compressed),
    PROPERTY(allgather_brings_every_segment_to_every_rank),
    PROPERTY(moves_keep_every_bit),
    PROPERTY(broadcast_copies_the_root_to_all),
    PROPERTY(many_operations_are_in_flight_at_once),
    PROPERTY(nobody_leaves_a_barrier_early),
    PROPERTY(a_bootstrap_callback_makes_a_communicator),
    PROPERTY(nodes_and_local_ranks_are_as_posed),
};
RUN_PROPERTIES(mpi_property_main, properties)
