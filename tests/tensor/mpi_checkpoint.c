/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 5 */

/* Saving and loading: the same ranks go on bit for bit, other ranks lose no
 * mass. */

#include <math.h>

#include "tests/tensor/checkpoint_model.h"

enum { BEFORE = 4, AFTER = 4 };

static const char *const policies[] = {
    "net=topk:0.01+ef min=8K",
    "net=topk:0.05+ef min=1 scope=bucket bucket=64K",
    "net=topk:0.02+ef min=1 algo=direct",
    "net=int8+ef min=1",
    "net=int8+ef min=1 algo=direct exempt=conv*",
    "net=int4 min=1",
    "net=sign min=1",
    "net=sign min=1 adam=onebit warmup=2",
    /* saved in the warm-up, at its end, and before a step of gradients */
    "net=sign min=8K adam=onebit warmup=5",
    "net=int8+ef min=1 adam=onebit warmup=4 algo=direct",
    "net=sign min=1 adam=onebit,refresh=2 warmup=2",
    "net=fp8e4m3:stochastic+ef min=1",
    "net=int8 node=bf16 min=1",
    "net[*.bias]=bf16 net[conv*]=int8+ef net[head*]=topk:0.1+ef net=topk:0.01+ef",
    "net[*.bias]=bf16 net[conv*]=none net=topk:0.01+ef momentum=0.9 warmup=5",
    "net=topk:0.01+ef min=8K momentum=0.9",
    /* saved in the last but one exact step, and between exact and lossy ones */
    "net=topk:0.01+ef min=8K momentum=0.9 warmup=5",
    "net=topk:0.01+ef min=8K momentum=0.9 warmup=4",
    "net=topk:0.01+ef min=1 warmup=1 ramp=0.25@2,0.1@3",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static int most_nodes(int ranks) {
  return ranks < 4 ? ranks : 4;
}

static void check_goes_on(const char *policy, int nodes) {
  folder f;
  model saved, loaded;
  make_folder(&f);
  make_model(&saved, MPI_COMM_WORLD, policy, nodes);
  run_model(&saved, BEFORE);
  save_model(&saved, &f);
  uint64_t wanted = hash_steps(&saved, AFTER);
  make_model(&loaded, MPI_COMM_WORLD, policy, nodes);
  load_model(&loaded, &f);
  loaded.step = BEFORE;
  require(hash_steps(&loaded, AFTER) == wanted, "%s on %d nodes went on differently", policy,
          nodes);
  /* and back again, in a communicator that has gone on */
  load_model(&saved, &f);
  saved.step = BEFORE;
  require(hash_steps(&saved, AFTER) == wanted, "%s on %d nodes did not go back", policy, nodes);
  free_model(&saved);
  free_model(&loaded);
  remove_folder(&f);
}

static void a_loaded_run_goes_on_bit_for_bit(void) {
  for (int nodes = 1; nodes <= most_nodes(mpi_size); nodes++) {
    for (int i = 0; i < POLICIES; i++) {
      check_goes_on(policies[i], nodes);
    }
  }
}

/* ------------------------------------------------------------ other ranks */

/* A part of all ranks, on a number of nodes. */
typedef struct place {
  int ranks, nodes;
} place;

/* MPI_COMM_NULL on ranks that have no part. */
static MPI_Comm take_part(place where) {
  MPI_Comm ranks = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank < where.ranks ? 0 : MPI_UNDEFINED, mpi_rank, &ranks);
  return ranks;
}

static void save_there(place where, const char *policy, const folder *f, double *mass) {
  MPI_Comm ranks = take_part(where);
  if (ranks != MPI_COMM_NULL) {
    model m;
    make_model(&m, ranks, policy, where.nodes);
    run_model(&m, BEFORE);
    sum_residuals(&m, mass);
    save_model(&m, f);
    free_model(&m);
    MPI_Comm_free(&ranks);
  }
  MPI_Bcast(mass, TOTAL, MPI_DOUBLE, 0, MPI_COMM_WORLD);
}

/* What is applied in a step and kept after it is the gradient and what was
 * kept before. */
