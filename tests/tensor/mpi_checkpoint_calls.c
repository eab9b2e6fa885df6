/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 5 */

/* Residuals with a name in saved states: calls go on bit for bit, and on other ranks nothing is
 * lost. */

#include <math.h>

#include "libcomm/tensor/residual.h"
#include "tests/tensor/checkpoint_model.h"

enum { WHOLE = 9000, BEFORE = 4, AFTER = 3, CALLS = 2, ALL = CALLS * WHOLE };

/* An all-reduce and a reduce-scatter, both averages, over any ranks; a tensor that has the name of
 * one of them. */
typedef struct calls {
  MPI_Comm ranks;
  lcomm_comm *comm;
  int size, step;
  lcomm_tensor *tensor;
  lcomm_residual *residuals[CALLS];
  uint64_t parts[64], first;
  float data[WHOLE], gradient[WHOLE], result[CALLS][WHOLE];
} calls;

static const char *const call_names[CALLS] = {"grad", "shard"};

static void make_residuals(calls *c) {
  lcomm_residual *unnamed = NULL;
  require(lcomm_residual_create(c->comm, 100, LCOMM_SUM, &unnamed) == LCOMM_OK, "unnamed");
  require(lcomm_residual_create_named(c->comm, call_names[0], WHOLE, LCOMM_AVG, &c->residuals[0]) ==
              LCOMM_OK,
          "%s", lcomm_last_error(c->comm));
  require(lcomm_residual_create_scatter(c->comm, call_names[1], c->parts, LCOMM_AVG,
                                        &c->residuals[1]) == LCOMM_OK,
          "%s", lcomm_last_error(c->comm));
}

static void make_calls(calls *c, MPI_Comm ranks, const char *policy, int nodes) {
  uint64_t left = WHOLE;
  memset(c, 0, sizeof *c);
  c->ranks = ranks;
  c->comm = make_comm_over(ranks, policy, nodes);
  c->size = lcomm_size(c->comm);
  for (int i = 0; i < c->size; i++) { /* uneven, and together WHOLE on any number of ranks */
    c->parts[i] = i == c->size - 1 ? left : left / 3 + (uint64_t)i;
    c->first += i < lcomm_rank(c->comm) ? c->parts[i] : 0;
    left -= c->parts[i];
  }
  make_residuals(c);
  require(lcomm_tensor_add(c->comm, call_names[0], c->data, WHOLE, LCOMM_FLOAT32, LCOMM_AVG,
                           &c->tensor) == LCOMM_OK,
          "%s", lcomm_last_error(c->comm));
}

static void fill(calls *c, int what) {
  fill_gradient(c->gradient, WHOLE,
                (uint64_t)(1 + what + 10 * c->step + 1000 * lcomm_rank(c->comm)));
}

static void step_calls(calls *c) {
  lcomm_status status;
  fill(c, 0);
  status = lcomm_allreduce_ef(c->residuals[0], c->gradient, c->result[0]);
  require(status == LCOMM_OK, "%s", lcomm_last_error(c->comm));
  fill(c, 1);
  status = lcomm_reduce_scatter_ef(c->residuals[1], c->gradient, c->result[1] + c->first);
  require(status == LCOMM_OK, "%s", lcomm_last_error(c->comm));
  fill(c, 2);
  memcpy(c->data, c->gradient, sizeof(c->data));
  lcomm_tensor_ready(c->comm, c->tensor);
  require(lcomm_tensors_wait(c->comm) == LCOMM_OK, "%s", lcomm_last_error(c->comm));
  c->step++;
}

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
  }
  return hash;
}

static uint64_t hash_calls(calls *c, int steps) {
  uint64_t hash = 88172645463325252u;
  for (int i = 0; i < steps; i++) {
    step_calls(c);
    hash = hash_bytes(hash, c->result, sizeof(c->result));
    hash = hash_bytes(hash, c->data, sizeof(c->data));
  }
  return hash;
}

static void run_calls(calls *c, int steps) {
  (void)hash_calls(c, steps);
}

static void save_calls(calls *c, const folder *f) {
  require(lcomm_state_save(c->comm, f->path) == LCOMM_OK, "%s", lcomm_last_error(c->comm));
  MPI_Barrier(c->ranks);
}

static void load_calls(calls *c, const folder *f) {
  require(lcomm_state_load(c->comm, f->path) == LCOMM_OK, "%s", lcomm_last_error(c->comm));
}

