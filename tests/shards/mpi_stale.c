/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 4 8 */

/* Steps that go on without the newest results. The rank that is late here waits until the others
 * have come as far as they can without it, and not for a time, so that it is late on any machine.
 */

#include "libcomm/shards/shards.h"
#include "tests/shards/accounts.h"

enum { STALE = 2, AHEAD = 6, TOGETHER = 4, LATE = 1 };

static const char *const codecs[] = {"net=none", "net=int8+ef min=1", "net=topk:0.05+ef min=1",
                                     "net=int4 min=1 bucket=16K"};
enum { CODECS = sizeof(codecs) / sizeof(codecs[0]) };

/* Weights follow from results and their order. */
static float velocities[TENSORS][LARGEST];
static int taken;

static model model_of(const char *codec, const char *stale, int nodes) {
  model m;
  char policy[128];
  snprintf(policy, sizeof policy, "%s %s", codec, stale);
  make_model(&m, policy, nodes, LCOMM_SUM);
  forget_accounts();
  memset(velocities, 0, sizeof velocities);
  taken = 0;
  return m;
}

/* SGD with momentum, for which it matters which result comes when. */
static void apply(const model *m) {
  for (int t = 0; t < TENSORS; t++) {
    for (uint64_t i = 0; i < sizes[t]; i++) {
      left[t][i] += (double)m->data[t][i];
      velocities[t][i] = 0.5f * velocities[t][i] + m->data[t][i];
      weights[t][i] -= velocities[t][i];
    }
  }
  taken++;
}

static void apply_all(const model *m, lcomm_status (*hand_out)(lcomm_comm *comm, int *there)) {
  int there = 1;
  while (there) {
    there = 0;
    require_fine(m, hand_out(m->comm, &there));
    if (there) {
      apply(m);
    }
  }
}

static lcomm_staleness staleness_of(const model *m) {
  lcomm_staleness known;
  require_fine(m, lcomm_staleness_get(m->comm, &known));
  return known;
}

/* Gradients, or zeros, up to where the step is waited for. What counts is scaled by the age. */
static void contribute(model *m, int number, bool brings) {
  double age = (double)staleness_of(m).under_way;
  for (int t = 0; t < TENSORS; t++) {
    memset(m->data[t], 0, sizes[t] * sizeof(float));
    if (brings) {
      fill_gradient(m->data[t], sizes[t], seed_of(t, number));
    }
    for (uint64_t i = 0; i < sizes[t]; i++) {
      came[t][i] += (double)m->data[t][i] / (1 + age);
    }
  }
  for (int t = 0; t < TENSORS; t++) {
    require_fine(m, lcomm_tensor_ready(m->comm, m->tensors[t]));
  }
}

static void step(model *m, int number, bool brings) {
  contribute(m, number, brings);
  require_fine(m, lcomm_tensors_wait(m->comm));
  apply_all(m, lcomm_tensors_next);
}

/* In the first step all ranks compare their tensors, so nobody goes on without the others. */
static void make_first_step(model *m) {
  step(m, 0, false);
  apply_all(m, lcomm_tensors_sync);
  require(taken == 1, "%d results of one step", taken);
}

