/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 3 4 8 */

/* Tensors that servers sum, or make weights of. */

#include "tests/shards/served_model.h"

enum { STEPS = 5, LATE_STEPS = 4 };

/* Gradients of this rank are not finite in this step. */
static int spoilt = -1;

static void step(model *m, int number) {
  for (int t = 0; t < TENSORS; t++) {
    fill_gradient(m->data[t], sizes[t], seed_of(t, number));
    m->data[t][0] = spoilt == number ? NAN : m->data[t][0];
    for (uint64_t i = 0; i < sizes[t]; i++) {
      came[t][i] += (double)m->data[t][i];
    }
  }
  require_fine(m, step_model(m));
  for (int t = 0; t < TENSORS; t++) {
    memcpy(received[t], m->data[t], sizes[t] * sizeof(float));
    for (uint64_t i = 0; i < sizes[t]; i++) {
      got[t][i] += (double)m->data[t][i];
    }
  }
}

static void run(model *m, lcomm_server_update update, void *context, int from, int to) {
  if (lcomm_is_server(m->comm)) {
    require_fine(m, lcomm_server_run(m->comm, update, context));
    return;
  }
  for (int number = from; number < to; number++) {
    step(m, number);
  }
  require_fine(m, lcomm_server_end(m->comm));
}

static void nothing_is_lost_and_replicas_are_equal(void) {
  for (int c = 0; c < CODECS; c++) {
    for (int servers = 1; servers <= 2; servers++) {
      for (int nodes = 1; nodes <= mpi_size; nodes += mpi_size - 1) {
        model m = model_of(codecs[c], servers, "", nodes, LCOMM_SUM);
        run(&m, NULL, NULL, 0, STEPS);
        require_equal_replicas(&m, codecs[c]);
        require_conserved(&m, 1, codecs[c]);
        free_model(&m);
      }
    }
  }
}

static void averages_are_those_of_all_workers(void) {
  model m = model_of("net=int8+ef min=1", 2, "", mpi_size, LCOMM_AVG);
  run(&m, NULL, NULL, 0, STEPS);
  require_conserved(&m, mpi_size - 2, "an average");
  free_model(&m);
}

static void exact_sums_are_those_of_a_reference(void) {
  static double all[LARGEST];
  model m = model_of("net=none", 2, "", two_nodes(), LCOMM_SUM);
  run(&m, NULL, NULL, 0, 1);
  for (int t = 0; t < TENSORS; t++) {
    MPI_Allreduce(came[t], all, (int)sizes[t], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < sizes[t] && !lcomm_is_server(m.comm); i++) {
      double error = fabs(all[i] - (double)received[t][i]);
      require(error <= 1e-5 * (1 + fabs(all[i])), "element %d: %g, not %g", (int)i,
              (double)received[t][i], all[i]);
    }
  }
  free_model(&m);
}

/* ------------------------------------------------------------------- updates */

static void sgd_of_the_servers_is_that_of_a_reference(void) {
  static double all[LARGEST];
  model m = model_of("net=none", 2, "", mpi_size, LCOMM_AVG);
  fill_weights();
  run(&m, make_weights, weights, 0, STEPS);
  fill_weights();
  for (int t = 0; t < TENSORS; t++) {
    MPI_Allreduce(came[t], all, (int)sizes[t], MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (uint64_t i = 0; i < sizes[t] && !lcomm_is_server(m.comm); i++) {
      double expected = (double)weights[t][i] - (double)RATE * all[i] / (mpi_size - 2);
      double error = fabs(expected - (double)received[t][i]);
      require(error < 1e-5 * (1 + fabs(expected)), "%s: weight %d is %g, not %g", names[t], (int)i,
              (double)received[t][i], expected);
    }
  }
  require_equal_replicas(&m, "weights");
  free_model(&m);
}

/* Each has the pieces that it owns, and together they have all. */
static void workers_receive_the_bits_of_the_servers_weights(void) {
  uint64_t elements = 0;
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], 2, "", mpi_size, LCOMM_AVG);
    fill_weights();
    run(&m, make_weights, weights, 0, STEPS);
    require_equal_replicas(&m, codecs[c]);
    MPI_Allreduce(&updated, &elements, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    require(elements == (uint64_t)STEPS * ELEMENTS, "%d updates", (int)elements);
    for (int t = 0; t < TENSORS; t++) {
      static float initial[LARGEST], own[LARGEST];
      memcpy(own, weights[t], sizeof own);
      from_a_worker(&m, received[t], sizes[t] * sizeof(float));
      fill_weights();
      memcpy(initial, weights[t], sizeof initial);
      for (uint64_t i = 0; i < sizes[t] && lcomm_is_server(m.comm); i++) {
        bool is_own = memcmp(&own[i], &initial[i], sizeof(float)) != 0;
        require(!is_own || memcmp(&own[i], &received[t][i], sizeof(float)) == 0,
                "'%s': weight %d of %s is %g there, and %g at its server", codecs[c], (int)i,
                names[t], (double)received[t][i], (double)own[i]);
      }
    }
    free_model(&m);
  }
}

