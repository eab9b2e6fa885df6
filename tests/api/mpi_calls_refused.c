/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 3 */

/* Bad arguments: refused with a sentence, no buffer touched, nothing sticks. And
 * calls that differ between ranks: an error on all of them. */

#include <math.h>

#include "tests/api/call_model.h"

enum { COUNT = 64, ROOM = COUNT * MODEL_RANKS };

static double left[ROOM], right[ROOM];
static uint64_t parts[MODEL_RANKS];
static lcomm_comm *comm;

static void fill(void) {
  memset(left, 0x11, sizeof(left));
  memset(right, 0x22, sizeof(right));
  for (int i = 0; i < MODEL_RANKS; i++) {
    parts[i] = COUNT;
  }
}

static bool untouched(void) {
  const uint8_t *a = (const uint8_t *)left, *b = (const uint8_t *)right;
  for (size_t i = 0; i < sizeof(left); i++) {
    if (a[i] != 0x11 || b[i] != 0x22) {
      return false;
    }
  }
  return true;
}

/* `call` was refused with a sentence that has `word` in it, and did nothing. */
static void refused(lcomm_status status, const char *word, const char *call) {
  require(status == LCOMM_ERR_ARGUMENT, "%s: status %d", call, (int)status);
  require(strstr(lcomm_last_error(comm), word) != NULL, "%s: '%s' says nothing of %s", call,
          lcomm_last_error(comm), word);
  require(untouched(), "%s: a buffer was touched", call);
}

#define REFUSED(word, call) refused(call, word, #call)

