/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* How traces end: by an error, a full disk, a death, an exit. */

#include "tests/observe/trace_files.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "libcomm/base/clock.h"
#include "tests/support/unit_tests.h"

static void a_file_that_cannot_be_written_is_a_sentence_at_once(void **state) {
  (void)state;
  lcomm_trace *trace = (lcomm_trace *)folder;
  char path[6000];
  lcomm_why why = {.text = ""};
  setenv("LCOMM_TRACE", in_folder("no/such/folder/trace"), 1);
  assert_int_equal(lcomm_trace_create(0, 1, "n1", &trace, &why), LCOMM_ERR_SYSTEM);
  assert_null(trace);
  assert_non_null(strstr(why.text, "LCOMM_TRACE"));
  assert_non_null(strstr(why.text, "no/such/folder/trace"));
  assert_non_null(strstr(why.text, "No such file or directory"));

  setenv("LCOMM_TRACE", in_folder("full%d"), 1);
  for (int i = 1; i < 64; i++) { /* whichever number this communicator has */
    char name[64];
    snprintf(name, sizeof(name), i == 1 ? "full0" : "full%d.0", i);
    assert_int_equal(symlink("/dev/full", in_folder(name)), 0);
  }
  assert_int_equal(lcomm_trace_create(0, 1, "n1", &trace, &why), LCOMM_ERR_SYSTEM);
  assert_non_null(strstr(why.text, "No space left on device"));

  memset(path, 'x', sizeof(path) - 1);
  path[sizeof(path) - 1] = '\0';
  setenv("LCOMM_TRACE", path, 1);
  assert_int_equal(lcomm_trace_create(0, 1, "n1", &trace, &why), LCOMM_ERR_ARGUMENT);
  assert_null(trace);
}

/* A file may not grow past 300000 bytes: as on a disk that is full. */
static void fill_the_disk(void) {
  struct rlimit limit = {300000, RLIM_INFINITY}; /* whose signal would end the process */
  lcomm_trace *trace = make_trace("small", 0, 1);
  setrlimit(RLIMIT_FSIZE, &limit);
  double now_s = lcomm_clock_s();
  for (int i = 0; i < 3 * LCOMM_TRACE_EVENTS_MAX; i++) {
    lcomm_trace_event event = make_event(LCOMM_TRACE_REDUCE, now_s + i * 1e-6, now_s + i * 1e-6);
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_flush(trace);
  lcomm_trace_run(trace, 1, 0);
  lcomm_trace_clock(trace, 0, 0);
  lcomm_trace_destroy(trace);
}

static void a_full_disk_later_loses_the_rest_of_the_trace_only(void **state) {
  (void)state;
  in_child(fill_the_disk);
  cJSON *events = read_back("small");
  assert_true(count_events(events, "reduce") > 500);
  cJSON_Delete(events);
}

static void die_in_the_middle(void) {
  lcomm_trace *trace = make_trace("died", 0, 1);
  lcomm_trace_event event = make_event(LCOMM_TRACE_ENCODE, 1, 2);
  lcomm_trace_add(trace, &event);
  lcomm_trace_flush(trace);
  lcomm_trace_add(trace, &event);
  _exit(0);
}

static void what_was_flushed_survives_the_process(void **state) {
  (void)state;
  in_child(die_in_the_middle);
  char *text = read_text(find_trace("died"));
  assert_int_equal(text[strlen(text) - 1], '}'); /* an open array, without a comma */
  free(text);
  expect_events("died", "encode", 1);
}

/* Of two events, the second more than a second after the first. */
static void add_and_die(void) {
  lcomm_trace *trace = make_trace("slow", 0, 1);
  double now_s = lcomm_clock_s();
  lcomm_trace_event first = make_event(LCOMM_TRACE_ENCODE, now_s, now_s);
  lcomm_trace_event second = make_event(LCOMM_TRACE_DECODE, now_s + 5, now_s + 5);
  lcomm_trace_add(trace, &first);
  lcomm_trace_add(trace, &second);
  _exit(0);
}

static void an_event_a_second_later_brings_the_others_to_the_file(void **state) {
  (void)state;
  in_child(add_and_die);
  expect_events("slow", "encode", 1);
  expect_events("slow", "decode", 0);
}

static void wait_and_die(void) {
  lcomm_trace *trace = make_trace("waits", 0, 1);
  lcomm_trace_event event = make_event(LCOMM_TRACE_ENCODE, 1, 2);
  lcomm_trace_add(trace, &event);
  for (double end_s = lcomm_clock_s() + 1.1; lcomm_clock_s() < end_s;) {
    lcomm_trace_tick(trace);
    usleep(10000);
  }
  lcomm_trace_tick(trace);
  _exit(0);
}

static void a_wait_of_a_second_brings_events_to_the_file(void **state) {
  (void)state;
  in_child(wait_and_die);
  expect_events("waits", "encode", 1);
}

/* -------------------------------------------------------------- the exit */

static lcomm_trace *left;
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;

static void leave(const char *name) {
  left = make_trace(name, 0, 1);
  lcomm_trace_watch(left, &guard);
  lcomm_trace_event event = make_event(LCOMM_TRACE_ENCODE, 1, 2);
  lcomm_trace_add(left, &event);
}

static void exit_without_destroy(void) {
  leave("left");
  fflush(NULL);
  if (fork() == 0) {
    exit(0); /* a child has no part in the trace */
  }
  wait(NULL);
}

static void an_exit_without_destroy_completes_the_file(void **state) {
  (void)state;
  in_child(exit_without_destroy);
  char *text = read_text(find_trace("left"));
  assert_string_equal(text + strlen(text) - 3, "\n]\n");
  free(text);
  expect_events("left", "encode", 1);
}

static void *hold_guard(void *ready) {
  pthread_mutex_lock(&guard);
  atomic_store((atomic_bool *)ready, true);
  pause();
  return NULL;
}

static void exit_while_somebody_drives(void) {
  static atomic_bool ready;
  pthread_t thread;
  leave("driven");
  pthread_create(&thread, NULL, hold_guard, &ready);
  while (!atomic_load(&ready)) {
    sched_yield();
  }
}

static void an_exit_does_not_wait_for_who_drives_the_communicator(void **state) {
  (void)state;
  in_child(exit_while_somebody_drives);
  expect_events("driven", "encode", 0);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(a_file_that_cannot_be_written_is_a_sentence_at_once),
    IN_FOLDER(a_full_disk_later_loses_the_rest_of_the_trace_only),
    IN_FOLDER(what_was_flushed_survives_the_process),
    IN_FOLDER(an_event_a_second_later_brings_the_others_to_the_file),
    IN_FOLDER(a_wait_of_a_second_brings_events_to_the_file),
    IN_FOLDER(an_exit_without_destroy_completes_the_file),
    IN_FOLDER(an_exit_does_not_wait_for_who_drives_the_communicator),
};
RUN_TESTS(tests)
