/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the library says: values of LCOMM_* that are none, names that are none, the levels,
 * the file and the program's own function. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "libcomm/base/log.h"
#include "libcomm/base/settings.h"
#include "tests/support/unit_tests.h"

static char heard[8192];

static void listen(void *context, lcomm_log_level level, const char *sentence) {
  size_t used = strlen(heard);
  (void)context;
  snprintf(heard + used, sizeof(heard) - used, "%d %s\n", (int)level, sentence);
}

static int gather_alone(void *context, const void *send, void *receive, size_t size) {
  (void)context;
  memmove(receive, send, size);
  return 0;
}

static lcomm_status create_and_destroy(void) {
  lcomm_bootstrap boot = {.world_size = 1, .allgather = gather_alone};
  lcomm_comm *comm = NULL;
  float value = 1;
  lcomm_status status = lcomm_create(&boot, NULL, &comm);
  if (status == LCOMM_OK) {
    lcomm_allreduce(comm, &value, &value, 1, LCOMM_FLOAT32, LCOMM_SUM);
  }
  lcomm_destroy(comm);
  return status;
}

static void misspelt_variables_are_said_once_with_the_nearest(void **state) {
  (void)state;
  setenv("LCOMM_POLCY", "net=int8", 1);
  setenv("LCOMM_UCX_ANYTHING", "1", 1); /* UCX's */
  setenv("LCOMM_DOOR", "off", 1);
  heard[0] = '\0';
  lcomm_log_set(LCOMM_LOG_WARN, listen, NULL);
  assert_int_equal(create_and_destroy(), LCOMM_OK);
  assert_int_equal(create_and_destroy(), LCOMM_OK);
  lcomm_log_set(LCOMM_LOG_NONE, NULL, NULL);
  const char *first = strstr(heard, "LCOMM_POLCY (is LCOMM_POLICY meant?)");
  const char *renamed = strstr(heard, "LCOMM_DOOR is called LCOMM_INTERPOSE now");
  assert_non_null(renamed);
  assert_null(strstr(renamed + 1, "LCOMM_DOOR is"));
  assert_non_null(first);
  assert_null(strstr(first + 1, "LCOMM_POLCY"));
  assert_null(strstr(heard, "LCOMM_UCX_ANYTHING"));
  unsetenv("LCOMM_POLCY");
  unsetenv("LCOMM_UCX_ANYTHING");
  unsetenv("LCOMM_DOOR");
}

static void the_nearest_name_is_found_where_one_is_near(void **state) {
  (void)state;
  assert_string_equal(lcomm_settings_nearest("LCOMM_TIMEOUT"), "LCOMM_TIMEOUT_S");
  assert_string_equal(lcomm_settings_nearest("LCOMM_TRASPORT"), "LCOMM_TRANSPORT");
  assert_null(lcomm_settings_nearest("LCOMM_SOMETHING_ELSE"));
}

static void bad_values_are_errors_that_name_them(void **state) {
  (void)state;
  static const char *const bad[][2] = {
      {"LCOMM_LOG", "verbose"},       {"LCOMM_LOG_FILE", "log-%x"},   {"LCOMM_CUDA", "on"},
      {"LCOMM_CUDA_IPC", "yes"},      {"LCOMM_STATS", "always"},      {"LCOMM_ISA", "sse9"},
      {"LCOMM_PROGRESS", "threads"},  {"LCOMM_RUN_CACHE", "much"},    {"LCOMM_TIMEOUT_S", "soon"},
      {"LCOMM_NODES", "two"},         {"LCOMM_TRANSPORT", "tcp"},     {"LCOMM_TRACE_STEPS", "9-1"},
      {"LCOMM_CAPTURE_STEPS", "ten"}, {"LCOMM_TOPO_FILE", "/no/such"}};
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
    setenv(bad[i][0], bad[i][1], 1);
    assert_int_not_equal(create_and_destroy(), LCOMM_OK);
    if (!strstr(lcomm_last_error(NULL), bad[i][1])) {
      fail_msg("%s=%s: %s", bad[i][0], bad[i][1], lcomm_last_error(NULL));
    }
    unsetenv(bad[i][0]);
  }
  assert_int_equal(create_and_destroy(), LCOMM_OK);
}

static void each_level_says_what_those_before_it_say(void **state) {
  (void)state;
  static const char *const said[] = {[LCOMM_LOG_INFO] = "communicator",
                                     [LCOMM_LOG_DEBUG] = "algorithm",
                                     [LCOMM_LOG_TRACE] = "begins"};
  for (lcomm_log_level level = LCOMM_LOG_NONE; level <= LCOMM_LOG_TRACE; level++) {
    heard[0] = '\0';
    assert_int_equal(lcomm_log_set(level, listen, NULL), LCOMM_OK);
    assert_int_equal(create_and_destroy(), LCOMM_OK);
    for (lcomm_log_level of = LCOMM_LOG_INFO; of <= LCOMM_LOG_TRACE; of++) {
      assert_int_equal(strstr(heard, said[of]) != NULL, level >= of);
    }
  }
  assert_int_equal(lcomm_log_set((lcomm_log_level)9, listen, NULL), LCOMM_ERR_ARGUMENT);
  lcomm_log_set(LCOMM_LOG_NONE, NULL, NULL);
}

static void a_file_has_a_name_of_its_rank(void **state) {
  (void)state;
  char path[64], line[512] = "";
  assert_true(lcomm_log_path("a-%r-%h-%%", 3, "n1", path, sizeof(path)));
  assert_string_equal(path, "a-3-n1-%");
  assert_false(lcomm_log_path("a-%q", 3, "n1", path, sizeof(path)));
  assert_false(lcomm_log_path("a-%", 3, "n1", path, sizeof(path)));
  assert_false(lcomm_log_path("0123456789", 3, "n1", path, 10));
  snprintf(path, sizeof(path), "/tmp/libcomm-test-%ld-%%r.log", (long)getpid());
  setenv("LCOMM_LOG_FILE", path, 1);
  setenv("LCOMM_LOG", "info", 1);
  assert_int_equal(create_and_destroy(), LCOMM_OK);
  unsetenv("LCOMM_LOG_FILE");
  unsetenv("LCOMM_LOG");
  snprintf(path, sizeof(path), "/tmp/libcomm-test-%ld-0.log", (long)getpid());
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  assert_non_null(fgets(line, sizeof(line), file));
  assert_non_null(strstr(line, "info: libcomm "));
  fclose(file);
  unlink(path);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(misspelt_variables_are_said_once_with_the_nearest),
    cmocka_unit_test(the_nearest_name_is_found_where_one_is_near),
    cmocka_unit_test(bad_values_are_errors_that_name_them),
    cmocka_unit_test(each_level_says_what_those_before_it_say),
    cmocka_unit_test(a_file_has_a_name_of_its_rank),
};
RUN_TESTS(tests)
