/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What a rank writes: valid JSON whatever happens, every event once. */

#include "tests/observe/trace_files.h"

#include <math.h>

#include "libcomm/base/clock.h"
#include "tests/support/unit_tests.h"

static void nothing_is_written_unless_asked_for(void **state) {
  (void)state;
  lcomm_trace *trace = (lcomm_trace *)folder;
  lcomm_why why = {.text = ""};
  unsetenv("LCOMM_TRACE");
  assert_int_equal(lcomm_trace_create(0, 1, "n1", &trace, &why), LCOMM_OK);
  assert_null(trace);
  lcomm_trace_destroy(NULL);
}

/* ----------------------------------------------------------------- names */

static void write_named_files(void) {
  lcomm_trace *traces[4];
  traces[0] = make_trace("plain", 3, 4);
  traces[1] = make_trace("plain", 1, 2); /* another communicator of the same process */
  traces[2] = make_trace("rank%d.json", 0, 1);
  for (int i = 0; i < 3; i++) {
    lcomm_trace_destroy(traces[i]);
  }
}

static void files_are_named_by_rank_and_communicator(void **state) {
  (void)state;
  in_child(write_named_files);
  assert_int_equal(access(in_folder("plain.3"), R_OK), 0);
  assert_int_equal(access(in_folder("plain.2.3"), R_OK), 0);
  assert_int_equal(access(in_folder("rank3.3.json"), R_OK), 0);
  cJSON *events = read_events(in_folder("plain.2.3"));
  const cJSON *origin = find_event(events, "process_name", 0);
  assert_int_equal(number_of(origin, "pid"), 3);
  assert_string_equal(text_of(args_of(origin), "name"), "rank 3 (host n1)");
  assert_int_equal(number_of(args_of(origin), "rank"), 1);
  assert_int_equal(number_of(args_of(origin), "communicator"), 2);
  cJSON_Delete(events);
}

/* ---------------------------------------------------------------- events */

static void an_event_says_all_it_knows(void **state) {
  (void)state;
  lcomm_trace *trace = make_trace("all", 0, 4);
  double now_s = lcomm_clock_s();
  lcomm_trace_run(trace, UINT64_C(0xfedcba9876543210), 1);
  lcomm_trace_clock(trace, -1.5, 2e-6);
  lcomm_trace_event event = make_message(LCOMM_TRACE_SEND, 2, 5, now_s, now_s + 0.0015);
  event.name = "conv1.weight";
  event.codec = "int8";
  lcomm_trace_add(trace, &event);
  event = make_event(LCOMM_TRACE_ENCODE, now_s, now_s + 0.001);
  event.waited = 41;
  lcomm_trace_add(trace, &event);
  event = make_event(LCOMM_TRACE_OPERATION, now_s, now_s + 0.002);
  lcomm_trace_add(trace, &event);
  event = make_event(LCOMM_TRACE_GUARD, now_s, now_s + 0.003);
  event.name = "conv2.weight";
  event.guard = (lcomm_trace_guard){0.25, -0.0625, 1234.5, 17};
  lcomm_trace_add(trace, &event);
  lcomm_trace_destroy(trace);
  cJSON *events = read_back("all");
  const cJSON *guard = find_event(events, "guard", 0);
  assert_string_equal(text_of(args_of(guard), "tensor"), "conv2.weight");
  assert_float_equal(number_of(args_of(guard), "error"), 0.25, 1e-9);
  assert_float_equal(number_of(args_of(guard), "cosine"), -0.0625, 1e-9);
  assert_float_equal(number_of(args_of(guard), "residual"), 1234.5, 1e-9);
  assert_int_equal(number_of(args_of(guard), "waited"), 17);
  assert_int_equal(number_of(args_of(find_event(events, "encode", 0)), "waited"), 41);
  const cJSON *send = find_event(events, "send", 0);
  assert_non_null(send);
  assert_string_equal(text_of(send, "ph"), "X");
  assert_string_equal(text_of(send, "cat"), "message");
  assert_true(fabs(number_of(send, "dur") - 1500) < 0.01);
  assert_string_equal(text_of(args_of(send), "operation"), "all-reduce");
  assert_int_equal(number_of(args_of(send), "number"), 7);
  assert_int_equal(number_of(args_of(send), "step"), 3);
  assert_int_equal(number_of(args_of(send), "peer"), 2);
  assert_int_equal(number_of(args_of(send), "message"), 5);
  assert_int_equal(number_of(args_of(send), "bytes"), 4096);
  assert_string_equal(text_of(args_of(send), "link"), "net");
  assert_string_equal(text_of(args_of(send), "tensor"), "conv1.weight");
  assert_string_equal(text_of(args_of(send), "codec"), "int8");
  assert_non_null(find_event(events, "all-reduce", 0)); /* the operation as a whole */
  const cJSON *run = find_event(events, "process_labels", 0);
  assert_string_equal(text_of(args_of(run), "run"), "fedcba9876543210");
  const cJSON *clock = find_event(events, "process_sort_index", 1);
  assert_int_equal(number_of(args_of(clock), "clock_offset_ns"), -1500000000);
  assert_int_equal(number_of(args_of(clock), "clock_error_ns"), 2000);
  cJSON_Delete(events);
}

