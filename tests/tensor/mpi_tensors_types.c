/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 5 8 */

/* Tensors of every type and operation, side by side. */

#include <math.h>
#include <stdio.h>

#include "tests/api/call_model.h"

enum { SIZES = 2, OPS = 2, TENSORS = MODEL_TYPES * OPS * SIZES, COUNT_MAX = 3001 };

static const uint64_t counts[SIZES] = {17, COUNT_MAX};
static double data[TENSORS][COUNT_MAX], wanted[COUNT_MAX];

static lcomm_dtype type_of(int tensor) {
  return model_types[tensor % MODEL_TYPES];
}

static lcomm_op op_of(int tensor) {
  return tensor / MODEL_TYPES % OPS == 0 ? LCOMM_SUM : LCOMM_AVG;
}

static uint64_t count_of(int tensor) {
  return counts[tensor / MODEL_TYPES / OPS];
}

static void add_all(lcomm_comm *comm, lcomm_tensor **tensors) {
  char name[32];
  for (int i = 0; i < TENSORS; i++) {
    snprintf(name, sizeof(name), "tensor %d", i);
    require(lcomm_tensor_add(comm, name, data[i], count_of(i), type_of(i), op_of(i), &tensors[i]) ==
                LCOMM_OK,
            "%s", lcomm_last_error(comm));
  }
}

static void run_step(lcomm_comm *comm, lcomm_tensor **tensors, uint64_t step) {
  for (int i = 0; i < TENSORS; i++) {
    model_fill(type_of(i), data[i], mpi_rank, step + (uint64_t)i, count_of(i));
    require(lcomm_tensor_ready(comm, tensors[(i * 7 + mpi_rank) % TENSORS]) == LCOMM_OK, "%s",
            lcomm_last_error(comm));
  }
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
}

/* Which results have the bits of an exact sum. */
typedef enum exact_types { WHOLE_ONLY, WHOLE_AND_FLOAT64, ALL_TYPES } exact_types;

static bool is_exact(exact_types exact, lcomm_dtype dtype) {
  return exact == ALL_TYPES || LCOMM_DTYPE_IS_WHOLE(dtype) ||
         (exact == WHOLE_AND_FLOAT64 && dtype == LCOMM_FLOAT64);
}

static void check_results(exact_types exact, uint64_t step, const char *policy) {
  for (int i = 0; i < TENSORS; i++) {
    lcomm_dtype dtype = type_of(i);
    model_expect(dtype, op_of(i), wanted, step + (uint64_t)i, count_of(i));
    require(!is_exact(exact, dtype) ||
                memcmp(data[i], wanted, count_of(i) * lcomm_dtype_size(dtype)) == 0,
            "%s: tensor %d of %llu %s, operation %d is wrong", policy, i,
            (unsigned long long)count_of(i), lcomm_dtype_name(dtype), (int)op_of(i));
    require(same_everywhere(data[i], count_of(i) * lcomm_dtype_size(dtype)),
            "%s: ranks differ in tensor %d", policy, i);
  }
}

static void check_policy(const char *policy, exact_types exact) {
  for (int layout = 0; layout < MODEL_LAYOUTS; layout++) {
    lcomm_tensor *tensors[TENSORS] = {NULL};
    lcomm_comm *comm = model_comm(policy, layout);
    if (!comm) {
      continue;
    }
    add_all(comm, tensors);
    for (uint64_t step = 0; step < 2; step++) {
      run_step(comm, tensors, step);
      check_results(exact, step, policy);
      require(lcomm_tensors_not_finite(comm) == 0, "%s: all was finite", policy);
    }
    require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  }
}

static void tensors_of_every_type_and_operation_travel_together(void) {
  check_policy("net=none", ALL_TYPES);
  check_policy("net=none bucket=4K", ALL_TYPES);
}

static void some_tensors_are_never_compressed(void) {
  check_policy("net=int8 node=int8 min=1", WHOLE_AND_FLOAT64);
  check_policy("net=topk:0.05+ef min=1 bucket=8K", WHOLE_AND_FLOAT64);
  check_policy("net=int8+ef min=1 clip=1e9", WHOLE_AND_FLOAT64);
}

static void integers_are_never_clipped(void) {
  check_policy("net=int8+ef min=1 clip=0.001", WHOLE_ONLY);
  check_policy("net=int8+ef min=1 clip=0.001:global", WHOLE_ONLY);
}