static void tell_late_one(void) {
  int token = 0;
  if (mpi_rank != LATE) {
    MPI_Send(&token, 1, MPI_INT, LATE, 1, MPI_COMM_WORLD);
    return;
  }
  for (int i = 0; i < mpi_size - 1; i++) {
    MPI_Recv(&token, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
}

/* The others are as far ahead as they may be before the late one begins. */
static void make_steps_apart(model *m) {
  if (mpi_rank == LATE) {
    tell_late_one();
  }
  for (int number = 0; number < AHEAD; number++) {
    contribute(m, number, true);
    if (number == STALE && mpi_rank != LATE) {
      lcomm_staleness known = staleness_of(m);
      require(known.under_way == STALE && taken == 1, "%d results are under way, and %d here",
              (int)known.under_way, taken);
      tell_late_one();
    }
    require_fine(m, lcomm_tensors_wait(m->comm));
    apply_all(m, lcomm_tensors_next);
  }
}

static void replicas_are_equal_after_sync_and_nothing_is_lost(void) {
  for (int c = 0; c < CODECS; c++) {
    for (int nodes = 1; nodes <= mpi_size; nodes *= mpi_size / 2) {
      model m = model_of(codecs[c], "stale=2 late=0", nodes);
      make_first_step(&m);
      make_steps_apart(&m);
      for (int number = 0; number < TOGETHER; number++) {
        step(&m, AHEAD + number, true);
      }
      apply_all(&m, lcomm_tensors_sync);
      require(taken == 1 + AHEAD + TOGETHER, "%d results", taken);
      require_conserved(&m, codecs[c]);
      require_equal_replicas(codecs[c]);
      free_model(&m);
    }
  }
}

static void no_gradient_is_older_than_the_bound(void) {
  model m = model_of("net=none", "stale=2 late=0", two_nodes());
  make_first_step(&m);
  make_steps_apart(&m);
  apply_all(&m, lcomm_tensors_sync);
  lcomm_staleness known = staleness_of(&m);
  require(known.steps == 1 + AHEAD && known.under_way == 0, "%d steps, %d under way",
          (int)known.steps, (int)known.under_way);
  require(known.age_most <= STALE && (mpi_rank == LATE || known.age_most == STALE),
          "the oldest gradient was of age %d", (int)known.age_most);
  require(known.age_mean <= STALE && known.age <= STALE, "ages up to %g", known.age_mean);
  free_model(&m);
}

/* What is dropped comes later. */
static void nobody_waits_for_who_is_farther_behind_and_nothing_of_it_is_lost(void) {
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], "stale=2:drop late=0", two_nodes());
    uint64_t behind = 99;
    int there = 0, number = 0;
    make_first_step(&m);
    if (mpi_rank == LATE) {
      tell_late_one();
      contribute(&m, number++, true);
      require_fine(&m, lcomm_tensors_wait(m.comm));
      require_fine(&m, lcomm_tensors_sync(m.comm, &there));
      require(there, "there is no result for a rank that is late");
      apply(&m);
      apply_all(&m, lcomm_tensors_next);
      require_fine(&m, lcomm_behind(m.comm, &behind));
      require(behind == AHEAD - STALE - 1, "%d steps behind", (int)behind);
    }
    for (; number < AHEAD; number++) {
      step(&m, number, mpi_rank != LATE || number >= AHEAD - STALE);
    }
    if (mpi_rank != LATE) {
      tell_late_one();
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (; number < AHEAD + TOGETHER; number++) {
      step(&m, number, true);
    }
    apply_all(&m, lcomm_tensors_sync);
    lcomm_lateness late;
    require_fine(&m, lcomm_lateness_get(m.comm, LATE, &late));
    require(late.late_sums > 0, "nothing was dropped");
    require_conserved(&m, codecs[c]);
    require_equal_replicas(codecs[c]);
    free_model(&m);
  }
}

/* A step that waits for its result as long as it takes is that of all policies. */
static void where_each_step_waits_for_its_result_the_bits_are_those_of_a_quorum_of_all(void) {
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], "stale=2 late=3600000", two_nodes()), twin;
    twin = model_of(codecs[c], "quorum=100%", two_nodes());
    for (int number = 0; number < 2 + STALE; number++) {
      int there = 0;
      fill_model(&m, number);
      fill_model(&twin, number);
      require_fine(&m, step_model(&m));
      require_fine(&twin, step_model(&twin));
      require_fine(&m, lcomm_tensors_next(m.comm, &there));
      require(there, "a result is not there");
      for (int t = 0; t < TENSORS && codecs[c][4] == 'n'; t++) {
        require(memcmp(m.data[t], twin.data[t], sizes[t] * sizeof(float)) == 0,
                "step %d: tensor %d differs", number, t);
      }
      require_fine(&m, lcomm_tensors_next(m.comm, &there));
      require(!there, "two results of one step");
    }
    require(staleness_of(&m).age_most == 0, "a gradient was old");
    free_model(&m);
    free_model(&twin);
  }
}

static void without_staleness_there_is_one_result_after_each_step(void) {
  model m = model_of("net=none", "", 1);
  int there = 99;
  fill_model(&m, 0);
  require_fine(&m, step_model(&m));
  require_fine(&m, lcomm_tensors_next(m.comm, &there));
  require(there == 1, "no result");
  require_fine(&m, lcomm_tensors_next(m.comm, &there));
  require(there == 0, "a second result");
  require_fine(&m, lcomm_tensors_sync(m.comm, &there));
  require(there == 0 && staleness_of(&m).steps == 0, "a result of no step");
  free_model(&m);
}

static void require_refused(const model *m, lcomm_status status, const char *word) {
  require(status == LCOMM_ERR_STATE && strstr(lcomm_last_error(m->comm), word), "%s: %s, %s", word,
          lcomm_status_name(status), lcomm_last_error(m->comm));
}

