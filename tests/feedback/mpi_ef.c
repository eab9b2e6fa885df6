/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 4 */

/* Options of error feedback: momentum correction, clipping, density warm-up;
 * and what is said about values that are not finite. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/element.h"
#include "tests/support/mpi_property.h"

enum { COUNT = 6000, SMALL = 500, STEPS = 5 };

typedef struct model {
  lcomm_comm *comm;
  lcomm_tensor *tensor, *exempt;
  float data[COUNT], small[SMALL];
} model;

static void open_model(model *m, const char *policy, int nodes, lcomm_op op) {
  m->comm = make_comm(policy, nodes);
  memset(m->data, 0, sizeof(m->data));
  memset(m->small, 0, sizeof(m->small));
  require(lcomm_tensor_add(m->comm, "weight", m->data, COUNT, LCOMM_FLOAT32, op, &m->tensor) ==
              LCOMM_OK,
          "%s", lcomm_last_error(m->comm));
  require(lcomm_tensor_add(m->comm, "bias", m->small, SMALL, LCOMM_FLOAT32, op, &m->exempt) ==
              LCOMM_OK,
          "%s", lcomm_last_error(m->comm));
}

static void close_model(model *m) {
  require(lcomm_destroy(m->comm) == LCOMM_OK, "destroy");
}

static void fill_model(model *m, int step) {
  fill_gradient(m->data, COUNT, (uint64_t)(1 + 10 * step + 1000 * mpi_rank));
  fill_gradient(m->small, SMALL, (uint64_t)(2 + 10 * step + 1000 * mpi_rank));
}

static void step_model(model *m) {
  lcomm_tensor_ready(m->comm, m->tensor);
  lcomm_tensor_ready(m->comm, m->exempt);
  require(lcomm_tensors_wait(m->comm) == LCOMM_OK, "%s", lcomm_last_error(m->comm));
}

static void sum_over_ranks(const float *values, int count, double *sum) {
  for (int i = 0; i < count; i++) {
    sum[i] = values[i];
  }
  sum_everywhere(sum, count);
}

static double distance(const float *values, const double *wanted, int count) {
  double error = 0, norm = 1e-300;
  for (int i = 0; i < count; i++) {
    error += ((double)values[i] - wanted[i]) * ((double)values[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return sqrt(error / norm);
}

/* Deep Gradient Compression on one rank, in the plainest way. */
typedef struct reference {
  float momentum[COUNT], residual[COUNT];
} reference;

static int by_magnitude(const void *a, const void *b) {
  float left = fabsf(*(const float *)a), right = fabsf(*(const float *)b);
  return (left < right) - (left > right);
}

static void reference_step(reference *r, const float *gradient, int kept, float *sent) {
  static float sorted[COUNT];
  for (int i = 0; i < COUNT; i++) {
    r->momentum[i] = 0.9f * r->momentum[i] + gradient[i];
    r->residual[i] += r->momentum[i];
    sorted[i] = r->residual[i];
  }
  qsort(sorted, COUNT, sizeof(float), by_magnitude);
  float threshold = fabsf(sorted[kept - 1]);
  for (int i = 0; i < COUNT; i++) {
    sent[i] = 0.0f;
    if (fabsf(r->residual[i]) >= threshold) {
      sent[i] = lcomm_bf16_to_f32(lcomm_f32_to_bf16(r->residual[i]));
      r->residual[i] -= sent[i];
      r->momentum[i] = 0.0f;
    }
  }
}

/* One rank per node, and slots that all gather: what every rank sends is
 * applied, as in the memory handle. */
static void momentum_correction_follows_the_paper(void) {
  static model m;
  static reference r;
  static float sent[COUNT];
  static double wanted[COUNT];
  memset(&r, 0, sizeof(r));
  open_model(&m, "net=topk:0.02+ef momentum=0.9 min=4K algo=gather", mpi_size, LCOMM_SUM);
  for (int step = 0; step < STEPS; step++) {
    fill_model(&m, step);
    reference_step(&r, m.data, COUNT / 50, sent);
    sum_over_ranks(sent, COUNT, wanted);
    step_model(&m);
    require(distance(m.data, wanted, COUNT) <= 1e-6, "step %d: off by %g", step,
            distance(m.data, wanted, COUNT));
  }
  close_model(&m);
}

/* The mass is conserved whatever the exchange: what came in as momentum is
 * applied or in the residual. */
