/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* A step that is discarded never was: two runs, of which one makes a bad step now and then (all
 * gradients 1000 times too large, one of them Inf) and discards it, stay equal to the bit in
 * results, residuals, momentum, step counters and seeds. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/require_fine.h"

enum { TENSORS = 3, STEPS = 6, LARGEST = 6000, CALLS = 3000 };

static const uint64_t sizes[TENSORS] = {LARGEST, 500, 3000};

/* ----------------------------------------------------------------- a run */

typedef struct run {
  lcomm_comm *comm;
  lcomm_tensor *tensors[TENSORS];
  lcomm_residual *layer, *scatter;
  float data[TENSORS][LARGEST], sent[CALLS], received[CALLS];
} run;

static void begin_run(run *r, const char *policy, int nodes) {
  static const char *const names[TENSORS] = {"first", "small", "last"};
  uint64_t parts[8] = {0};
  r->comm = make_comm(policy, nodes);
  for (int i = 0; i < TENSORS; i++) {
    require_fine(r->comm, lcomm_tensor_add(r->comm, names[i], r->data[i], sizes[i], LCOMM_FLOAT32,
                                           LCOMM_AVG, &r->tensors[i]));
  }
  for (int i = 0; i < mpi_size; i++) {
    parts[i] = (uint64_t)(CALLS / mpi_size);
  }
  require_fine(r->comm, lcomm_residual_create_named(r->comm, "layer", CALLS, LCOMM_AVG, &r->layer));
  require_fine(r->comm,
               lcomm_residual_create_scatter(r->comm, "scatter", parts, LCOMM_SUM, &r->scatter));
}

static void end_run(run *r) {
  require_fine(NULL, lcomm_destroy(r->comm));
}

static void fill(float *values, uint64_t count, int step, int which) {
  fill_gradient(values, count, (uint64_t)(1 + which + 10 * step + 1000 * mpi_rank));
}

static void spoil(float *values, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    values[i] *= 1000;
  }
  if (mpi_rank == mpi_size - 1) {
    values[count / 3] = INFINITY;
  }
}

static void make_step(run *r, int step, bool bad) {
  for (int i = 0; i < TENSORS; i++) {
    fill(r->data[i], sizes[i], step, i);
    if (bad) {
      spoil(r->data[i], sizes[i]);
    }
    require_fine(r->comm, lcomm_tensor_ready(r->comm, r->tensors[i]));
  }
  require_fine(r->comm, lcomm_tensors_wait(r->comm));
}

typedef enum kind { ALLREDUCE, SCATTER, FLUSH, SCATTER_FLUSH } kind;

static void make_call(run *r, kind which, int step, bool bad) {
  static lcomm_status (*const calls[])(lcomm_residual *, const void *, void *) = {
      lcomm_allreduce_ef, lcomm_reduce_scatter_ef, lcomm_allreduce_flush,
      lcomm_reduce_scatter_flush};
  bool scatters = which == SCATTER || which == SCATTER_FLUSH;
  fill(r->sent, CALLS, step, 7 + scatters);
  if (bad) {
    spoil(r->sent, CALLS);
  }
  memset(r->received, 0, sizeof(r->received));
  require_fine(r->comm, calls[which](scatters ? r->scatter : r->layer, r->sent, r->received));
}

/* All that lives on from step to step, with the step counter and the seed. */
static void require_same_state(run *a, run *b, const char *policy, int step) {
  size_t sizes_there[2] = {0};
  lcomm_comm *comms[2] = {a->comm, b->comm};
  uint8_t *bytes[2];
  for (int i = 0; i < 2; i++) {
    require_fine(comms[i], lcomm_state_size(comms[i], &sizes_there[i]));
    bytes[i] = malloc(sizes_there[i]);
    require_fine(comms[i], lcomm_state_write(comms[i], bytes[i], sizes_there[i]));
  }
  require(sizes_there[0] == sizes_there[1] && memcmp(bytes[0], bytes[1], sizes_there[0]) == 0,
          "'%s', step %d: the state is another one", policy, step);
  free(bytes[0]);
  free(bytes[1]);
}

static void require_same_results(const run *a, const run *b, const char *policy, int step) {
  require(memcmp(a->data, b->data, sizeof(a->data)) == 0, "'%s', step %d: other results", policy,
          step);
  require(memcmp(a->received, b->received, sizeof(a->received)) == 0,
          "'%s', step %d: other results of calls", policy, step);
}

/* ----------------------------------------------------------------- two runs */

/* Both make the same good steps and calls, and the second one bad ones between them. */
static run straight, undone;

