/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* One rank finds no memory in a collective call: that is the end of the operation on
 * all ranks, which name it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "libcomm/engine/engine.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { COUNT = 16 << 20, STARVED = 1 };

/* One rank gets no more memory from now on. */
static void starve(forked *self) {
  unsigned long pages = 0;
  forked_barrier(self);
  if (self->rank != STARVED) {
    return;
  }
  FILE *file = fopen("/proc/self/statm", "r");
  forked_require(self, file && fscanf(file, "%lu", &pages) == 1, "no statm");
  fclose(file);
  struct rlimit limit = {pages * 4096 + (1 << 20), RLIM_INFINITY};
  forked_require(self, setrlimit(RLIMIT_AS, &limit) == 0, "no limit");
}

static void require_memory(forked *self, lcomm_comm *comm, lcomm_status status) {
  const char *said = lcomm_last_error(comm);
  forked_require(self, status == LCOMM_ERR_MEMORY, "%s: %s", lcomm_status_name(status), said);
  const char *author = self->rank == STARVED ? "rank 1 (host " : "stopped by rank 1 (host ";
  forked_require(self, strstr(said, author) && strstr(said, "memory"), "%s", said);
  status = lcomm_barrier(comm);
  forked_require(self, status == LCOMM_ERR_MEMORY, "it did not stick: %s",
                 lcomm_status_name(status));
  forked_require(self, lcomm_destroy(comm) == LCOMM_ERR_MEMORY, "destroy forgot it");
}

static lcomm_comm *make(forked *self, const char *policy) {
  lcomm_comm *comm = NULL;
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = policy;
  config.nodes = self->size;
  config.timeout_s = 30;
  lcomm_status status = lcomm_create(&self->boot, &config, &comm);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(NULL));
  forked_require(self, lcomm_barrier(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  return comm;
}

/* 16-bit values are summed in a vector of their own. */
static void a_sum_without_memory_fails_on_all_ranks(forked *self) {
  uint16_t *values = calloc(2 * COUNT, sizeof *values);
  lcomm_comm *comm = make(self, "net=int8 min=1");
  starve(self);
  require_memory(self, comm,
                 lcomm_allreduce(comm, values, values, 2 * COUNT, LCOMM_FLOAT16, LCOMM_SUM));
  free(values);
}

static void a_residual_without_memory_fails_on_all_ranks(forked *self) {
  float *values = calloc(COUNT, sizeof(float));
  lcomm_residual *residual = NULL;
  lcomm_comm *comm = make(self, "net=int8+ef min=1");
  lcomm_status status = lcomm_residual_create(comm, COUNT, LCOMM_SUM, &residual);
  forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(comm));
  starve(self);
  require_memory(self, comm, lcomm_allreduce_ef(residual, values, values));
  free(values);
}

static void tensors_without_memory_fail_on_all_ranks(forked *self) {
  static float values[2][COUNT / 2];
  lcomm_tensor *tensors[2];
  lcomm_comm *comm = make(self, "net=int8+ef min=1");
  for (int i = 0; i < 2; i++) {
    lcomm_status status = lcomm_tensor_add(comm, i ? "b" : "a", values[i], COUNT / 2, LCOMM_FLOAT32,
                                           LCOMM_SUM, &tensors[i]);
    forked_require(self, status == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
  starve(self);
  lcomm_status status = LCOMM_OK;
  for (int i = 0; i < 2 && status == LCOMM_OK; i++) {
    status = lcomm_tensor_ready(comm, tensors[i]);
  }
  require_memory(self, comm, status == LCOMM_OK ? lcomm_tensors_wait(comm) : status);
}

/* Sanitizers take address space as they like. */
static bool limits_work(void) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

static void test_where_limits_work(void **state) {
  if (!limits_work()) {
    skip();
  }
  forked_test(state);
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST_BY(test_where_limits_work, a_sum_without_memory_fails_on_all_ranks, 3),
    FORKED_TEST_BY(test_where_limits_work, a_residual_without_memory_fails_on_all_ranks, 3),
    FORKED_TEST_BY(test_where_limits_work, tensors_without_memory_fail_on_all_ranks, 3),
};
RUN_TESTS(tests)