static void check_step(model *m, const char *policy, const double *before) {
  static double after[TOTAL], wanted[TOTAL], found[TOTAL];
  int at = 0;
  fill_model(m);
  for (int t = 0; t < TENSORS; t++) {
    double weight = ops[t] == LCOMM_AVG ? 1.0 / lcomm_size(m->comm) : 1.0;
    for (uint64_t i = 0; i < sizes[t]; i++, at++) {
      wanted[at] = weight * (double)value_of(m, t, i);
    }
  }
  sum_over(m->ranks, wanted, TOTAL);
  step_model(m);
  sum_residuals(m, after);
  at = 0;
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++, at++) {
      wanted[at] += before[at];
      found[at] = (double)value_of(m, t, i) + after[at];
    }
  }
  /* the bfloat16 tensor's results are rounded */
  require(distance(found, wanted, TOTAL) <= 2e-3, "%s: the first step lost %g", policy,
          distance(found, wanted, TOTAL));
}

static void require_nothing_carried(const model *m, const char *policy) {
  for (size_t i = 0; i < m->comm->tensors->bucket_count; i++) {
    require(!m->comm->tensors->buckets[i].ef.state.carried, "%s: an element has no holder", policy);
  }
}

static void check_moves(const char *policy, place from, place to) {
  static double saved[TOTAL], loaded[TOTAL];
  folder f;
  make_folder(&f);
  save_there(from, policy, &f, saved);
  MPI_Comm ranks = take_part(to);
  if (ranks != MPI_COMM_NULL) {
    model m;
    make_model(&m, ranks, policy, to.nodes);
    load_model(&m, &f);
    m.step = BEFORE;
    sum_residuals(&m, loaded);
    require(distance(loaded, saved, TOTAL) <= 1e-6,
            "%s from %d ranks on %d nodes to %d on %d lost %g", policy, from.ranks, from.nodes,
            to.ranks, to.nodes, distance(loaded, saved, TOTAL));
    if (to.nodes > 1) {
      require_nothing_carried(&m, policy);
    }
    check_step(&m, policy, loaded);
    free_model(&m);
    MPI_Comm_free(&ranks);
  }
  remove_folder(&f);
}

static const char *const moving[] = {
    "net=topk:0.01+ef min=8K",
    "net=topk:0.02+ef min=1 algo=direct",
    "net=int8+ef min=1 bucket=64K",
    "net=int8+ef min=1 algo=direct",
    "net=int4 min=1",
};

static void other_ranks_or_nodes_take_over_the_whole_mass(void) {
  place all = {mpi_size, most_nodes(mpi_size)}, half = {(mpi_size + 1) / 2, 1}, one = {1, 1};
  half.nodes = most_nodes(half.ranks);
  place fewer_nodes = {mpi_size, all.nodes > 2 ? 2 : 1};
  for (size_t i = 0; i < sizeof(moving) / sizeof(moving[0]); i++) {
    check_moves(moving[i], all, half);
    check_moves(moving[i], half, all);
    check_moves(moving[i], all, fewer_nodes);
    check_moves(moving[i], fewer_nodes, all);
    check_moves(moving[i], all, one);
  }
}

/* Saved while it is carried, the rest reaches a third place. */
static void what_is_carried_can_be_saved_again(void) {
  static double first[TOTAL], last[TOTAL];
  const char *policy = "net=topk:0.01+ef min=8K";
  folder f, g;
  make_folder(&f);
  make_folder(&g);
  save_there((place){mpi_size, 2}, policy, &f, first);
  model m;
  make_model(&m, MPI_COMM_WORLD, policy, 1);
  load_model(&m, &f);
  save_model(&m, &g);
  load_model(&m, &g);
  sum_residuals(&m, last);
  require(distance(last, first, TOTAL) <= 1e-6, "lost %g", distance(last, first, TOTAL));
  free_model(&m);
  make_model(&m, MPI_COMM_WORLD, policy, 2);
  load_model(&m, &g);
  sum_residuals(&m, last);
  require(distance(last, first, TOTAL) <= 1e-6, "lost %g", distance(last, first, TOTAL));
  free_model(&m);
  remove_folder(&f);
  remove_folder(&g);
}