static void an_operation_says_of_what_matrices_its_factors_are(void **state) {
  (void)state;
  lcomm_trace *trace = make_trace("factors", 0, 4);
  double now_s = lcomm_clock_s();
  lcomm_trace_event event = make_event(LCOMM_TRACE_OPERATION, now_s, now_s + 0.002);
  lcomm_trace_add(trace, &event);
  event.factor = (lcomm_trace_factor){
      .sum = 2, .rank = 4, .elements = 5000000000, .rows = 4096, .columns = 1024};
  lcomm_trace_add(trace, &event);
  lcomm_trace_destroy(trace);
  cJSON *events = read_back("factors");
  const cJSON *plain = args_of(find_event(events, "all-reduce", 0));
  const cJSON *factor = args_of(find_event(events, "all-reduce", 1));
  assert_false(cJSON_HasObjectItem(plain, "sum"));
  assert_int_equal(number_of(factor, "sum"), 2);
  assert_int_equal(number_of(factor, "rank"), 4);
  assert_float_equal(number_of(factor, "elements"), 5e9, 0.5);
  assert_int_equal(number_of(factor, "rows"), 4096);
  assert_int_equal(number_of(factor, "columns"), 1024);
  cJSON_Delete(events);
}

/* Control characters are not allowed in strings; some parsers let them pass. */
static void require_no_control_characters(const char *path) {
  char *text = read_text(path);
  for (const char *at = text; *at; at++) {
    assert_true((unsigned char)*at >= 0x20 || *at == '\n');
  }
  free(text);
}