static void begin_both(const char *policy, int nodes) {
  begin_run(&straight, policy, nodes);
  begin_run(&undone, policy, nodes);
}

static void end_both(void) {
  end_run(&straight);
  end_run(&undone);
}

static void step_both(int step) {
  make_step(&straight, step, false);
  make_step(&undone, step, false);
}

static void call_both(kind which, int step) {
  make_call(&straight, which, step, false);
  make_call(&undone, which, step, false);
}

static void require_one_run(const char *policy, int step) {
  require_same_results(&straight, &undone, policy, step);
  require_same_state(&straight, &undone, policy, step);
}

static uint64_t discarded_by(const run *r) {
  lcomm_stats stats;
  require_fine(r->comm, lcomm_stats_get(r->comm, &stats));
  return stats.discarded;
}

/* ------------------------------------------------------------ properties */

static const char *const policies[] = {
    "net=topk:0.02+ef min=4K undo=on",
    "net=topk:0.02+ef min=4K undo=on momentum=0.9 algo=gather",
    "net=topk:0.02,values=int8+ef+zstd min=4K undo=on momentum=0.9 bucket=4K",
    "net=topk:0.02+ef min=4K undo=on momentum=0.9 clip=0.5 warmup=2 ramp=0.2@1",
    "net=int4 min=4K undo=on",
    "net=int8+ef min=4K undo=on warmup=1",
    "net=sign min=4K undo=on adam=onebit,refresh=1 warmup=2",
    "net=fp16+ef min=4K undo=on clip=1:global",
    "net=fp8e4m3:stochastic+ef min=4K undo=on",
};
enum { POLICIES = sizeof(policies) / sizeof(policies[0]) };

/* `bad`: before which step the bad one is made. */
static void compare_steps(const char *policy, int nodes, int bad) {
  begin_both(policy, nodes);
  for (int step = 0; step < STEPS; step++) {
    if (step == bad) {
      make_step(&undone, 100 + step, true);
      require(lcomm_tensors_not_finite(undone.comm) > 0, "'%s': Inf was not seen", policy);
      require_fine(undone.comm, lcomm_tensors_discard(undone.comm));
      require_same_state(&straight, &undone, policy, step);
    }
    step_both(step);
    require_one_run(policy, step);
  }
  end_both();
}

static void a_step_that_is_discarded_never_was(void) {
  for (int p = 0; p < POLICIES; p++) {
    for (int bad = 0; bad < 4; bad++) {
      compare_steps(policies[p], bad % 2 == 0 ? two_nodes() : mpi_size, bad);
    }
  }
}

/* Undo changes what can be done, not what is. */
static void results_are_those_without_undo(void) {
  for (int p = 0; p < POLICIES; p++) {
    char plain[128];
    const char *word = strstr(policies[p], " undo=on");
    snprintf(plain, sizeof(plain), "%.*s%s", (int)(word - policies[p]), policies[p],
             word + strlen(" undo=on"));
    begin_run(&undone, policies[p], two_nodes());
    begin_run(&straight, plain, two_nodes());
    for (int step = 0; step < STEPS; step++) {
      step_both(step);
      call_both(step % 4, step);
      require_same_results(&straight, &undone, policies[p], step);
    }
    end_both();
  }
}

static void a_call_that_is_discarded_never_was(void) {
  for (int p = 0; p < POLICIES; p++) {
    begin_both(policies[p], two_nodes());
    for (int step = 0; step < 2 * STEPS; step++) {
      kind bad = (kind)(step % 4), good = (kind)(step / 4 % 2);
      bool scatters = bad == SCATTER || bad == SCATTER_FLUSH;
      make_call(&undone, bad, 100 + step, true);
      require_fine(undone.comm, lcomm_residual_discard(scatters ? undone.scatter : undone.layer));
      require_same_state(&straight, &undone, policies[p], step);
      call_both(good, step);
      require_one_run(policies[p], step);
    }
    end_both();
  }
}

/* The results of both are counted; only the bad ones are undone. */
static void the_library_discards_what_is_not_finite(void) {
  static const char policy[] = "net=topk:0.02+ef min=4K momentum=0.9 nonfinite=discard warmup=1";
  begin_both(policy, two_nodes());
  for (int step = 0; step < STEPS; step++) {
    make_step(&undone, 100 + step, true);
    require(lcomm_tensors_not_finite(undone.comm) > 0, "Inf was not seen");
    make_call(&undone, ALLREDUCE, 100 + step, true);
    require_fine(undone.comm, lcomm_tensors_discard(undone.comm)); /* which has happened */
    require_fine(undone.comm, lcomm_residual_discard(undone.layer));
    step_both(step);
    call_both(ALLREDUCE, step);
    require_one_run(policy, step);
  }
  require(discarded_by(&undone) == 2 * STEPS, "%d were discarded", (int)discarded_by(&undone));
  require(discarded_by(&straight) == 0, "%d good ones were", (int)discarded_by(&straight));
  end_both();
}

