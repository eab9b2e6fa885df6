/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* The guard of calls with a residual: figures, codecs that change, who is told. */

#include <stdio.h>

#include "tests/tensor/guard_calls.h"

enum { MANY = 800000, FEW = 60000 };

/* ------------------------------------------------------------------ figures */

typedef struct whole {
  double error, cosine, residual;
} whole;

/* The last call, all of it. */
static whole compare_all(calls *c) {
  const layer *l = &c->l;
  double gg = 0, rr = 0, gr = 0, apart = 0, late = 0;
  require_fine(l->comm, lcomm_residual_get(l->residual, l->held));
  sum_over_ranks(l->held, l->count, l->after);
  for (uint64_t i = 0; i < l->count; i++) {
    double result = (c->scatters ? mpi_size : 1) * (double)l->result[i], sum = l->sum[i];
    gg += sum * sum;
    rr += result * result;
    gr += sum * result;
    apart += (result - sum) * (result - sum);
    late += l->after[i] * l->after[i];
  }
  return (whole){sqrt(apart / gg), gr / sqrt(gg * rr), sqrt(late / gg)};
}

static bool is_near(double found, double wanted) {
  return fabs(found - wanted) <= 0.1 * fabs(wanted) + 1e-6;
}

static void check_figures(const char *policy, int nodes, bool scatters) {
  calls c;
  whole all = {0};
  make_calls(&c, policy, nodes, MANY, scatters);
  for (int number = 0; number < 6; number++) {
    call_once(&c, number);
    lcomm_guard_figures found = figures_of(&c);
    require((int)found.checks == number / 2, "'%s', call %d: %d checks", policy, number,
            (int)found.checks);
    if (number == 2 || number == 4) {
      require((int)found.step == number - 1 && found.samples > 0 &&
                  strcmp(found.tensor, "grad") == 0,
              "'%s': %s, call %d was checked", policy, found.tensor, (int)found.step);
      require(is_near(found.error, all.error) && is_near(found.cosine, all.cosine) &&
                  is_near(found.residual, all.residual),
              "'%s', %d nodes, call %d: error %g instead of %g, cosine %g instead of %g, residual "
              "%g instead of %g",
              policy, nodes, number - 1, found.error, all.error, found.cosine, all.cosine,
              found.residual, all.residual);
    }
    all = compare_all(&c);
  }
  free_calls(&c);
}

static void figures_agree_with_the_whole_comparison_within_a_tenth(void) {
  static const char *const policies[] = {"net=topk:0.1+ef guard=2 min=1", "net=int8+ef guard=2",
                                         "net=int4 guard=2,report",
                                         "net=topk:0.1,values=int8+ef+zstd guard=2 algo=direct"};
  for (int i = 0; i < (int)(sizeof(policies) / sizeof(policies[0])); i++) {
    check_figures(policies[i], mpi_size == 4 && i % 2 ? 2 : mpi_size, false);
    check_figures(policies[i], mpi_size == 4 && i % 2 ? 4 : 2, true);
  }
}

/* ------------------------------------------------------------------- codecs */

/* With each check that finds too much: the call after it pays all, and the next one has the milder
 * codec. */
static void check_ladder(const char *policy, bool scatters) {
  static const char *const ladder[] = {"topk:0.02+ef", "int4+ef", "int8+ef", "bf16"};
  calls c;
  char what[96];
  int rung = 0;
  snprintf(what, sizeof(what), "%s, %s", policy, scatters ? "parts" : "all");
  make_calls(&c, policy, 2, FEW, scatters);
  for (int number = 0; number < 16; number++) {
    uint64_t before = figures_of(&c).checks;
    call_once(&c, number);
    if (rung < 3) { /* bf16 rounds, and what it rounds is lost */
      check_layer(&c.l, what, number);
    }
    lcomm_guard_figures found = figures_of(&c);
    if (found.checks > before) {
      require(rung < 4 && strcmp(found.codec, ladder[rung]) == 0 && found.beyond &&
                  strcmp(found.next, rung < 3 ? ladder[rung + 1] : "none") == 0,
              "'%s', call %d: by %s, next %s", what, number, found.codec, found.next);
      rung++;
    }
    require(same_everywhere(found.next, sizeof(found.next)), "ranks go on by other codecs");
  }
  require(rung >= 3 && (int)figures_of(&c).fallbacks == rung, "'%s': it fell %d times", what, rung);
  free_calls(&c);
}

