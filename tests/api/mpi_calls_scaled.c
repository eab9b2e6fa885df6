/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Sums with factors, of calls and of tensors. */

#include <math.h>

#include "tests/api/call_model.h"

enum { COUNT_MAX = 5001, FLOATS = 4 };

static const uint64_t counts[] = {0, 1, 131, COUNT_MAX};

enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

static union {
  double widest[COUNT_MAX];
  uint8_t bytes[1];
} send, receive, wanted, before;

/* Factors that are powers of two change no digit, so results are exact. */
static void expect(lcomm_dtype dtype, lcomm_op op, uint64_t count, double factor) {
  for (uint64_t i = 0; i < count; i++) {
    element_put(dtype, &wanted, i, factor * model_result(dtype, op, i));
  }
}

static void check_factors(lcomm_comm *comm, lcomm_dtype dtype, lcomm_op op, uint64_t count) {
  size_t size = count * lcomm_dtype_size(dtype);
  const char *type = lcomm_dtype_name(dtype);
  lcomm_request request;
  model_fill(dtype, &send, mpi_rank, 0, count);
  memcpy(&before, &send, size);
  expect(dtype, op, count, 0.25 * -8);
  require(lcomm_allreduce_scaled(comm, &send, &receive, count, dtype, op, 0.25, -8) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  require(memcmp(&receive, &wanted, size) == 0, "%llu %s, operation %d: wrong",
          (unsigned long long)count, type, (int)op);
  require(memcmp(&send, &before, size) == 0, "%s: the send buffer changed", type);
  expect(dtype, op, count, 2);
  require(lcomm_iallreduce_scaled(comm, &send, &send, count, dtype, op, 4, 0.5, &request) ==
                  LCOMM_OK &&
              lcomm_wait(comm, &request) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  require(memcmp(&send, &wanted, size) == 0, "%llu %s in place, operation %d: wrong",
          (unsigned long long)count, type, (int)op);
}

static void factors_multiply_before_and_after_the_sum(void) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=none", layout);
    for (int i = 0; comm && i < FLOATS * COUNTS; i++) {
      check_factors(comm, model_types[i / COUNTS], LCOMM_SUM, counts[i % COUNTS]);
      check_factors(comm, model_types[i / COUNTS], LCOMM_AVG, counts[i % COUNTS]);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

/* A float16 ends at 65504. */
static void sixteen_bits_are_rounded_after_the_last_factor(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  double shrink = 1.0 / 16;
  for (uint64_t count = 1; count <= COUNT_MAX; count += COUNT_MAX - 1) {
    for (uint64_t i = 0; i < count; i++) {
      element_put(LCOMM_FLOAT16, &send, i, 60000);
      element_put(LCOMM_FLOAT16, &wanted, i, 60000 * shrink * mpi_size);
    }
    require(lcomm_allreduce_scaled(comm, &send, &receive, count, LCOMM_FLOAT16, LCOMM_SUM, 1,
                                   shrink) == LCOMM_OK &&
                memcmp(&receive, &wanted, 2 * count) == 0,
            "`after` came too late: %s", lcomm_last_error(comm));
    require(lcomm_allreduce_scaled(comm, &send, &receive, count, LCOMM_FLOAT16, LCOMM_SUM, shrink,
                                   1) == LCOMM_OK &&
                memcmp(&receive, &wanted, 2 * count) == 0,
            "`before` came too late: %s", lcomm_last_error(comm));
  }
  lcomm_destroy(comm);
}

static void compressed_sums_have_factors_too(void) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_comm *comm = model_comm("net=int8 node=int8 min=1", layout);
    if (!comm) {
      continue;
    }
    double error = 0, norm = 0;
    model_fill(LCOMM_FLOAT32, &send, mpi_rank, 0, COUNT_MAX);
    require(lcomm_allreduce_scaled(comm, &send, &receive, COUNT_MAX, LCOMM_FLOAT32, LCOMM_AVG, 0.3,
                                   7) == LCOMM_OK,
            "%s", lcomm_last_error(comm));
    for (uint64_t i = 0; i < COUNT_MAX; i++) {
      double exact = 2.1 * model_result(LCOMM_FLOAT64, LCOMM_AVG, i);
      double found = (double)((const float *)(const void *)&receive)[i];
      error += (found - exact) * (found - exact);
      norm += exact * exact;
    }
    require(error <= norm * 0.05 * 0.05, "layout %d: relative error %g", layout,
            sqrt(error / norm));
    require(same_everywhere(&receive, COUNT_MAX * sizeof(float)), "the ranks differ");
    lcomm_destroy(comm);
  }
}

/* -------------------------------------------------------------- differences */

static void factors_that_differ_are_an_error_on_every_rank(void) {
  for (int which = 0; which < 2; which++) {
    lcomm_comm *comm = make_comm("net=none", 1);
    double mine = mpi_rank == mpi_size - 1 ? 2 : 3;
    lcomm_status status = lcomm_allreduce_scaled(comm, &send, &send, 131, LCOMM_FLOAT32, LCOMM_SUM,
                                                 which == 0 ? mine : 1, which == 0 ? 1 : mine);
    require(status == LCOMM_ERR_MISMATCH, "status %d: %s", (int)status, lcomm_last_error(comm));
    lcomm_destroy(comm);
  }
}

static void factors_of_tensors_that_differ_are_an_error_on_every_rank(void) {
  float data[2][64] = {{0}};
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_tensor *tensors[2] = {NULL, NULL};
  for (int i = 0; i < 2; i++) {
    require(lcomm_tensor_add(comm, i == 0 ? "a" : "b", data[i], 64, LCOMM_FLOAT32, LCOMM_SUM,
                             &tensors[i]) == LCOMM_OK,
            "%s", lcomm_last_error(comm));
  }
  for (int step = 0; step < 2; step++) {
    double after = step == 1 && mpi_rank == 0 ? 4 : 2;
    require(lcomm_tensor_scale(comm, tensors[1], 1, after) == LCOMM_OK, "%s",
            lcomm_last_error(comm));
    lcomm_tensor_ready(comm, tensors[0]);
    lcomm_tensor_ready(comm, tensors[1]);
    lcomm_status status = lcomm_tensors_wait(comm);
    require(status == (step == 0 ? LCOMM_OK : LCOMM_ERR_MISMATCH), "step %d: %d, %s", step,
            (int)status, lcomm_last_error(comm));
    MPI_Barrier(MPI_COMM_WORLD); /* nobody hears of the second step during the first */
  }
  lcomm_destroy(comm);
}

/* ------------------------------------------------------------------ tensors */

typedef struct scaled_tensor {
  const char *name;
  lcomm_dtype dtype;
  uint64_t count;
  double before, after;
} scaled_tensor;

/* Two share a bucket, the others are alone; "plain" has no factors. */
static const scaled_tensor scaled[] = {
    {"first", LCOMM_FLOAT32, 131, 0.5, 4},    {"plain", LCOMM_FLOAT32, 77, 1, 1},
    {"large", LCOMM_FLOAT32, 5001, 0.25, -2}, {"half", LCOMM_FLOAT16, 129, 2, 0.5},
    {"brain", LCOMM_BFLOAT16, 33, 8, 0.25},   {"wide", LCOMM_FLOAT64, 501, 0.125, 16},
};

enum { SCALED = sizeof(scaled) / sizeof(scaled[0]) };

static void run_step(lcomm_comm *comm, lcomm_tensor **tensors, double (*data)[COUNT_MAX],
                     int exponent) {
  for (int i = SCALED - 1; i >= 0; i--) {
    model_fill(scaled[i].dtype, data[i], mpi_rank, (uint64_t)i, scaled[i].count);
    if (exponent > 0) {
      require(lcomm_tensor_scale(comm, tensors[i], scaled[i].before,
                                 ldexp(scaled[i].after, exponent)) == LCOMM_OK,
              "%s", lcomm_last_error(comm));
    }
  }
  for (int i = 0; i < SCALED; i++) {
    require(lcomm_tensor_ready(comm, tensors[i]) == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  for (int i = 0; i < SCALED; i++) {
    const scaled_tensor *it = &scaled[i];
    double factor = exponent > 0 ? ldexp(it->before * it->after, exponent) : 1;
    for (uint64_t k = 0; k < it->count; k++) {
      element_put(it->dtype, &wanted, k,
                  factor * model_result(it->dtype, LCOMM_AVG, (uint64_t)i + k));
    }
    require(memcmp(data[i], &wanted, it->count * lcomm_dtype_size(it->dtype)) == 0,
            "tensor %s with exponent %d is wrong", it->name, exponent);
  }
}

static void every_tensor_has_factors_of_its_own(void) {
  static double data[SCALED][COUNT_MAX];
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_tensor *tensors[SCALED] = {NULL};
    lcomm_comm *comm = model_comm("bucket=4K", layout);
    for (int i = 0; comm && i < SCALED; i++) {
      require(lcomm_tensor_add(comm, scaled[i].name, data[i], scaled[i].count, scaled[i].dtype,
                               LCOMM_AVG, &tensors[i]) == LCOMM_OK,
              "%s", lcomm_last_error(comm));
    }
    for (int step = 0; comm && step < 4; step++) { /* without factors, then with others each time */
      run_step(comm, tensors, data, step);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

/* What is not sent is remembered in units of what was multiplied by `before`. */
static void residuals_are_what_was_multiplied(void) {
  enum { COUNT = 4096 };
  static float data[COUNT], residual[COUNT], sums[COUNT];
  static double given[COUNT], taken[COUNT];
  lcomm_tensor *tensor = NULL;
  lcomm_comm *comm = make_comm("net=topk:0.05+ef min=1", mpi_size > 1 ? 2 : 1);
  require(lcomm_tensor_add(comm, "weight", data, COUNT, LCOMM_FLOAT32, LCOMM_AVG, &tensor) ==
                  LCOMM_OK &&
              lcomm_tensor_scale(comm, tensor, 0.5, 8) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  memset(given, 0, sizeof(given));
  memset(taken, 0, sizeof(taken));
  for (int step = 0; step < 3; step++) {
    fill_gradient(data, COUNT, (uint64_t)(mpi_rank * 10 + step));
    MPI_Allreduce(data, sums, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    lcomm_tensor_ready(comm, tensor);
    require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
    for (int i = 0; i < COUNT; i++) {
      given[i] += 0.5 * (double)sums[i];
      taken[i] += (double)data[i] / 8 * mpi_size;
    }
  }
  require(lcomm_tensor_residual(comm, tensor, residual) == LCOMM_OK, "%s", lcomm_last_error(comm));
  MPI_Allreduce(residual, sums, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < COUNT; i++) {
    double left = given[i] - taken[i];
    require(fabs(left - (double)sums[i]) <= 1e-5, "element %d: %g is left, the residual is %g", i,
            left, (double)sums[i]);
  }
  lcomm_destroy(comm);
}

static const mpi_property properties[] = {
    PROPERTY(factors_multiply_before_and_after_the_sum),
    PROPERTY(sixteen_bits_are_rounded_after_the_last_factor),
    PROPERTY(compressed_sums_have_factors_too),
    PROPERTY_OF(2, factors_that_differ_are_an_error_on_every_rank),
    PROPERTY_OF(2, factors_of_tensors_that_differ_are_an_error_on_every_rank),
    PROPERTY(every_tensor_has_factors_of_its_own),
    PROPERTY(residuals_are_what_was_multiplied),
};
RUN_PROPERTIES(mpi_property_main, properties)
