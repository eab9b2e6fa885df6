/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Statistics by collective, and their table. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libcomm/observe/summary.h"
#include "tests/support/unit_tests.h"

static const lcomm_summary_about about = {.rank = 0,
                                          .size = 4,
                                          .nodes = 2,
                                          .host = "n1",
                                          .policy = "net=int8 min=64K",
                                          .transports = "shm, ucx"};

/* One operation of 2 s on `mib` MiB that sent a tenth of that between nodes,
 * where it would have sent `ratio` times as much. */
static void add(lcomm_summary *summary, int row, uint64_t mib, double ratio, double begin_s) {
  uint64_t sent = (mib << 20) / 10;
  lcomm_summary_cost cost = {
      .data_bytes = mib << 20, .encode_s = 0.25, .decode_s = 0.125, .wire_s = 1.5};
  cost.sent_bytes[LCOMM_LINK_NET] = sent;
  cost.exact_bytes[LCOMM_LINK_NET] = (uint64_t)(ratio * (double)sent);
  lcomm_summary_begin(summary, begin_s);
  lcomm_summary_add(summary, &summary->rows[row], &cost, begin_s, begin_s + 2);
}

static void known_numbers_make_a_known_table(void **state) {
  (void)state;
  lcomm_summary summary = {.about = about};
  char text[LCOMM_SUMMARY_TEXT_MAX];
  add(&summary, LCOMM_COLLECTIVE_ALLREDUCE, 100, 4, 10);
  add(&summary, LCOMM_COLLECTIVE_ALLREDUCE, 100, 4, 12);
  add(&summary, LCOMM_SUMMARY_TENSORS, 20, 100, 14);
  summary.rows[LCOMM_COLLECTIVE_ALLREDUCE].cost.sent_bytes[LCOMM_LINK_SHM] = 1023;
  summary.rows[LCOMM_COLLECTIVE_ALLREDUCE].cost.exact_bytes[LCOMM_LINK_SHM] = 1023;
  summary.rows[LCOMM_SUMMARY_TENSORS].wait_s = 0.6;
  lcomm_summary_begin(&summary, 20);
  size_t length = lcomm_summary_print(&summary, 24, text, sizeof(text));
  assert_int_equal(length, strlen(text));
  assert_string_equal(
      text,
      "libcomm: statistics of rank 0 (host n1) of 4 ranks on 2 nodes; its own numbers\n"
      "  policy      net=int8 min=64K\n"
      "  transports  shm, ucx\n"
      "\n"
      "  operation            calls      data       shm  ratio       net  ratio   seconds    "
      "encode    decode      wire      wait\n"
      "  all-reduce               2   200 MiB    1023 B   1.00  20.0 MiB   4.00     4.000     "
      "0.500     0.250     3.000     0.000\n"
      "  tensors                  1  20.0 MiB       0 B      -   2.0 MiB 100.00     2.000     "
      "0.250     0.125     1.500     0.600\n"
      "  all                      3   220 MiB    1023 B   1.00  22.0 MiB  12.73     6.000     "
      "0.750     0.375     4.500     0.600\n"
      "  Between nodes 12.7 times fewer bytes than exact; 6 % of the 10.000 s with an operation "
      "in flight were spent waiting.\n");
}

static void messages_between_two_ranks_have_rows_of_their_own(void **state) {
  (void)state;
  lcomm_summary summary = {.about = about};
  char text[LCOMM_SUMMARY_TEXT_MAX];
  add(&summary, LCOMM_SUMMARY_SENDS, 100, 4, 10);
  add(&summary, LCOMM_SUMMARY_SENDS, 100, 4, 12);
  add(&summary, LCOMM_SUMMARY_RECEIVES, 20, 1, 14);
  lcomm_summary_print(&summary, 24, text, sizeof(text));
  assert_non_null(strstr(text, "\n  send                     2   200 MiB"));
  assert_non_null(strstr(text, "\n  receive                  1  20.0 MiB"));
}

/* Tensors that were checked, as many as there is room for. */
static void what_the_guard_found_is_shown(void **state) {
  (void)state;
  enum { GUARDED = 30 };
  lcomm_guard_figures figures[GUARDED];
  const lcomm_guard_figures *rows[GUARDED];
  char text[LCOMM_SUMMARY_TEXT_MAX];
  lcomm_summary summary = {.about = about, .guarded = rows, .guarded_count = GUARDED};
  for (int i = 0; i < GUARDED; i++) {
    figures[i] = (lcomm_guard_figures){.tensor = "fc1.weight", .codec = "topk:0.01+ef"};
    rows[i] = &figures[i];
  }
  lcomm_summary_print(&summary, 1, text, sizeof(text));
  assert_null(strstr(text, "guard"));
  for (int i = 0; i < GUARDED; i++) {
    figures[i].checks = 12;
  }
  figures[0].error = 0.934;
  figures[0].cosine = 0.312;
  figures[0].residual = 108.31;
  figures[0].waited = 7;
  figures[0].fallbacks = 1;
  figures[0].beyond = 1;
  assert_true(lcomm_summary_print(&summary, 1, text, sizeof(text)) < sizeof(text));
  assert_non_null(strstr(
      text,
      "\n\n  guard: tensor            codec                 checks     error  cosine  residual"
      "   waited falls\n"
      "  fc1.weight               topk:0.01+ef              12     0.934   0.312       108"
      "        7     1 beyond the limit\n"));
  assert_non_null(strstr(text, "\n  and 6 more tensors\n"));
}

