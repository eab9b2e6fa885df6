/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Writes that fail send no signal to the program, and no other signal is lost. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libcomm/base/file.h"
#include "libcomm/base/write_guard.h"
#include "tests/support/unit_tests.h"

enum { LIMIT_BYTES = 4096 };

static char folder[] = "/tmp/libcomm-guard-XXXXXX";
static struct rlimit before;
static volatile sig_atomic_t heard;

static void hear(int number) {
  heard = number;
}

/* Files may not grow past LIMIT_BYTES; a signal of it is heard. */
static int set_up(void **state) {
  (void)state;
  heard = 0;
  signal(SIGXFSZ, hear);
  signal(SIGPIPE, hear);
  getrlimit(RLIMIT_FSIZE, &before);
  struct rlimit limit = {LIMIT_BYTES, before.rlim_max};
  strcpy(folder + sizeof(folder) - 7, "XXXXXX");
  return mkdtemp(folder) ? setrlimit(RLIMIT_FSIZE, &limit) : -1;
}

static int clean_up(void **state) {
  (void)state;
  signal(SIGXFSZ, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  return setrlimit(RLIMIT_FSIZE, &before) + rmdir(folder);
}

static bool is_blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  return sigismember(&mask, number) == 1;
}

static bool is_pending(int number) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, number) == 1;
}

/* A byte past the limit. */
static int write_too_far(void) {
  char path[64];
  snprintf(path, sizeof(path), "%s/file", folder);
  int handle = open(path, O_WRONLY | O_CREAT, 0600);
  int error = pwrite(handle, "x", 1, LIMIT_BYTES) == 1 ? 0 : errno;
  close(handle);
  unlink(path);
  return error;
}

static void a_write_past_the_limit_is_an_error_and_no_signal(void **state) {
  (void)state;
  lcomm_write_guard guard;
  lcomm_write_guard_begin(&guard);
  int error = write_too_far();
  lcomm_write_guard_end(&guard, error);
  assert_int_equal(error, EFBIG);
  assert_int_equal(heard, 0);
  assert_false(is_blocked(SIGXFSZ) || is_blocked(SIGPIPE));
  assert_false(is_pending(SIGXFSZ));
  assert_int_equal(write_too_far(), EFBIG);
  assert_int_equal(heard, SIGXFSZ); /* the program's own writes are as before */
}

static void a_pipe_without_a_reader_is_an_error_and_no_signal(void **state) {
  (void)state;
  int ends[2];
  lcomm_write_guard guard;
  assert_int_equal(pipe(ends), 0);
  close(ends[0]);
  lcomm_write_guard_begin(&guard);
  int error = write(ends[1], "x", 1) == 1 ? 0 : errno;
  lcomm_write_guard_end(&guard, error);
  close(ends[1]);
  assert_int_equal(error, EPIPE);
  assert_int_equal(heard, 0);
  assert_false(is_pending(SIGPIPE));
}

static void a_signal_that_waits_stays(void **state) {
  (void)state;
  sigset_t own;
  lcomm_write_guard guard;
  sigemptyset(&own);
  sigaddset(&own, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &own, NULL);
  raise(SIGXFSZ);
  lcomm_write_guard_begin(&guard);
  lcomm_write_guard_end(&guard, write_too_far());
  assert_true(is_blocked(SIGXFSZ));
  assert_true(is_pending(SIGXFSZ));
  assert_int_equal(heard, 0);
  pthread_sigmask(SIG_UNBLOCK, &own, NULL);
  assert_int_equal(heard, SIGXFSZ);
}

static void a_signal_from_elsewhere_is_late_and_not_lost(void **state) {
  (void)state;
  lcomm_write_guard guard;
  lcomm_write_guard_begin(&guard);
  raise(SIGPIPE);
  assert_int_equal(heard, 0);
  lcomm_write_guard_end(&guard, write_too_far());
  assert_int_equal(heard, SIGPIPE);
}

static void a_file_that_is_too_large_is_a_sentence(void **state) {
  (void)state;
  static char bytes[3 * LIMIT_BYTES];
  lcomm_why why;
  lcomm_file file;
  assert_int_equal(lcomm_file_begin(&file, folder, "large", &why), LCOMM_OK);
  lcomm_file_write(&file, bytes, sizeof(bytes));
  assert_int_equal(lcomm_file_finish(&file, &why), LCOMM_ERR_SYSTEM);
  assert_non_null(strstr(why.text, strerror(EFBIG)));
  assert_int_equal(heard, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, clean_up)
static const struct CMUnitTest tests[] = {
    TEST(a_write_past_the_limit_is_an_error_and_no_signal),
    TEST(a_pipe_without_a_reader_is_an_error_and_no_signal),
    TEST(a_signal_that_waits_stays),
    TEST(a_signal_from_elsewhere_is_late_and_not_lost),
    TEST(a_file_that_is_too_large_is_a_sentence),
};
RUN_TESTS(tests)
