/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Reduce-scatters with a residual: nothing is lost, whatever the parts. */

#include <stdio.h>

#include "libcomm/tensor/residual.h"
#include "tests/api/call_model.h"
#include "tests/tensor/residuals.h"

enum { PART = 1500, MOST = PART * MODEL_RANKS, SHAPES = 4 };

static const char *const policies[] = {
    "net=int8+ef min=1",
    "net=int4 min=1 check=xxhash",
    "net=int2 min=1 check=xxhash",
    "net=fp8e5m2:block=32,stochastic+ef min=1",
    "net=topk:0.02+ef min=1",
    "net=topk:0.05,values=int8+ef+zstd min=1",
    "net=topk:k=90+ef min=1 warmup=2 ramp=0.25@2,0.05@1",
    "net=topk:0.05+ef min=1 momentum=0.9 warmup=2",
    "net=topk:0.05+ef min=1G momentum=0.9",
    "net=none",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* Even parts; growing ones; none on most ranks; all on the last one. */
static uint64_t part_of(int shape, int rank) {
  uint64_t parts[SHAPES] = {PART, PART * (uint64_t)rank / 4, rank % 3 == 1 ? PART : 0,
                            rank == mpi_size - 1 ? PART : 0};
  return parts[shape];
}

/* One layer whose sum is scattered; `whole` is what all ranks received. */
typedef struct shards {
  layer l;
  uint64_t parts[MODEL_RANKS], first, mine;
  float whole[MOST];
  double momentum[MOST]; /* over all ranks, that joins the next call */
} shards;

static void make_shards(shards *s, lcomm_comm *comm, int shape, lcomm_op op, const char *name) {
  uint64_t count = 0;
  memset(s, 0, sizeof *s);
  for (int rank = 0; rank < mpi_size; rank++) {
    s->parts[rank] = part_of(shape, rank);
    s->first = rank == mpi_rank ? count : s->first;
    count += s->parts[rank];
  }
  s->mine = s->parts[mpi_rank];
  make_layer(&s->l, comm, count, op); /* its own residual is not used */
  require_fine(comm, lcomm_residual_create_scatter(comm, name, s->parts, op, &s->l.residual));
}

/* What this rank received, brought to all ranks and to the layer's result. */
static void collect(shards *s, const float *received) {
  int counts[MODEL_RANKS], places[MODEL_RANKS] = {0};
  for (int i = 0; i < mpi_size; i++) {
    counts[i] = (int)s->parts[i];
    places[i] = i > 0 ? places[i - 1] + counts[i - 1] : 0;
  }
  MPI_Allgatherv(received, (int)s->mine, MPI_FLOAT, s->whole, counts, places, MPI_FLOAT,
                 MPI_COMM_WORLD);
  memcpy(s->l.result, s->whole, s->l.count * sizeof(float));
}

/* In every third call at its own place, in every other third at the front of the buffer. */
static void call_shards(shards *s, int step, bool flush) {
  static float buffer[MOST], received[MOST];
  float *receive = step % 3 == 0 ? received : step % 3 == 1 ? buffer + s->first : buffer;
  memcpy(buffer, s->l.gradient, s->l.count * sizeof(float));
  require_fine(s->l.comm, flush ? lcomm_reduce_scatter_flush(s->l.residual, buffer, receive)
                                : lcomm_reduce_scatter_ef(s->l.residual, buffer, receive));
  collect(s, receive);
}

/* The momentum that all ranks keep, as it will join the next sum. */
static void sum_momentum(shards *s) {
  const lcomm_residual *r = s->l.residual;
  double factor = r->ef.request.op == LCOMM_AVG ? mpi_size : 1;
  memset(s->momentum, 0, sizeof(s->momentum));
  for (uint64_t i = 0; r->ef.state.feedback && r->ef.state.feedback->momentum.now &&
                       i < r->ef.state.feedback->count;
       i++) {
    s->momentum[r->ef.state.feedback->first + i] += (double)r->ef.state.feedback->momentum.now[i];
  }
  for (uint64_t i = 0; r->ef.state.velocity.now && i < r->ef.result.count; i++) {
    s->momentum[r->ef.result.first + i] += factor * (double)r->ef.state.velocity.now[i];
  }
  sum_everywhere(s->momentum, s->l.count);
}

static void keep_accounts(const char *policy, int layout, int shape, lcomm_op op) {
  static shards s;
  char what[128];
  lcomm_comm *comm = model_comm(policy, layout);
  if (!comm) {
    return;
  }
  snprintf(what, sizeof(what), "%s, layout %d, shape %d", policy, layout, shape);
  make_shards(&s, comm, shape, op, strstr(policy, "momentum") ? "shard" : NULL);
  double factor = strstr(policy, "momentum") ? (double)0.9f : 0;
  for (int step = 0; step < 12; step++) {
    fill_layer(&s.l, step);
    sum_momentum(&s);
    for (uint64_t i = 0; i < s.l.count; i++) {
      s.l.sum[i] += factor * s.momentum[i];
    }
    call_shards(&s, step, step % 6 == 5);
    check_layer(&s.l, what, step);
    require(step % 6 < 5 || owes_nothing(&s.l), "%s, call %d: something is left", what, step);
  }
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&s.l);
}