/* The last line for one all-reduce. */
static const char *verdict(double ratio) {
  static char text[LCOMM_SUMMARY_TEXT_MAX];
  lcomm_summary summary = {.about = about};
  add(&summary, LCOMM_COLLECTIVE_ALLREDUCE, 1, ratio, 1);
  text[lcomm_summary_print(&summary, 3, text, sizeof(text)) - 1] = '\0';
  return strrchr(text, '\n') + 1;
}

static void the_last_line_is_true(void **state) {
  (void)state;
  char text[LCOMM_SUMMARY_TEXT_MAX];
  assert_non_null(strstr(verdict(26.3), "26.3 times fewer bytes than exact; 0 % of the 2.000 s"));
  assert_non_null(strstr(verdict(1.01), "1.01 times fewer"));
  assert_non_null(strstr(verdict(0.5), "2.00 times more bytes"));
  assert_non_null(strstr(verdict(1), "as many bytes as exact"));

  lcomm_summary none = {.about = about};
  lcomm_summary_print(&none, 1, text, sizeof(text));
  assert_non_null(strstr(text, "  No operation was finished.\n"));
  lcomm_summary_begin(&none, 1);
  lcomm_summary_add(&none, &none.rows[LCOMM_COLLECTIVE_BARRIER], &(lcomm_summary_cost){0}, 1, 1);
  lcomm_summary_print(&none, 1, text, sizeof(text));
  assert_non_null(strstr(text, "Nothing was sent between nodes; 0 %"));
  assert_null(strstr(text, "nan"));
}

static void the_text_is_cut_to_its_room(void **state) {
  (void)state;
  char text[64], whole[LCOMM_SUMMARY_TEXT_MAX];
  lcomm_summary summary = {.about = about};
  size_t length = lcomm_summary_print(&summary, 1, whole, sizeof(whole));
  memset(text, 'x', sizeof(text));
  assert_int_equal(lcomm_summary_print(&summary, 1, text, 32), length);
  assert_int_equal(strlen(text), 31);
  assert_int_equal(text[32], 'x');
  assert_int_equal(lcomm_summary_print(&summary, 1, NULL, 0), length);
}

/* One operation of 1 s that sent so many KiB with this codec. */
static void add_coded(lcomm_summary *summary, lcomm_codec_id codec, uint64_t kib) {
  lcomm_summary_cost cost = {.data_bytes = 4 << 20, .codec = codec};
  cost.sent_bytes[LCOMM_LINK_NET] = kib << 10;
  cost.exact_bytes[LCOMM_LINK_NET] = 4 << 20;
  lcomm_summary_begin(summary, 1);
  lcomm_summary_add(summary, &summary->rows[LCOMM_SUMMARY_TENSORS], &cost, 1, 2);
}

static void several_lossy_codecs_have_a_row_each(void **state) {
  (void)state;
  char text[LCOMM_SUMMARY_TEXT_MAX];
  lcomm_summary summary = {.about = about};
  add_coded(&summary, LCOMM_CODEC_NONE, 4096);
  add_coded(&summary, LCOMM_CODEC_TOPK, 64);
  add_coded(&summary, LCOMM_CODEC_TOPK, 64);
  lcomm_summary_print(&summary, 3, text, sizeof(text));
  assert_null(strstr(text, "codec "));
  add_coded(&summary, LCOMM_CODEC_BF16, 2048);
  lcomm_summary_print(&summary, 3, text, sizeof(text));
  assert_non_null(strstr(text, "  codec none               1   4.0 MiB   4.0 MiB   1.00"));
  assert_non_null(strstr(text, "  codec bf16               1   4.0 MiB   2.0 MiB   2.00"));
  assert_non_null(strstr(text, "  codec topk               2   8.0 MiB   128 KiB  64.00"));
  assert_non_null(strstr(text, "  tensors                  4  16.0 MiB"));
}

/* Two operations from 0 to 3 and from 1 to 4, one from 10 to 11 that fails. */
static void time_under_way_counts_once(void **state) {
  (void)state;
  lcomm_summary summary = {0};
  lcomm_summary_row *row = &summary.rows[0], sum;
  lcomm_summary_cost cost = {.data_bytes = 5};
  lcomm_summary_begin(&summary, 0);
  lcomm_summary_begin(&summary, 1);
  lcomm_summary_add(&summary, row, &cost, 0, 3);
  lcomm_summary_add(&summary, row, &cost, 1, 4);
  lcomm_summary_begin(&summary, 10);
  lcomm_summary_drop(&summary, 11);
  assert_true(summary.active_s == 5);
  lcomm_summary_sum(&summary, &sum);
  assert_int_equal(sum.operations, 2);
  assert_int_equal(sum.cost.data_bytes, 10);
  assert_true(sum.total_s == 6);
}

