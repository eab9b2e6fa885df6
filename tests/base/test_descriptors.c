/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The limit of open files, and what is left of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/few_files.h"
#include "tests/support/unit_tests.h"

/* In a process of its own: limits are for its whole life. */
static void expect_true_elsewhere(bool (*holds)(void)) {
  int code = -1;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    _exit(holds() ? 0 : 1);
  }
  assert_int_equal(waitpid(pid, &code, 0), pid);
  assert_true(WIFEXITED(code) && WEXITSTATUS(code) == 0);
}

static rlim_t soft_limit(void) {
  struct rlimit limit = {0};
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

static bool raises_once(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_max = limit.rlim_max < 4096 ? limit.rlim_max : 4096;
  limit.rlim_cur = 100;
  bool good = setrlimit(RLIMIT_NOFILE, &limit) == 0;
  lcomm_descriptors_raise();
  good = good && soft_limit() == limit.rlim_max && lcomm_descriptors_limit() == (int)limit.rlim_max;
  good = good && setrlimit(RLIMIT_NOFILE, &limit) == 0;
  lcomm_descriptors_raise();
  return good && soft_limit() == 100;
}

static void soft_limit_becomes_the_hard_one_once(void **state) {
  (void)state;
  expect_true_elsewhere(raises_once);
}

static bool counts_what_is_left(void) {
  enum { LEFT = 20 };
  bool good = leave_files(LEFT, false);
  for (int left = LEFT - 1; good && left >= 0; left--) {
    good = open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0 && lcomm_descriptors_free() == left;
  }
  return good && open("/dev/null", O_RDONLY | O_CLOEXEC) < 0;
}

static void as_many_can_be_opened_as_are_counted(void **state) {
  (void)state;
  expect_true_elsewhere(counts_what_is_left);
}

/* A file above the limit was opened before that was lowered. */
static bool ignores_those_above(void) {
  struct rlimit limit;
  getrlimit(RLIMIT_NOFILE, &limit);
  int before = lcomm_descriptors_limit() - lcomm_descriptors_free();
  int high = fcntl(0, F_DUPFD_CLOEXEC, 900);
  limit.rlim_cur = 800;
  return high >= 900 && setrlimit(RLIMIT_NOFILE, &limit) == 0 &&
         lcomm_descriptors_free() >= 800 - before;
}

static void files_above_the_limit_take_no_room(void **state) {
  (void)state;
  if (soft_limit() <= 900) {
    skip();
  }
  expect_true_elsewhere(ignores_those_above);
}

static void what_lacks_is_said_with_the_limit_that_would_do(void **state) {
  (void)state;
  char text[LCOMM_DESCRIPTORS_TEXT_MAX];
  lcomm_descriptors_lack(20, 3, 9, 9, "a thing", text);
  assert_non_null(strstr(text, "3 more file descriptors (its limit is 20)"));
  assert_non_null(strstr(text, "a thing needs 9"));
  assert_non_null(strstr(text, "`ulimit -n 26`"));
  lcomm_descriptors_lack(20, 3, 9, 30, "a thing", text);
  assert_non_null(strstr(text, "`ulimit -n 47`"));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(soft_limit_becomes_the_hard_one_once),
    cmocka_unit_test(as_many_can_be_opened_as_are_counted),
    cmocka_unit_test(files_above_the_limit_take_no_room),
    cmocka_unit_test(what_lacks_is_said_with_the_limit_that_would_do),
};
RUN_TESTS(tests)
