/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Children that a rank forks: whatever they call is refused and changes nothing for
 * the ranks, however they end. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/include/libcomm_interpose.h"
#include "tests/support/forked_comm.h"
#include "tests/support/process_counts.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 3, COUNT = 5000, NAME_MAX_BYTES = 64 };

/* What a rank has; reachable to the end, as a program's own would be. */
typedef struct holding {
  lcomm_comm *comm;
  lcomm_tensor *tensor;
  lcomm_residual *residual;
  lcomm_request request;
  float values[COUNT], gradient[COUNT];
} holding;

static holding h;

static void make(forked *self, lcomm_progress_mode mode) {
  lcomm_config config = forked_config(mode);
  h.comm = forked_create(self, &config);
  lcomm_status status =
      lcomm_tensor_add(h.comm, "gradient", h.gradient, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &h.tensor);
  forked_require(self, status == LCOMM_OK, "no tensor: %s", lcomm_last_error(h.comm));
  status = lcomm_residual_create(h.comm, COUNT, LCOMM_SUM, &h.residual);
  forked_require(self, status == LCOMM_OK, "no residual: %s", lcomm_last_error(h.comm));
}

static void sum_often(forked *self) {
  enum { SUMS = 200 };
  for (int i = 0; i < SUMS; i++) {
    for (int e = 0; e < COUNT; e++) {
      h.values[e] = (float)(self->rank + 1);
    }
    lcomm_status status =
        lcomm_allreduce(h.comm, h.values, h.values, COUNT, LCOMM_FLOAT32, LCOMM_MAX);
    forked_require(self, status == LCOMM_OK, "sum %d: %s", i, lcomm_last_error(h.comm));
    for (int e = 0; e < COUNT; e++) {
      forked_require(self, h.values[e] == (float)self->size, "sum %d, element %d is %g", i, e,
                     (double)h.values[e]);
    }
  }
}

/* ------------------------------------------------------------- in the child */

/* Refused, by a sentence that names both processes. */
static void refused(forked *self, const char *call, lcomm_status status) {
  char parent[32], child[32];
  const char *sentence = lcomm_last_error(h.comm);
  snprintf(parent, sizeof(parent), "process %ld", (long)getppid());
  snprintf(child, sizeof(child), "process %ld", (long)getpid());
  forked_require(self, status == LCOMM_ERR_STATE, "%s in a child: %s", call,
                 lcomm_status_name(status));
  forked_require(self, strstr(sentence, parent) && strstr(sentence, child),
                 "%s in a child says: %s", call, sentence);
}

/* The names of calls, their statuses: what is not in this list asks nothing of a
 * communicator but who it is. */
static void call_everything(forked *self) {
  int done = 0;
  char text[NAME_MAX_BYTES];
  uint64_t bytes = 0;
  float *v = h.values;
  uint64_t parts[RANKS] = {1, 1, 1};
  lcomm_stats stats;
  lcomm_comm *part = NULL, *c = h.comm;
  lcomm_tensor *tensor = NULL;
  lcomm_residual *residual = NULL;
  lcomm_request request;
#define REFUSED(call) refused(self, #call, call)
  REFUSED(lcomm_allreduce(c, v, v, COUNT, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED(lcomm_iallreduce(c, v, v, COUNT, LCOMM_FLOAT32, LCOMM_SUM, &request));
  REFUSED(lcomm_allreduce_scaled(c, v, v, COUNT, LCOMM_FLOAT32, LCOMM_SUM, 1, 1));
  REFUSED(lcomm_reduce_scatter(c, v, h.gradient, 1, LCOMM_FLOAT32, LCOMM_SUM));
  REFUSED(lcomm_allgather(c, v, h.gradient, 1, LCOMM_FLOAT32));
  REFUSED(lcomm_allgatherv(c, v, h.gradient, parts, LCOMM_FLOAT32));
  REFUSED(lcomm_alltoall(c, v, v, 1, LCOMM_FLOAT32));
  REFUSED(lcomm_broadcast(c, v, 1, LCOMM_FLOAT32, 0));
  REFUSED(lcomm_barrier(c));
  REFUSED(lcomm_allreduce_on_stream(c, v, v, 1, LCOMM_FLOAT32, LCOMM_SUM, NULL));
  REFUSED(lcomm_progress(c));
  REFUSED(lcomm_test(c, &h.request, &done));
  REFUSED(lcomm_wait(c, &h.request));
  REFUSED(lcomm_tensor_add(c, "another", v, 1, LCOMM_FLOAT32, LCOMM_SUM, &tensor));
  REFUSED(lcomm_tensor_scale(c, h.tensor, 1, 1));
  REFUSED(lcomm_tensor_ready(c, h.tensor));
  REFUSED(lcomm_tensor_ready_on_stream(c, h.tensor, NULL));
  REFUSED(lcomm_tensors_wait(c));
  REFUSED(lcomm_tensor_residual(c, h.tensor, v));
  REFUSED(lcomm_residual_create(c, 1, LCOMM_SUM, &residual));
  REFUSED(lcomm_allreduce_ef(h.residual, v, v));
  REFUSED(lcomm_allreduce_flush(h.residual, v, v));
  REFUSED(lcomm_residual_get(h.residual, v));
  REFUSED(lcomm_residual_calls(h.residual, &bytes));
  REFUSED(lcomm_residual_counts(h.residual, &bytes));
  REFUSED(lcomm_residual_destroy(h.residual));
  REFUSED(lcomm_state_save(c, "nowhere"));
  REFUSED(lcomm_state_load(c, "nowhere"));
  REFUSED(lcomm_split(c, 0, 0, NULL, &part));
  REFUSED(lcomm_name_set(c, "another"));
  REFUSED(
      lcomm_call_bytes(c, LCOMM_CALL_ALLREDUCE, 1, LCOMM_FLOAT32, LCOMM_SUM, 0, &bytes, &bytes));
  REFUSED(lcomm_plan_print(c, 1, LCOMM_FLOAT32, 0, text, sizeof(text)));
  REFUSED(lcomm_stats_get(c, &stats));
  REFUSED(lcomm_stats_reset(c));
  REFUSED(lcomm_abort(c, "by a child"));
  REFUSED(lcomm_destroy(c));
#undef REFUSED
}

static void be_a_child(forked *self) {
  int files = count_files();
  call_everything(self);
  forked_require(self, count_files() == files, "a child closed or opened files: %d, then %d", files,
                 count_files());
  exit(EXIT_SUCCESS); /* with all that runs at an exit */
}

/* -------------------------------------------------------------- in the rank */

static void fork_and_wait(forked *self) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    be_a_child(self);
  }
  waitpid(child, &status, 0);
  forked_require(self, WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS,
                 "the child ended with %x", (unsigned)status);
}

