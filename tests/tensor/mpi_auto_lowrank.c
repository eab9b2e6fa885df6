/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 4 */

/* net=auto with low rank: matrices go so where links are slow, with the bits of the codec itself,
 * and otherwise as what was chosen; nothing is lost where that changes. */

#include "libcomm/tensor/bucket.h"
#include "tests/tensor/lowrank_model.h"

enum { NODES = 2, REVISED = 4 /* the first agreed step */ };

static const double SLOW_GB_S = 1e-5, FAST_GB_S = 1e6;

/* The same figures on all ranks, so that the machine does not matter. Of matrices as small as these
 * sign makes fewer bytes: processors are said to be slow with all codecs. */
static void open_over(model *m, const char *policy, double bandwidth_gb_s, lcomm_op op) {
  open_model(m, policy, NODES, op);
  lcomm_topo *topo = &m->comm->topo;
  topo->cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = 1, .message_us = 0.1, .bandwidth_gb_s = bandwidth_gb_s};
  for (int i = LCOMM_AUTO_LOSSLESS; i < LCOMM_AUTO_CODECS; i++) {
    topo->codec_cost[i] = (lcomm_codec_cost){.encode_gb_s = 1e-9, .decode_gb_s = 1e-9};
  }
  topo->codec_cost[LCOMM_AUTO_NONE] = topo->codec_cost[LCOMM_AUTO_LOWRANK] =
      (lcomm_codec_cost){.encode_gb_s = 4, .decode_gb_s = 4};
}

static int lowrank_buckets(const model *m) {
  int count = 0;
  for (size_t i = 0; i < m->comm->tensors->bucket_count; i++) {
    count += m->comm->tensors->buckets[i].ef.lowrank.rank > 0;
  }
  return count;
}

static void on_a_slow_link_matrices_have_the_bits_of_low_rank(void) {
  static const char *const classes[] = {"net=auto:lowrank min=1",
                                        "net[first]=auto:lowrank net[second]=auto:lowrank min=1"};
  static model m, fixed;
  for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
    open_over(&m, classes[i], SLOW_GB_S, LCOMM_AVG);
    open_model(&fixed, "net=lowrank:4 min=1", NODES, LCOMM_AVG);
    for (int step = 0; step < REVISED - 1; step++) {
      step_model(&m, step);
      step_model(&fixed, step);
      require_same_bits(&m, step);
      for (int t = 0; t < MATRICES; t++) {
        require(memcmp(m.data[t], fixed.data[t], size_of(t) * sizeof(float)) == 0,
                "step %d: %s has other bits", step, shapes[t].name);
      }
    }
    require(lowrank_buckets(&m) == 1, "%d buckets of low rank", lowrank_buckets(&m));
    close_model(&m);
    close_model(&fixed);
  }
}

static void on_a_fast_link_they_are_exact(void) {
  static model m;
  static double sum[LARGEST];
  open_over(&m, "net=auto:lowrank min=1", FAST_GB_S, LCOMM_AVG);
  for (int step = 0; step < REVISED - 1; step++) {
    step_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      sum_of_ranks(m.gradient[t], size_of(t), 1.0 / mpi_size, sum);
      double far = distance(m.data[t], sum, size_of(t));
      require(far < 1e-6, "%s is not exact in step %d: %g", shapes[t].name, step, far);
    }
  }
  require(lowrank_buckets(&m) == 0, "%d buckets of low rank", lowrank_buckets(&m));
  close_model(&m);
}

/* A class without low rank, and momentum, have none. */
static void without_its_class_there_is_none(void) {
  static const char *const policies[] = {"net=auto:sign min=1", "net=auto:topk momentum=0.9 min=1"};
  static model m;
  for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
    open_over(&m, policies[i], SLOW_GB_S, LCOMM_AVG);
    step_model(&m, 0);
    require(lowrank_buckets(&m) == 0, "'%s': buckets of low rank", policies[i]);
    close_model(&m);
  }
}

/* sum(gradient + residual before) == result + sum(residual after), also in the step after all was
 * found to hide behind a computation, but for what a dense codec rounds. */
static void nothing_is_lost_when_the_choice_changes(void) {
  static model m;
  static double before[MATRICES][LARGEST], after[LARGEST], wanted[LARGEST];
  memset(before, 0, sizeof before);
  open_over(&m, "net=auto:lowrank min=1", SLOW_GB_S, LCOMM_SUM);
  for (int step = 0; step < REVISED + 2; step++) {
    m.comm->tensors->watch = (lcomm_auto_watch){.counts = step > 0, .least_window_s = 1e3};
    require(step == 0 || step == REVISED + 1 || lowrank_buckets(&m) == (step < REVISED),
            "step %d: %d buckets of low rank", step, lowrank_buckets(&m));
    step_model(&m, step);
    for (int t = 0; t < MATRICES; t++) {
      sum_of_ranks(m.gradient[t], size_of(t), 1, wanted);
      sum_residuals(&m, t, after);
      for (uint64_t i = 0; i < size_of(t); i++) {
        wanted[i] += before[t][i] - after[i];
      }
      double far = distance(m.data[t], wanted, size_of(t));
      require(far < 1e-2, "%s in step %d: %g is lost", shapes[t].name, step, far);
      memcpy(before[t], after, sizeof after);
    }
  }
  require(m.comm->topo.hidden_from < LCOMM_AUTO_LOWRANK, "nothing was found to hide");
  close_model(&m);
}

static void the_plan_says_which_way_was_chosen_and_why(void) {
  static model m;
  char text[4096];
  open_over(&m, "net=auto:lowrank min=1", SLOW_GB_S, LCOMM_AVG);
  step_model(&m, 0);
  require_fine(m.comm, lcomm_plan_print(m.comm, 4096, LCOMM_FLOAT32, 1, text, sizeof text));
  require(strstr(text, "\n  matrices    first and 1 more: lowrank:4, for two sums by lowrank:4 are "
                       "predicted to take ") != NULL,
          "%s", text);
  require_fine(m.comm, lcomm_plan_print(m.comm, 4096, LCOMM_FLOAT32, 0, text, sizeof text));
  require(!strstr(text, "matrices"), "%s", text);
  require_fine(m.comm, lcomm_plan_print(m.comm, 4096, LCOMM_FLOAT32, 1, text, 40));
  require(strlen(text) < 40, "%s", text);
  close_model(&m);
}

static void the_guard_goes_below_it(void) {
  static model m;
  lcomm_guard_figures it = {0};
  open_over(&m, "net=auto:lowrank min=1 guard=1,residual=0.000001", SLOW_GB_S, LCOMM_AVG);
  step_model(&m, 0);
  require_fine(m.comm, lcomm_tensor_guard(m.comm, m.tensors[0], &it));
  require(strcmp(it.codec, "lowrank:4") == 0 && strcmp(it.next, "auto:sign") == 0, "by %s, next %s",
          it.codec, it.next);
  step_model(&m, 1);
  require(lowrank_buckets(&m) == 0, "it is still low rank");
  close_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(on_a_slow_link_matrices_have_the_bits_of_low_rank),
    PROPERTY(on_a_fast_link_they_are_exact),
    PROPERTY(without_its_class_there_is_none),
    PROPERTY(nothing_is_lost_when_the_choice_changes),
    PROPERTY(the_plan_says_which_way_was_chosen_and_why),
    PROPERTY(the_guard_goes_below_it),
};
RUN_PROPERTIES(mpi_property_main, properties)
