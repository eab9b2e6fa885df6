/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 5 8 */

/* Tensors: buckets, warm-up, exemption, and the accounts of error feedback. */

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "tests/tensor/tensor_model.h"

enum { STEPS = 6 };

static const uint64_t sizes[TENSORS] = {30000, 700, 12345, 20000};
static const char *const names[TENSORS] = {"fc.weight", "fc.bias", "conv.weight", "norm.scale"};

static const char *const feedback_policies[] = {
    "net=topk:0.01+ef min=8K",
    "net=topk:0.05+ef min=1 scope=bucket",
    "net=topk:0.01+ef min=1 algo=gather",
    "net=topk:0.02+ef min=1 algo=direct",
    "net=topk:0.5+ef min=1 algo=direct",
    "net=int8+ef min=1",
    "net=int8+ef min=1 algo=direct",
    "net=fp8e4m3+ef min=1 bucket=64K",
    "net=bf16+ef min=1",
    "net=topk:0.01+ef min=1 warmup=2",
    "net=topk:0.02,values=int8+ef min=1",
    "net=topk:0.02,values=int8+ef+zstd min=1 algo=direct",
    "net=int4 min=1",
    "net=sign min=1",
    "net=int2 min=1 bucket=64K",
    "net=int4:block=128+zstd min=1 algo=direct",
    "net=fp8e5m2:block=32,stochastic+ef min=1",
    "net=topk:k=200+ef min=1 ramp=0.25@2,0.05@1",
    "net[size<=20K]=int8+ef net[conv*]=bf16+ef net=topk:0.02+ef ramp=0.25@2",
};

enum { FEEDBACK_POLICIES = sizeof(feedback_policies) / sizeof(feedback_policies[0]) };

/* Nothing is lost: see lost_of_step. */
static void check_conservation(const char *policy, int nodes, lcomm_op op) {
  static double before[TENSORS][LARGEST], gradient[TENSORS][LARGEST];
  model m;
  double factor = op == LCOMM_AVG ? mpi_size : 1;
  make_model(&m, policy, nodes, op);
  memset(before, 0, sizeof(before));
  for (int step = 0; step < STEPS; step++) {
    fill_model(&m, step);
    for (int t = 0; t < TENSORS; t++) {
      sum_data(&m, t, gradient[t]);
    }
    lcomm_status status = step_model(&m);
    require(status == LCOMM_OK, "%s: %s", policy, lcomm_last_error(m.comm));
    for (int t = 0; t < TENSORS; t++) {
      double lost = lost_of_step(&m, t, gradient[t], factor, before[t]);
      require(lost <= 1e-5, "%s, %d nodes, step %d, tensor %d: lost %g", policy, nodes, step, t,
              lost);
      require(same_everywhere(m.data[t], sizes[t] * sizeof(float)), "%s: the ranks differ", policy);
    }
  }
  free_model(&m);
}

static void error_feedback_conserves_the_sum(void) {
  int most = mpi_size < 4 ? mpi_size : 4;
  for (int nodes = 1; nodes <= most; nodes++) {
    for (int i = 0; i < FEEDBACK_POLICIES; i++) {
      check_conservation(feedback_policies[i], nodes, i % 2 ? LCOMM_SUM : LCOMM_AVG);
    }
  }
}

static double residual_norm(const model *m, int tensor) {
  static double sum[LARGEST];
  double norm = 0;
  sum_residuals(m, tensor, sum);
  for (uint64_t i = 0; i < sizes[tensor]; i++) {
    norm += sum[i] * sum[i];
  }
  return sqrt(norm);
}

/* With the same gradient every step, the residual is sent again and again:
 * it stays that of about one quantisation. A residual that is kept but never
 * handed in would grow with every step. */