static void any_name_stays_valid_json(void **state) {
  (void)state;
  static const struct sample {
    const char *name, *shown;
  } samples[] = {
      {"quote\" back\\slash", "quote\" back\\slash"},
      {"line\nfeed\ttab\x01\x1f\x7f", "line\nfeed\ttab\x01\x1f\x7f"},
      {"bytes \xff\xfe\x80", "bytes \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"cut \xc3", "cut \xef\xbf\xbd"},
      {"short form \xc0\xaf", "short form \xef\xbf\xbd\xef\xbf\xbd"},
      {"surrogate \xed\xa0\x80", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"beyond \xf4\x90\x80\x80", "beyond \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
      {"\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80",
       "\xc3\xa9t\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80"},
      {"", ""},
      /* 64 bytes: the last character is cut off, not through */
      {"012345678901234567890123456789012345678901234567890123456789123\xc3\xa9",
       "012345678901234567890123456789012345678901234567890123456789123"},
      {"01234567890123456789012345678901234567890123456789012345678912\xc3\xa9",
       "01234567890123456789012345678901234567890123456789012345678912"},
  };
  enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };
  lcomm_trace *trace = make_trace("names", 0, 1);
  for (int i = 0; i < SAMPLES; i++) {
    lcomm_trace_event event = make_event(LCOMM_TRACE_ENCODE, i, i + 0.5);
    event.name = samples[i].name;
    event.codec = samples[i].name;
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_destroy(trace);
  require_no_control_characters(find_trace("names"));
  cJSON *events = read_back("names");
  assert_int_equal(count_events(events, "encode"), SAMPLES);
  for (int i = 0; i < SAMPLES; i++) {
    const cJSON *event = find_event(events, "encode", i);
    assert_string_equal(text_of(args_of(event), "tensor"), samples[i].shown);
  }
  cJSON_Delete(events);
}

static void events_past_the_memory_are_written_in_between(void **state) {
  (void)state;
  enum { EVENTS = 2 * LCOMM_TRACE_EVENTS_MAX + 100 };
  lcomm_trace *trace = make_trace("wrap", 0, 1);
  double now_s = lcomm_clock_s();
  for (int i = 0; i < EVENTS; i++) {
    lcomm_trace_event event = make_event(LCOMM_TRACE_DECODE, now_s + i * 1e-6, now_s + i * 1e-6);
    event.sequence = (uint32_t)i;
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_destroy(trace);
  cJSON *events = read_back("wrap");
  const cJSON *event = NULL;
  int next = 0, writes = 0;
  cJSON_ArrayForEach(event, events) {
    writes += strcmp(text_of(event, "name"), "write trace") == 0;
    if (strcmp(text_of(event, "name"), "decode") == 0) {
      assert_int_equal(number_of(args_of(event), "number"), next++);
    }
  }
  assert_int_equal(next, EVENTS);
  assert_int_equal(writes, 2);
  cJSON_Delete(events);
}

/* Of one row, in whole nanoseconds, as viewers compare them. */
static void require_no_overlap(const cJSON *events, double row) {
  double last_end_ns = -1;
  const cJSON *event = NULL;
  cJSON_ArrayForEach(event, events) {
    if (strcmp(text_of(event, "ph"), "X") == 0 && number_of(event, "tid") == row) {
      assert_true(round(1e3 * number_of(event, "ts")) >= last_end_ns);
      last_end_ns = round(1e3 * number_of(event, "ts")) + round(1e3 * number_of(event, "dur"));
    }
  }
}

static void events_that_overlap_take_rows_of_their_own(void **state) {
  (void)state;
  lcomm_trace *trace = make_trace("rows", 0, 2);
  double now_s = lcomm_clock_s();
  for (int i = 0; i < 400; i++) { /* three at a time, in the order of their ends */
    double end_s = now_s + i / 3e4;
    lcomm_trace_event event = make_message(LCOMM_TRACE_SEND, 1, (uint32_t)i, end_s - 1e-4, end_s);
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_destroy(trace);
  cJSON *events = read_back("rows");
  int rows = count_events(events, "thread_name");
  assert_in_range(rows, 3, 4); /* a fourth one for what is lost in rounding */
  for (int i = 0; i < rows; i++) {
    require_no_overlap(events, number_of(find_event(events, "thread_name", i), "tid"));
  }
  const cJSON *row = find_event(events, "thread_name", 0);
  assert_non_null(strstr(text_of(args_of(row), "name"), "send net"));
  cJSON_Delete(events);
}

static void more_overlap_than_rows_loses_no_event(void **state) {
  (void)state;
  double now_s = lcomm_clock_s();
  lcomm_trace *trace = make_trace("crowd", 0, 2);
  for (int i = 0; i < 1000; i++) {
    lcomm_trace_event event =
        make_message(LCOMM_TRACE_RECV, 1, (uint32_t)i, now_s, now_s + 0.5 + i * 1e-6);
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_destroy(trace);
  expect_events("crowd", "recv", 1000);
  expect_events("crowd", "thread_name", 256);
}

static void senseless_events_do_no_harm(void **state) {
  (void)state;
  lcomm_trace *trace = make_trace("senseless", 0, 2);
  const double times[] = {NAN, INFINITY, -INFINITY, 1e300, -1, 0};
  for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
    lcomm_trace_event event = make_event(LCOMM_TRACE_WAIT, times[i], times[(i + 1) % 6]);
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_event event = make_message(LCOMM_TRACE_SEND, 1, 0, 1, 2);
  event.link = (lcomm_link)77;
  lcomm_trace_add(trace, &event);
  event.kind = (lcomm_trace_kind)77;
  lcomm_trace_add(trace, &event);
  lcomm_trace_destroy(trace);
  expect_events("senseless", "wait", 6);
  expect_events("senseless", "send", 1);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(files_are_named_by_rank_and_communicator),
    IN_FOLDER(nothing_is_written_unless_asked_for),
    IN_FOLDER(an_event_says_all_it_knows),
    IN_FOLDER(an_operation_says_of_what_matrices_its_factors_are),
    IN_FOLDER(any_name_stays_valid_json),
    IN_FOLDER(events_past_the_memory_are_written_in_between),
    IN_FOLDER(events_that_overlap_take_rows_of_their_own),
    IN_FOLDER(more_overlap_than_rows_loses_no_event),
    IN_FOLDER(senseless_events_do_no_harm),
};
RUN_TESTS(tests)