/* ------------------------------------------------------------- bit for bit */

static const char *const policies[] = {
    "net=topk:0.02+ef min=1",
    "net=topk:0.05+ef min=1 momentum=0.9 clip=0.05",
    /* saved in the warm-up, and at its end */
    "net=topk:0.05+ef min=1 momentum=0.9 warmup=6",
    "net=topk:0.05+ef min=1 momentum=0.9 warmup=4 ramp=0.25@2,0.1@1",
    "net=topk:0.05+ef min=1 momentum=0.9 exempt=*",
    "net=int8+ef min=1",
    "net=fp8e4m3:stochastic+ef min=1",
    "net[call=reduce-scatter]=topk:0.1+ef net[size>=1]=int8+ef",
    "net=none",
};

enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

static void check_goes_on(const char *policy, int nodes) {
  static calls saved, loaded;
  folder f;
  size_t size = 0;
  make_folder(&f);
  make_calls(&saved, MPI_COMM_WORLD, policy, nodes);
  run_calls(&saved, BEFORE);
  save_calls(&saved, &f);
  require(lcomm_state_size(saved.comm, &size) == LCOMM_OK, "size");
  uint8_t *bytes = malloc(size);
  require(lcomm_state_write(saved.comm, bytes, size) == LCOMM_OK, "%s",
          lcomm_last_error(saved.comm));
  uint64_t wanted = hash_calls(&saved, AFTER);
  for (int i = 0; i < 3; i++) { /* from files, from bytes, and back in one that has gone on */
    calls *c = i < 2 ? &loaded : &saved;
    if (i < 2) {
      make_calls(c, MPI_COMM_WORLD, policy, nodes);
    }
    require((i == 1 ? lcomm_state_read(c->comm, bytes, size) : lcomm_state_load(c->comm, f.path)) ==
                LCOMM_OK,
            "%s", lcomm_last_error(c->comm));
    c->step = BEFORE;
    require(hash_calls(c, AFTER) == wanted, "%s on %d nodes: %d went on differently", policy, nodes,
            i);
    if (i < 2) {
      lcomm_destroy(c->comm);
    }
  }
  lcomm_destroy(saved.comm);
  free(bytes);
  remove_folder(&f);
}

static int most_nodes(int ranks) {
  return ranks < 4 ? ranks : 4;
}

static void calls_go_on_bit_for_bit(void) {
  for (int i = 0; i < POLICIES; i++) {
    int most = most_nodes(mpi_size);
    check_goes_on(policies[i], i % 3 == 2 ? most / 2 + (most < 2) : most);
  }
}

/* ------------------------------------------------------------- other ranks */

typedef struct account {
  double mass[ALL], momentum[ALL];
} account;

/* What is yet to be applied, and what momentum will join, as shares of the results. */
static void add_up(calls *c, account *all) {
  static float values[WHOLE];
  memset(all, 0, sizeof *all);
  for (int k = 0; k < CALLS; k++) {
    const lcomm_residual *r = c->residuals[k];
    const lcomm_feedback_state *kept = r->ef.state.feedback;
    require(lcomm_residual_get(r, values) == LCOMM_OK, "%s", lcomm_last_error(c->comm));
    for (int i = 0; i < WHOLE; i++) {
      all->mass[k * WHOLE + i] = (double)values[i] / c->size;
    }
    for (uint64_t i = 0; kept && kept->momentum.now && i < kept->count; i++) {
      all->momentum[(uint64_t)(k * WHOLE) + kept->first + i] =
          (double)kept->momentum.now[i] / c->size;
    }
    for (uint64_t i = 0; r->ef.state.velocity.now && i < r->ef.result.count; i++) {
      all->momentum[(uint64_t)(k * WHOLE) + r->ef.result.first + i] +=
          (double)r->ef.state.velocity.now[i] /
          (k == 0 ? c->size : 1); /* all ranks have that of all */
    }
  }
  MPI_Allreduce(MPI_IN_PLACE, all, sizeof *all / sizeof(double), MPI_DOUBLE, MPI_SUM, c->ranks);
}

static MPI_Comm take_part(int ranks) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, mpi_rank < ranks ? 0 : MPI_UNDEFINED, mpi_rank, &part);
  return part;
}

/* What the next calls apply and leave is what was there and what they add; flushed, nothing is
 * left. */