static void tensors_have_a_row_of_their_own(void **state) {
  (void)state;
  lcomm_summary summary = {0};
  lcomm_collective all = LCOMM_COLLECTIVE_ALLREDUCE;
  static const lcomm_op_kind calls[] = {LCOMM_OP_KIND_CALL, LCOMM_OP_KIND_EF, LCOMM_OP_KIND_FLUSH};
  for (int i = 0; i < 3; i++) {
    assert_ptr_equal(lcomm_summary_find(&summary, all, calls[i]), &summary.rows[all]);
  }
  assert_ptr_equal(lcomm_summary_find(&summary, all, LCOMM_OP_KIND_BUCKET),
                   &summary.rows[LCOMM_SUMMARY_TENSORS]);
}

static void other_values_of_the_variable_are_refused(void **state) {
  (void)state;
  lcomm_summary_mode mode = LCOMM_SUMMARY_ALL;
  lcomm_why why = {.text = ""};
  assert_int_equal(lcomm_summary_parse(NULL, &mode, &why), LCOMM_OK);
  assert_int_equal(mode, LCOMM_SUMMARY_NONE);
  assert_int_equal(lcomm_summary_parse("exit", &mode, &why), LCOMM_OK);
  assert_int_equal(mode, LCOMM_SUMMARY_FIRST);
  assert_int_equal(lcomm_summary_parse("exit:all", &mode, &why), LCOMM_OK);
  assert_int_equal(mode, LCOMM_SUMMARY_ALL);
  assert_int_equal(lcomm_summary_parse("none", &mode, &why), LCOMM_OK);
  assert_int_equal(mode, LCOMM_SUMMARY_NONE);
  static const char *const wrong[] = {"1", "EXIT", "exit:", "exit:some", "exit "};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    assert_int_equal(lcomm_summary_parse(wrong[i], &mode, &why), LCOMM_ERR_ARGUMENT);
    assert_non_null(strstr(why.text, "LCOMM_STATS="));
    assert_non_null(strstr(why.text, "exit:all"));
  }
}

/* ------------------------------------------------------- when it is shown */

static lcomm_summary shown;

static void open_table(lcomm_summary_mode mode, int rank) {
  lcomm_summary_about mine = about;
  mine.rank = rank;
  lcomm_summary_open(&shown, mode, &mine, NULL);
}

static void close_twice(void) {
  open_table(LCOMM_SUMMARY_FIRST, 0);
  lcomm_summary_close(&shown);
  lcomm_summary_close(&shown);
}

static void exit_without_close(void) {
  open_table(LCOMM_SUMMARY_ALL, 3);
}

static void never_opened(void) {
  lcomm_summary_close(&shown);
}

static void not_asked_for(void) {
  open_table(LCOMM_SUMMARY_NONE, 0);
}

static void not_of_this_rank(void) {
  open_table(LCOMM_SUMMARY_FIRST, 1);
}

/* How many tables a process shows that does this and exits. */
static int tables(void (*run)(void)) {
  int ends[2], count = 0;
  char text[4 * LCOMM_SUMMARY_TEXT_MAX];
  size_t size = 0;
  fflush(NULL);
  assert_int_equal(pipe(ends), 0);
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    run();
    exit(0);
  }
  close(ends[1]);
  for (ssize_t got; (got = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0;) {
    size += (size_t)got;
  }
  close(ends[0]);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  text[size] = '\0';
  for (const char *at = text; (at = strstr(at, "libcomm: statistics")); at++) {
    count++;
  }
  return count;
}

static void the_table_is_shown_once_by_whom_it_is_asked_for(void **state) {
  (void)state;
  assert_int_equal(tables(close_twice), 1);
  assert_int_equal(tables(exit_without_close), 1);
  assert_int_equal(tables(never_opened), 0);
  assert_int_equal(tables(not_asked_for), 0);
  assert_int_equal(tables(not_of_this_rank), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(known_numbers_make_a_known_table),
    cmocka_unit_test(messages_between_two_ranks_have_rows_of_their_own),
    cmocka_unit_test(what_the_guard_found_is_shown),
    cmocka_unit_test(the_last_line_is_true),
    cmocka_unit_test(several_lossy_codecs_have_a_row_each),
    cmocka_unit_test(the_text_is_cut_to_its_room),
    cmocka_unit_test(time_under_way_counts_once),
    cmocka_unit_test(tensors_have_a_row_of_their_own),
    cmocka_unit_test(other_values_of_the_variable_are_refused),
    cmocka_unit_test(the_table_is_shown_once_by_whom_it_is_asked_for),
};
RUN_TESTS(tests)