/* The communicator still works. */
static void end(void) {
  float one = 1;
  require(lcomm_allreduce(comm, &one, &one, 1, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK &&
              one == (float)mpi_size,
          "after the refusals: %s", lcomm_last_error(comm));
  require(lcomm_destroy(comm) == LCOMM_OK, "destroy");
  comm = NULL;
}

static void begin(void) {
  comm = make_comm("net=none", 1);
  fill();
}

static void types_operations_and_roots_are_checked(void) {
  begin();
  lcomm_request request;
  REFUSED("data type",
          lcomm_allreduce(comm, left, right, COUNT, (lcomm_dtype)MODEL_TYPES, LCOMM_SUM));
  REFUSED("data type", lcomm_allgather(comm, left, right, COUNT, (lcomm_dtype)-1));
  REFUSED("data type", lcomm_allgatherv(comm, left, right, parts, (lcomm_dtype)77));
  REFUSED("data type", lcomm_alltoall(comm, left, right, COUNT, (lcomm_dtype)77));
  REFUSED("no operation", lcomm_allreduce(comm, left, right, COUNT, LCOMM_FLOAT32, (lcomm_op)4));
  REFUSED("no operation",
          lcomm_reduce_scatter(comm, left, right, COUNT, LCOMM_INT32, (lcomm_op)-1));
  REFUSED("root", lcomm_broadcast(comm, left, COUNT, LCOMM_FLOAT32, mpi_size));
  REFUSED("root", lcomm_ibroadcast(comm, left, COUNT, LCOMM_FLOAT32, -1, &request));
  REFUSED("request", lcomm_iallreduce(comm, left, right, COUNT, LCOMM_FLOAT32, LCOMM_SUM, NULL));
  REFUSED("request", lcomm_ialltoall(comm, left, right, COUNT, LCOMM_FLOAT32, NULL));
  REFUSED("request", lcomm_iallgatherv(comm, left, right, parts, LCOMM_FLOAT32, NULL));
  end();
}

static void missing_communicators_are_refused(void) {
  lcomm_request request;
  fill();
  REFUSED("communicator", lcomm_allreduce(NULL, left, right, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("communicator", lcomm_allgatherv(NULL, left, right, parts, LCOMM_FLOAT32));
  REFUSED("communicator", lcomm_ialltoall(NULL, left, right, COUNT, LCOMM_FLOAT32, &request));
  REFUSED("communicator",
          lcomm_allreduce_scaled(NULL, left, right, COUNT, LCOMM_FLOAT32, LCOMM_SUM, 1, 1));
  REFUSED("communicator", lcomm_barrier(NULL));
  REFUSED("communicator", lcomm_tensor_scale(NULL, NULL, 1, 1));
}

static void missing_buffers_are_refused(void) {
  begin();
  REFUSED("NULL", lcomm_allreduce(comm, NULL, right, 1, LCOMM_FLOAT32, LCOMM_MIN));
  REFUSED("NULL", lcomm_allreduce(comm, left, NULL, 1, LCOMM_INT64, LCOMM_SUM));
  REFUSED("NULL", lcomm_reduce_scatter(comm, NULL, right, 1, LCOMM_FLOAT64, LCOMM_AVG));
  REFUSED("NULL", lcomm_allgather(comm, left, NULL, 1, LCOMM_FLOAT16));
  REFUSED("NULL", lcomm_alltoall(comm, NULL, NULL, 1, LCOMM_FLOAT16));
  REFUSED("NULL", lcomm_broadcast(comm, NULL, 1, LCOMM_FLOAT16, 0));
  REFUSED("counts", lcomm_allgatherv(comm, left, right, NULL, LCOMM_FLOAT32));
  REFUSED("counts", lcomm_reduce_scatterv(comm, left, right, NULL, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("NULL", lcomm_reduce_scatterv(comm, NULL, right, parts, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("NULL", lcomm_reduce_scatterv(comm, left, NULL, parts, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("NULL", lcomm_allgatherv(comm, NULL, right, parts, LCOMM_FLOAT32));
  REFUSED("NULL", lcomm_allgatherv(comm, left, NULL, parts, LCOMM_FLOAT32));
  memset(parts, 0, sizeof(parts));
  require(lcomm_allreduce(comm, NULL, NULL, 0, LCOMM_INT32, LCOMM_MAX) == LCOMM_OK &&
              lcomm_reduce_scatter(comm, NULL, NULL, 0, LCOMM_INT64, LCOMM_AVG) == LCOMM_OK &&
              lcomm_allgather(comm, NULL, NULL, 0, LCOMM_FLOAT16) == LCOMM_OK &&
              lcomm_allgatherv(comm, NULL, NULL, parts, LCOMM_FLOAT16) == LCOMM_OK &&
              lcomm_alltoall(comm, NULL, NULL, 0, LCOMM_FLOAT64) == LCOMM_OK &&
              lcomm_broadcast(comm, NULL, 0, LCOMM_FLOAT64, 0) == LCOMM_OK &&
              lcomm_allreduce_scaled(comm, NULL, NULL, 0, LCOMM_BFLOAT16, LCOMM_AVG, 2, 3) ==
                  LCOMM_OK,
          "nothing: %s", lcomm_last_error(comm));
  end();
}

static void impossible_counts_are_refused(void) {
  static const uint64_t large[] = {UINT64_MAX, UINT64_MAX / 2 + 1, UINT64_MAX / 8 + 1,
                                   (UINT64_C(1) << 61) + 1, UINT64_C(1) << 47};
  begin();
  for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
    REFUSED("memory", lcomm_allreduce(comm, left, right, large[i], LCOMM_FLOAT64, LCOMM_SUM));
    REFUSED("memory", lcomm_allreduce(comm, left, left, large[i], LCOMM_FLOAT16, LCOMM_MAX));
    REFUSED("memory", lcomm_reduce_scatter(comm, left, right, large[i], LCOMM_INT32, LCOMM_SUM));
    REFUSED("memory", lcomm_allgather(comm, left, right, large[i], LCOMM_BFLOAT16));
    REFUSED("memory", lcomm_alltoall(comm, left, left, large[i], LCOMM_INT64));
    REFUSED("memory", lcomm_broadcast(comm, left, large[i], LCOMM_FLOAT16, 0));
    parts[mpi_size - 1] = large[i];
    REFUSED("memory", lcomm_allgatherv(comm, left, right, parts, LCOMM_FLOAT16));
  }
  parts[0] = parts[mpi_size - 1] = UINT64_MAX; /* the sum would run over */
  REFUSED("memory", lcomm_allgatherv(comm, left, right, parts, LCOMM_FLOAT16));
  end();
}

static void buffers_that_overlap_are_refused(void) {
  begin();
  float *a = (float *)(void *)left;
  REFUSED("overlap", lcomm_allreduce(comm, a, a + 1, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("overlap", lcomm_allreduce(comm, a + COUNT - 1, a, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("overlap", lcomm_alltoall(comm, a, a + 1, COUNT, LCOMM_FLOAT32));
  REFUSED("overlap", lcomm_allgather(comm, a + 1 + mpi_rank * COUNT, a, COUNT, LCOMM_FLOAT32));
  REFUSED("overlap", lcomm_allgatherv(comm, a + 1 + mpi_rank * COUNT, a, parts, LCOMM_FLOAT32));
  REFUSED("overlap", lcomm_reduce_scatter(comm, a, a + 1 + mpi_rank * COUNT,
                                          COUNT - 1 + (mpi_size > 1), LCOMM_FLOAT32, LCOMM_SUM));
  require(lcomm_allreduce(comm, a, a + COUNT, COUNT, LCOMM_INT32, LCOMM_MIN) == LCOMM_OK,
          "neighbours: %s", lcomm_last_error(comm));
  end();
}

static void crooked_addresses_are_refused_where_numbers_are_computed(void) {
  begin();
  const uint8_t *odd = (const uint8_t *)left;
  REFUSED("address", lcomm_allreduce(comm, odd + 2, right, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED("address", lcomm_allreduce(comm, odd + 4, right, COUNT, LCOMM_INT64, LCOMM_SUM));
  REFUSED("address", lcomm_reduce_scatter(comm, odd + 1, right, COUNT, LCOMM_FLOAT16, LCOMM_MAX));
  lcomm_tensor *tensor = NULL;
  REFUSED("address", lcomm_tensor_add(comm, "odd", (uint8_t *)left + 2, COUNT, LCOMM_INT32,
                                      LCOMM_SUM, &tensor));
  require(!tensor, "a tensor was made");
  end();
}

static void factors_are_checked(void) {
  static const double bad[] = {0.0, -0.0, 1e-60, 1e60, 0.0, 0.0};
  begin();
  for (int i = 0; i < 6; i++) {
    double factor = i < 4 ? bad[i] : i == 4 ? (double)NAN : (double)INFINITY;
    REFUSED("before",
            lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_FLOAT32, LCOMM_SUM, factor, 1));
    REFUSED("after",
            lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_BFLOAT16, LCOMM_AVG, 1, factor));
  }
  REFUSED("before",
          lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_FLOAT64, LCOMM_SUM, 0, 1));
  REFUSED("int32", lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_INT32, LCOMM_SUM, 1, 1));
  REFUSED("int64", lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_INT64, LCOMM_AVG, 2, 1));
  REFUSED("averages",
          lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_FLOAT32, LCOMM_MIN, 1, 1));
  REFUSED("averages",
          lcomm_allreduce_scaled(comm, left, right, COUNT, LCOMM_FLOAT64, LCOMM_MAX, 1, 2));
  end();
}

/* ------------------------------------------------- what differs between ranks */

static void differ(lcomm_status (*call)(bool last), const char *what) {
  begin();
  lcomm_status status = call(mpi_rank == mpi_size - 1);
  require(status == LCOMM_ERR_MISMATCH, "%s: status %d, %s", what, (int)status,
          lcomm_last_error(comm));
  require(lcomm_barrier(comm) == LCOMM_ERR_MISMATCH, "%s: the error does not stick", what);
  lcomm_destroy(comm);
  comm = NULL;
}

static lcomm_status other_operation(bool last) {
  return lcomm_allreduce(comm, left, right, 5, LCOMM_FLOAT32, last ? LCOMM_MIN : LCOMM_MAX);
}

static lcomm_status average_or_sum(bool last) {
  return lcomm_allreduce(comm, left, right, 5, LCOMM_INT64, last ? LCOMM_AVG : LCOMM_SUM);
}

static lcomm_status other_type(bool last) {
  return lcomm_alltoall(comm, left, right, 5, last ? LCOMM_INT32 : LCOMM_FLOAT32);
}

/* As many elements all told, but on other ranks. */
static lcomm_status other_parts(bool last) {
  parts[0] += last;
  parts[1] -= last;
  return lcomm_allgatherv(comm, left, right, parts, LCOMM_FLOAT32);
}

static void calls_that_differ_are_an_error_on_every_rank(void) {
  differ(other_operation, "another operation");
  differ(average_or_sum, "average or sum");
  differ(other_type, "another type");
  differ(other_parts, "other parts");
}

static const mpi_property properties[] = {
    PROPERTY(types_operations_and_roots_are_checked),
    PROPERTY(missing_communicators_are_refused),
    PROPERTY(missing_buffers_are_refused),
    PROPERTY(impossible_counts_are_refused),
    PROPERTY(buffers_that_overlap_are_refused),
    PROPERTY(crooked_addresses_are_refused_where_numbers_are_computed),
    PROPERTY(factors_are_checked),
    PROPERTY_OF(2, calls_that_differ_are_an_error_on_every_rank),
};
RUN_PROPERTIES(mpi_property_main, properties)