static void beyond_a_limit_calls_go_to_milder_codecs(void) {
  check_ladder("net=topk:0.02+ef guard=1,limit=0.000001,residual=0.000001 min=1", false);
  check_ladder("net=topk:0.02+ef guard=1,limit=0.000001,residual=0.000001 min=1 undo=on", true);
}

static void another_policy_begins_with_its_codec(void) {
  calls c;
  make_calls(&c, "net=topk:0.02+ef guard=1,residual=0.000001 min=1", 2, FEW, false);
  for (int number = 0; number < 4; number++) {
    call_once(&c, number);
  }
  require(figures_of(&c).fallbacks == 1, "it did not fall");
  require_fine(c.l.comm, lcomm_policy_set(c.l.comm, "net=int8+ef guard=1 min=1"));
  for (int number = 4; number < 8; number++) {
    call_once(&c, number);
  }
  require(strcmp(figures_of(&c).codec, "int8+ef") == 0, "it travels by %s", figures_of(&c).codec);
  free_calls(&c);
}

/* ------------------------------------------------------------- nothing else */

static void note(void *context, const lcomm_guard_figures *figures) {
  *(int *)context += figures->checks > 0;
}

static void a_report_changes_no_bit_and_all_are_told(void) {
  calls plain, watched;
  lcomm_stats stats, later;
  int told = 0;
  make_calls(&plain, "net=fp8e5m2:stochastic+ef min=1", mpi_size < 2 ? 1 : 2, FEW, false);
  make_calls(&watched, "net=fp8e5m2:stochastic+ef min=1 guard=1,residual=0.000001,report",
             mpi_size < 2 ? 1 : 2, FEW, false);
  require_fine(watched.l.comm, lcomm_guard_set(watched.l.comm, note, &told));
  for (int number = 0; number < 6; number++) {
    call_once(&plain, number);
    call_once(&watched, number);
    require(memcmp(plain.l.result, watched.l.result, FEW * sizeof(float)) == 0,
            "call %d has other bits", number);
    lcomm_stats_get(watched.l.comm, number == 3 ? &stats : &later);
  }
  int checks = mpi_size < 2 ? 0 : 3;
  require(told == checks && (int)later.guard_checks == checks && (int)later.guard_beyond == checks,
          "told %d times, %d checks", told, (int)later.guard_checks);
  require(stats.memory_bytes == later.memory_bytes, "a check makes something");
  free_calls(&plain);
  free_calls(&watched);
}

/* Its samples are forgotten with it, on all ranks. */
static void a_call_that_is_undone_is_not_judged(void) {
  calls c;
  make_calls(&c, "net=topk:0.02+ef guard=2 undo=on min=1", 2, FEW, false);
  for (int number = 0; number < 4; number++) {
    call_once(&c, number);
    if (number == 1) {
      require_fine(c.l.comm, lcomm_residual_discard(c.l.residual));
    }
    require(number == 3 || figures_of(&c).checks == 0, "a call that never was is judged");
  }
  require(figures_of(&c).checks == 1 && figures_of(&c).step == 1, "%d checks, the last of call %d",
          (int)figures_of(&c).checks, (int)figures_of(&c).step);
  free_calls(&c);
}

static const mpi_property properties[] = {
    PROPERTY_OF(2, figures_agree_with_the_whole_comparison_within_a_tenth),
    PROPERTY_OF(2, beyond_a_limit_calls_go_to_milder_codecs),
    PROPERTY_OF(2, another_policy_begins_with_its_codec),
    PROPERTY(a_report_changes_no_bit_and_all_are_told),
    PROPERTY_OF(2, a_call_that_is_undone_is_not_judged),
};
RUN_PROPERTIES(mpi_property_main, properties)