static void residuals_do_not_grow_with_the_steps(void) {
  static const char *const policies[] = {"net=int8+ef min=1 algo=direct",
                                         "net=fp8e5m2+ef min=1 algo=direct", "net=int8+ef min=1"};
  for (int p = 0; p < 3; p++) {
    model m;
    double early = 0;
    make_model(&m, policies[p], mpi_size < 3 ? mpi_size : 3, LCOMM_AVG);
    for (int step = 0; step < 40; step++) {
      fill_model(&m, 0);
      require(step_model(&m) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
      if (step < 3) {
        early = fmax(early, residual_norm(&m, 0));
      }
    }
    require(residual_norm(&m, 0) <= 3 * early, "%s: the residual grew from %g to %g", policies[p],
            early, residual_norm(&m, 0));
    free_model(&m);
  }
}

static void exact_tensors_leave_no_residual_and_equal_the_sum(void) {
  static double sum[LARGEST], residual[LARGEST];
  model m;
  make_model(&m, "net=topk:0.01+ef min=8K exempt=norm*", mpi_size < 2 ? 1 : 2, LCOMM_SUM);
  fill_model(&m, 1);
  static const int exact[2] = {1, 3}; /* below min, exempt by name */
  for (int i = 0; i < 2; i++) {
    sum_data(&m, exact[i], sum);
  }
  sum_data(&m, 3, sum);
  require(step_model(&m) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  for (uint64_t i = 0; i < sizes[3]; i++) {
    require(fabs(m.data[3][i] - sum[i]) <= 1e-6 * (1e-2 + fabs(sum[i])), "element %llu is %g",
            (unsigned long long)i, m.data[3][i]);
  }
  for (int i = 0; i < 2; i++) {
    sum_residuals(&m, exact[i], residual);
    require(residual[5] == 0 && residual[600] == 0, "tensor %s has a residual", names[exact[i]]);
  }
  free_model(&m);
}

static void warm_up_steps_are_exact(void) {
  static double sum[LARGEST];
  model m;
  make_model(&m, "net=topk:0.01+ef min=1 warmup=1", mpi_size < 2 ? 1 : 2, LCOMM_SUM);
  for (int step = 0; step < 2; step++) {
    uint64_t zeros = 0;
    fill_model(&m, step);
    sum_data(&m, 0, sum);
    require(step_model(&m) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
    for (uint64_t i = 0; i < sizes[0]; i++) {
      zeros += m.data[0][i] == 0;
    }
    bool compressed = mpi_size > 1 && step == 1;
    require(compressed ? zeros > sizes[0] / 2 : zeros < sizes[0] / 2, "step %d: %llu zeros", step,
            (unsigned long long)zeros);
  }
  free_model(&m);
}

static void a_bad_step_does_not_poison_the_residual(void) {
  model m;
  make_model(&m, "net=topk:0.05+ef min=1", mpi_size < 2 ? 1 : 2, LCOMM_SUM);
  for (int step = 0; step < 4; step++) {
    fill_model(&m, step);
    if (step == 1 && mpi_rank == 0) {
      m.data[0][11] = NAN;
      m.data[0][12] = INFINITY;
    }
    require(step_model(&m) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
    require(step != 1 || isnan(m.data[0][11]), "the NaN was lost");
    for (uint64_t i = 0; step > 1 && i < sizes[0]; i++) {
      require(isfinite(m.data[0][i]), "step %d element %llu is %g", step, (unsigned long long)i,
              m.data[0][i]);
    }
  }
  free_model(&m);
}

/* Tensors of several types in one communicator; whole numbers are exact in all. */
static void types_are_not_mixed_in_a_bucket(void) {
  enum { COUNT = 5000 };
  static float single[COUNT];
  static uint16_t half[COUNT], brain[COUNT];
  lcomm_tensor *tensors[3];
  lcomm_comm *comm = make_comm("net=none", mpi_size < 3 ? mpi_size : 3);
  lcomm_tensor_add(comm, "half", half, COUNT, LCOMM_FLOAT16, LCOMM_SUM, &tensors[0]);
  lcomm_tensor_add(comm, "single", single, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &tensors[1]);
  lcomm_tensor_add(comm, "brain", brain, COUNT, LCOMM_BFLOAT16, LCOMM_SUM, &tensors[2]);
  for (int step = 0; step < 2; step++) {
    float wanted = 0;
    for (int rank = 0; rank < mpi_size; rank++) {
      wanted += (float)(rank + step);
    }
    for (int i = 0; i < COUNT; i++) {
      single[i] = (float)(mpi_rank + step);
      half[i] = lcomm_f32_to_f16(single[i]);
      brain[i] = lcomm_f32_to_bf16(single[i]);
    }
    for (int i = 0; i < 3; i++) {
      lcomm_tensor_ready(comm, tensors[i]);
    }
    require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
    for (int i = 0; i < COUNT; i++) {
      require(single[i] == wanted && lcomm_f16_to_f32(half[i]) == wanted &&
                  lcomm_bf16_to_f32(brain[i]) == wanted,
              "element %d: %g, %g, %g, not %g", i, single[i], lcomm_f16_to_f32(half[i]),
              lcomm_bf16_to_f32(brain[i]), wanted);
    }
  }
  lcomm_destroy(comm);
}

static void *report_ready(void *argument) {
  model *m = argument;
  for (int i = 0; i < TENSORS; i++) {
    lcomm_tensor_ready(m->comm, m->tensors[i]);
  }
  return NULL;
}

static void tensors_may_be_reported_from_another_thread(void) {
  model m;
  pthread_t thread;
  make_model(&m, "net=int8+ef min=1", mpi_size < 2 ? 1 : 2, LCOMM_AVG);
  for (int step = 0; step < 3; step++) {
    fill_model(&m, step);
    pthread_create(&thread, NULL, report_ready, &m);
    pthread_join(thread, NULL);
    require(lcomm_tensors_wait(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
    require(same_everywhere(m.data[2], sizes[2] * sizeof(float)), "the ranks differ");
  }
  free_model(&m);
}

static void mistakes_with_tensors_are_refused_and_harmless(void) {
  model m;
  lcomm_tensor *tensor = NULL;
  make_model(&m, "net=int8 min=1", 1, LCOMM_SUM);
  fill_model(&m, 0);
  require(lcomm_tensor_add(m.comm, names[0], m.data[0], 5, LCOMM_FLOAT32, LCOMM_SUM, &tensor) ==
              LCOMM_ERR_ARGUMENT,
          "a name was taken twice");
  require(lcomm_tensors_wait(m.comm) == LCOMM_ERR_STATE, "waited without tensors");
  require(strstr(lcomm_last_error(m.comm), "fc.weight") != NULL, "%s", lcomm_last_error(m.comm));
  require(lcomm_tensor_ready(m.comm, m.tensors[0]) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  require(lcomm_tensor_ready(m.comm, m.tensors[0]) == LCOMM_ERR_STATE, "ready twice");
  require(lcomm_tensor_add(m.comm, "late", m.data[0], 5, LCOMM_FLOAT32, LCOMM_SUM, &tensor) ==
              LCOMM_ERR_STATE,
          "added during a step");
  for (int i = 1; i < TENSORS; i++) {
    lcomm_tensor_ready(m.comm, m.tensors[i]);
  }
  require(lcomm_tensors_wait(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
  free_model(&m);
}

static void different_tensors_are_named_on_every_rank(void) {
  float data[64] = {0};
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_tensor_add(comm, "same", data, 32, LCOMM_FLOAT32, LCOMM_SUM, &tensor);
  lcomm_tensor_ready(comm, tensor);
  lcomm_tensor_add(comm, "other", data + 32, 32, LCOMM_FLOAT32, LCOMM_SUM, &tensor);
  lcomm_destroy(comm);
  comm = make_comm("net=none", 1);
  uint64_t count = mpi_rank == mpi_size - 1 ? 31 : 32;
  lcomm_tensor_add(comm, "weight", data, count, LCOMM_FLOAT32, LCOMM_SUM, &tensor);
  lcomm_tensor_ready(comm, tensor);
  lcomm_status status = lcomm_tensors_wait(comm);
  require(status == LCOMM_ERR_MISMATCH, "%s", lcomm_status_name(status));
  require(strstr(lcomm_last_error(comm), "weight") != NULL, "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
}

static const mpi_property properties[] = {
    PROPERTY(error_feedback_conserves_the_sum),
    PROPERTY(residuals_do_not_grow_with_the_steps),
    PROPERTY(exact_tensors_leave_no_residual_and_equal_the_sum),
    PROPERTY(warm_up_steps_are_exact),
    PROPERTY(a_bad_step_does_not_poison_the_residual),
    PROPERTY(types_are_not_mixed_in_a_bucket),
    PROPERTY(tensors_may_be_reported_from_another_thread),
    PROPERTY(mistakes_with_tensors_are_refused_and_harmless),
    PROPERTY_OF(2, different_tensors_are_named_on_every_rank),
};
RUN_PROPERTIES(mpi_property_main, properties)
