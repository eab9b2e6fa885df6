/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 5 8 */

/* Calls with a residual, with quorum=, beside other calls, and what becomes of residuals. */

#include "libcomm/engine/engine.h"
#include "libcomm/tensor/residual.h"
#include "tests/shards/quorum_calls.h"

/* ----------------------------------------------------------------- their life */

/* What residuals left behind goes when others are made, once all ranks have all results. */
static void await_nothing_left(set *s) {
  for (int i = 0; i < LAYERS; i++) {
    require_fine(s->comm, lcomm_residual_destroy(s->residuals[i]));
  }
  for (double left = 1; left > 0;) {
    lcomm_residual *scratch = NULL;
    float value = 0;
    require_fine(s->comm, lcomm_residual_create(s->comm, 1, s->op, &scratch));
    require_fine(s->comm, lcomm_allreduce_ef(scratch, &value, &value));
    require_fine(s->comm, lcomm_residual_destroy(scratch));
    left = s->comm->residuals->retired != NULL;
    sum_everywhere(&left, 1);
  }
}

/* A rank that destroys its residual leaves others behind, who still have their calls with it. */
static void a_residual_may_go_while_others_are_behind(void) {
  int token = 0;
  set *s = set_of("net=int8+ef min=1", all_but_one(), two_nodes(), LCOMM_SUM);
  make_first_calls(s);
  await_others(&token);
  for (int number = 0; number < 3; number++) {
    call_all(s, number, mpi_rank != LATE);
  }
  for (int i = 0; i < LAYERS; i++) {
    require_fine(s->comm, lcomm_residual_destroy(s->residuals[i]));
  }
  tell_late(token);
  uint64_t behind = 99;
  require_fine(s->comm, lcomm_behind(s->comm, &behind));
  require(behind == 0, "without residuals a rank is %d calls behind", (int)behind);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < LAYERS; i++) {
    require_fine(s->comm, lcomm_residual_create(s->comm, counts[i], s->op, &s->residuals[i]));
  }
  forget(s);
  make_first_calls(s);
  make_calls_apart(s);
  require_conserved(s, "made anew");
  require_equal_replicas(s, "made anew");
  await_nothing_left(s);
  free_set(s);
}

static void another_codec_takes_over_what_is_kept(void) {
  set *s = set_of("net=int4 min=1", "quorum=100%", two_nodes(), LCOMM_SUM);
  for (int number = 0; number < 3; number++) {
    call_all(s, number, true);
  }
  require_fine(s->comm, lcomm_policy_set(s->comm, "net=topk:0.05+ef min=1 quorum=100%"));
  for (int number = 3; number < 6; number++) {
    call_all(s, number, true);
  }
  require_conserved(s, "another policy");
  require_equal_replicas(s, "another policy");
  free_set(s);
}

static void what_waits_is_saved_and_loaded(void) {
  static float before[LARGEST], after[LARGEST];
  size_t size = 0;
  set *s = set_of("net=int4 min=1", "quorum=100%", two_nodes(), LCOMM_SUM);
  for (int number = 0; number < 3; number++) {
    call_all(s, number, true);
  }
  require_fine(s->comm, lcomm_state_size(s->comm, &size));
  void *bytes = malloc(size);
  require_fine(s->comm, lcomm_state_write(s->comm, bytes, size));
  set *other = set_of("net=int4 min=1", "quorum=100%", two_nodes(), LCOMM_SUM);
  require_fine(other->comm, lcomm_state_read(other->comm, bytes, size));
  for (int i = 0; i < LAYERS; i++) {
    require_fine(s->comm, lcomm_residual_get(s->residuals[i], before));
    require_fine(other->comm, lcomm_residual_get(other->residuals[i], after));
    require(memcmp(before, after, counts[i] * sizeof(float)) == 0, "residual %d is another one", i);
    memcpy(other->came[i], s->came[i], sizeof s->came[i]);
    memcpy(other->left[i], s->left[i], sizeof s->left[i]);
  }
  for (int number = 3; number < 6; number++) {
    call_all(other, number, true);
  }
  require_conserved(other, "a loaded state");
  free(bytes);
  free_set(s);
  free_set(other);
}

/* ------------------------------------------------------------------- beside others */

enum { ELEMENTS = 5000, TENSORS = 2, STEPS = 8, LATER = 3 };

typedef struct beside {
  set *calls;
  lcomm_tensor *tensors[TENSORS];
  float data[TENSORS][ELEMENTS];
  lcomm_request requests[LAYERS];
} beside;

static void add_tensor(beside *it, int t) {
  require_fine(it->calls->comm,
               lcomm_tensor_add(it->calls->comm, t ? "later" : "first", it->data[t], ELEMENTS,
                                LCOMM_FLOAT32, LCOMM_SUM, &it->tensors[t]));
}

static void step_tensors(beside *it, int step) {
  lcomm_comm *comm = it->calls->comm;
  int count = step < LATER ? 1 : TENSORS;
  for (int t = 0; t < count; t++) {
    for (int i = 0; i < ELEMENTS; i++) {
      it->data[t][i] = (float)(1 + t);
    }
    require_fine(comm, lcomm_tensor_ready(comm, it->tensors[t]));
  }
  require_fine(comm, lcomm_tensors_wait(comm));
  for (int t = 0; t < count; t++) {
    require(fabsf(it->data[t][77] - (float)((1 + t) * mpi_size)) < 1e-5f,
            "step %d: a sum of %d is %g", step, 1 + t, (double)it->data[t][77]);
  }
}