/* Inf in one rank's part only: all ranks undo the call. */
static void a_part_that_is_not_finite_undoes_the_call_everywhere(void) {
  static const char policy[] = "net=topk:0.02+ef min=4K momentum=0.9 nonfinite=discard";
  begin_both(policy, two_nodes());
  for (int step = 0; step < STEPS; step++) {
    kind bad = step % 2 == 0 ? SCATTER : SCATTER_FLUSH;
    make_call(&undone, bad, 100 + step, true);
    require_same_state(&straight, &undone, policy, step);
    call_both(SCATTER, step);
    require_one_run(policy, step);
  }
  require(discarded_by(&undone) == STEPS, "%d were discarded", (int)discarded_by(&undone));
  end_both();
}

/* The guard changes a codec after a step: that step cannot be undone any more, the next one can. A
 * step that is lost decides nothing. */
static void a_step_before_another_codec_is_refused(void) {
  static run r;
  lcomm_guard_figures figures;
  begin_run(&r, "net=topk:0.02 min=4K undo=on guard=2,limit=0.2", two_nodes());
  make_step(&r, 0, false);
  require_fine(r.comm, lcomm_tensors_discard(r.comm));
  make_step(&r, 0, false);
  make_step(&r, 1, false);
  require(lcomm_tensors_discard(r.comm) == LCOMM_ERR_STATE, "the codec is another one");
  require(strstr(lcomm_last_error(r.comm), "codecs were chosen anew") != NULL, "%s",
          lcomm_last_error(r.comm));
  make_step(&r, 2, false);
  require_fine(r.comm, lcomm_tensors_discard(r.comm));
  end_run(&r);
  begin_run(&r, "net=topk:0.02 min=4K nonfinite=discard guard=1,limit=0.2", two_nodes());
  make_step(&r, 0, true);
  for (int i = 0; i < TENSORS; i++) {
    require_fine(r.comm, lcomm_tensor_guard(r.comm, r.tensors[i], &figures));
    require(figures.checks == 0, "a step that never was is evaluated");
  }
  end_run(&r);
}

/* Another policy keeps what is there, also after an undone step, and takes the way back. */
static void another_policy_ends_the_way_back(void) {
  begin_both(policies[1], two_nodes());
  step_both(0);
  make_step(&undone, 100, true);
  require_fine(undone.comm, lcomm_tensors_discard(undone.comm));
  call_both(ALLREDUCE, 0);
  static const char *const next[] = {"net=topk:0.1+ef min=4K momentum=0.9", "net=none undo=on"};
  for (int i = 0; i < 2; i++) {
    require_fine(straight.comm, lcomm_policy_set(straight.comm, next[i]));
    require_fine(undone.comm, lcomm_policy_set(undone.comm, next[i]));
    require(lcomm_tensors_discard(undone.comm) == LCOMM_ERR_STATE, "the step before is gone");
    require(lcomm_residual_discard(undone.layer) == LCOMM_ERR_STATE, "the call before is gone");
    for (int step = 1; step < STEPS; step++) {
      step_both(step);
      call_both(ALLREDUCE, step);
      if (i == 1 && step == 1) { /* of calls: the flush that the policy asks for */
        require_fine(undone.comm, lcomm_residual_discard(undone.layer));
        make_call(&undone, ALLREDUCE, step, false);
      }
      require_one_run(next[i], step);
    }
  }
  end_both();
}

static void a_saved_state_is_that_of_the_step_before(void) {
  static uint8_t bytes[1 << 20];
  size_t size = 0;
  begin_both(policies[1], two_nodes());
  make_step(&straight, 0, false);
  make_step(&straight, 100, true);
  require_fine(straight.comm, lcomm_tensors_discard(straight.comm));
  require_fine(straight.comm, lcomm_state_size(straight.comm, &size));
  require(size <= sizeof(bytes), "the state has %zu bytes", size);
  require_fine(straight.comm, lcomm_state_write(straight.comm, bytes, size));
  require_fine(undone.comm, lcomm_state_read(undone.comm, bytes, size));
  require(lcomm_tensors_discard(undone.comm) == LCOMM_ERR_STATE, "nothing came before a state");
  for (int step = 1; step < STEPS; step++) {
    make_step(&undone, 100 + step, true);
    require_fine(undone.comm, lcomm_tensors_discard(undone.comm));
    step_both(step);
    require_one_run(policies[1], step);
  }
  end_both();
}

