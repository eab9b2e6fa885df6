/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 1 2 4 5 */

/* Calls with a residual that are refused, and those that differ between ranks. */

#include "tests/tensor/residuals.h"

enum { COUNT = 5000 };

/* ---------------------------------------------------------------- mistakes */

static void a_second_call_is_refused_while_one_is_under_way(void) {
  layer l;
  lcomm_request request = {0}, other = {0};
  lcomm_comm *comm = make_comm("net=int8+ef min=1", two_nodes());
  make_layer(&l, comm, 5000, LCOMM_SUM);
  for (int step = 0; step < 3; step++) {
    fill_layer(&l, step);
    require_fine(comm, lcomm_iallreduce_ef(l.residual, l.gradient, l.result, &request));
    require(lcomm_iallreduce_ef(l.residual, l.gradient, l.held, &other) == LCOMM_ERR_STATE,
            "a second call was taken");
    require(lcomm_allreduce_flush(l.residual, l.gradient, l.held) == LCOMM_ERR_STATE,
            "a flush was taken");
    require(strstr(lcomm_last_error(comm), "lcomm_allreduce_flush: residual 1 of 5000") != NULL,
            "%s", lcomm_last_error(comm));
    require(lcomm_residual_get(l.residual, l.held) == LCOMM_ERR_STATE, "it could be read");
    require(lcomm_residual_destroy(l.residual) == LCOMM_ERR_STATE, "it could be destroyed");
    require(l.held[0] == 0, "a buffer of a refused call was written to");
    require_fine(comm, lcomm_wait(comm, &request));
    check_layer(&l, "int8", step);
    memset(l.held, 0, l.count * sizeof(float));
  }
  require_fine(comm, lcomm_residual_destroy(l.residual));
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&l);
}

static void mistakes_are_refused_and_harmless(void) {
  layer l;
  lcomm_residual *made = NULL;
  lcomm_comm *comm = make_comm("net=int8+ef min=1", two_nodes());
  make_layer(&l, comm, 5000, LCOMM_AVG);
  lcomm_residual *r = l.residual;
  lcomm_status wrong[] = {
      lcomm_residual_create(NULL, 5, LCOMM_SUM, &made),
      lcomm_residual_create(comm, 5, LCOMM_SUM, NULL),
      lcomm_residual_create(comm, 5, LCOMM_MIN, &made),
      lcomm_residual_create(comm, 5, (lcomm_op)-1, &made),
      lcomm_residual_create(comm, UINT64_MAX / 4, LCOMM_SUM, &made),
      lcomm_allreduce_ef(NULL, l.gradient, l.result),
      lcomm_allreduce_flush(NULL, l.gradient, l.result),
      lcomm_allreduce_ef(r, NULL, l.result),
      lcomm_allreduce_flush(r, l.gradient, NULL),
      lcomm_allreduce_ef(r, l.gradient, l.gradient + 1),
      lcomm_allreduce_ef(r, l.gradient, (char *)l.result + 1),
      lcomm_iallreduce_ef(r, l.gradient, l.result, NULL),
      lcomm_iallreduce_flush(r, l.gradient, l.result, NULL),
      lcomm_residual_get(NULL, l.held),
      lcomm_residual_get(r, NULL),
      lcomm_residual_destroy(NULL),
  };
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    require(wrong[i] == LCOMM_ERR_ARGUMENT, "mistake %zu: %s", i, lcomm_status_name(wrong[i]));
  }
  require(!made, "a residual was made");
  for (int step = 0; step < 2; step++) {
    fill_layer(&l, step);
    require_fine(comm, lcomm_allreduce_ef(r, l.gradient, l.result));
    check_layer(&l, "after mistakes", step);
  }
  require_fine(NULL, lcomm_destroy(comm));
  free_layer(&l);
}

/* ------------------------------------------------------- different on ranks */

typedef lcomm_status (*residual_call)(lcomm_residual *residual, const void *send, void *receive);

/* The last rank makes the other call, with the second residual or without one (NULL). */
static void make_different_calls(residual_call usual, residual_call odd, int odd_residual) {
  static float values[COUNT];
  lcomm_residual *residuals[2];
  lcomm_comm *comm = make_comm("net=int8+ef min=1 warmup=5", two_nodes());
  lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residuals[0]);
  lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residuals[1]);
  MPI_Barrier(MPI_COMM_WORLD); /* creating one after the difference is found would fail */
  bool is_odd = mpi_rank == mpi_size - 1;
  residual_call call = is_odd ? odd : usual;
  lcomm_status status =
      call ? call(residuals[is_odd ? odd_residual : 0], values, values)
           : lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
  if (status == LCOMM_OK) { /* a rank may be done before another one complains */
    status = lcomm_barrier(comm);
  }
  require(status == LCOMM_ERR_MISMATCH, "%s", lcomm_status_name(status));
  require(strstr(lcomm_last_error(comm), "the same c") != NULL, "%s", lcomm_last_error(comm));
  require(strstr(lcomm_last_error(comm), "residual 1") || !odd || odd_residual, "%s",
          lcomm_last_error(comm));
  require(lcomm_residual_create(comm, 5, LCOMM_SUM, &residuals[0]) == LCOMM_ERR_MISMATCH,
          "the error did not stick");
  lcomm_destroy(comm);
}

/* All of them are exact here, and of the same shape. */
static void different_calls_are_named_on_every_rank(void) {
  make_different_calls(lcomm_allreduce_ef, NULL, 0);
  make_different_calls(lcomm_allreduce_ef, lcomm_allreduce_flush, 0);
  make_different_calls(lcomm_allreduce_flush, NULL, 0);
  make_different_calls(lcomm_allreduce_ef, lcomm_allreduce_ef, 1);
}

static const mpi_property properties[] = {
    PROPERTY(a_second_call_is_refused_while_one_is_under_way),
    PROPERTY(mistakes_are_refused_and_harmless),
    PROPERTY_OF(2, different_calls_are_named_on_every_rank),
};
RUN_PROPERTIES(mpi_property_main, properties)