/* While the late one has not come, a result is under way on the others. */
static void what_needs_all_results_is_refused_before_they_are_handed_out(void) {
  static float residual[LARGEST];
  model m = model_of("net=none", "stale=2 late=0", 1);
  int done = 0;
  make_first_step(&m);
  if (mpi_rank == LATE) {
    tell_late_one();
  }
  contribute(&m, 1, true);
  require_refused(&m, lcomm_tensor_test(m.comm, m.tensors[0], &done), "stale=");
  require_refused(&m, lcomm_tensor_wait(m.comm, m.tensors[0]), "stale=");
  require_refused(&m, lcomm_tensors_next(m.comm, &done), "a step is in flight");
  require_fine(&m, lcomm_tensors_wait(m.comm));
  require_refused(&m, lcomm_tensor_ready(m.comm, m.tensors[0]), "call lcomm_tensors_next");
  require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[3], NULL));
  require_refused(&m, lcomm_tensors_sync(m.comm, &done), "tensor head has no buffer");
  require_fine(&m, lcomm_tensor_data_set(m.comm, m.tensors[3], m.data[3]));
  if (mpi_rank != LATE) {
    require_refused(&m, lcomm_tensor_residual(m.comm, m.tensors[0], residual), "in flight");
    require_refused(&m, lcomm_tensor_freeze(m.comm, m.tensors[0]), "in flight");
    tell_late_one();
  }
  apply_all(&m, lcomm_tensors_sync);
  require_fine(&m, lcomm_tensor_residual(m.comm, m.tensors[0], residual));
  free_model(&m);
}

static void ranks_whose_results_differ_all_end_with_a_sentence(void) {
  model m = model_of("net=none", "stale=1", 1);
  int there = 0;
  make_first_step(&m);
  if (mpi_rank == LATE) {
    lcomm_shards_stale(m.comm->deferred.shards)->hash ^= 1;
  }
  require(lcomm_tensors_sync(m.comm, &there) == LCOMM_ERR_MISMATCH &&
              strstr(lcomm_last_error(m.comm), "rank 1 was handed out other results than rank 0"),
          "%s", lcomm_last_error(m.comm));
  (void)lcomm_destroy(m.comm);
  m.comm = NULL;
  free_model(&m);
}

static void a_communicator_may_be_destroyed_with_results_under_way(void) {
  model m = model_of("net=int8+ef min=1", "stale=3 late=0", two_nodes());
  make_first_step(&m);
  for (int number = 0; number < 3; number++) {
    step(&m, number, true);
  }
  free_model(&m);
}

static void what_is_not_finite_is_told_with_its_result_and_remembered_nowhere(void) {
  static double residual[LARGEST];
  for (int c = 0; c < CODECS; c++) {
    model m = model_of(codecs[c], "stale=2 late=0", two_nodes());
    uint64_t told = 0;
    int there = 1;
    make_first_step(&m);
    for (int number = 0; number < 3; number++) {
      fill_model(&m, number);
      m.data[0][0] = mpi_rank == LATE ? NAN : 1;
      require_fine(&m, step_model(&m));
      for (there = 1; there;) {
        there = 0;
        require_fine(&m, lcomm_tensors_next(m.comm, &there));
        told += there ? lcomm_tensors_not_finite(m.comm) : 0;
      }
    }
    for (there = 1; there;) {
      there = 0;
      require_fine(&m, lcomm_tensors_sync(m.comm, &there));
      told += there ? lcomm_tensors_not_finite(m.comm) : 0;
    }
    require(told >= 3, "'%s': NaN is told %d times", codecs[c], (int)told);
    sum_residuals(&m, 0, residual);
    for (uint64_t i = 0; i < sizes[0]; i++) {
      require(isfinite(residual[i]), "'%s': element %d is not finite", codecs[c], (int)i);
    }
    free_model(&m);
  }
}

static const mpi_property properties[] = {
    PROPERTY(replicas_are_equal_after_sync_and_nothing_is_lost),
    PROPERTY(no_gradient_is_older_than_the_bound),
    PROPERTY(nobody_waits_for_who_is_farther_behind_and_nothing_of_it_is_lost),
    PROPERTY(where_each_step_waits_for_its_result_the_bits_are_those_of_a_quorum_of_all),
    PROPERTY(without_staleness_there_is_one_result_after_each_step),
    PROPERTY(what_needs_all_results_is_refused_before_they_are_handed_out),
    PROPERTY(ranks_whose_results_differ_all_end_with_a_sentence),
    PROPERTY(a_communicator_may_be_destroyed_with_results_under_way),
    PROPERTY(what_is_not_finite_is_told_with_its_result_and_remembered_nowhere),
};
RUN_PROPERTIES(mpi_property_main, properties)