static void check_flush(calls *c, const account *loaded, const char *what) {
  static double wanted[ALL], found[ALL];
  double factor = strstr(what, "momentum") ? (double)0.9f : 0;
  memset(found, 0, sizeof(found));
  for (int k = 0; k < CALLS; k++) {
    fill(c, k);
    for (int i = 0; i < WHOLE; i++) {
      wanted[k * WHOLE + i] = (double)c->gradient[i] / c->size;
    }
    memset(c->result[k], 0, sizeof(c->result[k]));
    lcomm_status status =
        k == 0 ? lcomm_allreduce_flush(c->residuals[k], c->gradient, c->result[k])
               : lcomm_reduce_scatter_flush(c->residuals[k], c->gradient, c->result[k] + c->first);
    require(status == LCOMM_OK, "%s", lcomm_last_error(c->comm));
    for (int i = 0; i < WHOLE; i++) {
      found[k * WHOLE + i] = (double)c->result[k][i] / (k == 0 ? c->size : 1);
    }
  }
  sum_over(c->ranks, wanted, ALL);
  sum_over(c->ranks, found, ALL);
  for (int i = 0; i < ALL; i++) {
    wanted[i] += loaded->mass[i] + factor * loaded->momentum[i];
  }
  require(distance(found, wanted, ALL) <= 1e-5, "%s: the flush lost %g", what,
          distance(found, wanted, ALL));
  static account after;
  add_up(c, &after);
  for (int i = 0; i < ALL; i++) {
    require(!(after.mass[i] < 0 || after.mass[i] > 0), "%s: something is left", what);
  }
}

static void check_moves(const char *policy, const char *to_policy, int from, int from_nodes, int to,
                        int to_nodes) {
  static account saved, loaded;
  static calls c;
  char what[160];
  folder f;
  make_folder(&f);
  snprintf(what, sizeof(what), "%s from %d ranks on %d nodes to %d on %d", policy, from, from_nodes,
           to, to_nodes);
  MPI_Comm ranks = take_part(from);
  if (ranks != MPI_COMM_NULL) {
    make_calls(&c, ranks, policy, from_nodes);
    run_calls(&c, BEFORE);
    add_up(&c, &saved);
    save_calls(&c, &f);
    lcomm_destroy(c.comm);
    MPI_Comm_free(&ranks);
  }
  MPI_Bcast(&saved, sizeof(saved), MPI_BYTE, 0, MPI_COMM_WORLD);
  ranks = take_part(to);
  if (ranks != MPI_COMM_NULL) {
    make_calls(&c, ranks, to_policy, to_nodes);
    load_calls(&c, &f);
    c.step = BEFORE;
    add_up(&c, &loaded);
    require(distance(loaded.mass, saved.mass, ALL) <= 1e-6, "%s lost %g", what,
            distance(loaded.mass, saved.mass, ALL));
    require(distance(loaded.momentum, saved.momentum, ALL) <= 1e-6, "%s: momentum lost %g", what,
            distance(loaded.momentum, saved.momentum, ALL));
    check_flush(&c, &loaded, what);
    run_calls(&c, 2);
    lcomm_destroy(c.comm);
    MPI_Comm_free(&ranks);
  }
  remove_folder(&f);
}

static void other_ranks_nodes_and_policies_take_over_all(void) {
  static const char *const moving[] = {"net=topk:0.02+ef min=1", "net=int8+ef min=1",
                                       "net=topk:0.05+ef min=1 momentum=0.9",
                                       "net=topk:0.05+ef min=1 momentum=0.9 warmup=9"};
  int half = (mpi_size + 1) / 2, all = most_nodes(mpi_size);
  for (int i = 0; i < 4; i++) {
    const char *p = moving[i];
    if (i % 2 == 0) {
      check_moves(p, p, mpi_size, all, half, most_nodes(half));
    } else {
      check_moves(p, p, half, most_nodes(half), mpi_size, 2);
    }
    check_moves(p, p, mpi_size, all, mpi_size, 1); /* nobody keeps it there */
  }
  static const char *const kept = "net=topk:0.05+ef min=1 momentum=0.9";
  check_moves(kept, "net=topk:0.05+ef min=1G momentum=0.9", mpi_size, 2, mpi_size, 2);
  check_moves("net=topk:0.05+ef min=1G momentum=0.9", kept, mpi_size, 2, mpi_size, 2);
}

/* ------------------------------------------------------------------ refused */

/* `word` is in the answer of all ranks to a load into what `make` has made. */
typedef void (*maker)(lcomm_comm *comm);

static void make_nothing(lcomm_comm *comm) {
  (void)comm;
}

