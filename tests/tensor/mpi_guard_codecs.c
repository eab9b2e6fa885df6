/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 */

/* Codecs that the guard changes. */

#include "tests/tensor/guard_model.h"

static void expect_same_figures(const lcomm_guard_figures *figures) {
  double numbers[] = {figures->error, figures->cosine, figures->residual};
  uint64_t counts[] = {figures->checks, figures->step,      figures->samples,
                       figures->waited, figures->fallbacks, (uint64_t)figures->beyond};
  require(same_everywhere(numbers, sizeof(numbers)) && same_everywhere(counts, sizeof(counts)) &&
              same_everywhere(figures->codec, sizeof(figures->codec)) &&
              same_everywhere(figures->next, sizeof(figures->next)),
          "ranks have other figures of %s", figures->tensor);
}

/* sum(gradient + residual before) == factor * applied + sum(residual after), whatever the codec
 * is, and the same results on all ranks. The last rungs round without error feedback. */
static void no_mass_is_lost_on_the_way_to_exact_sums(void) {
  static const char *const ladder[] = {"int4+ef", "int8+ef", "bf16", "none"};
  static double gradient[TENSORS][LARGEST], before[TENSORS][LARGEST], after[LARGEST];
  model m;
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
  double exact = descend("net=none"), coarse = descend("net=topk:0.0001");
  double guarded = descend("net=topk:0.0001 guard=5");
  require(exact < 0.01 && coarse > 0.9, "exact %g, coarse %g", exact, coarse);
  require(guarded < 0.05, "with a guard %g of the way is left, exact sums leave %g", guarded,
          exact);
}

static const mpi_property properties[] = {
    PROPERTY_OF(2, no_mass_is_lost_on_the_way_to_exact_sums),
    PROPERTY_OF(2, only_the_tensor_that_is_beyond_its_limit_changes),
    PROPERTY_OF(2, a_tensor_whose_codec_comes_from_a_pattern_falls_back),
    PROPERTY_OF(2, a_tensor_comes_back_after_ten_good_checks),
    PROPERTY_OF(2, a_codec_that_is_too_coarse_does_not_spoil_a_descent),
};
RUN_PROPERTIES(mpi_property_main, properties)