/* Sum over the ranks of what momentum correction remembers, as a share of the
 * results, of tensors with a residual and of those without. */
static void sum_momentum(const model *m, double *momentum) {
  int at = 0;
  memset(momentum, 0, TOTAL * sizeof *momentum);
  for (int t = 0; t < TENSORS; t++) {
    const lcomm_tensor *tensor = m->tensors[t];
    const lcomm_bucket *bucket = tensor->bucket;
    double weight = ops[t] == LCOMM_AVG ? 1.0 / lcomm_size(m->comm) : 1.0;
    lcomm_ef_shard kept = lcomm_tensor_shard(tensor, bucket->ef.state.feedback);
    for (uint64_t i = 0; i < kept.n; i++) {
      momentum[at + (int)(kept.first + i)] =
          weight * (double)bucket->ef.state.feedback->momentum.now[kept.at + i];
    }
    for (uint64_t i = 0; bucket->ef.state.velocity.now && i < sizes[t]; i++) {
      momentum[at + (int)i] +=
          (double)bucket->ef.state.velocity.now[tensor->offset + i] / lcomm_size(m->comm);
    }
    at += (int)sizes[t];
  }
  sum_over(m->ranks, momentum, TOTAL);
}

static void check_momentum_moves(const char *policy, const char *other, int nodes) {
  static double saved[TOTAL], loaded[TOTAL];
  folder f;
  make_folder(&f);
  model m;
  make_model(&m, MPI_COMM_WORLD, policy, 2);
  run_model(&m, BEFORE);
  sum_momentum(&m, saved);
  save_model(&m, &f);
  free_model(&m);
  make_model(&m, MPI_COMM_WORLD, other, nodes);
  load_model(&m, &f);
  sum_momentum(&m, loaded);
  for (size_t i = 0; i < m.comm->tensors->bucket_count; i++) {
    const lcomm_bucket *bucket = &m.comm->tensors->buckets[i];
    require(!bucket->ef.state.feedback || !bucket->ef.state.velocity.now,
            "a bucket has its momentum twice");
  }
  require(distance(loaded, saved, TOTAL) <= 1e-6, "%s to %s on %d nodes: lost %g", policy, other,
          nodes, distance(loaded, saved, TOTAL));
  free_model(&m);
  remove_folder(&f);
}

static void momentum_moves_with_the_residual(void) {
  static const char *const kept = "net=topk:0.01+ef min=8K momentum=0.9";
  check_momentum_moves(kept, kept, 1);
  check_momentum_moves(kept, kept, mpi_size);
  /* fc.bias joins the others, or all become exact */
  check_momentum_moves(kept, "net=topk:0.01+ef min=1 momentum=0.9", 2);
  check_momentum_moves(kept, "net=topk:0.01+ef min=1G momentum=0.9", 2);
}

static void holders_take_turns(void) {
  static double saved[TOTAL];
  folder f;
  make_folder(&f);
  save_there((place){mpi_size, mpi_size}, "net=topk:0.01+ef min=8K", &f, saved);
  model m;
  make_model(&m, MPI_COMM_WORLD, "net=topk:0.01+ef min=8K", 2);
  load_model(&m, &f);
  const lcomm_feedback_state *feedback = m.tensors[0]->bucket->ef.state.feedback;
  uint64_t own = 0, count = feedback ? feedback->count : 0; /* 0: no shard */
  for (uint64_t i = 0; i < count; i++) {
    own += feedback->residual.now[i] < 0 || feedback->residual.now[i] > 0;
  }
  require(own >= count / 4, "has %llu elements of %llu", (unsigned long long)own,
          (unsigned long long)count);
  free_model(&m);
  remove_folder(&f);
}

static const mpi_property properties[] = {
    PROPERTY(a_loaded_run_goes_on_bit_for_bit),
    PROPERTY_OF(2, other_ranks_or_nodes_take_over_the_whole_mass),
    PROPERTY_OF(2, what_is_carried_can_be_saved_again),
    PROPERTY_OF(2, momentum_moves_with_the_residual),
    PROPERTY_OF(4, holders_take_turns),
};
RUN_PROPERTIES(mpi_property_main, properties)