static void make_longer(lcomm_comm *comm) {
  uint64_t parts[64] = {WHOLE + 1};
  lcomm_residual *made;
  lcomm_residual_create_scatter(comm, "shard", parts, LCOMM_AVG, &made);
}

static void make_other_kind(lcomm_comm *comm) {
  lcomm_residual *made;
  lcomm_residual_create_named(comm, "shard", WHOLE, LCOMM_AVG, &made);
}

static void make_other_operation(lcomm_comm *comm) {
  uint64_t parts[64] = {WHOLE};
  lcomm_residual *made;
  lcomm_residual_create_scatter(comm, "shard", parts, LCOMM_SUM, &made);
}

static void what_does_not_match_is_named(void) {
  static const struct {
    maker make;
    const char *word;
  } wrong[] = {{make_nothing, "has not been made here"},
               {make_longer, "9001"},
               {make_other_kind, "all-reduces"},
               {make_other_operation, "summed"}};
  static calls saved;
  folder f;
  make_folder(&f);
  make_calls(&saved, MPI_COMM_WORLD, policies[0], 2);
  run_calls(&saved, 2);
  save_calls(&saved, &f);
  lcomm_destroy(saved.comm);
  for (int i = 0; i < 4; i++) {
    static float data[WHOLE];
    lcomm_tensor *tensor;
    lcomm_comm *comm = make_comm(policies[0], 2);
    lcomm_tensor_add(comm, "grad", data, WHOLE, LCOMM_FLOAT32, LCOMM_AVG, &tensor);
    wrong[i].make(comm);
    lcomm_status status = lcomm_state_load(comm, f.path);
    require(status == LCOMM_ERR_ARGUMENT, "%d: %s, %s", i, lcomm_status_name(status),
            lcomm_last_error(comm));
    require(strstr(lcomm_last_error(comm), wrong[i].word) != NULL, "%s", lcomm_last_error(comm));
    require(lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
    lcomm_destroy(comm);
  }
  remove_folder(&f);
}

static void residuals_are_compared_between_the_ranks(void) {
  folder f;
  lcomm_residual *made;
  make_folder(&f);
  lcomm_comm *comm = make_comm(policies[0], 2);
  require(lcomm_state_save(comm, f.path) == LCOMM_OK, "%s", lcomm_last_error(comm));
  MPI_Barrier(MPI_COMM_WORLD);
  lcomm_residual_create_named(comm, mpi_rank == 1 ? "a" : "b", 5, LCOMM_SUM, &made);
  require(lcomm_state_load(comm, f.path) == LCOMM_ERR_MISMATCH, "%s", lcomm_last_error(comm));
  require(strstr(lcomm_last_error(comm), "other residuals") != NULL, "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
  remove_folder(&f);
}

static void nothing_is_saved_while_a_call_is_under_way(void) {
  static calls c;
  size_t size = 0;
  lcomm_request request = {0};
  make_calls(&c, MPI_COMM_WORLD, policies[0], mpi_size < 2 ? 1 : 2);
  fill(&c, 0);
  require(lcomm_iallreduce_ef(c.residuals[0], c.gradient, c.result[0], &request) == LCOMM_OK, "%s",
          lcomm_last_error(c.comm));
  require(lcomm_state_size(c.comm, &size) == LCOMM_ERR_STATE, "size");
  require(lcomm_state_write(c.comm, &size, sizeof(size)) == LCOMM_ERR_STATE, "write");
  require(lcomm_state_save(c.comm, "/nowhere") == LCOMM_ERR_STATE, "save");
  require(lcomm_state_load(c.comm, "/nowhere") == LCOMM_ERR_STATE, "load");
  require(lcomm_wait(c.comm, &request) == LCOMM_OK, "%s", lcomm_last_error(c.comm));
  require(lcomm_state_size(c.comm, &size) == LCOMM_OK && size > 0, "%s", lcomm_last_error(c.comm));
  lcomm_destroy(c.comm);
}

static const mpi_property properties[] = {
    PROPERTY(calls_go_on_bit_for_bit),
    PROPERTY_OF(2, other_ranks_nodes_and_policies_take_over_all),
    PROPERTY_OF(2, what_does_not_match_is_named),
    PROPERTY_OF(2, residuals_are_compared_between_the_ranks),
    PROPERTY(nothing_is_saved_while_a_call_is_under_way),
};
RUN_PROPERTIES(mpi_property_main, properties)