static void exempt_tensors_get_their_momentum_after_the_sum(void) {
  static model m;
  static double sum[SMALL], velocity[SMALL];
  memset(velocity, 0, sizeof(velocity));
  open_model(&m, "net=topk:0.02+ef momentum=0.9 min=4K", mpi_size < 2 ? 1 : 2, LCOMM_AVG);
  for (int step = 0; step < STEPS; step++) {
    fill_model(&m, step);
    sum_over_ranks(m.small, SMALL, sum);
    step_model(&m);
    for (int i = 0; i < SMALL; i++) {
      velocity[i] = 0.9 * velocity[i] + sum[i] / mpi_size;
    }
    require(distance(m.small, velocity, SMALL) <= 1e-5, "step %d: off by %g", step,
            distance(m.small, velocity, SMALL));
    require(same_everywhere(m.small, sizeof(m.small)), "the ranks differ");
  }
  close_model(&m);
}

/* When everything is sent, the first lossy step carries the momentum of the
 * exact ones, and all of it is masked then. */
static void momentum_of_the_warm_up_goes_on_in_the_lossy_steps(void) {
  static model m;
  static double sum[COUNT], velocity[COUNT];
  for (int nodes = 2; nodes <= mpi_size; nodes++) {
    memset(velocity, 0, sizeof(velocity));
    open_model(&m, "net=topk:1+ef momentum=0.9 min=4K warmup=2 algo=gather", nodes, LCOMM_AVG);
    for (int step = 0; step < 4; step++) {
      fill_model(&m, step);
      sum_over_ranks(m.data, COUNT, sum);
      step_model(&m);
      for (int i = 0; i < COUNT; i++) {
        velocity[i] = (step < 3 ? 0.9 * velocity[i] : 0) + sum[i] / mpi_size;
      }
      require(distance(m.data, velocity, COUNT) <= 5e-3, "%d nodes, step %d: off by %g", nodes,
              step, distance(m.data, velocity, COUNT));
    }
    close_model(&m);
  }
}

static double norm_of(const float *values, int count) {
  double squares = 0;
  for (int i = 0; i < count; i++) {
    squares += (double)values[i] * (double)values[i];
  }
  return sqrt(squares);
}

static void clipping_scales_each_rank_s_tensor(void) {
  static model m;
  static float clipped[COUNT];
  static double wanted[COUNT];
  open_model(&m, "net=topk:1+ef clip=0.5 min=4K algo=gather", mpi_size, LCOMM_SUM);
  for (int step = 0; step < 2; step++) {
    fill_model(&m, step);
    double norm = norm_of(m.data, COUNT), most = 0.5 / sqrt(mpi_size);
    for (int i = 0; i < COUNT; i++) {
      m.data[i] *= step == 0 ? 1.0f : (float)(0.01 * most / norm); /* too large, then small */
      clipped[i] = m.data[i] * (step == 0 && norm > most ? (float)(most / norm) : 1.0f);
    }
    sum_over_ranks(clipped, COUNT, wanted);
    step_model(&m);
    if (step == 0) {
      require(distance(m.data, wanted, COUNT) <= 1e-2, "off by %g",
              distance(m.data, wanted, COUNT));
    }
  }
  close_model(&m);
}

/* An exempt tensor is clipped like one that is compressed, so that all of a model has one
 * direction. */
static void exact_tensors_are_clipped_alike(void) {
  static model m;
  static float clipped[SMALL];
  static double wanted[SMALL];
  open_model(&m, "net=topk:0.1+ef clip=0.5 min=4K exempt=bias", mpi_size, LCOMM_SUM);
  fill_model(&m, 0);
  double norm = norm_of(m.small, SMALL), most = 0.01 / sqrt(mpi_size);
  close_model(&m);
  open_model(&m, "net=topk:0.1+ef clip=0.01 min=4K exempt=bias", mpi_size, LCOMM_SUM);
  fill_model(&m, 0);
  require(norm > most, "the norm is %g", norm);
  for (int i = 0; i < SMALL; i++) {
    clipped[i] = (float)(most / norm) * m.small[i];
  }
  sum_over_ranks(clipped, SMALL, wanted);
  step_model(&m);
  require(distance(m.small, wanted, SMALL) <= 1e-6, "off by %g", distance(m.small, wanted, SMALL));
  close_model(&m);
}