/* -------------------------------------------------------------------- a quorum */

static int last_worker(void) {
  return mpi_size - 2;
}

/* The late worker comes when the others have made their steps. */
static void make_steps_apart(model *m) {
  int token = 0, workers = mpi_size - 2;
  if (lcomm_is_server(m->comm)) {
    require_fine(m, lcomm_server_run(m->comm, NULL, NULL));
    return;
  }
  for (int number = 0; number <= LATE_STEPS; number++) {
    for (int i = 0; i < workers - 1 && mpi_rank == last_worker() && number == 1; i++) {
      MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    step(m, number);
  }
  if (mpi_rank != last_worker()) {
    MPI_Send(&token, 1, MPI_INT, last_worker(), 1, MPI_COMM_WORLD);
  }
  require_fine(m, lcomm_server_end(m->comm));
}

static void nothing_is_lost_of_a_late_worker(void) {
  char quorum[64];
  snprintf(quorum, sizeof quorum, "quorum=%d late=0", mpi_size - 3);
  for (int c = 0; c < CODECS && mpi_size > 3; c++) {
    model m = model_of(codecs[c], 2, quorum, two_nodes(), LCOMM_SUM);
    make_steps_apart(&m);
    require_equal_replicas(&m, codecs[c]);
    require_conserved(&m, 1, codecs[c]);
    lcomm_lateness late = {0}, server = {0};
    require_fine(&m, lcomm_lateness_get(m.comm, last_worker(), &late));
    require_fine(&m, lcomm_lateness_get(m.comm, 0, &server));
    require(lcomm_is_server(m.comm) || late.late_sums >= LATE_STEPS, "%d late sums",
            (int)late.late_sums);
    require(server.late_sums == 0, "a server is late");
    free_model(&m);
  }
}

/* ------------------------------------------------------------------ around runs */

static void between_two_runs_all_ranks_call_and_tensors_change(void) {
  model m = model_of("net=int4 min=1 bucket=16K", 2, "", mpi_size, LCOMM_SUM);
  float one = 1, all = 0;
  run(&m, NULL, NULL, 0, 2);
  require_fine(&m, lcomm_allreduce(m.comm, &one, &all, 1, LCOMM_FLOAT32, LCOMM_SUM));
  require(fabsf(all - (float)mpi_size) < 0.5f, "a plain sum of ones is %g", (double)all);
  require_conserved(&m, 1, "the first run");
  run(&m, NULL, NULL, 2, 4);
  require_conserved(&m, 1, "the second run");
  require_fine(&m, lcomm_tensor_freeze(m.comm, m.tensors[0]));
  m.frozen[0] = true;
  memcpy(received[0], m.data[0], sizes[0] * sizeof(float));
  if (lcomm_is_server(m.comm)) {
    require_fine(&m, lcomm_server_run(m.comm, NULL, NULL));
  } else {
    require_fine(&m, step_model(&m));
    require_fine(&m, lcomm_server_end(m.comm));
  }
  require(memcmp(received[0], m.data[0], sizes[0] * sizeof(float)) == 0, "a frozen tensor moved");
  free_model(&m);
}

static void workers_that_forget_the_end_end_in_destroy(void) {
  model m = model_of("net=int8+ef min=1", 1, "", mpi_size, LCOMM_SUM);
  if (lcomm_is_server(m.comm)) {
    require_fine(&m, lcomm_server_run(m.comm, NULL, NULL));
  } else {
    step(&m, 0);
  }
  free_model(&m);
}

static void what_is_not_finite_is_told_once_and_remembered_nowhere(void) {
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], 2, "", mpi_size, LCOMM_SUM);
    spoilt = 0;
    run(&m, NULL, NULL, 0, 1);
    spoilt = -1;
    require(lcomm_is_server(m.comm) || lcomm_tensors_not_finite(m.comm) > 0, "'%s': not told",
            codecs[c]);
    run(&m, NULL, NULL, 1, 3);
    require(lcomm_tensors_not_finite(m.comm) == 0, "'%s': told again", codecs[c]);
    free_model(&m);
  }
}

