/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* What undo= costs: a second array for each residual and momentum, where it is asked for and
 * nowhere else. Going back exchanges the two, and copies nothing. */

#include "libcomm/tensor/residual.h"
#include "tests/support/require_fine.h"

enum { COUNT = 6000, STEPS = 4 };

typedef struct layer {
  lcomm_comm *comm;
  lcomm_residual *residual;
  float sent[COUNT], received[COUNT];
} layer;

static void begin_layer(layer *l, const char *policy) {
  l->comm = make_comm(policy, two_nodes());
  require_fine(l->comm,
               lcomm_residual_create_named(l->comm, "layer", COUNT, LCOMM_AVG, &l->residual));
}

static void call_layer(layer *l, int step) {
  fill_gradient(l->sent, COUNT, (uint64_t)(1 + 10 * step + 1000 * mpi_rank));
  require_fine(l->comm, lcomm_allreduce_ef(l->residual, l->sent, l->received));
}

static void end_layer(const layer *l) {
  require_fine(NULL, lcomm_destroy(l->comm));
}

/* Arrays that this rank keeps, and those that have a second one. */
typedef struct arrays {
  int kept, second;
} arrays;

static void count_array(lcomm_ef_array array, arrays *found) {
  found->kept += array.now != NULL;
  found->second += array.before != NULL;
}

static arrays count_arrays(const layer *l) {
  const lcomm_ef_state *state = &l->residual->ef.state;
  arrays found = {0, 0};
  count_array(state->velocity, &found);
  if (state->feedback) {
    count_array(state->feedback->residual, &found);
    count_array(state->feedback->momentum, &found);
  }
  return found;
}

static void memory_doubles_only_where_it_is_asked_for(void) {
  static const struct {
    const char *policy;
    bool doubles;
  } cases[] = {
      {"net=topk:0.02+ef min=4K", false},
      {"net=topk:0.02+ef min=4K momentum=0.9 warmup=1", false},
      {"net=int4 min=4K nonfinite=report", false},
      {"net=topk:0.02+ef min=4K undo=on", true},
      {"net=topk:0.02+ef min=4K momentum=0.9 warmup=1 undo=on", true},
      {"net=topk:0.02+ef min=4K momentum=0.9 nonfinite=discard", true},
  };
  static layer l;
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    begin_layer(&l, cases[i].policy);
    for (int step = 0; step < STEPS; step++) {
      call_layer(&l, step);
      arrays found = count_arrays(&l);
      require(found.second == (cases[i].doubles ? found.kept : 0),
              "'%s', step %d: %d of %d arrays have a second one", cases[i].policy, step,
              found.second, found.kept);
    }
    require(mpi_size < 2 || count_arrays(&l).kept > 0, "'%s' keeps nothing", cases[i].policy);
    end_layer(&l);
  }
}

static void another_policy_gives_the_second_arrays_back(void) {
  static layer l;
  begin_layer(&l, "net=topk:0.02+ef min=4K momentum=0.9 undo=on");
  call_layer(&l, 0);
  arrays before = count_arrays(&l);
  require_fine(l.comm, lcomm_policy_set(l.comm, "net=topk:0.02+ef min=4K momentum=0.9"));
  call_layer(&l, 1);
  arrays without = count_arrays(&l);
  require_fine(l.comm, lcomm_policy_set(l.comm, "net=topk:0.02+ef min=4K momentum=0.9 undo=on"));
  call_layer(&l, 2);
  arrays again = count_arrays(&l);
  require(before.second == before.kept && without.kept == before.kept && without.second == 0 &&
              again.second == again.kept,
          "%d of %d arrays had a second one, then %d, then %d", before.second, before.kept,
          without.second, again.second);
  end_layer(&l);
}

static bool is(lcomm_ef_array array, lcomm_ef_array other) {
  return array.now == other.now && array.before == other.before;
}

/* The roles change when a call begins, and back when it is undone. */
static void going_back_exchanges_two_arrays(void) {
  static layer l;
  begin_layer(&l, "net=topk:0.02+ef min=4K momentum=0.9 undo=on");
  call_layer(&l, 0);
  for (int step = 1; step < STEPS && l.residual->ef.state.feedback; step++) {
    lcomm_feedback_state found = *l.residual->ef.state.feedback;
    lcomm_ef_array turned = {found.residual.before, found.residual.now};
    call_layer(&l, step);
    require(is(l.residual->ef.state.feedback->residual, turned), "the roles did not change");
    require_fine(l.comm, lcomm_residual_discard(l.residual));
    require(is(l.residual->ef.state.feedback->residual, found.residual) &&
                is(l.residual->ef.state.feedback->momentum, found.momentum),
            "the way back is no exchange");
  }
  end_layer(&l);
}

static const mpi_property properties[] = {
    PROPERTY(memory_doubles_only_where_it_is_asked_for),
    PROPERTY(another_policy_gives_the_second_arrays_back),
    PROPERTY(going_back_exchanges_two_arrays),
};
RUN_PROPERTIES(mpi_property_main, properties)
