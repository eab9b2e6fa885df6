/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 3 4 8 */

/* Workers that sync before their first step: servers take part, as they do after it. */

#include "libcomm/shards/shards.h"
#include "tests/shards/served_model.h"

static const char *const rules[] = {"", "stale=2 late=0", "quorum=1"};
enum { RULES = sizeof(rules) / sizeof(rules[0]), STEPS = 3 };

/* Without a result before the first step. */
static void sync_before_a_step(const model *m) {
  int there = 1;
  require_fine(m, lcomm_tensors_sync(m->comm, &there));
  require(!there, "a result was handed out before the first step");
}

static void draw_all(const model *m, lcomm_status (*hand_out)(lcomm_comm *comm, int *there)) {
  for (int there = 1; there;) {
    there = 0;
    require_fine(m, hand_out(m->comm, &there));
  }
}

static void make_steps(model *m) {
  for (int number = 0; number < STEPS; number++) {
    for (int t = 0; t < TENSORS; t++) {
      fill_gradient(m->data[t], sizes[t], seed_of(t, number));
    }
    require_fine(m, step_model(m));
    draw_all(m, lcomm_tensors_next);
  }
  draw_all(m, lcomm_tensors_sync);
}

/* All ranks are at the same place between two runs. */
static void require_collective(model *m) {
  float one = 1, all = 0;
  require_fine(m, lcomm_allreduce(m->comm, &one, &all, 1, LCOMM_FLOAT32, LCOMM_SUM));
  require(all >= (float)mpi_size && all <= (float)mpi_size, "%g of %d ranks", (double)all,
          mpi_size);
}

static void run(model *m, bool has_steps) {
  if (lcomm_is_server(m->comm)) {
    require_fine(m, lcomm_server_run(m->comm, NULL, NULL));
    return;
  }
  sync_before_a_step(m);
  sync_before_a_step(m);
  if (has_steps) {
    make_steps(m);
  }
  require_fine(m, lcomm_server_end(m->comm));
}

static void servers_take_part_before_the_first_step_of_each_run(void) {
  for (int r = 0; r < RULES; r++) {
    model m = model_of("net=int8+ef min=1", 1 + (mpi_size > 3), rules[r], mpi_size, LCOMM_SUM);
    for (int runs = 0; runs < 2; runs++) {
      run(&m, true);
      require_collective(&m);
    }
    free_model(&m);
  }
}

static void a_run_may_have_no_step(void) {
  for (int r = 0; r < RULES; r++) {
    model m = model_of("net=none", 1, rules[r], mpi_size, LCOMM_SUM);
    run(&m, false);
    require_collective(&m);
    run(&m, true);
    run(&m, false);
    require_collective(&m);
    free_model(&m);
  }
}

static void a_worker_that_differs_there_is_named_on_all_ranks(void) {
  model m = model_of("net=none", 1, "stale=2 late=0", 1, LCOMM_SUM);
  lcomm_status status = LCOMM_OK;
  int there = 0;
  if (lcomm_is_server(m.comm)) {
    status = lcomm_server_run(m.comm, NULL, NULL);
  } else {
    lcomm_shards_stale(m.comm->deferred.shards)->hash ^= mpi_rank == 2;
    status = lcomm_tensors_sync(m.comm, &there);
  }
  const char *why = lcomm_last_error(m.comm);
  require(status == LCOMM_ERR_MISMATCH && strstr(why, "rank 2 was handed out other results"),
          "%s: %s", lcomm_status_name(status), why);
  (void)lcomm_destroy(m.comm);
  m.comm = NULL;
  free_model(&m);
}

/* It goes on after the refusal. */
static void a_server_that_syncs_itself_is_refused(void) {
  model m = model_of("net=none", 1, "stale=1 late=0", mpi_size, LCOMM_SUM);
  int there = 0;
  if (lcomm_is_server(m.comm)) {
    require(lcomm_tensors_sync(m.comm, &there) == LCOMM_ERR_STATE &&
                strstr(lcomm_last_error(m.comm), "call lcomm_server_run"),
            "%s", lcomm_last_error(m.comm));
  }
  run(&m, true);
  free_model(&m);
}

static void without_tensors_there_is_nothing_to_serve(void) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  int there = 0;
  config.policy = "algo=servers servers=1";
  require(lcomm_create_mpi(MPI_COMM_WORLD, &config, &comm) == LCOMM_OK, "%s",
          lcomm_last_error(NULL));
  lcomm_status status =
      lcomm_is_server(comm) ? lcomm_server_run(comm, NULL, NULL) : lcomm_tensors_sync(comm, &there);
  require(status == LCOMM_ERR_STATE && strstr(lcomm_last_error(comm), "there are no tensors"),
          "%s: %s", lcomm_status_name(status), lcomm_last_error(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "it ends");
}

static const mpi_property properties[] = {
    PROPERTY(servers_take_part_before_the_first_step_of_each_run),
    PROPERTY(a_run_may_have_no_step),
    PROPERTY(a_worker_that_differs_there_is_named_on_all_ranks),
    PROPERTY(a_server_that_syncs_itself_is_refused),
    PROPERTY(without_tensors_there_is_nothing_to_serve),
};
RUN_PROPERTIES(mpi_property_main, properties)
