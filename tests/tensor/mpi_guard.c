/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* The guard at work: its figures against the whole comparison, codecs that change, and that it
 * changes nothing else. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "tests/support/mpi_property.h"

enum { TENSORS = 2, LARGEST = 1600000, LONG = 6400000 };

static uint64_t sizes[TENSORS] = {200000, 100000};
static const char *const names[TENSORS] = {"conv.weight", "fc.weight"};

typedef struct model {
  lcomm_comm *comm;
  lcomm_op op;
  lcomm_tensor *tensors[TENSORS];
  float *data[TENSORS];
} model;

static void use_sizes(uint64_t first, uint64_t second) {
  sizes[0] = first;
  sizes[1] = second;
}

static void make_model(model *m, const char *policy, int nodes, lcomm_op op) {
  m->comm = make_comm(policy, nodes);
  m->op = op;
  for (int t = 0; t < TENSORS; t++) {
    m->data[t] = calloc(sizes[t], sizeof(float));
    require(lcomm_tensor_add(m->comm, names[t], m->data[t], sizes[t], LCOMM_FLOAT32, op,
                             &m->tensors[t]) == LCOMM_OK,
            "%s", lcomm_last_error(m->comm));
  }
}

static void free_model(model *m) {
  require(lcomm_destroy(m->comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
  for (int t = 0; t < TENSORS; t++) {
    free(m->data[t]);
  }
}

static int most_nodes(void) {
  return mpi_size < 2 ? 1 : mpi_size == 4 ? 4 : 2;
}

/* Mostly noise of each rank, and a part that all ranks have in every step. */
static void fill_values(float *values, uint64_t count, uint64_t seed) {
  for (uint64_t i = 0; i < count; i++) {
    double noise = (double)(int32_t)lcomm_random(seed, i) / 2147483648.0;
    double common = (double)(i * 7919 % 1000) / 500.0 - 1.0;
    values[i] = (float)(1e-3 * (noise * noise * noise + 0.2 * common));
  }
}

static void fill_model(model *m, int step) {
  for (int t = 0; t < TENSORS; t++) {
    fill_values(m->data[t], sizes[t], (uint64_t)(1 + t + 10 * step + 1000 * mpi_rank));
  }
}

static void step_model(model *m) {
  for (int t = 0; t < TENSORS; t++) {
    require(lcomm_tensor_ready(m->comm, m->tensors[t]) == LCOMM_OK, "%s",
            lcomm_last_error(m->comm));
  }
  require(lcomm_tensors_wait(m->comm) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

static lcomm_guard_figures figures_of(const model *m, int t) {
  lcomm_guard_figures figures = {0};
  require(lcomm_tensor_guard(m->comm, m->tensors[t], &figures) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  return figures;
}

/* Sum over the ranks, in double. Returns `sum`. */
static double *sum_of(const float *values, uint64_t count, double *sum) {
  for (uint64_t i = 0; i < count; i++) {
    sum[i] = (double)values[i];
  }
  MPI_Allreduce(MPI_IN_PLACE, sum, (int)count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static void sum_residuals(const model *m, int t, double *sum) {
  static float residual[LARGEST];
  require(lcomm_tensor_residual(m->comm, m->tensors[t], residual) == LCOMM_OK, "%s",
          lcomm_last_error(m->comm));
  sum_of(residual, sizes[t], sum);
}

/* --------------------------------------------------------------- figures */

typedef struct whole {
  double error, cosine, residual;
} whole;

static whole compare_all(const model *m, int t, const double *gradient, const double *residual) {
  double factor = m->op == LCOMM_AVG ? mpi_size : 1, gg = 0, rr = 0, gr = 0, apart = 0, late = 0;
  for (uint64_t i = 0; i < sizes[t]; i++) {
    double result = factor * (double)m->data[t][i];
    gg += gradient[i] * gradient[i];
    rr += result * result;
    gr += gradient[i] * result;
    apart += (result - gradient[i]) * (result - gradient[i]);
    late += residual[i] * residual[i];
  }
  return (whole){sqrt(apart / gg), gr / sqrt(gg * rr), sqrt(late / gg)};
}

static bool is_near(double found, double wanted) {
  return fabs(found - wanted) <= 0.1 * fabs(wanted);
}

static void expect_figures(const model *m, const char *policy, int step, const double *gradient,
                           int t) {
  static double residual[LARGEST];
  sum_residuals(m, t, residual);
  whole all = compare_all(m, t, gradient, residual);
  lcomm_guard_figures found = figures_of(m, t);
  require((int)found.step == step && found.samples > 0 && strcmp(found.tensor, names[t]) == 0,
          "%s, step %d: the last check was in %llu", policy, step, (unsigned long long)found.step);
  require(is_near(found.error, all.error) && is_near(found.cosine, all.cosine) &&
              is_near(found.residual, all.residual),
          "%s, step %d, %s: error %g instead of %g, cosine %g instead of %g, residual %g instead "
          "of %g",
          policy, step, names[t], found.error, all.error, found.cosine, all.cosine, found.residual,
          all.residual);
}

static void check_figures(const char *policy, int nodes, lcomm_op op) {
  static double gradient[TENSORS][LARGEST];
  model m;
  make_model(&m, policy, nodes, op);
  for (int step = 0; step < 4; step++) {
    fill_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      sum_of(m.data[t], sizes[t], gradient[t]);
    }
    step_model(&m);
    for (int t = 0; t < TENSORS && step % 2 == 1; t++) {
      expect_figures(&m, policy, step, gradient[t], t);
    }
  }
  free_model(&m);
}

/* Of a sparse result the entries count that the sample meets: here some hundred at least. */
static void figures_agree_with_the_whole_comparison_within_a_tenth(void) {
  static const char *const policies[] = {
      "net=topk:0.1+ef guard=2",
      "net=topk:0.05 guard=2,limit=10 algo=direct",
      "net=int4 guard=2",
      "net=int8+ef guard=2 bucket=4M",
      "net=bf16 guard=2",
      "net=fp8e4m3:stochastic+ef guard=2",
      "net=topk:0.1,values=int8+ef+zstd guard=2 algo=direct scope=bucket",
  };
  use_sizes(LARGEST, LARGEST / 2);
  for (int nodes = 2; nodes <= most_nodes(); nodes += 2) {
    for (int i = 0; i < (int)(sizeof(policies) / sizeof(policies[0])); i++) {
      check_figures(policies[i], nodes, i % 2 ? LCOMM_SUM : LCOMM_AVG);
    }
  }
  use_sizes(200000, 100000);
}

/* At a density of 1 %, in one step: what is left is the residual. */
static void figures_of_long_sparse_tensors_agree_too(void) {
  double gg = 0, rr = 0, gr = 0, apart = 0, late = 0;
  float *data = malloc(LONG * sizeof(float));
  double *gradient = malloc(LONG * sizeof(double));
  lcomm_comm *comm = make_comm("net=topk:0.01+ef guard=1", 2 < mpi_size ? 2 : mpi_size);
  lcomm_tensor *tensor = NULL;
  lcomm_guard_figures found = {0};
  require(lcomm_tensor_add(comm, "long", data, LONG, LCOMM_FLOAT32, LCOMM_SUM, &tensor) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  fill_values(data, LONG, (uint64_t)mpi_rank + 1);
  sum_of(data, LONG, gradient);
  lcomm_tensor_ready(comm, tensor);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  for (uint64_t i = 0; i < LONG; i++) {
    double result = (double)data[i], left = gradient[i] - result;
    gg += gradient[i] * gradient[i];
    rr += result * result;
    gr += gradient[i] * result;
    apart += left * left;
    late += left * left;
  }
  lcomm_tensor_guard(comm, tensor, &found);
  require(mpi_size < 2 || (is_near(found.error, sqrt(apart / gg)) &&
                           is_near(found.cosine, gr / sqrt(gg * rr)) &&
                           is_near(found.residual, sqrt(late / gg))),
          "error %g instead of %g, cosine %g instead of %g, residual %g instead of %g", found.error,
          sqrt(apart / gg), found.cosine, gr / sqrt(gg * rr), found.residual, sqrt(late / gg));
  require(lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_last_error(NULL));
  free(data);
  free(gradient);
}

/* With momentum correction what goes into a step is known by what comes out of it and by the
 * residuals: result + residual after - residual before. */
static void gradients_are_looked_at_with_their_momentum(void) {
  static double gradient[LARGEST], before[LARGEST], after[LARGEST];
  model m;
  use_sizes(LARGEST, LARGEST / 2);
  make_model(&m, "net=topk:0.1+ef momentum=0.9 guard=3", most_nodes(), LCOMM_SUM);
  for (int step = 0; step < 6; step++) {
    fill_model(&m, step);
    sum_residuals(&m, 0, before);
    step_model(&m);
    sum_residuals(&m, 0, after);
    for (uint64_t i = 0; i < sizes[0]; i++) {
      gradient[i] = (double)m.data[0][i] + after[i] - before[i];
    }
    if (step % 3 == 2 && most_nodes() > 1) {
      expect_figures(&m, "momentum", step, gradient, 0);
    }
  }
  free_model(&m);
  use_sizes(200000, 100000);
}

static void expect_same_figures(const lcomm_guard_figures *figures) {
  double numbers[] = {figures->error, figures->cosine, figures->residual};
  uint64_t counts[] = {figures->checks, figures->step,      figures->samples,
                       figures->waited, figures->fallbacks, (uint64_t)figures->beyond};
  require(same_everywhere(numbers, sizeof(numbers)) && same_everywhere(counts, sizeof(counts)) &&
              same_everywhere(figures->codec, sizeof(figures->codec)) &&
              same_everywhere(figures->next, sizeof(figures->next)),
          "ranks have other figures of %s", figures->tensor);
}

/* ----------------------------------------------------------------- codecs */

static const char *codec_after(const model *m, int t) {
  static char text[LCOMM_GUARD_CODEC_MAX];
  snprintf(text, sizeof(text), "%s", figures_of(m, t).next);
  return text;
}

/* sum(gradient + residual before) == factor * applied + sum(residual after), whatever the codec
 * is, and the same results on all ranks. The last rungs round without error feedback. */
static void no_mass_is_lost_on_the_way_to_exact_sums(void) {
  static const char *const ladder[] = {"int4+ef", "int8+ef", "bf16", "none"};
  static double gradient[TENSORS][LARGEST], before[TENSORS][LARGEST], after[LARGEST];
  model m;
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
  make_model(&m, "net=topk:0.02+ef guard=2,residual=0.000001", most_nodes(), LCOMM_AVG);
  memset(before, 0, sizeof(before));
  for (int step = 0; step < 12; step++) {
    fill_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      sum_of(m.data[t], sizes[t], gradient[t]);
    }
    step_model(&m);
    for (int t = 0; t < TENSORS; t++) {
      double lost = 0, norm = 0;
      sum_residuals(&m, t, after);
      for (uint64_t i = 0; i < sizes[t]; i++) {
        double left = gradient[t][i] + before[t][i];
        double miss = left - (mpi_size * (double)m.data[t][i] + after[i]);
        lost += miss * miss;
        norm += left * left;
      }
      bool rounds = step >= 6;
      require(sqrt(lost / norm) <= (rounds ? 1e-2 : 1e-5), "step %d, %s: lost %g", step, names[t],
              sqrt(lost / norm));
      require(same_everywhere(m.data[t], sizes[t] * sizeof(float)), "step %d: the ranks differ",
              step);
      lcomm_guard_figures figures = figures_of(&m, t);
      expect_same_figures(&figures);
      int falls = (step + 1) / 2 < 3 ? (step + 1) / 2 : 3;
      require((int)figures.fallbacks == falls, "step %d: %d falls", step, (int)figures.fallbacks);
      require(falls == 0 || strcmp(figures.next, ladder[falls - 1]) == 0, "step %d: next is %s",
              step, figures.next);
      memcpy(before[t], after, sizeof(after));
    }
  }
  free_model(&m);
}

/* Of the two tensors only one has results that top-k cannot send. */
static void only_the_tensor_that_is_beyond_its_limit_changes(void) {
  model m;
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
  make_model(&m, "net=topk:0.01 guard=2 bucket=25M", 2, LCOMM_SUM);
  for (int step = 0; step < 4; step++) {
    fill_model(&m, step);
    memset(m.data[1], 0, sizes[1] * sizeof(float));
    for (uint64_t i = 0; i < sizes[1]; i += 200) {
      m.data[1][i] = 1;
    }
    step_model(&m);
  }
  require(figures_of(&m, 0).fallbacks == 1 && strcmp(codec_after(&m, 0), "int4-ef") == 0,
          "the dense tensor travels by %s", codec_after(&m, 0));
  lcomm_guard_figures sparse = figures_of(&m, 1);
  require(sparse.fallbacks == 0 && sparse.error < 1e-2 && sparse.checks == 2,
          "the sparse tensor has error %g", sparse.error);
  free_model(&m);
}

/* |values - exact| / |exact| */
static double error_of(const float *values, uint64_t count, const double *exact) {
  double apart = 0, norm = 0;
  for (uint64_t i = 0; i < count; i++) {
    apart += ((double)values[i] - exact[i]) * ((double)values[i] - exact[i]);
    norm += exact[i] * exact[i];
  }
  return sqrt(apart / norm);
}

/* Each starts at the codec that its pattern gives it and goes down from there: the plans with the
 * milder codecs are not those of the pattern, and min= does not make them exact. */
static void a_tensor_whose_codec_comes_from_a_pattern_falls_back(void) {
  static const char *const of_conv[] = {"int4-ef", "int8", "bf16", "none", "none"};
  static double exact[LARGEST];
  model m;
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
  make_model(&m, "net[conv*]=topk:0.001-ef net=bf16 min=1G net[fc*]=int8-ef guard=1,limit=0.0001",
             2, LCOMM_SUM);
  for (int step = 0; step < 5; step++) {
    fill_model(&m, step);
    sum_of(m.data[0], sizes[0], exact);
    step_model(&m);
    lcomm_guard_figures conv = figures_of(&m, 0), fc = figures_of(&m, 1);
    const char *by = step == 0 ? "topk:0.001" : of_conv[step < 4 ? step - 1 : 2];
    require(strcmp(conv.codec, by) == 0 && strcmp(conv.next, of_conv[step]) == 0,
            "step %d: conv by %s, next %s", step, conv.codec, conv.next);
    require(strcmp(fc.next, step == 0 ? "bf16" : "none") == 0, "step %d: fc next by %s", step,
            fc.next);
    double error = error_of(m.data[0], sizes[0], exact);
    require(step == 0 ? error > 0.5 : error < 0.2 && (step < 4 || error < 1e-6),
            "step %d: conv has error %g", step, error);
    expect_same_figures(&conv);
    expect_same_figures(&fc);
  }
  free_model(&m);
}

static void a_tensor_comes_back_after_ten_good_checks(void) {
  model m;
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
  make_model(&m, "net=topk:0.01 guard=1,limit=0.5", 2, LCOMM_SUM);
  for (int step = 0; step < 12; step++) {
    fill_model(&m, step);
    step_model(&m);
    const char *wanted = step < 10 ? "int4-ef" : step == 10 ? "topk:0.01" : "int4-ef";
    require(strcmp(codec_after(&m, 0), wanted) == 0, "step %d: next is %s", step,
            codec_after(&m, 0));
  }
  require(figures_of(&m, 0).fallbacks == 2, "%d falls", (int)figures_of(&m, 0).fallbacks);
  require(lcomm_policy_set(m.comm, "net=topk:0.01 guard=2,limit=2") == LCOMM_OK, "%s",
          lcomm_last_error(m.comm));
  for (int step = 0; step < 2; step++) {
    fill_model(&m, step);
    step_model(&m);
  }
  require(strcmp(codec_after(&m, 0), "topk:0.01") == 0, "another policy leaves it at %s",
          codec_after(&m, 0));
  free_model(&m);
}

/* Descent on sum((x - target)^2) / 2 with noise of each rank: the distance left, of what there was.
 */
static double descend(const char *policy) {
  static float target[LARGEST], place[LARGEST];
  model m;
  double left = 0, all = 0;
  make_model(&m, policy, 2, LCOMM_AVG);
  for (uint64_t i = 0; i < sizes[0]; i++) {
    target[i] = (float)sin((double)(i * i % 1000));
  }
  memset(place, 0, sizeof(place));
  for (int step = 0; step < 40; step++) {
    fill_model(&m, step);
    for (uint64_t i = 0; i < sizes[0]; i++) {
      m.data[0][i] += place[i] - target[i];
    }
    step_model(&m);
    for (uint64_t i = 0; i < sizes[0]; i++) {
      place[i] -= 0.2f * m.data[0][i];
    }
  }
  for (uint64_t i = 0; i < sizes[0]; i++) {
    left += pow((double)place[i] - (double)target[i], 2);
    all += pow((double)target[i], 2);
  }
  free_model(&m);
  return sqrt(left / all);
}

/* With 1 of 10,000 values and no memory nothing is learnt; the guard sees it in the first check. */
static void a_codec_that_is_too_coarse_does_not_spoil_a_descent(void) {
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
  double exact = descend("net=none"), coarse = descend("net=topk:0.0001");
  double guarded = descend("net=topk:0.0001 guard=5");
  require(exact < 0.01 && coarse > 0.9, "exact %g, coarse %g", exact, coarse);
  require(guarded < 0.05, "with a guard %g of the way is left, exact sums leave %g", guarded,
          exact);
}

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
          "NaN was judged: error %g", poisoned.error);
  require(zeros.checks == 0 && zeros.fallbacks == 0, "zeros were judged: error %g", zeros.error);
  free_model(&m);
}

/* A frozen tensor is not checked; it keeps its codec until it comes again. */
static void frozen_tensors_keep_their_codec(void) {
  model m;
  if (mpi_size < 2) {
    skip_property("needs 2 ranks");
    return;
  }
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

int main(int argc, char **argv) {
  static const mpi_property properties[] = {
      PROPERTY(figures_agree_with_the_whole_comparison_within_a_tenth),
      PROPERTY(figures_of_long_sparse_tensors_agree_too),
      PROPERTY(gradients_are_looked_at_with_their_momentum),
      PROPERTY(no_mass_is_lost_on_the_way_to_exact_sums),
      PROPERTY(only_the_tensor_that_is_beyond_its_limit_changes),
      PROPERTY(a_tensor_whose_codec_comes_from_a_pattern_falls_back),
      PROPERTY(a_tensor_comes_back_after_ten_good_checks),
      PROPERTY(a_codec_that_is_too_coarse_does_not_spoil_a_descent),
      PROPERTY(a_report_changes_no_bit_and_sums_one_percent),
      PROPERTY(every_rank_is_told_of_every_tensor),
      PROPERTY(a_check_makes_nothing),
      PROPERTY(exact_tensors_and_steps_are_not_checked),
      PROPERTY(what_is_not_finite_decides_nothing),
      PROPERTY(frozen_tensors_keep_their_codec),
  };
  return mpi_property_main(&argc, &argv, WITH_COUNT(properties));
}
