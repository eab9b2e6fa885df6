/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 3 4 */

/* net=auto in steps of tensors: figures are the same on all ranks, wrong ones are corrected at the
 * agreed steps, and nothing is lost when a codec changes. */

#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/engine/entry.h"
#include "libcomm/tensor/bucket.h"
#include "tests/tensor/change_model.h"

enum { REVISED = 4 /* the first agreed step */, NODES = 2 };

typedef struct figures {
  lcomm_link_cost net;
  lcomm_codec_cost codec[LCOMM_AUTO_CODECS];
  int hidden_from;
} figures;

static figures figures_of(const model *m) {
  figures it;
  memset(&it, 0, sizeof it);
  it.net.latency_us = m->comm->topo.cost[LCOMM_LINK_NET].latency_us;
  it.net.bandwidth_gb_s = m->comm->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s;
  it.hidden_from = m->comm->topo.hidden_from;
  memcpy(it.codec, m->comm->topo.codec_cost, sizeof(it.codec));
  return it;
}

static void require_equal_figures(const model *m) {
  figures it = figures_of(m);
  require(same_everywhere(&it, sizeof it), "ranks have different figures");
}

/* Bytes are what sums are predicted to spend most on, whatever was measured. */
static void set_bandwidth(model *m, double bandwidth_gb_s) {
  m->comm->topo.cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = 1, .message_us = 0.1, .bandwidth_gb_s = bandwidth_gb_s};
}

static void what_rank_0_measures_is_taken_by_all(void) {
  model m;
  begin_model(&m, "net=auto:topk", NODES);
  require(!m.comm->topo.cost[LCOMM_LINK_NET].assumed, "nothing was measured");
  require(m.comm->topo.codec_cost[LCOMM_AUTO_TOPK].encode_gb_s > 0, "no codec was measured");
  require_equal_figures(&m);
  free_model(&m);
}

static void a_part_has_the_figures_of_the_whole(void) {
  model m;
  begin_model(&m, "net=auto:int8", NODES);
  lcomm_comm *part = NULL;
  require_fine(&m, lcomm_split(m.comm, 0, 0, NULL, &part));
  const lcomm_link_cost *whole = &m.comm->topo.cost[LCOMM_LINK_NET];
  require(part->topo.cost[LCOMM_LINK_NET].bandwidth_gb_s == whole->bandwidth_gb_s, "another one");
  require(lcomm_destroy(part) == LCOMM_OK, "destroy");
  free_model(&m);
}

/* Its sums begin and end in the wait. */
static lcomm_status step_in_the_wait(model *m) {
  for (int t = 0; t < TENSORS; t++) {
    require_fine(m, lcomm_tensor_ready(m->comm, m->tensors[t]));
  }
  return lcomm_tensors_wait(m->comm);
}

/* A message is said to take a tenth of a second. */
static void a_wrong_latency_is_corrected_at_the_agreed_step_on_all_ranks(void) {
  static const double SLOW_US = 1e5;
  model m;
  make_model(&m, "net=auto:int8 min=1", NODES, LCOMM_AVG);
  m.comm->topo.cost[LCOMM_LINK_NET] =
      (lcomm_link_cost){.latency_us = SLOW_US, .message_us = 0.1, .bandwidth_gb_s = 1000};
  for (int step = 0; step < REVISED + 2; step++) {
    fill_model(&m, step);
    require_fine(&m, step_in_the_wait(&m));
    double now = m.comm->topo.cost[LCOMM_LINK_NET].latency_us;
    require(step >= REVISED - 1 || now == SLOW_US, "step %d: %g us", step, now);
    require(step < REVISED - 1 || now < SLOW_US / 2, "step %d: %g us", step, now);
    require_equal_figures(&m);
    for (int t = 0; t < TENSORS; t++) {
      require(same_everywhere(m.data[t], sizes[t] * sizeof(float)), "the ranks differ");
    }
  }
  free_model(&m);
}

/* The figures of the watch are given, so that the test does not depend on the machine: sums of a
 * step took a millisecond, the program computed for a quarter of an hour meanwhile. A step whose
 * sums begin before the wait adds nothing to them without a progress thread. */
static void what_hides_behind_the_computation_is_not_compressed(void) {
  model m;
  make_model(&m, "net=auto:topk min=1", NODES, LCOMM_AVG);
  for (int step = 0; step < REVISED; step++) {
    require(m.comm->topo.hidden_from == LCOMM_AUTO_CODECS, "before the agreed step");
    m.comm->tensors->watch =
        (lcomm_auto_watch){.counts = step > 0, .least_busy_s = 1e-3, .least_window_s = 1e3};
    fill_model(&m, step);
    require_fine(&m, step_model(&m));
  }
  require(m.comm->topo.hidden_from == 0, "hidden from %d", m.comm->topo.hidden_from);
  require_equal_figures(&m);
  free_model(&m);
}