/* The first layer has its first call in a later step. */
static int first_layer(int step) {
  return step < LATER ? 1 : 0;
}

static void start_calls(beside *it, int step) {
  for (int i = first_layer(step); i < LAYERS; i++) {
    bring(it->calls, i, step, true);
    require_fine(it->calls->comm, start_call(it->calls, i, &it->requests[i]));
  }
}

static void end_calls(beside *it, int step) {
  lcomm_comm *comm = it->calls->comm;
  for (int k = 0; k < LAYERS; k++) {
    int i = (k + mpi_rank) % LAYERS;
    if (i >= first_layer(step)) {
      require_fine(comm, lcomm_wait(comm, &it->requests[i]));
      take(it->calls, i);
    }
  }
}

/* Residuals and tensors have vectors of their own, in whatever order they are made and summed. */
static void tensors_and_calls_go_beside_each_other(void) {
  static beside it;
  it.calls = set_of("net=int8+ef min=1", "quorum=100%", two_nodes(), LCOMM_SUM);
  lcomm_comm *comm = it.calls->comm;
  add_tensor(&it, 0);
  for (int step = 0; step < STEPS; step++) {
    float one = 1, sum = 0;
    bool begins_with_tensors = step == 0 || (mpi_rank + step) % 2 == 0;
    if (step == LATER) {
      add_tensor(&it, 1);
    }
    if (begins_with_tensors) {
      step_tensors(&it, step);
    }
    start_calls(&it, step);
    if (!begins_with_tensors) {
      step_tensors(&it, step);
    }
    end_calls(&it, step);
    require_fine(comm, lcomm_allreduce(comm, &one, &sum, 1, LCOMM_FLOAT32, LCOMM_SUM));
    require(fabsf(sum - (float)mpi_size) < 1e-6f, "a sum of ones is %g", (double)sum);
  }
  require_conserved(it.calls, "beside tensors");
  require_equal_replicas(it.calls, "beside tensors");
  free_set(it.calls);
}

/* They have nowhere to keep what was not used, or owners that would keep parts of other ranks. */
static void plain_calls_and_reduce_scatters_wait_for_all_ranks(void) {
  enum { EACH = 1000 };
  static float send[64 * EACH], result[EACH], plain[EACH];
  static uint64_t parts[64];
  lcomm_residual *residual;
  lcomm_comm *comm = make_comm("net=none quorum=1 late=0", two_nodes());
  for (int i = 0; i < mpi_size; i++) {
    parts[i] = EACH;
  }
  require_fine(comm, lcomm_residual_create_scatter(comm, NULL, parts, LCOMM_SUM, &residual));
  for (int step = 0; step < 5; step++) {
    for (int i = 0; i < mpi_size * EACH; i++) {
      send[i] = (float)(mpi_rank + step);
    }
    float wanted = (float)(mpi_size * (mpi_size - 1) / 2 + mpi_size * step);
    require_fine(comm, lcomm_reduce_scatter_ef(residual, send, result));
    require_fine(comm, lcomm_allreduce(comm, send, plain, EACH, LCOMM_FLOAT32, LCOMM_SUM));
    require(fabsf(result[EACH - 1] - wanted) < 1e-3f && fabsf(plain[0] - wanted) < 1e-3f,
            "sums of all ranks: %g and %g, not %g", (double)result[EACH - 1], (double)plain[0],
            (double)wanted);
  }
  require_fine(NULL, lcomm_destroy(comm));
}

/* Nothing that one rank alone could know: a call of no element sums nothing. */
static void calls_of_no_element_do_nothing(void) {
  lcomm_residual *residual;
  float nothing = 7;
  lcomm_comm *comm = make_comm("net=int8+ef min=1 quorum=100%", two_nodes());
  require_fine(comm, lcomm_residual_create(comm, 0, LCOMM_SUM, &residual));
  for (int i = 0; i < 3; i++) {
    require_fine(comm, lcomm_allreduce_ef(residual, &nothing, &nothing));
  }
  require_fine(NULL, lcomm_destroy(comm));
}

static void one_call_at_a_time_is_in_flight_with_a_residual(void) {
  lcomm_request request;
  set *s = set_of("net=int8+ef min=1", "quorum=100%", two_nodes(), LCOMM_SUM);
  make_first_calls(s);
  require_fine(s->comm, start_call(s, 0, &request));
  require(start_call(s, 0, &(lcomm_request){0}) == LCOMM_ERR_STATE &&
              strstr(lcomm_last_error(s->comm), "in flight"),
          "a second call: %s", lcomm_last_error(s->comm));
  require(lcomm_residual_destroy(s->residuals[0]) == LCOMM_ERR_STATE, "destroyed in flight");
  require(lcomm_policy_set(s->comm, "net=int4 quorum=100%") == LCOMM_ERR_STATE, "set in flight");
  require_fine(s->comm, lcomm_wait(s->comm, &request));
  require_fine(s->comm, lcomm_wait(s->comm, &request)); /* it remembers */
  free_set(s);
}

static const mpi_property properties[] = {
    PROPERTY(a_residual_may_go_while_others_are_behind),
    PROPERTY(another_codec_takes_over_what_is_kept),
    PROPERTY(what_waits_is_saved_and_loaded),
    PROPERTY(tensors_and_calls_go_beside_each_other),
    PROPERTY(plain_calls_and_reduce_scatters_wait_for_all_ranks),
    PROPERTY(calls_of_no_element_do_nothing),
    PROPERTY(one_call_at_a_time_is_in_flight_with_a_residual),
};
RUN_PROPERTIES(mpi_property_main, properties)