/* Deep Gradient Compression clips the whole gradient of a rank. */
static void global_clipping_scales_all_tensors_by_one_factor(void) {
  static model m;
  static float clipped[COUNT], small[SMALL];
  static double wanted[COUNT], wanted_small[SMALL];
  open_model(&m, "net=fp8e4m3+ef clip=0.05:global min=4K bucket=4K", mpi_size, LCOMM_SUM);
  for (int step = 0; step < 3; step++) {
    fill_model(&m, step);
    double norm = hypot(norm_of(m.data, COUNT), norm_of(m.small, SMALL));
    double most = 0.05 / sqrt(mpi_size);
    require(norm > most, "the norm is %g", norm);
    for (int i = 0; i < COUNT; i++) {
      clipped[i] = (float)(most / norm) * m.data[i];
    }
    for (int i = 0; i < SMALL; i++) {
      small[i] = (float)(most / norm) * m.small[i];
    }
    sum_over_ranks(clipped, COUNT, wanted);
    sum_over_ranks(small, SMALL, wanted_small);
    if (step == 1) { /* the others cannot start before it */
      int done = 0;
      lcomm_tensor_ready(m.comm, m.tensor);
      require(lcomm_tensor_test(m.comm, m.tensor, &done) == LCOMM_OK && !done, "it has started");
      require(lcomm_tensor_wait(m.comm, m.tensor) == LCOMM_ERR_STATE, "nothing would end it");
      lcomm_tensor_ready(m.comm, m.exempt);
      require(lcomm_tensors_wait(m.comm) == LCOMM_OK, "%s", lcomm_last_error(m.comm));
    } else {
      step_model(&m);
    }
    require(distance(m.small, wanted_small, SMALL) <= 1e-6, "small: off by %g",
            distance(m.small, wanted_small, SMALL));
    require(step > 0 || distance(m.data, wanted, COUNT) <= 0.05, "off by %g",
            distance(m.data, wanted, COUNT));
  }
  close_model(&m);
}

/* The finite values of a gradient that holds Inf: an overflow does not switch clipping off. */
static void finite_values_are_clipped_beside_an_overflow(void) {
  static model m;
  static const char *const policies[] = {"net=topk:0.1+ef clip=0.01 min=4K",
                                         "net=topk:0.1+ef clip=0.01:global min=4K"};
  for (int p = 0; p < 2; p++) {
    open_model(&m, policies[p], mpi_size, LCOMM_SUM);
    fill_model(&m, 0);
    for (int i = 0; i < SMALL; i++) {
      m.small[i] *= 1000;
    }
    m.small[7] = INFINITY;
    step_model(&m);
    require(isinf(m.small[7]), "the overflow is gone");
    m.small[7] = 0;
    double norm = norm_of(m.small, SMALL), most = 0.01 * sqrt(mpi_size);
    require(norm <= 1.001 * most, "'%s': the norm of the sum is %g", policies[p], norm);
    close_model(&m);
  }
}

static int count_not_zero(const float *values, int count) {
  int found = 0;
  for (int i = 0; i < count; i++) {
    found += values[i] != 0.0f;
  }
  return found;
}

/* Between two single ranks the result is the union of two selections. */
static void density_warm_up_goes_stage_by_stage_and_keeps_the_residual(void) {
  static model m;
  static float residual[COUNT];
  static double before[COUNT], sum[COUNT], after[COUNT];
  static const double densities[] = {1, 0.5, 0.5, 0.1, 0.02, 0.02};
  memset(before, 0, sizeof(before));
  open_model(&m, "net=topk:0.02+ef min=4K warmup=1 ramp=0.5@2,0.1@1 algo=gather", mpi_size,
             LCOMM_SUM);
  for (int step = 0; step < 6; step++) {
    fill_model(&m, step);
    sum_over_ranks(m.data, COUNT, sum);
    step_model(&m);
    int found = count_not_zero(m.data, COUNT);
    require(found <= densities[step] * COUNT * mpi_size + 1 &&
                found >= densities[step] * COUNT * 0.95,
            "step %d: %d values", step, found);
    lcomm_tensor_residual(m.comm, m.tensor, residual);
    sum_over_ranks(residual, COUNT, after);
    double error = 0, norm = 0;
    for (int i = 0; i < COUNT; i++) {
      double miss = sum[i] + before[i] - (double)m.data[i] - after[i];
      error += miss * miss;
      norm += sum[i] * sum[i];
      before[i] = after[i];
    }
    require(sqrt(error / norm) <= 1e-5, "step %d: lost %g", step, sqrt(error / norm));
  }
  close_model(&m);
}

