/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What trace_merge says of the traces it reads. */

#include "tests/observe/trace_ranks.h"
#include "tests/support/unit_tests.h"

static void what_is_odd_is_said(void **state) {
  (void)state;
  rank_file a = begin_file("a", 0, 4, 9, 0);
  put_message(&a, LCOMM_TRACE_SEND, 1, 0, 100, 200);
  put_message(&a, LCOMM_TRACE_SEND, 1, 1, 100, 200); /* never received */
  put_message(&a, LCOMM_TRACE_SEND, 3, 0, 100, 200); /* whose trace is missing */
  end_file(&a);
  rank_file b = begin_file("b", 1, 4, 9, 0);
  put_message(&b, LCOMM_TRACE_RECV, 0, 0, 10, 60); /* before it was sent */
  fclose(b.file);                                  /* an open array */
  rank_file c = begin_file("c", 2, 4, 10, 0);
  end_file(&c);
  rank_file d = begin_file("d", 1, 4, 9, 0);
  fputs(",\n{\"name\":\"en", d.file);
  fclose(d.file);
  merged m = merge("a", "b", "c", "d", NULL);
  static const char *const said[] = {"c is of another run than",
                                     "b and ",
                                     "d are of the same rank",
                                     "of 4 ranks, 2 traces are missing; the first one is that of "
                                     "rank 2",
                                     "b ends early:",
                                     "d ends early, in the middle of a line",
                                     "1 sends and 0 receives have no partner; one is the send of "
                                     "rank 0, operation #7, message 1 from rank 0 to rank 1",
                                     "1 messages arrive before they are sent, by up to 40.0 us"};
  for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
    if (!strstr(m.oddities, said[i])) {
      fail_msg("\"%s\" is missing in\n%s", said[i], m.oddities);
    }
  }
  assert_int_equal(m.oddity_count, 7);
  assert_int_not_equal(m.surveys[3].viewer_process, m.surveys[1].viewer_process);
  release(&m);
}

static void the_table_shows_where_the_time_went(void **state) {
  (void)state;
  rank_file a = begin_file("a", 0, 2, 9, 0);
  lcomm_trace_event event = make_event(LCOMM_TRACE_ENCODE, 0, 0);
  put_event(&a, &event, 0, 100);
  put_message(&a, LCOMM_TRACE_SEND, 1, 0, 100, 400); /* these two overlap: 400 in all */
  put_message(&a, LCOMM_TRACE_SEND, 1, 1, 200, 500);
  event.kind = LCOMM_TRACE_REDUCE;
  put_event(&a, &event, 500, 700);
  event.kind = LCOMM_TRACE_WAIT;
  put_event(&a, &event, 250, 300);
  event.kind = LCOMM_TRACE_OPERATION;
  event.name = "conv1";
  put_event(&a, &event, 0, 1000);
  end_file(&a);
  merged m = merge("a", NULL);
  assert_non_null(strstr(m.table, "10.0 %"));
  assert_non_null(strstr(m.table, "40.0 %"));
  assert_non_null(strstr(m.table, "20.0 %"));
  assert_non_null(strstr(m.table, "5.0 %"));
  assert_non_null(strstr(m.table, "8 KiB"));
  assert_non_null(strstr(m.table, "all-reduce #7 conv1, 1 ms"));
  release(&m);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(what_is_odd_is_said),
    IN_FOLDER(the_table_shows_where_the_time_went),
};
RUN_TESTS(tests)