/* By what each of two has received; what it has sent may be counted a moment later. */
static void servers_have_their_shares_of_the_bytes(void) {
  lcomm_stats stats;
  model m = model_of("net=int8+ef min=1 bucket=16K", 2, "", mpi_size, LCOMM_SUM);
  run(&m, NULL, NULL, 0, STEPS);
  require_fine(&m, lcomm_stats_reset(m.comm));
  MPI_Barrier(MPI_COMM_WORLD);
  run(&m, NULL, NULL, 0, STEPS);
  require_fine(&m, lcomm_stats_get(m.comm, &stats));
  double mine = (double)stats.received_bytes[LCOMM_LINK_NET];
  double ends[2] = {mpi_rank == 0 ? mine : 0, mpi_rank == mpi_size - 1 ? mine : 0};
  MPI_Allreduce(MPI_IN_PLACE, ends, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  require(fabs(ends[0] - ends[1]) < 0.03 * ends[0], "%g bytes, and %g", ends[0], ends[1]);
  free_model(&m);
}

static void what_a_rank_may_not_do_is_refused(void) {
  model m = model_of("net=none", 1, "", 1, LCOMM_SUM);
  if (lcomm_is_server(m.comm)) {
    require(lcomm_tensor_ready(m.comm, m.tensors[0]) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), "is a server"),
            "ready: %s", lcomm_last_error(m.comm));
    require(lcomm_tensors_wait(m.comm) == LCOMM_ERR_STATE, "wait");
    require(lcomm_server_end(m.comm) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), "no worker"),
            "end: %s", lcomm_last_error(m.comm));
  } else {
    require(lcomm_server_run(m.comm, NULL, NULL) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), "no server"),
            "run: %s", lcomm_last_error(m.comm));
    require_fine(&m, lcomm_server_end(m.comm));
  }
  if (lcomm_is_server(m.comm)) {
    require_fine(&m, lcomm_server_run(m.comm, NULL, NULL));
    require(lcomm_server_run(m.comm, make_weights, NULL) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), "no update function"),
            "another update: %s", lcomm_last_error(m.comm));
  } else {
    step(&m, 0);
    require_fine(&m, lcomm_tensor_freeze(m.comm, m.tensors[0]));
    require(lcomm_tensor_ready(m.comm, m.tensors[1]) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), "while servers serve"),
            "a change: %s", lcomm_last_error(m.comm));
    require_fine(&m, lcomm_tensor_unfreeze(m.comm, m.tensors[0]));
    require_fine(&m, lcomm_server_end(m.comm));
  }
  free_model(&m);
}

static void refuse_policy(const char *policy, const char *why) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  require(lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) == LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(NULL), why),
          "'%s': %s", policy, lcomm_last_error(NULL));
}

static void servers_that_cannot_be_are_refused(void) {
  char all[64] = "algo=servers servers=0", many[64];
  for (int rank = 1; rank < mpi_size; rank++) {
    snprintf(all + strlen(all), sizeof all - strlen(all), ",%d", rank);
  }
  snprintf(many, sizeof many, "algo=servers servers=0 quorum=%d", mpi_size);
  refuse_policy(all, "nobody is left");
  refuse_policy("algo=servers servers=99", "that is not there");
  refuse_policy(many, "that are no servers");
}

static const mpi_property properties[] = {
    PROPERTY(nothing_is_lost_and_replicas_are_equal),
    PROPERTY(averages_are_those_of_all_workers),
    PROPERTY(exact_sums_are_those_of_a_reference),
    PROPERTY(sgd_of_the_servers_is_that_of_a_reference),
    PROPERTY(workers_receive_the_bits_of_the_servers_weights),
    PROPERTY(nothing_is_lost_of_a_late_worker),
    PROPERTY(between_two_runs_all_ranks_call_and_tensors_change),
    PROPERTY(workers_that_forget_the_end_end_in_destroy),
    PROPERTY(what_is_not_finite_is_told_once_and_remembered_nowhere),
    PROPERTY(servers_have_their_shares_of_the_bytes),
    PROPERTY(what_a_rank_may_not_do_is_refused),
    PROPERTY(servers_that_cannot_be_are_refused),
};
RUN_PROPERTIES(mpi_property_main, properties)