static void values_that_are_not_finite_are_counted(void) {
  static const char *const policies[] = {"net=bf16 min=1", "net=fp16 min=1",
                                         "net=topk:0.05+ef min=1", "net=none"};
  static model m;
  for (int p = 0; p < 4; p++) {
    open_model(&m, policies[p], mpi_size < 2 ? 1 : 2, LCOMM_SUM);
    for (int step = 0; step < 3; step++) {
      fill_model(&m, step);
      if (step == 1 && mpi_rank == mpi_size - 1) {
        m.data[7] = NAN;
        m.data[COUNT - 1] = INFINITY;
        m.small[3] = -INFINITY;
      }
      step_model(&m);
      require(lcomm_tensors_not_finite(m.comm) == (step == 1 ? 3 : 0), "%s, step %d: counted %llu",
              policies[p], step, (unsigned long long)lcomm_tensors_not_finite(m.comm));
    }
    lcomm_stats stats;
    lcomm_stats_get(m.comm, &stats);
    require(stats.not_finite == 3, "%s: %llu in all", policies[p],
            (unsigned long long)stats.not_finite);
    close_model(&m);
  }
}

/* A block that holds one carries it. */
static void requests_count_what_is_not_finite(void) {
  static float values[COUNT];
  lcomm_comm *comm = make_comm("net=int8 min=1", 2);
  lcomm_request request = {0};
  fill_gradient(values, COUNT, (uint64_t)mpi_rank);
  values[300] = mpi_rank == 0 ? NAN : 1.0f;
  lcomm_iallreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request);
  require(lcomm_wait(comm, &request) == LCOMM_OK, "%s", lcomm_last_error(comm));
  uint64_t counted = lcomm_request_not_finite(&request);
  require(counted >= 1 && counted <= 128 && isnan(values[300]), "counted %llu",
          (unsigned long long)counted);
  require(equal_everywhere((int64_t)counted), "the ranks counted differently");
  lcomm_destroy(comm);
}

/* The thread of the application flushes subnormals to zero and rounds up. */
static void flush_to_zero_in_the_application_changes_no_bit(void) {
#if defined(__x86_64__)
  static const char *const policies[] = {"net=fp16:scale=block min=1", "net=fp8e4m3 min=1",
                                         "net=int8 node=bf16 min=1", "net=topk:0.05 min=1"};
  static float values[COUNT], usual[COUNT], flushed[COUNT];
  for (int p = 0; p < 4; p++) {
    lcomm_comm *comm = make_comm(policies[p], mpi_size < 2 ? 1 : 2);
    fill_gradient(values, COUNT, (uint64_t)mpi_rank + 5);
    for (int i = 0; i < COUNT / 2; i++) {
      values[i] *= 1e-36f;
    }
    lcomm_allreduce(comm, values, usual, COUNT, LCOMM_FLOAT32, LCOMM_AVG);
    unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040u | 0x4000u);
    lcomm_status status = lcomm_allreduce(comm, values, flushed, COUNT, LCOMM_FLOAT32, LCOMM_AVG);
    unsigned kept = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before);
    require(status == LCOMM_OK && (kept & 0xc040u) == 0xc040u, "the environment was not kept");
    require(memcmp(usual, flushed, sizeof(usual)) == 0, "%s: the results differ", policies[p]);
    lcomm_destroy(comm);
  }
#else
  skip_property("needs an x86-64 processor");
#endif
}

static const mpi_property properties[] = {
    PROPERTY_OF(2, momentum_correction_follows_the_paper),
    PROPERTY(exempt_tensors_get_their_momentum_after_the_sum),
    PROPERTY_OF(2, momentum_of_the_warm_up_goes_on_in_the_lossy_steps),
    PROPERTY_OF(2, clipping_scales_each_rank_s_tensor),
    PROPERTY(exact_tensors_are_clipped_alike),
    PROPERTY(global_clipping_scales_all_tensors_by_one_factor),
    PROPERTY(finite_values_are_clipped_beside_an_overflow),
    PROPERTY_OF(2, density_warm_up_goes_stage_by_stage_and_keeps_the_residual),
    PROPERTY(values_that_are_not_finite_are_counted),
    PROPERTY_OF(2, requests_count_what_is_not_finite),
    PROPERTY(flush_to_zero_in_the_application_changes_no_bit),
};
RUN_PROPERTIES(mpi_property_main, properties)