static void they_conserve_the_sum(void) {
  for (int i = 0; i < POLICIES * MODEL_LAYOUTS; i++) {
    int layout = i % MODEL_LAYOUTS;
    for (int shape = i % 2; shape < SHAPES; shape += 2) { /* two for each */
      keep_accounts(policies[i / MODEL_LAYOUTS], layout, shape,
                    (i + shape) % 2 ? LCOMM_SUM : LCOMM_AVG);
    }
  }
}

/* Otherwise the test above shows nothing. */
static void something_waits_in_the_residuals_between_nodes(void) {
  static shards s;
  for (int i = 0; i < 6; i++) {
    lcomm_comm *comm = make_comm(policies[i], 2);
    lcomm_stats stats;
    make_shards(&s, comm, 0, LCOMM_SUM, NULL);
    for (int step = 0; step < 5; step++) {
      fill_layer(&s.l, step);
      call_shards(&s, 0, false);
      check_layer(&s.l, policies[i], step);
    }
    lcomm_stats_get(comm, &stats);
    uint64_t sent = stats.sent_bytes[LCOMM_LINK_NET], exact = stats.exact_bytes[LCOMM_LINK_NET];
    MPI_Allreduce(MPI_IN_PLACE, &sent, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &exact, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    require(sent < exact, "%s: sent %llu bytes for %llu", policies[i], (unsigned long long)sent,
            (unsigned long long)exact);
    bool waits = !owes_nothing(&s.l);
    require(waits, "%s: nothing waits", policies[i]);
    require_fine(NULL, lcomm_destroy(comm));
    free_layer(&s.l);
  }
}

/* What one node sums lives on one of its ranks; the rest of the vector takes no part. */
static void a_rank_keeps_what_its_node_sums_there(void) {
  static shards s;
  static float before[MOST];
  lcomm_comm *comm = model_comm("net=int8+ef min=1", 1);
  if (!comm) {
    skip_property("needs 2 ranks");
    return;
  }
  make_shards(&s, comm, 0, LCOMM_SUM, NULL);
  fill_layer(&s.l, 1);
  call_shards(&s, 0, false);
  require_fine(comm, lcomm_residual_get(s.l.residual, before));
  for (int owner = 0; owner < mpi_size; owner++) {
    bool any = false;
    for (uint64_t i = (uint64_t)owner * PART; i < (uint64_t)(owner + 1) * PART; i++) {
      any = any || before[i] < 0 || before[i] > 0;
    }
    const lcomm_topo *topo = &comm->topo;
    bool here = topo->node[owner] != topo->node[mpi_rank] &&
                lcomm_reduce_scatter_collector(topo, topo->node[mpi_rank], owner) == mpi_rank;
    require(any == here, "the part of rank %d is%s kept", owner, any ? "" : " not");
  }
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&s.l);
}

