/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 3 4 8 */

/* Servers, and workers that go on without the newest results. Workers are late at random, or wait
 * for others until these are as far ahead as they may be. */

#include <time.h>

#include "libcomm/shards/shards.h"
#include "tests/shards/draws.h"
#include "tests/shards/served_model.h"

enum { STEPS = 9, STALE = 2 };

static const char *const rules[] = {"stale=1 late=0", "stale=3 late=1", "stale=2:drop late=0"};
enum { RULES = sizeof(rules) / sizeof(rules[0]) };

static int taken;       /* results, by this rank */
static bool is_weights; /* they are weights, and no gradients */

static model stale_model(const char *codec, int servers, const char *rule, int nodes, lcomm_op op) {
  taken = 0;
  is_weights = false;
  return model_of(codec, servers, rule, nodes, op);
}

/* Of gradients what is received depends on their order, as with momentum. */
static void apply(const model *m) {
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++) {
      float before = is_weights ? 0 : 0.5f * received[t][i];
      got[t][i] += (double)m->data[t][i];
      received[t][i] = before + m->data[t][i];
    }
  }
  taken++;
}

static void apply_all(const model *m, lcomm_status (*hand_out)(lcomm_comm *comm, int *there)) {
  for (int there = 1; there;) {
    there = 0;
    require_fine(m, hand_out(m->comm, &there));
    if (there) {
      apply(m);
    }
  }
}

static void contribute(model *m, int number) {
  lcomm_staleness known;
  require_fine(m, lcomm_staleness_get(m->comm, &known));
  for (int t = 0; t < TENSORS; t++) {
    fill_gradient(m->data[t], sizes[t], seed_of(t, number));
    for (uint64_t i = 0; i < sizes[t]; i++) {
      came[t][i] += (double)m->data[t][i] / (double)(1 + known.under_way);
    }
  }
  require_fine(m, step_model(m));
}

static void be_late(uint64_t *random) {
  struct timespec time = {.tv_nsec = (long)(2e5 * draw_step(random, mpi_rank))};
  nanosleep(&time, NULL);
}

static void make_steps(model *m, int from, int to) {
  uint64_t random = (uint64_t)(mpi_rank + 100 * from);
  for (int number = from; number < to; number++) {
    be_late(&random);
    contribute(m, number);
    apply_all(m, lcomm_tensors_next);
  }
  apply_all(m, lcomm_tensors_sync);
  require(taken == to, "%d results of %d steps", taken, to);
}

static void run(model *m, lcomm_server_update update, int from, int to) {
  if (lcomm_is_server(m->comm)) {
    require_fine(m, lcomm_server_run(m->comm, update, weights));
    return;
  }
  make_steps(m, from, to);
  require_fine(m, lcomm_server_end(m->comm));
}

static void nothing_is_lost_and_replicas_are_equal_after_sync(void) {
  for (int c = 0; c < CODECS; c++) {
    for (int r = 0; r < RULES; r++) {
      model m = stale_model(codecs[c], 1 + (mpi_size > 3), rules[r], mpi_size, LCOMM_SUM);
      run(&m, NULL, 0, STEPS);
      require_equal_replicas(&m, codecs[c]);
      require_conserved(&m, 1, codecs[c]);
      free_model(&m);
    }
  }
}

static void on_nodes_of_several_ranks_nothing_is_lost_either(void) {
  model m = stale_model("net=int8+ef min=1", 1, "stale=2 late=0", two_nodes(), LCOMM_SUM);
  run(&m, NULL, 0, STEPS);
  require_equal_replicas(&m, "two nodes");
  require_conserved(&m, 1, "two nodes");
  free_model(&m);
}

/* What codecs of servers left out goes from lane to lane by their residuals. */
static void runs_go_on_where_the_last_one_ended(void) {
  model m = stale_model("net=int4 min=1 bucket=16K", 1, "stale=2 late=0", mpi_size, LCOMM_SUM);
  for (int from = 0; from < STEPS; from += 4) {
    int to = from + 4 < STEPS ? from + 4 : STEPS;
    float one = 1, all = 0;
    run(&m, NULL, from, to);
    require_conserved(&m, 1, "a run");
    require_fine(&m, lcomm_allreduce(m.comm, &one, &all, 1, LCOMM_FLOAT32, LCOMM_SUM));
  }
  require_equal_replicas(&m, "runs");
  free_model(&m);
}

