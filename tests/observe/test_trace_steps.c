/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* LCOMM_TRACE_STEPS: events of the steps that were asked for and no others; and the names of
 * buckets. */

#include "tests/observe/trace_files.h"

#include "libcomm/base/error.h"
#include "tests/support/forked.h"
#include "tests/support/unit_tests.h"

enum { RANKS = 2, STEPS = 6, COUNT = 1000 };

static lcomm_comm *create(forked *self, const char *name, const char *steps) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_bootstrap boot = self->boot;
  lcomm_comm *comm = NULL;
  config.transport = "shm";
  config.policy = "bucket=12000";
  setenv("LCOMM_TRACE", in_folder(name), 1);
  setenv("LCOMM_TRACE_STEPS", steps, 1);
  forked_require(self, lcomm_create(&boot, &config, &comm) == LCOMM_OK, "%s",
                 lcomm_error_thread_text());
  return comm;
}

/* --------------------------------------------------------------------- tensors */

static const char long_name[] =
    "encoder.\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3"
    "\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc"
    "\xc3\xbc\xc3\xbc\xc3\xbc";

/* Buckets of 3, 3 and 1 tensors. */
static void train(forked *self) {
  static float values[7][COUNT];
  static const char *const names[] = {"first", "b", "c", long_name, "e", "f", "last"};
  lcomm_tensor *tensors[7];
  lcomm_comm *comm = create(self, "tensors", "2-3");
  for (int i = 0; i < 7; i++) {
    forked_require(self,
                   lcomm_tensor_add(comm, names[i], values[i], COUNT, LCOMM_FLOAT32, LCOMM_SUM,
                                    &tensors[i]) == LCOMM_OK,
                   "%s", lcomm_last_error(comm));
  }
  for (int step = 0; step < STEPS; step++) {
    for (int i = 0; i < 7; i++) {
      (void)lcomm_tensor_ready(comm, tensors[i]);
    }
    forked_require(self, lcomm_tensors_wait(comm) == LCOMM_OK, "%s", lcomm_last_error(comm));
  }
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static int count_named(const cJSON *events, const char *wanted) {
  const cJSON *event = NULL;
  int count = 0;
  cJSON_ArrayForEach(event, events) {
    const cJSON *args = args_of(event);
    count += strcmp(text_of(event, "name"), "all-reduce") == 0 && args &&
             strcmp(text_of(args, "tensor"), wanted) == 0;
  }
  return count;
}

static void only_steps_of_the_window_are_traced(void **state) {
  (void)state;
  forked_run(RANKS, train);
  cJSON *events = read_back("tensors");
  assert_int_equal(count_events(events, "all-reduce"), 2 * 3);
  assert_true(count_events(events, "recv") > 0);
  cJSON_Delete(events);
}

static void a_bucket_says_how_many_tensors_it_has(void **state) {
  char wanted[LCOMM_TRACE_NAME_MAX];
  (void)state;
  forked_run(RANKS, train);
  cJSON *events = read_back("tensors");
  assert_int_equal(count_named(events, "first and 2 more"), 2);
  assert_int_equal(count_named(events, "last"), 2);
  /* 63 bytes in all, 11 of them for " and 2 more": 52 of the name, whole characters */
  snprintf(wanted, sizeof(wanted), "%.52s and 2 more", long_name);
  assert_int_equal(count_named(events, wanted), 2);
  cJSON_Delete(events);
}

/* ----------------------------------------------------------------------- calls */

static const char *window;

static void call(forked *self) {
  static float values[COUNT];
  lcomm_comm *comm = create(self, "calls", window);
  for (int i = 0; i < STEPS; i++) {
    forked_require(
        self, lcomm_allreduce(comm, values, values, COUNT, LCOMM_FLOAT32, LCOMM_SUM) == LCOMM_OK,
        "%s", lcomm_last_error(comm));
  }
  forked_require(self, lcomm_destroy(comm) == LCOMM_OK, "%s", lcomm_error_thread_text());
}

static void without_tensors_each_call_is_a_step(void **state) {
  (void)state;
  static const struct {
    const char *window;
    int calls;
  } windows[] = {{"0-5", 6}, {"1-2", 2}, {"4", 1}, {"3-", 3}, {"100-200", 0}};
  for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++) {
    window = windows[i].window;
    forked_run(RANKS, call);
    cJSON *events = read_back("calls");
    assert_int_equal(count_events(events, "all-reduce"), windows[i].calls);
    cJSON_Delete(events);
  }
}

static void refuse(forked *self) {
  static const char *const bad[] = {"x",     "3-2", "1,2", "-5",
                                    "1-2-3", "1-x", " 1",  "99999999999999999999"};
  lcomm_config config = LCOMM_CONFIG_INIT;
  lcomm_bootstrap boot = self->boot;
  lcomm_comm *comm = NULL;
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    setenv("LCOMM_TRACE_STEPS", self->rank == 1 ? bad[i] : "1-2", 1);
    lcomm_status status = lcomm_create(&boot, &config, &comm);
    forked_require(self, status == LCOMM_ERR_ARGUMENT, "'%s': %s", bad[i],
                   lcomm_status_name(status));
    forked_require(self, strstr(lcomm_error_thread_text(), "LCOMM_TRACE_STEPS=") != NULL, "%s",
                   lcomm_error_thread_text());
  }
}

static void a_bad_window_is_an_error_on_all_ranks(void **state) {
  (void)state;
  forked_run(RANKS, refuse);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(only_steps_of_the_window_are_traced),
    IN_FOLDER(a_bucket_says_how_many_tensors_it_has),
    IN_FOLDER(without_tensors_each_call_is_a_step),
    IN_FOLDER(a_bad_window_is_an_error_on_all_ranks),
};
RUN_TESTS(tests)