/* Of the file of this rank's timeline. */
static long trace_size(const forked *self) {
  char path[NAME_MAX_BYTES];
  snprintf(path, sizeof(path), "%s.%d", getenv("LCOMM_TRACE"), self->rank);
  FILE *file = fopen(path, "r");
  long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : -1;
  if (file) {
    fclose(file);
  }
  return size;
}

static void remove_trace(const forked *self) {
  char path[NAME_MAX_BYTES];
  snprintf(path, sizeof(path), "%s.%d", getenv("LCOMM_TRACE"), self->rank);
  unlink(path);
}

static void go_on_after_a_child(forked *self, lcomm_progress_mode mode) {
  make(self, mode);
  sum_often(self);
  lcomm_iallreduce(h.comm, h.values, h.values, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &h.request);
  lcomm_wait(h.comm, &h.request);
  lcomm_iallreduce(h.comm, h.values, h.values, COUNT, LCOMM_FLOAT32, LCOMM_MAX, &h.request);
  forked_barrier(self);
  if (self->rank == 1) {
    fork_and_wait(self);
  }
  forked_barrier(self);
  lcomm_status status = lcomm_wait(h.comm, &h.request);
  forked_require(self, status == LCOMM_OK, "what was in flight: %s", lcomm_last_error(h.comm));
  sum_often(self);
  status = lcomm_destroy(h.comm);
  forked_require(self, status == LCOMM_OK, "the end: %s", lcomm_status_name(status));
}

static void a_child_is_refused_and_the_ranks_go_on(forked *self) {
  go_on_after_a_child(self, LCOMM_PROGRESS_CALLS);
}

static void so_it_is_with_a_progress_thread(forked *self) {
  go_on_after_a_child(self, LCOMM_PROGRESS_THREAD);
}

static void a_child_leaves_the_trace_alone(forked *self) {
  char path[NAME_MAX_BYTES];
  snprintf(path, sizeof(path), "/tmp/libcomm-test-fork.%ld", (long)getppid());
  setenv("LCOMM_TRACE", path, 1);
  make(self, LCOMM_PROGRESS_CALLS);
  sum_often(self);
  long before = trace_size(self);
  forked_barrier(self);
  if (self->rank == 1) {
    fork_and_wait(self);
  }
  forked_barrier(self);
  forked_require(self, trace_size(self) == before, "a child's end wrote to the trace: %ld, not %ld",
                 trace_size(self), before);
  sum_often(self);
  lcomm_status status = lcomm_destroy(h.comm);
  forked_require(self, status == LCOMM_OK, "the end: %s", lcomm_status_name(status));
  remove_trace(self);
}

/* ----------------------------------------------------------------- the tests */

/* A child may make communicators of its own. */
static void a_child_may_have_communicators_of_its_own(forked *self) {
  make(self, LCOMM_PROGRESS_CALLS);
  pid_t child = fork();
  if (child == 0) {
    lcomm_config config = LCOMM_CONFIG_INIT;
    lcomm_comm *own = NULL;
    unsetenv("RANK");
    unsetenv("WORLD_SIZE");
    lcomm_status status = lcomm_create_env(&config, &own);
    forked_require(self, status == LCOMM_OK, "a child's own: %s", lcomm_last_error(NULL));
    status = lcomm_allreduce(own, h.values, h.values, COUNT, LCOMM_FLOAT32, LCOMM_SUM);
    forked_require(self, status == LCOMM_OK, "a child's own sum: %s", lcomm_last_error(own));
    forked_require(self, lcomm_destroy(own) == LCOMM_OK, "the end of a child's own");
    exit(EXIT_SUCCESS);
  }
  int status = 0;
  waitpid(child, &status, 0);
  forked_require(self, status == 0, "the child ended with %x", (unsigned)status);
  sum_often(self);
  forked_require(self, lcomm_destroy(h.comm) == LCOMM_OK, "the end");
}

static const struct CMUnitTest tests[] = {
    FORKED_TEST(a_child_is_refused_and_the_ranks_go_on, RANKS),
    FORKED_TEST(so_it_is_with_a_progress_thread, RANKS),
    FORKED_TEST(a_child_leaves_the_trace_alone, RANKS),
    FORKED_TEST(a_child_may_have_communicators_of_its_own, RANKS),
};
RUN_TESTS(tests)