/* Workers that wait for each result have those of steps that all wait for. */
static void where_each_step_waits_for_its_result_the_bits_are_those_of_servers_without_it(void) {
  static float kept[TENSORS][LARGEST];
  for (int c = 0; c < 2; c++) {
    model m = stale_model(codecs[0], 1, c == 0 ? "" : "stale=2 late=3600000", mpi_size, LCOMM_SUM);
    run(&m, NULL, 0, STEPS);
    for (int t = 0; t < TENSORS && c == 1; t++) {
      require(memcmp(kept[t], received[t], sizes[t] * sizeof(float)) == 0, "%s differs", names[t]);
    }
    memcpy(kept, received, sizeof kept);
    free_model(&m);
  }
}

/* ------------------------------------------------------------------- updates */

enum { PIECES_MOST = 64 };
typedef struct stepped {
  const lcomm_tensor *tensor;
  uint64_t first, steps;
} stepped;
static stepped pieces[PIECES_MOST];
static int piece_count;

static stepped *find_piece(const lcomm_server_piece *piece) {
  int i = 0;
  while (i < piece_count &&
         (pieces[i].tensor != piece->tensor || pieces[i].first != piece->first)) {
    i++;
  }
  require(i < PIECES_MOST, "too many pieces");
  if (i == piece_count) {
    pieces[piece_count++] = (stepped){piece->tensor, piece->first, 0};
  }
  return &pieces[i];
}

/* Some updates take longer, so that rounds pile up. */
static int make_weights_in_order(void *context, const lcomm_server_piece *piece) {
  static uint64_t random = 7;
  stepped *it = find_piece(piece);
  require(piece->step == it->steps, "step %d of %s at %d comes after %d others", (int)piece->step,
          piece->name, (int)piece->first, (int)it->steps);
  it->steps++;
  be_late(&random);
  return make_weights(context, piece);
}

static model weights_model(const char *codec, const char *rule) {
  model m = stale_model(codec, 1 + (mpi_size > 3), rule, mpi_size, LCOMM_AVG);
  is_weights = true;
  piece_count = 0;
  fill_weights();
  return m;
}

static void servers_step_in_order_and_workers_end_with_their_weights(void) {
  for (int r = 0; r < RULES; r++) {
    model m = weights_model("net=int8+ef min=1", rules[r]);
    run(&m, make_weights_in_order, 0, STEPS);
    require_equal_replicas(&m, rules[r]);
    for (int i = 0; i < piece_count; i++) {
      require(pieces[i].steps == STEPS, "%d steps of a piece", (int)pieces[i].steps);
    }
    for (int t = 0; t < TENSORS; t++) {
      static float initial[TENSORS][LARGEST], own[TENSORS][LARGEST];
      memcpy(own, weights, sizeof own);
      fill_weights();
      memcpy(initial, weights, sizeof initial);
      memcpy(weights, own, sizeof weights);
      from_a_worker(&m, received[t], sizes[t] * sizeof(float));
      for (uint64_t i = 0; i < sizes[t] && lcomm_is_server(m.comm); i++) {
        bool is_own = memcmp(&own[t][i], &initial[t][i], sizeof(float)) != 0;
        require(!is_own || memcmp(&own[t][i], &received[t][i], sizeof(float)) == 0,
                "'%s': weight %d of %s is %g there, and %g at its server", rules[r], (int)i,
                names[t], (double)received[t][i], (double)own[t][i]);
      }
    }
    free_model(&m);
  }
}

static void weights_are_those_of_all_gradients_by_their_ages(void) {
  static double all[LARGEST];
  model m = weights_model("net=none", "stale=2 late=0");
  run(&m, make_weights, 0, STEPS);
  fill_weights();
  for (int t = 0; t < TENSORS; t++) {
    int workers = mpi_size - 1 - (mpi_size > 3);
    MPI_Allreduce(came[t], all, (int)sizes[t], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < sizes[t] && !lcomm_is_server(m.comm); i++) {
      double expected = (double)weights[t][i] - (double)RATE * all[i] / workers;
      double error = fabs(expected - (double)received[t][i]);
      require(error < 1e-5 * (1 + fabs(expected)), "%s: weight %d is %g, not %g", names[t], (int)i,
              (double)received[t][i], expected);
    }
  }
  free_model(&m);
}

/* --------------------------------------------------------- one that others wait for */

/* Rank 1 is a server. */
enum { LATE = 2 };