/* Exact everywhere, the results are those of an optimiser with momentum. */
static void momentum_of_exact_sums_is_that_of_an_optimiser(void) {
  static const char *const exact[] = {"net=topk:0.1+ef min=1 momentum=0.9 exempt=s*",
                                      "net=topk:0.1+ef min=1 momentum=0.9 warmup=100"};
  static shards s;
  static double velocity[MOST];
  for (int i = 0; i < 2 * MODEL_LAYOUTS; i++) {
    lcomm_comm *comm = model_comm(exact[i % 2], i / 2);
    if (!comm) {
      continue;
    }
    make_shards(&s, comm, 1, LCOMM_AVG, "shard");
    memset(velocity, 0, sizeof(velocity));
    for (int step = 0; step < 6; step++) {
      double miss = 0, norm = 1e-300;
      fill_layer(&s.l, step);
      call_shards(&s, step, false);
      for (uint64_t k = 0; k < s.l.count; k++) {
        velocity[k] = 0.9 * velocity[k] + s.l.sum[k] / mpi_size;
        miss += (velocity[k] - (double)s.whole[k]) * (velocity[k] - (double)s.whole[k]);
        norm += velocity[k] * velocity[k];
      }
      require(miss <= 1e-10 * norm, "%s, step %d: error %g", exact[i % 2], step, miss / norm);
    }
    require_fine(NULL, lcomm_destroy(comm));
    free_layer(&s.l);
  }
}

/* Each kind of residual is for its kind of call. */
static void mistakes_are_refused(void) {
  uint64_t parts[MODEL_RANKS] = {0}, huge[MODEL_RANKS];
  static float values[64];
  lcomm_residual *all = NULL, *scattered = NULL, *made = NULL;
  lcomm_comm *comm = make_comm("net=int8+ef min=1", two_nodes());
  for (int i = 0; i < mpi_size; i++) {
    parts[i] = 8;
    huge[i] = UINT64_MAX / 2;
  }
  char name[200];
  memset(name, 'n', sizeof(name) - 1);
  name[sizeof(name) - 1] = '\0';
  require_fine(comm, lcomm_residual_create_named(comm, "grad", 64, LCOMM_SUM, &all));
  require_fine(comm, lcomm_residual_create_scatter(comm, "shard", parts, LCOMM_SUM, &scattered));
  lcomm_status wrong[] = {
      lcomm_residual_create_scatter(comm, "shard", parts, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(comm, "grad", parts, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(comm, "", parts, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(comm, name, parts, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(comm, "x", NULL, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(NULL, "x", parts, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(comm, "x", huge, LCOMM_SUM, &made),
      lcomm_residual_create_scatter(comm, "x", parts, LCOMM_MAX, &made),
      lcomm_residual_create_scatter(comm, "x", parts, LCOMM_SUM, NULL),
      lcomm_residual_create_named(comm, NULL, 64, LCOMM_SUM, &made),
      lcomm_residual_create_named(comm, "grad", 64, LCOMM_SUM, &made),
      lcomm_reduce_scatter_ef(all, values, values),
      lcomm_reduce_scatter_flush(all, values, values),
      lcomm_allreduce_ef(scattered, values, values),
      lcomm_allreduce_flush(scattered, values, values),
      lcomm_reduce_scatter_ef(NULL, values, values),
      lcomm_reduce_scatter_ef(scattered, NULL, values),
      lcomm_reduce_scatter_ef(scattered, values, NULL),
      lcomm_ireduce_scatter_ef(scattered, values, values, NULL),
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    require(wrong[i] == LCOMM_ERR_ARGUMENT, "mistake %zu: %s", i, lcomm_status_name(wrong[i]));
  }
  require(!made, "a residual was made");
  require_fine(comm, lcomm_residual_destroy(scattered));
  require_fine(comm, lcomm_residual_create_scatter(comm, "shard", parts, LCOMM_SUM, &scattered));
  require_fine(comm, lcomm_reduce_scatter_ef(scattered, values, values));
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(they_conserve_the_sum),
    PROPERTY_OF(2, something_waits_in_the_residuals_between_nodes),
    PROPERTY(a_rank_keeps_what_its_node_sums_there),
    PROPERTY(momentum_of_exact_sums_is_that_of_an_optimiser),
    PROPERTY(mistakes_are_refused),
};
RUN_PROPERTIES(mpi_property_main, properties)
