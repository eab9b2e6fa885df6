/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* The guard at work: who is told, that it changes nothing else, and what is not checked. */

#include "tests/tensor/guard_model.h"

/* ----------------------------------------------------------- nothing else */

static uint64_t sent(const model *m) {
  lcomm_stats stats;
  require(lcomm_stats_get(m->comm, &stats) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
  return stats.sent_bytes[LCOMM_LINK_NET] + stats.sent_bytes[LCOMM_LINK_SHM];
}

/* Stochastic rounding too: the guard's sum has a number of its own among the operations. It is of
 * 1 % of the elements, each of which a rank sends at most twice, with some headers. */
static void a_report_changes_no_bit_and_sums_one_percent(void) {
  static const char *const policies[] = {"net=topk:0.01+ef", "net=fp8e5m2:stochastic",
                                         "net=topk:0.001"};
  for (int p = 0; p < 3; p++) {
    char reporting[64];
    model plain, watched;
    snprintf(reporting, sizeof(reporting), "%s guard=2,limit=0.01,report", policies[p]);
    make_model(&plain, policies[p], most_nodes(), LCOMM_AVG);
    make_model(&watched, reporting, most_nodes(), LCOMM_AVG);
    for (int step = 0; step < 4; step++) {
      uint64_t plainly = sent(&plain), watching = sent(&watched);
      fill_model(&plain, step);
      fill_model(&watched, step);
      step_model(&plain);
      step_model(&watched);
      for (int t = 0; t < TENSORS; t++) {
        require(memcmp(plain.data[t], watched.data[t], sizes[t] * sizeof(float)) == 0,
                "%s, step %d: %s differs", policies[p], step, names[t]);
      }
      plainly = sent(&plain) - plainly;
      watching = sent(&watched) - watching;
      uint64_t room = step % 2 ? (sizes[0] + sizes[1]) * sizeof(float) / 50 + 1024 : 0;
      require(watching <= plainly + room + (step == 0 ? 4096 : 0),
              "%s, step %d: %llu bytes instead of %llu", policies[p], step,
              (unsigned long long)watching, (unsigned long long)plainly);
    }
    require(mpi_size < 2 || figures_of(&watched, 0).checks == 2, "it looked %d times",
            (int)figures_of(&watched, 0).checks);
    free_model(&plain);
    free_model(&watched);
  }
}

typedef struct told {
  int calls, checks;
  char last[LCOMM_GUARD_CODEC_MAX];
} told;

static void note(void *context, const lcomm_guard_figures *figures) {
  told *it = context;
  it->calls++;
  it->checks += (int)figures->checks;
  snprintf(it->last, sizeof(it->last), "%s", figures->tensor);
}

static void every_rank_is_told_of_every_tensor(void) {
  model m;
  told it = {0};
  lcomm_stats stats;
  make_model(&m, "net=topk:0.01 guard=2,report", most_nodes(), LCOMM_SUM);
  require(lcomm_guard_set(m.comm, note, &it) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  for (int step = 0; step < 5; step++) {
    fill_model(&m, step);
    step_model(&m);
  }
  int checks = mpi_size < 2 ? 0 : 2;
  require(it.calls == checks * TENSORS && it.checks == (checks ? TENSORS * 3 : 0), "%d calls",
          it.calls);
  require(!checks || strcmp(it.last, names[TENSORS - 1]) == 0, "last was %s", it.last);
  lcomm_stats_get(m.comm, &stats);
  require((int)stats.guard_checks == checks && (int)stats.guard_beyond == checks * TENSORS,
          "%llu checks, %llu beyond", (unsigned long long)stats.guard_checks,
          (unsigned long long)stats.guard_beyond);
  require(!checks || (stats.guard_error > 0.5 && stats.guard_cosine < 1), "error %g, cosine %g",
          stats.guard_error, stats.guard_cosine);
  free_model(&m);
}

/* Nothing is made for a check: memory of links and runs stay as they are. */
static void a_check_makes_nothing(void) {
  model m;
  lcomm_stats before, after;
  make_model(&m, "net=topk:0.01+ef guard=1", most_nodes(), LCOMM_SUM);
  for (int step = 0; step < 4; step++) {
    fill_model(&m, step);
    step_model(&m);
    lcomm_stats_get(m.comm, step == 0 ? &before : &after);
  }
  require(before.memory_bytes == after.memory_bytes && before.run_misses == after.run_misses,
          "%llu bytes became %llu", (unsigned long long)before.memory_bytes,
          (unsigned long long)after.memory_bytes);
  free_model(&m);
}

/* ------------------------------------------------------- what is not checked */

static void exact_tensors_and_steps_are_not_checked(void) {
  model m;
  make_model(&m, "net=int8 guard=1 warmup=2 exempt=fc*", most_nodes(), LCOMM_SUM);
  for (int step = 0; step < 3; step++) {
    fill_model(&m, step);
    step_model(&m);
    int checks = step < 2 || mpi_size < 2 ? 0 : 1;
    require((int)figures_of(&m, 0).checks == checks, "step %d: %d checks", step,
            (int)figures_of(&m, 0).checks);
  }
  require(figures_of(&m, 1).checks == 0, "an exempt tensor was checked");
  free_model(&m);
}

static void what_is_not_finite_decides_nothing(void) {
  model m;
  make_model(&m, "net=int4-ef guard=1,limit=0.5", most_nodes(), LCOMM_SUM);
  for (int step = 0; step < 2; step++) {
    fill_model(&m, step);
    for (uint64_t i = 0; step == 1 && i < sizes[0]; i++) {
      m.data[0][i] = mpi_rank == 0 ? NAN : 0;
    }
    memset(m.data[1], 0, sizes[1] * sizeof(float));
    step_model(&m);
  }
  int checks = mpi_size < 2 ? 0 : 1;
  lcomm_guard_figures poisoned = figures_of(&m, 0), zeros = figures_of(&m, 1);
  require((int)poisoned.checks == checks && poisoned.fallbacks == 0 && isfinite(poisoned.error),
          "NaN was evaluated: error %g", poisoned.error);
  require(zeros.checks == 0 && zeros.fallbacks == 0, "zeros were evaluated: error %g", zeros.error);
  free_model(&m);
}

/* A frozen tensor is not checked; it keeps its codec until it comes again. */
static void frozen_tensors_keep_their_codec(void) {
  model m;
  make_model(&m, "net=topk:0.01 guard=1", 2, LCOMM_SUM);
  for (int step = 0; step < 4; step++) {
    bool frozen = step == 1 || step == 2;
    fill_model(&m, step);
    if (step == 1) {
      lcomm_tensor_freeze(m.comm, m.tensors[1]);
    } else if (step == 3) {
      lcomm_tensor_unfreeze(m.comm, m.tensors[1]);
    }
    for (int t = 0; t < (frozen ? 1 : 2); t++) {
      lcomm_tensor_ready(m.comm, m.tensors[t]);
    }
    require(lcomm_tensors_wait(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  }
  lcomm_guard_figures it = figures_of(&m, 1);
  require(it.checks == 2 && it.fallbacks == 1 && strcmp(it.codec, "int4-ef") == 0, "%d checks, %s",
          (int)it.checks, it.codec);
  free_model(&m);
}

static const mpi_property properties[] = {
    PROPERTY(a_report_changes_no_bit_and_sums_one_percent),
    PROPERTY(every_rank_is_told_of_every_tensor),
    PROPERTY(a_check_makes_nothing),
    PROPERTY(exact_tensors_and_steps_are_not_checked),
    PROPERTY(what_is_not_finite_decides_nothing),
    PROPERTY_OF(2, frozen_tensors_keep_their_codec),
};
RUN_PROPERTIES(mpi_property_main, properties)
