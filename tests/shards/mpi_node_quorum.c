/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 4 8 */

/* Sums with quorum= over nodes of several ranks, which contribute together: bytes between nodes,
 * ranks and nodes that are late, nodes of different sizes. Who is late here waits until the others
 * have made their steps, and not for a time, so that it is late on any machine. */

#include <unistd.h>

#include "tests/shards/accounts.h"

static const double elements = 30000 + 1 + 1000 + 4097;

enum { AHEAD = 5, TOGETHER = 3, NODES_MOST = 3 /* of different sizes, then */ };

static const char *const codecs[] = {"net=none", "net=int8+ef min=1", "net=topk:0.05+ef min=1",
                                     "net=int2 min=1 bucket=16K", "net=topk:k=100+ef min=1"};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

/* Ranks of a node, as ranks are cut into nodes: the first ones are one larger. */
static int node_of(int nodes, int rank) {
  int share = mpi_size / nodes, larger = mpi_size % nodes, in_larger = larger * (share + 1);
  return rank < in_larger ? rank / (share + 1) : larger + (rank - in_larger) / share;
}

static int count_ranks(int nodes, int node) {
  int count = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    count += node_of(nodes, rank) == node;
  }
  return count;
}

static model model_of(const char *codec, int needed, int late_ms, int nodes, lcomm_op op) {
  model m;
  char policy[128];
  snprintf(policy, sizeof policy, "%s quorum=%d late=%d", codec, needed, late_ms);
  make_model(&m, policy, nodes, op);
  forget_accounts();
  return m;
}

static void step(model *m, int number, bool brings) {
  make_gradients(m, number, brings);
  note_gradients(m);
  require_fine(m, step_model(m));
  note_results(m);
}

/* In the first step all ranks compare their tensors, so nobody goes on without the others. */
static void make_first_step(model *m) {
  step(m, 0, false);
  MPI_Barrier(MPI_COMM_WORLD);
}