static void what_is_not_finite_is_counted_in_float64_too(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_tensor *tensors[2] = {NULL, NULL};
  double wide[4] = {1, (double)INFINITY, (double)NAN, 2};
  int64_t whole[4] = {INT64_MAX, INT64_MIN, -1, 0x7ff0000000000000};
  require(lcomm_tensor_add(comm, "wide", wide, 4, LCOMM_FLOAT64, LCOMM_SUM, &tensors[0]) ==
                  LCOMM_OK &&
              lcomm_tensor_add(comm, "whole", whole, 4, LCOMM_INT64, LCOMM_SUM, &tensors[1]) ==
                  LCOMM_OK,
          "%s", lcomm_last_error(comm));
  lcomm_tensor_ready(comm, tensors[0]);
  lcomm_tensor_ready(comm, tensors[1]);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(lcomm_tensors_not_finite(comm) == 2, "%llu were counted",
          (unsigned long long)lcomm_tensors_not_finite(comm));
  lcomm_destroy(comm);
}

/* Momentum of the policy belongs to gradients, which are sums of float32 or 16-bit
 * types. */
static void integers_have_no_momentum(void) {
  lcomm_comm *comm = make_comm("net=topk:0.05+ef momentum=0.5 min=1M", 1);
  lcomm_tensor *whole = NULL, *wide = NULL;
  int32_t number = 0;
  double sum = 0;
  require(lcomm_tensor_add(comm, "whole", &number, 1, LCOMM_INT32, LCOMM_SUM, &whole) == LCOMM_OK,
          "%s", lcomm_last_error(comm));
  require(lcomm_tensor_add(comm, "wide", &sum, 1, LCOMM_FLOAT64, LCOMM_AVG, &wide) ==
                  LCOMM_ERR_ARGUMENT &&
              strstr(lcomm_last_error(comm), "momentum") != NULL,
          "float64 with momentum: %s", lcomm_last_error(comm));
  for (int step = 0; step < 3; step++) {
    number = 5;
    lcomm_tensor_ready(comm, whole);
    require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
    require(number == 5 * mpi_size, "step %d: %d", step, number);
  }
  lcomm_destroy(comm);
}

static void another_operation_of_a_tensor_is_named(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_tensor *tensor = NULL;
  float value = 0;
  lcomm_op op = mpi_rank == 0 ? LCOMM_SUM : LCOMM_AVG;
  lcomm_tensor_add(comm, "loss", &value, 1, LCOMM_FLOAT32, op, &tensor);
  lcomm_tensor_ready(comm, tensor);
  require(lcomm_tensors_wait(comm) == LCOMM_ERR_MISMATCH, "it was not seen");
  require(strstr(lcomm_last_error(comm), "summed") && strstr(lcomm_last_error(comm), "averaged"),
          "%s", lcomm_last_error(comm));
  lcomm_destroy(comm);
}

static void factors_of_tensors_are_checked(void) {
  lcomm_comm *comm = make_comm("net=none", 1);
  lcomm_tensor *real = NULL, *whole = NULL;
  float value[1] = {1};
  int32_t number = 1;
  lcomm_tensor_add(comm, "real", &value[0], 1, LCOMM_FLOAT32, LCOMM_SUM, &real);
  lcomm_tensor_add(comm, "whole", &number, 1, LCOMM_INT32, LCOMM_SUM, &whole);
  require(lcomm_tensor_scale(comm, real, (double)NAN, 1) == LCOMM_ERR_ARGUMENT, "NaN");
  require(lcomm_tensor_scale(comm, real, 1, 0) == LCOMM_ERR_ARGUMENT, "0");
  require(lcomm_tensor_scale(comm, real, 1e-50, 1) == LCOMM_ERR_ARGUMENT, "0 in float32");
  require(lcomm_tensor_scale(comm, whole, 2, 1) == LCOMM_ERR_ARGUMENT, "an integer");
  require(lcomm_tensor_scale(comm, NULL, 2, 1) == LCOMM_ERR_ARGUMENT, "no tensor");
  require(lcomm_tensor_scale(comm, real, 2, 1) == LCOMM_OK, "%s", lcomm_last_error(comm));
  lcomm_tensor_ready(comm, real);
  require(lcomm_tensor_scale(comm, real, 4, 1) == LCOMM_ERR_STATE, "during a step");
  lcomm_tensor_ready(comm, whole);
  require(lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  require(value[0] == 2 * (float)mpi_size && number == mpi_size, "%g %d", (double)value[0], number);
  lcomm_destroy(comm);
}

static const mpi_property properties[] = {
    PROPERTY(tensors_of_every_type_and_operation_travel_together),
    PROPERTY(some_tensors_are_never_compressed),
    PROPERTY(integers_are_never_clipped),
    PROPERTY(what_is_not_finite_is_counted_in_float64_too),
    PROPERTY(integers_have_no_momentum),
    PROPERTY_OF(2, another_operation_of_a_tensor_is_named),
    PROPERTY(factors_of_tensors_are_checked),
};
RUN_PROPERTIES(mpi_property_main, properties)
