/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Traces of several ranks in one file. */

#include "tests/observe/trace_ranks.h"

#include "libcomm/base/clock.h"
#include "tests/support/unit_tests.h"

/* Rank 1's clock is 2.5 s behind, and its base is another one. */
static void clocks_are_aligned(void **state) {
  (void)state;
  rank_file a = begin_file("a", 0, 2, 9, 0);
  put_message(&a, LCOMM_TRACE_SEND, 1, 4, 3000000, 3000100);
  end_file(&a);
  rank_file b = begin_file("b", 1, 2, 9, 2.5);
  put_message(&b, LCOMM_TRACE_RECV, 0, 4, 500020, 500150);
  end_file(&b);
  merged m = merge("a", "b", NULL);
  cJSON *events = read_events(in_folder("merged"));
  double sent_us = number_of(find_event(events, "send", 0), "ts");
  double received_us = number_of(find_event(events, "recv", 0), "ts");
  assert_true(fabs(received_us - sent_us - 20) < 1e-6);
  assert_int_equal(number_of(find_event(events, "recv", 0), "pid"), 1);
  assert_string_equal(m.oddities, "");
  /* an arrow from the begin of the one to the end of the other */
  const cJSON *from = find_event(events, "message", 0), *to = find_event(events, "message", 1);
  assert_string_equal(text_of(from, "ph"), "s");
  assert_string_equal(text_of(to, "ph"), "f");
  assert_string_equal(text_of(to, "bp"), "e");
  assert_true(number_of(from, "id") == number_of(to, "id"));
  assert_true(fabs(number_of(from, "ts") - sent_us) < 1e-6);
  assert_true(fabs(number_of(to, "ts") - received_us - 129.999) < 1e-6);
  assert_true(number_of(to, "tid") == number_of(find_event(events, "recv", 0), "tid"));
  cJSON_Delete(events);
  release(&m);
}

static void every_event_is_kept_in_its_order(void **state) {
  (void)state;
  static const char hostile[] = "a\"b\\c\n\x01\xff";
  for (int rank = 0; rank < 2; rank++) {
    rank_file f = begin_file(rank ? "b" : "a", rank, 2, 9, 0);
    for (int i = 0; i < 2000; i++) {
      lcomm_trace_event event = make_event(LCOMM_TRACE_ENCODE, 0, 0);
      event.sequence = (uint32_t)i;
      event.name = hostile;
      event.codec = "int8";
      put_event(&f, &event, 10 * i, 10 * i + 5);
    }
    end_file(&f);
  }
  merged m = merge("a", "b", NULL);
  cJSON *events = read_events(in_folder("merged")), *own = read_events(in_folder("a"));
  int next[2] = {0, 0};
  const cJSON *event = NULL;
  cJSON_ArrayForEach(event, events) {
    if (strcmp(text_of(event, "name"), "encode") == 0) {
      int rank = (int)number_of(event, "pid");
      assert_int_equal(number_of(args_of(event), "number"), next[rank]++);
    }
  }
  assert_int_equal(next[0], 2000);
  assert_int_equal(next[1], 2000);
  const cJSON *after = args_of(find_event(events, "encode", 0));
  assert_true(cJSON_Compare(after, args_of(find_event(own, "encode", 0)), true));
  cJSON_Delete(events);
  cJSON_Delete(own);
  release(&m);
}

static void what_the_library_writes_can_be_merged(void **state) {
  (void)state;
  lcomm_trace *trace = make_trace("t%d", 0, 1);
  double now_s = lcomm_clock_s();
  for (int kind = 0; kind < LCOMM_TRACE_KIND_COUNT; kind++) {
    lcomm_trace_event event = make_event((lcomm_trace_kind)kind, now_s, now_s + 1e-3);
    event.name = "\xff\"\n";
    if (kind == LCOMM_TRACE_SEND || kind == LCOMM_TRACE_RECV) {
      event = make_message((lcomm_trace_kind)kind, 0, 1, now_s, now_s + 1e-3);
    }
    lcomm_trace_add(trace, &event);
  }
  lcomm_trace_run(trace, 1, 0);
  lcomm_trace_destroy(trace);
  merged m = merge("t0", NULL);
  assert_int_equal(m.surveys[0].events, LCOMM_TRACE_KIND_COUNT);
  assert_int_equal(m.match.pair_count, 1);
  assert_string_equal(m.oddities, "");
  release(&m);
}

static void communicators_of_a_process_share_its_rows(void **state) {
  (void)state;
  rank_file a = begin_file("a", 0, 2, 9, 0), b = begin_file("b", 1, 2, 9, 0);
  end_file(&a);
  end_file(&b);
  rank_file part = begin_file("part", 0, 1, 8, 0); /* of rank 1 */
  fclose(part.file);
  part.file = fopen(in_folder("part"), "wb");
  part.lines = 0;
  part.origin = (lcomm_trace_origin){.rank = 0,
                                     .size = 1,
                                     .host = "n1",
                                     .communicator = 2,
                                     .process_rank = 1,
                                     .process = 1001,
                                     .base_s = 50};
  lcomm_trace_line line;
  lcomm_trace_format_origin(&line, &part.origin);
  write_line(&part, &line);
  lcomm_trace_format_run(&line, &part.origin, 77, 0);
  write_line(&part, &line);
  end_file(&part);
  merged m = merge("a", "b", "part", NULL);
  assert_int_equal(m.surveys[1].viewer_process, 1);
  assert_int_equal(m.surveys[2].viewer_process, 1);
  assert_string_equal(m.oddities, ""); /* another number is no other run */
  assert_non_null(strstr(m.table, "0 of comm 2"));
  release(&m);
}

static void messages_find_their_partner(void **state) {
  (void)state;
  rank_file files[3];
  for (int rank = 0; rank < 3; rank++) {
    static const char *const names[] = {"a", "b", "c"};
    files[rank] = begin_file(names[rank], rank, 3, 9, 0);
  }
  /* Every rank sends two messages to each other rank; what was sent first comes last. */
  for (int from = 0; from < 3; from++) {
    for (int to = 0; to < 3; to++) {
      for (uint32_t message = 0; from != to && message < 2; message++) {
        int64_t time_us = 100 * from + 10 * to + (message == 0 ? 5 : 0);
        put_message(&files[from], LCOMM_TRACE_SEND, to, message, time_us, time_us + 1);
        put_message(&files[to], LCOMM_TRACE_RECV, from, message, 900 - time_us, 901 - time_us);
      }
    }
  }
  for (int rank = 0; rank < 3; rank++) {
    end_file(&files[rank]);
  }
  merged m = merge("a", "b", "c", NULL);
  assert_int_equal(m.match.pair_count, 12);
  for (size_t i = 0; i < m.match.pair_count; i++) {
    const lcomm_trace_message *send = m.match.pairs[i].send, *got = m.match.pairs[i].receive;
    assert_true(!send->received && got->received);
    assert_int_equal(got->from, send->from);
    assert_int_equal(got->to, send->to);
    assert_int_equal(got->message, send->message);
  }
  release(&m);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(what_the_library_writes_can_be_merged),
    IN_FOLDER(clocks_are_aligned),
    IN_FOLDER(every_event_is_kept_in_its_order),
    IN_FOLDER(communicators_of_a_process_share_its_rows),
    IN_FOLDER(messages_find_their_partner),
};
RUN_TESTS(tests)