/* A progress thread comes when the machine lets it. */
static void await_first_sum(lcomm_comm *comm) {
  bool has_begun = false;
  while (!has_begun) {
    require(lcomm_enter(comm) == LCOMM_OK, "the communicator cannot be entered");
    has_begun = comm->tensors->watch.begun_s > 0;
    lcomm_exit(comm);
    sched_yield();
  }
}

/* With a progress thread sums move while the program computes: the window of a step, from its first
 * sum to the wait, holds what it computed. The first step does not count. */
static void what_the_program_computes_is_measured(void) {
  static const double COMPUTED_S = 0.1;
  model m;
  setenv("LCOMM_PROGRESS", "thread", 1);
  make_model(&m, "net=auto:topk min=1", NODES, LCOMM_AVG);
  unsetenv("LCOMM_PROGRESS");
  const lcomm_auto_watch *watch = &m.comm->tensors->watch;
  for (int step = 0; step < REVISED - 1; step++) {
    fill_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      require_fine(&m, lcomm_tensor_ready(m.comm, m.tensors[t]));
    }
    if (step > 0) { /* the first one begins in the wait */
      await_first_sum(m.comm);
    }
    nanosleep(&(struct timespec){.tv_nsec = (long)(COMPUTED_S * 1e9)}, NULL);
    require_fine(&m, lcomm_tensors_wait(m.comm));
    double window_s = watch->least_window_s;
    require(step == 0 ? window_s == 0 : window_s > COMPUTED_S / 2, "step %d: a window of %g s",
            step, window_s);
  }
  free_model(&m);
}

/* Without net=auto no clock is read for it. */
static void nothing_is_watched_without_auto(void) {
  model m;
  make_model(&m, "net=int8 min=1", NODES, LCOMM_AVG);
  for (int step = 0; step < REVISED + 1; step++) {
    fill_model(&m, step);
    require_fine(&m, step_model(&m));
  }
  const lcomm_auto_watch *watch = &m.comm->tensors->watch;
  require(watch->begun_s == 0 && watch->least_busy_s == 0 && !watch->counts, "it is watched");
  free_model(&m);
}

/* sum(gradient + residual before) == factor * applied + sum(residual after), also in the step after
 * the codec changed, because all hides behind a computation; but for what a dense codec rounds. */
static void require_no_mass_lost(const char *policy) {
  static double before[TENSORS][LARGEST], gradient[LARGEST], after[LARGEST];
  model m;
  memset(before, 0, sizeof(before));
  make_model(&m, policy, NODES, LCOMM_SUM);
  set_bandwidth(&m, 1e-5);
  for (int step = 0; step < REVISED + 2; step++) {
    static double wanted[TENSORS][LARGEST];
    fill_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      sum_data(&m, t, gradient);
      for (uint64_t i = 0; i < sizes[t]; i++) {
        wanted[t][i] = gradient[i] + before[t][i];
      }
    }
    m.comm->tensors->watch = (lcomm_auto_watch){.counts = step > 0, .least_window_s = 1e3};
    require_fine(&m, step_model(&m));
    for (int t = 0; t < TENSORS; t++) {
      double error = 0, norm = 1e-300;
      sum_residuals(&m, t, after);
      for (uint64_t i = 0; i < sizes[t]; i++) {
        double miss = wanted[t][i] - ((double)m.data[t][i] + after[i]);
        error += miss * miss;
        norm += wanted[t][i] * wanted[t][i];
      }
      require(sqrt(error / norm) < 1e-2, "%s, step %d, tensor %d: lost %g", policy, step, t,
              sqrt(error / norm));
      memcpy(before[t], after, sizeof(after));
    }
  }
  require(m.comm->topo.hidden_from < LCOMM_AUTO_CODECS, "no codec has changed");
  free_model(&m);
}

static void no_mass_is_lost_when_the_codec_changes(void) {
  require_no_mass_lost("net=auto:topk min=1");
  require_no_mass_lost("net=auto:sign min=1");
  require_no_mass_lost("net=auto:int2 min=1");
}

static const mpi_property properties[] = {
    PROPERTY(what_rank_0_measures_is_taken_by_all),
    PROPERTY(a_part_has_the_figures_of_the_whole),
    PROPERTY(a_wrong_latency_is_corrected_at_the_agreed_step_on_all_ranks),
    PROPERTY(what_hides_behind_the_computation_is_not_compressed),
    PROPERTY(what_the_program_computes_is_measured),
    PROPERTY(nothing_is_watched_without_auto),
    PROPERTY(no_mass_is_lost_when_the_codec_changes),
};
RUN_PROPERTIES(mpi_property_main, properties)