static void what_cannot_be_undone_is_refused(void) {
  static run r;
  begin_run(&r, "net=topk:0.02+ef min=4K", two_nodes());
  make_step(&r, 0, false);
  make_call(&r, ALLREDUCE, 0, false);
  require(lcomm_tensors_discard(r.comm) == LCOMM_ERR_STATE, "without undo=on");
  require(strstr(lcomm_last_error(r.comm), "undo=on") != NULL, "%s", lcomm_last_error(r.comm));
  require(lcomm_residual_discard(r.layer) == LCOMM_ERR_STATE, "without undo=on");
  end_run(&r);
  begin_run(&r, "net=topk:0.02+ef min=4K undo=on", two_nodes());
  require(lcomm_tensors_discard(r.comm) == LCOMM_ERR_STATE, "before the first step");
  require(lcomm_residual_discard(r.layer) == LCOMM_ERR_STATE, "before the first call");
  make_step(&r, 0, false);
  for (int i = 0; i < TENSORS; i++) {
    require_fine(r.comm, lcomm_tensor_ready(r.comm, r.tensors[i]));
  }
  require(lcomm_tensors_discard(r.comm) == LCOMM_ERR_STATE, "in a step");
  require_fine(r.comm, lcomm_tensors_wait(r.comm));
  end_run(&r);
}

/* One rank skips the step, the others go on: nobody goes on with other residuals than the rest. */
static void ranks_that_disagree_find_out(void) {
  static run r;
  begin_run(&r, "net=topk:0.02+ef min=4K undo=on", two_nodes());
  make_step(&r, 0, false);
  MPI_Barrier(MPI_COMM_WORLD); /* or a rank hears of the difference in the step before */
  lcomm_status status = LCOMM_OK;
  if (mpi_rank == 0) {
    status = lcomm_tensors_discard(r.comm);
  }
  for (int i = 0; status == LCOMM_OK && i < TENSORS; i++) {
    status = lcomm_tensor_ready(r.comm, r.tensors[i]);
  }
  status = status == LCOMM_OK ? lcomm_tensors_wait(r.comm) : status;
  require(status == LCOMM_ERR_MISMATCH, "%s: %s", lcomm_status_name(status),
          lcomm_last_error(r.comm));
  lcomm_destroy(r.comm);
}

/* ---------------------------------------------------------------- fp16+ef */

/* One overflow of 40 steps: it is in one result, and leaves nothing behind. */
static void fp16_recovers_from_an_overflow(void) {
  static float data[LARGEST];
  lcomm_tensor *tensor;
  int bad = 0;
  lcomm_comm *comm = make_comm("net=fp16+ef min=4K", two_nodes());
  require_fine(comm,
               lcomm_tensor_add(comm, "tensor", data, LARGEST, LCOMM_FLOAT32, LCOMM_AVG, &tensor));
  for (int step = 0; step < 40; step++) {
    fill(data, LARGEST, step, 0);
    if (step == 5) {
      data[17] = 1e6f; /* finite, beyond the range of fp16 */
    }
    require_fine(comm, lcomm_tensor_ready(comm, tensor));
    require_fine(comm, lcomm_tensors_wait(comm));
    bad += lcomm_tensors_not_finite(comm) > 0;
  }
  require(bad == (two_nodes() > 1), "%d of 40 steps are not finite", bad);
  require_fine(NULL, lcomm_destroy(comm));
}

static const mpi_property properties[] = {
    PROPERTY(a_step_that_is_discarded_never_was),
    PROPERTY(results_are_those_without_undo),
    PROPERTY(a_call_that_is_discarded_never_was),
    PROPERTY(the_library_discards_what_is_not_finite),
    PROPERTY(a_part_that_is_not_finite_undoes_the_call_everywhere),
    PROPERTY_OF(2, a_step_before_another_codec_is_refused),
    PROPERTY(another_policy_ends_the_way_back),
    PROPERTY(a_saved_state_is_that_of_the_step_before),
    PROPERTY(what_cannot_be_undone_is_refused),
    PROPERTY_OF(2, ranks_that_disagree_find_out),
    PROPERTY(fp16_recovers_from_an_overflow),
};
RUN_PROPERTIES(mpi_property_main, properties)
