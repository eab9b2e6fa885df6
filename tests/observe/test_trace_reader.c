/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Reading traces that something happened to. */

#include "tests/observe/trace_files.h"

#include "libcomm/observe/trace_format.h"
#include "tests/support/unit_tests.h"
#include "tools/trace/trace_survey.h"

static void require_refusal(const char *text, const char *reason) {
  lcomm_trace_survey survey;
  lcomm_trace_messages messages = {0};
  char why[LCOMM_TRACE_WHY_MAX] = "";
  write_text(in_folder("garbage"), text);
  assert_false(lcomm_trace_survey_read(in_folder("garbage"), 0, &survey, &messages, why));
  if (!strstr(why, reason) || !strstr(why, "garbage")) {
    fail_msg("\"%s\" does not say \"%s\"", why, reason);
  }
  free(messages.all);
}

#define HEAD                                                                                       \
  "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{\"name\":\"x\","       \
  "\"libcomm_trace\":1,\"rank\":0,\"size\":2,\"host\":\"h\",\"communicator\":1,\"process\":5,"     \
  "\"base_s\":3}}"
#define SEND_OF(ts, args) HEAD ",\n" EVENT(ts, args) "\n]\n"
#define EVENT(ts, args)                                                                            \
  "{\"name\":\"send\",\"cat\":\"message\",\"ph\":\"X\",\"ts\":" ts                                 \
  ",\"dur\":1,\"pid\":0,\"tid\":1,\"args\":{" args "}}"
#define SEND_ARGS(peer, link)                                                                      \
  "\"bytes\":1,\"operation\":\"x\",\"number\":1,\"step\":1,\"peer\":" peer                         \
  ",\"message\":0,\"link\":\"" link "\""

#define SEND EVENT("1", SEND_ARGS("1", "net"))

static void garbage_is_refused_with_a_sentence(void **state) {
  (void)state;
  require_refusal("", "before it begins");
  require_refusal("[\n", "before it begins");
  require_refusal("[\n]\n", "before it begins");
  require_refusal("not a trace at all\n", "line 1");
  require_refusal("[{\"name\":\"x\"}]", "line 1");
  require_refusal("[\n{}\n]\n", "line 2: it is no trace event");
  require_refusal("[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"tid\":0,\"args\":{}}\n]",
                  "whose trace");
  require_refusal(HEAD ",\ngarbage\n]\n", "line 3: it is no JSON");
  require_refusal(HEAD ",\n{}{}\n]\n", "line 3: it is no JSON");
  require_refusal(HEAD "\n]\nmore\n", "follows the end");
  require_refusal(SEND_OF("1e999", SEND_ARGS("1", "net")), "times");
  require_refusal(SEND_OF("\"1\"", SEND_ARGS("1", "net")), "times");
  require_refusal(SEND_OF("1", SEND_ARGS("-1", "net")), "makes no sense");
  require_refusal(SEND_OF("1", SEND_ARGS("1.5", "net")), "makes no sense");
  require_refusal(SEND_OF("1", SEND_ARGS("1", "moon")), "makes no sense");
  require_refusal(SEND_OF("1", "\"bytes\":1"), "makes no sense");
  char *large = malloc(3 * LCOMM_TRACE_LINE_MAX);
  assert_non_null(large);
  memset(large, 'x', 3 * LCOMM_TRACE_LINE_MAX - 1);
  large[3 * LCOMM_TRACE_LINE_MAX - 1] = '\0';
  require_refusal(large, "too long");
  free(large);

  lcomm_trace_survey survey;
  lcomm_trace_messages messages = {0};
  char why[LCOMM_TRACE_WHY_MAX] = "";
  assert_false(lcomm_trace_survey_read(in_folder("missing"), 0, &survey, &messages, why));
  assert_non_null(strstr(why, "No such file"));
  assert_false(lcomm_trace_survey_read(folder, 0, &survey, &messages, why));
  /* and with nothing wrong it is read */
  write_text(in_folder("good"), SEND_OF("1", SEND_ARGS("1", "net")));
  assert_true(lcomm_trace_survey_read(in_folder("good"), 0, &survey, &messages, why));
  assert_int_equal(messages.count, 1);
  free(messages.all);
}

#define OPERATION_OF(args)                                                                         \
  HEAD ",\n{\"name\":\"all-reduce\",\"cat\":\"operation\",\"ph\":\"X\",\"ts\":1,\"dur\":1,"        \
       "\"pid\":0,"                                                                                \
       "\"tid\":1,\"args\":{\"bytes\":64,\"operation\":\"all-reduce\",\"number\":1" args "}}\n]\n"
#define FACTOR_OF(sum, rank, elements, rows, columns)                                              \
  OPERATION_OF(",\"sum\":" sum ",\"rank\":" rank ",\"elements\":" elements ",\"rows\":" rows       \
               ",\"columns\":" columns)

static void factors_of_matrices_are_read_and_doubted(void **state) {
  (void)state;
  static const char *const good[] = {OPERATION_OF(""), FACTOR_OF("1", "4", "12", "3", "4"),
                                     FACTOR_OF("2", "1", "90000", "300", "300")};
  for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
    lcomm_trace_survey survey;
    lcomm_trace_messages messages = {0};
    char why[LCOMM_TRACE_WHY_MAX] = "";
    write_text(in_folder("factor"), good[i]);
    if (!lcomm_trace_survey_read(in_folder("factor"), 0, &survey, &messages, why)) {
      fail_msg("%s", why);
    }
    free(messages.all);
  }
  require_refusal(FACTOR_OF("0", "4", "12", "3", "4"), "makes no sense");
  require_refusal(FACTOR_OF("3", "4", "12", "3", "4"), "makes no sense");
  require_refusal(FACTOR_OF("1", "0", "12", "3", "4"), "makes no sense");
  require_refusal(FACTOR_OF("1", "4", "0", "3", "4"), "makes no sense");
  require_refusal(FACTOR_OF("1", "4", "12", "13", "4"), "makes no sense");
  require_refusal(FACTOR_OF("1", "4", "12", "3", "0"), "makes no sense");
  require_refusal(FACTOR_OF("1", "4", "1e300", "3", "4"), "makes no sense");
  require_refusal(OPERATION_OF(",\"sum\":1"), "makes no sense");
}

static void a_trace_cut_anywhere_is_read_as_far_as_it_goes(void **state) {
  (void)state;
  char *text = strdup(HEAD ",\n" SEND ",\n" SEND "\n]\n");
  assert_non_null(text);
  size_t size = strlen(text), head = strlen(HEAD);
  for (size_t length = size; length >= head; length--) {
    lcomm_trace_survey survey;
    lcomm_trace_messages messages = {0};
    char why[LCOMM_TRACE_WHY_MAX] = "";
    text[length] = '\0';
    write_text(in_folder("cut"), text);
    assert_true(lcomm_trace_survey_read(in_folder("cut"), 0, &survey, &messages, why));
    assert_int_equal(survey.closed, length >= size - 1);
    assert_int_equal(survey.events, messages.count);
    free(messages.all);
  }
  free(text);
}

static const struct CMUnitTest tests[] = {
    IN_FOLDER(garbage_is_refused_with_a_sentence),
    IN_FOLDER(factors_of_matrices_are_read_and_doubted),
    IN_FOLDER(a_trace_cut_anywhere_is_read_as_far_as_it_goes),
};
RUN_TESTS(tests)