static void tell_late_one(void) {
  int token = 0;
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
    return;
  }
  for (int i = 0; i < mpi_size - 2; i++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* All workers but the late one have made STALE steps after the first, and results are under way. */
static void go_ahead(model *m) {
  contribute(m, 0);
  apply_all(m, lcomm_tensors_sync);
  if (mpi_rank == LATE) {
    tell_late_one();
  }
  for (int number = 1; number <= STALE; number++) {
    contribute(m, number);
    apply_all(m, lcomm_tensors_next);
  }
}

static void workers_go_on_for_so_many_steps_and_end_after_sync_alone(void) {
  model m = stale_model("net=none", 1, "stale=2 late=0", two_nodes(), LCOMM_SUM);
  if (lcomm_is_server(m.comm)) {
    require_fine(&m, lcomm_server_run(m.comm, NULL, NULL));
  } else {
    go_ahead(&m);
    if (mpi_rank != LATE) {
      lcomm_staleness known;
      require_fine(&m, lcomm_staleness_get(m.comm, &known));
      require(known.under_way == STALE && taken == 1, "%d results are under way, and %d here",
              (int)known.under_way, taken);
      require(lcomm_server_end(m.comm) == LCOMM_ERR_STATE &&
                  strstr(lcomm_last_error(m.comm), "results are under way"),
              "%s", lcomm_last_error(m.comm));
      tell_late_one();
    }
    apply_all(&m, lcomm_tensors_sync);
    require_fine(&m, lcomm_server_end(m.comm));
  }
  require_equal_replicas(&m, "ahead");
  require_conserved(&m, 1, "ahead");
  free_model(&m);
}

static void a_communicator_may_be_destroyed_with_results_under_way(void) {
  model m = stale_model("net=int8+ef min=1", 1, "stale=2 late=0", two_nodes(), LCOMM_SUM);
  if (lcomm_is_server(m.comm)) {
    require_fine(&m, lcomm_server_run(m.comm, NULL, NULL));
  } else {
    go_ahead(&m);
    if (mpi_rank != LATE) {
      tell_late_one();
    }
  }
  free_model(&m);
}

static void require_mismatch(model *m, lcomm_status status, const char *sentence) {
  require(status == LCOMM_ERR_MISMATCH && strstr(lcomm_last_error(m->comm), sentence), "%s: %s",
          lcomm_status_name(status), lcomm_last_error(m->comm));
  (void)lcomm_destroy(m->comm);
  m->comm = NULL;
  free_model(m);
}

/* After a step of which all have the result the late one does something else than the others. */
static void require_named(lcomm_status (*otherwise)(lcomm_comm *comm), const char *sentence) {
  model m = stale_model("net=none", 1, "stale=1 late=0", 1, LCOMM_SUM);
  lcomm_status status = LCOMM_OK;
  int there = 0;
  if (lcomm_is_server(m.comm)) {
    status = lcomm_server_run(m.comm, NULL, NULL);
  } else {
    contribute(&m, 0);
    apply_all(&m, lcomm_tensors_sync);
    status = mpi_rank == LATE ? otherwise(m.comm) : lcomm_tensors_sync(m.comm, &there);
  }
  require_mismatch(&m, status, sentence);
}

static lcomm_status sync_another_hash(lcomm_comm *comm) {
  int there = 0;
  lcomm_shards_stale(comm->deferred.shards)->hash ^= 1;
  return lcomm_tensors_sync(comm, &there);
}

static void workers_whose_results_differ_end_with_a_sentence_and_servers_too(void) {
  require_named(sync_another_hash, "rank 2 was handed out other results than rank 0");
}

static void a_worker_that_ends_where_others_sync_is_named(void) {
  require_named(lcomm_server_end, "rank 2 called lcomm_server_end");
}

static void without_staleness_sync_compares_while_servers_serve(void) {
  model m = stale_model("net=none", 1, "", mpi_size, LCOMM_SUM);
  run(&m, NULL, 0, 3);
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(nothing_is_lost_and_replicas_are_equal_after_sync),
    PROPERTY(on_nodes_of_several_ranks_nothing_is_lost_either),
    PROPERTY(runs_go_on_where_the_last_one_ended),
    PROPERTY(where_each_step_waits_for_its_result_the_bits_are_those_of_servers_without_it),
    PROPERTY(servers_step_in_order_and_workers_end_with_their_weights),
    PROPERTY(weights_are_those_of_all_gradients_by_their_ages),
    PROPERTY(workers_go_on_for_so_many_steps_and_end_after_sync_alone),
    PROPERTY(a_communicator_may_be_destroyed_with_results_under_way),
    PROPERTY(workers_whose_results_differ_end_with_a_sentence_and_servers_too),
    PROPERTY(a_worker_that_ends_where_others_sync_is_named),
    PROPERTY(without_staleness_sync_compares_while_servers_serve),
};
RUN_PROPERTIES(mpi_property_main, properties)