/* Who is not late makes its steps first. */
static void make_steps_apart(model *m, const bool *is_late) {
  int token = 0;
  for (int rank = 0; is_late[mpi_rank] && rank < mpi_size; rank++) {
    if (!is_late[rank]) {
      MPI_Recv(&token, 1, MPI_INT, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  for (int number = 0; number < AHEAD; number++) {
    step(m, number, true);
  }
  for (int rank = 0; !is_late[mpi_rank] && rank < mpi_size; rank++) {
    if (is_late[rank]) {
      MPI_Send(&token, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static void try_late_ranks(const char *codec, int nodes, const bool *is_late) {
  int late = 0;
  for (int rank = 0; rank < mpi_size; rank++) {
    late += is_late[rank];
  }
  model m = model_of(codec, mpi_size - late, 0, nodes, LCOMM_SUM);
  make_first_step(&m);
  make_steps_apart(&m, is_late);
  for (int number = 0; number < TOGETHER; number++) {
    step(&m, AHEAD + number, true);
  }
  require_conserved(&m, codec);
  require_equal_replicas(codec);
  free_model(&m);
}

static void nothing_is_lost_of_a_late_node_and_replicas_stay_equal(void) {
  for (int c = 0; c < CODECS; c++) {
    int nodes = 2 + c % 2;
    for (int node = 0; node < nodes; node += nodes - 1) {
      bool is_late[64] = {false};
      for (int rank = 0; rank < mpi_size; rank++) {
        is_late[rank] = node_of(nodes, rank) == node;
      }
      try_late_ranks(codecs[c], nodes, is_late);
    }
  }
}

/* The first of each node, which collects pieces, or the last. */
static void nothing_is_lost_of_a_late_rank_in_each_node(void) {
  for (int c = 0; c < CODECS; c++) {
    for (int nodes = 2; nodes <= NODES_MOST; nodes++) {
      bool is_late[64] = {false};
      for (int rank = 1; rank < mpi_size; rank++) {
        bool begins = node_of(nodes, rank) != node_of(nodes, rank - 1);
        is_late[c % 2 == 0 ? rank : rank - 1] |= begins;
      }
      try_late_ranks(codecs[c], nodes, is_late);
    }
  }
}

/* Late or not as it happens, each in another step. */
static void nothing_is_lost_where_ranks_are_late_at_random(void) {
  enum { STEPS = 40 };
  for (int nodes = 2; nodes <= NODES_MOST; nodes++) {
    model m = model_of("net=int8+ef min=1", mpi_size / 2, nodes - 2, nodes, LCOMM_SUM);
    unsigned random = 77u + (unsigned)mpi_rank;
    make_first_step(&m);
    for (int number = 0; number < STEPS; number++) {
      random = random * 1664525u + 1013904223u;
      usleep((random >> 16) % 8 == 0 ? 4000 : 0);
      step(&m, number, true);
    }
    require_conserved(&m, "at random");
    require_equal_replicas("at random");
    free_model(&m);
  }
}

static void lateness_of_a_node_is_counted_by_rank(void) {
  bool is_late[64] = {false};
  lcomm_lateness before[64], after;
  int nodes = 2, stays = count_ranks(nodes, 0);
  for (int rank = stays; rank < mpi_size; rank++) {
    is_late[rank] = true;
  }
  model m = model_of("net=int8+ef min=1", stays, 0, nodes, LCOMM_AVG);
  make_first_step(&m);
  for (int rank = 0; rank < mpi_size; rank++) {
    require_fine(&m, lcomm_lateness_get(m.comm, rank, &before[rank]));
  }
  make_steps_apart(&m, is_late);
  for (int rank = 0; rank < mpi_size; rank++) {
    require_fine(&m, lcomm_lateness_get(m.comm, rank, &after));
    uint64_t pieces = after.pieces - before[rank].pieces;
    uint64_t late = after.late_pieces - before[rank].late_pieces;
    require(pieces > 0 && late == (is_late[rank] ? pieces : 0), "rank %d: %d late pieces of %d",
            rank, (int)late, (int)pieces);
  }
  free_model(&m);
}

/* A mean of threes is 3, whichever ranks of which nodes it is of. */
static void an_average_is_of_ranks_not_of_nodes(void) {
  for (int nodes = 2; nodes <= NODES_MOST; nodes++) {
    model m = model_of("net=none", mpi_size / 2, 0, nodes, LCOMM_AVG);
    make_first_step(&m);
    for (int number = 0; number < AHEAD; number++) {
      for (int t = 0; t < TENSORS; t++) {
        for (uint64_t i = 0; i < sizes[t]; i++) {
          m.data[t][i] = number == 0 ? 3 : 0;
        }
      }
      usleep(number == 0 && mpi_rank % 3 == 1 ? 3000 : 0);
      require_fine(&m, step_model(&m));
      for (int t = 0; number == 0 && t < TENSORS; t++) {
        require(fabsf(m.data[t][0] - 3) < 1e-5f, "an average of threes is %g",
                (double)m.data[t][0]);
      }
    }
    free_model(&m);
  }
}

/* Two models, of the second of which the ranks contribute one after the other, the last one first.
 */
static void require_same_bits(const char *codec, int nodes) {
  model m = model_of(codec, mpi_size, 0, nodes, LCOMM_AVG);
  model twin = model_of(codec, mpi_size, 0, nodes, LCOMM_AVG);
  for (int number = 0; number < 3; number++) {
    fill_model(&m, number);
    fill_model(&twin, number);
    require_fine(&m, step_model(&m));
    MPI_Barrier(MPI_COMM_WORLD);
    usleep(number > 0 ? (unsigned)(mpi_size - mpi_rank) * 500 : 0);
    require_fine(&twin, step_model(&twin));
    for (int t = 0; t < TENSORS; t++) {
      require(memcmp(m.data[t], twin.data[t], sizes[t] * sizeof(float)) == 0,
              "'%s', %d nodes: other bits", codec, nodes);
    }
  }
  free_model(&m);
  free_model(&twin);
}

static void bits_do_not_depend_on_who_comes_first(void) {
  for (int c = 0; c < CODECS; c++) {
    require_same_bits(codecs[c], 2 + c % 2);
  }
}

/* Bytes of all ranks by a class of links; a sender counts a moment later than its receiver has. */
static double sum_sent(model *m, lcomm_link link) {
  lcomm_stats stats;
  MPI_Barrier(MPI_COMM_WORLD);
  usleep(20000);
  require_fine(m, lcomm_stats_get(m->comm, &stats));
  double sent = (double)stats.sent_bytes[link];
  MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sent;
}

/* Of each piece every other node sends its owner one contribution and gets one result, however many
 * ranks it has. */
static void a_node_sends_one_contribution_and_gets_one_result(void) {
  enum { STEPS = 10 };
  static const struct {
    const char *codec;
    double bytes;
  } of[] = {{"net=none", 4}, {"net=int8+ef min=1", 1.04}, {"net=bf16 min=1", 2}};
  for (size_t c = 0; c < sizeof(of) / sizeof(of[0]); c++) {
    for (int nodes = 2; nodes <= NODES_MOST; nodes++) {
      model m = model_of(of[c].codec, mpi_size - 1, 10000, nodes, LCOMM_SUM);
      make_first_step(&m);
      double before = sum_sent(&m, LCOMM_LINK_NET), before_inside = sum_sent(&m, LCOMM_LINK_SHM);
      for (int number = 0; number < STEPS; number++) {
        step(&m, number, true);
      }
      double sent = sum_sent(&m, LCOMM_LINK_NET) - before;
      double inside = sum_sent(&m, LCOMM_LINK_SHM) - before_inside;
      double wanted = STEPS * elements * of[c].bytes * 2 * (nodes - 1);
      require(sent > 0.97 * wanted && sent < 1.12 * wanted + 1e5,
              "'%s', %d nodes: %g bytes, not %g", of[c].codec, nodes, sent, wanted);
      require(inside > STEPS * elements * 4, "'%s', %d nodes: %g bytes inside", of[c].codec, nodes,
              inside);
      free_model(&m);
    }
  }
}

static const mpi_property properties[] = {
    PROPERTY(nothing_is_lost_of_a_late_node_and_replicas_stay_equal),
    PROPERTY(nothing_is_lost_of_a_late_rank_in_each_node),
    PROPERTY(nothing_is_lost_where_ranks_are_late_at_random),
    PROPERTY(lateness_of_a_node_is_counted_by_rank),
    PROPERTY(an_average_is_of_ranks_not_of_nodes),
    PROPERTY(bits_do_not_depend_on_who_comes_first),
    PROPERTY(a_node_sends_one_contribution_and_gets_one_result),
};
RUN_PROPERTIES(mpi_property_main, properties)
