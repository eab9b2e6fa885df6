/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The report of an interposer: what is counted together, and what the table says. */

/* cmocka.h needs these four first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "libcomm/interpose/interpose_report.h"

enum { CLASSES_MAX = 256, LINES_MAX = 400, COLUMNS_MAX = 100 };

static char text[1 << 16];
static lcomm_interpose_report_about about;

static int begin(void **state) {
  (void)state;
  lcomm_interpose_report_clear();
  about = (lcomm_interpose_report_about){.rank = 3,
                                         .ranks = 8,
                                         .nodes = 2,
                                         .host = "somewhere",
                                         .policy = "net=int8 min=64K",
                                         .library = "libcomm-mpi",
                                         .other = "MPI"};
  return 0;
}

static const char *print(void) {
  size_t length = lcomm_interpose_report_print(&about, text, sizeof(text));
  assert_int_equal(length, strlen(text));
  return text;
}

static const lcomm_interpose_record lossy = {.function = "MPI_Allreduce",
                                             .type = "MPI_FLOAT",
                                             .op = "MPI_SUM",
                                             .comm = "MPI_COMM_WORLD",
                                             .ranks = 8,
                                             .nodes = 2,
                                             .count = 1 << 20,
                                             .size_bytes = 4 << 20,
                                             .choice = LCOMM_SELECT_LOSSY,
                                             .why = "",
                                             .sent_bytes = 1 << 20,
                                             .exact_bytes = 4 << 20};

static lcomm_interpose_record left_to_mpi(uint64_t count, const char *why) {
  lcomm_interpose_record record = lossy;
  record.choice = LCOMM_SELECT_NONE;
  record.count = count;
  record.size_bytes = 4 * count;
  record.sent_bytes = record.exact_bytes = 0;
  record.why = why;
  return record;
}

static void note_of(uint64_t count) {
  lcomm_interpose_record record = lossy;
  record.count = count;
  lcomm_interpose_report_add(&record);
}

/* The line that begins with these words, or NULL; valid until the next call. */
static const char *line_of(const char *words) {
  static char line[512];
  const char *at = print();
  for (; at && *at; at = strchr(at, '\n'), at += at != NULL) {
    const char *begin_of_text = at + strspn(at, " ");
    if (strncmp(begin_of_text, words, strlen(words)) == 0) {
      snprintf(line, sizeof(line), "%.*s", (int)strcspn(at, "\n"), at);
      return line;
    }
  }
  return NULL;
}

static int lines_with(const char *words) {
  int count = 0;
  for (const char *at = strstr(print(), words); at; at = strstr(at + 1, words)) {
    count++;
  }
  return count;
}

static void expect_words(const char *line, const char *const *words) {
  assert_non_null(line);
  for (; *words; words++) {
    const char *found = strstr(line, *words);
    if (!found) {
      fail_msg("'%s' is not in '%s'", *words, line);
    }
    line = found + strlen(*words);
  }
}

#define EXPECT(line, ...) expect_words(line, (const char *const[]){__VA_ARGS__, NULL})

/* -------------------------------------------------------------------- table */

static void without_calls_it_says_so(void **state) {
  (void)state;
  EXPECT(print(), "rank 3 (host somewhere) of 8 ranks on 2 nodes", "net=int8 min=64K",
         "No collective call");
}

static void a_row_has_what_was_sent_and_what_exact_would_have(void **state) {
  (void)state;
  for (int i = 0; i < 12; i++) {
    lcomm_interpose_report_add(&lossy);
  }
  EXPECT(line_of("call "), "type", "op", "elements", "calls", "data", "sent", "exact", "ratio");
  EXPECT(line_of("MPI_Allreduce"), "MPI_FLOAT", "MPI_SUM", " 1048576 ", " 12 ", " 48.0 MiB ",
         " 12.0 MiB ", " 48.0 MiB ", " 4.00 ", " lossy");
  EXPECT(line_of("Between"), "sent 12.0 MiB instead of 48.0 MiB: 36.0 MiB (75 %) saved.");
  assert_null(strstr(text, "would"));
  assert_null(strstr(text, "left to MPI"));
}

static void of_a_report_it_says_what_would_be(void **state) {
  lcomm_interpose_record record = left_to_mpi(5, "too small");
  (void)state;
  lcomm_interpose_report_add(&lossy);
  lcomm_interpose_report_add(&record);
  about.report_only = true;
  EXPECT(print(), "what would become of the calls", "nothing was changed", "would be libcomm's",
         "would be left to MPI: too small", "this rank would send 1.0 MiB instead of 4.0 MiB");
}

static void what_is_left_has_a_range_and_a_reason(void **state) {
  (void)state;
  for (uint64_t count = 3; count <= 700; count++) {
    lcomm_interpose_record record = left_to_mpi(count, "smaller than min=");
    lcomm_interpose_report_add(&record);
  }
  EXPECT(print(), "left to MPI: smaller than min=", "call", "elements", "MPI_Allreduce", " 3..700 ",
         " 698 ", "Nothing went between nodes through libcomm");
  assert_int_equal(lines_with("MPI_Allreduce"), 1);
}

static void reasons_stand_once_over_their_calls(void **state) {
  static const char *const types[] = {"MPI_INT", "MPI_LONG", "MPI_DOUBLE"};
  (void)state;
  for (int i = 0; i < 12; i++) {
    lcomm_interpose_record record = left_to_mpi(9, i % 2 ? "one reason" : "another reason");
    record.type = types[i % 3];
    lcomm_interpose_report_add(&record);
  }
  assert_int_equal(lines_with("left to MPI: one reason\n"), 1);
  assert_int_equal(lines_with("left to MPI: another reason\n"), 1);
  assert_int_equal(lines_with("MPI_Allreduce"), 6);
}

static void what_waits_for_a_pattern_is_left_for_now(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  record.choice = LCOMM_SELECT_EF;
  record.why = "no pattern yet"; /* said of both */
  lcomm_interpose_report_add(&record);
  record.exact_now = true;
  record.sent_bytes = record.exact_bytes = 0;
  lcomm_interpose_report_add(&record);
  record.count *= 2;
  lcomm_interpose_report_add(&record);
  EXPECT(print(), "libcomm's", " lossy+ef\n", "left to MPI: no pattern yet", "1048576..2097152",
         " 2 ", "sent 1.0 MiB instead of 4.0 MiB");
}

static void exact_calls_of_libcomm_say_why(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  record.choice = LCOMM_SELECT_EXACT;
  record.why = "net=none";
  record.sent_bytes = record.exact_bytes;
  lcomm_interpose_report_add(&record);
  EXPECT(print(), " 1.00  exact: net=none\n", "sent 4.0 MiB instead of 4.0 MiB.");
}

static void the_largest_savings_come_first(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 20; i++) {
    lcomm_interpose_record record = lossy;
    record.count = 1000 + i;
    record.sent_bytes = 7 * i % 20 + 1;
    record.exact_bytes = 41;
    lcomm_interpose_report_add(&record);
  }
  int place[20] = {0}, row = 0;
  const char *at = print();
  for (at = strstr(at, "MPI_Allreduce"); at; at = strstr(at + 1, "MPI_Allreduce")) {
    int count = 0;
    assert_int_equal(sscanf(at, "MPI_Allreduce MPI_FLOAT MPI_SUM %d", &count), 1);
    place[row++] = 7 * (count - 1000) % 20;
  }
  assert_int_equal(row, 20);
  for (row = 0; row < 20; row++) {
    assert_int_equal(place[row], row);
  }
}

static void sizes_that_are_not_known_are_not_zero(void **state) {
  lcomm_interpose_record record = left_to_mpi(7, "a derived type");
  (void)state;
  record.size_bytes = 0;
  lcomm_interpose_report_add(&record);
  EXPECT(line_of("MPI_Allreduce"), " 7 ", " 1 ", " -");
}

static void data_that_is_moved_has_no_operation(void **state) {
  lcomm_interpose_record record = left_to_mpi(7, "moved");
  (void)state;
  record.function = "MPI_Bcast";
  record.op = "";
  lcomm_interpose_report_add(&record);
  EXPECT(line_of("MPI_Bcast"), "MPI_FLOAT  - ", " 7 ");
}

/* ------------------------------------------------------------- communicators */

static void one_communicator_is_named_in_the_heading(void **state) {
  (void)state;
  lcomm_interpose_report_add(&lossy);
  EXPECT(line_of("on "), "MPI_COMM_WORLD, 8 ranks on 2 nodes");
  assert_int_equal(lines_with("MPI_COMM_WORLD"), 1);
}

static void several_communicators_have_columns(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  lcomm_interpose_report_add(&record);
  record.comm = "data parallel";
  record.ranks = 4;
  lcomm_interpose_report_add(&record);
  record.comm = "";
  record.nodes = 0;
  lcomm_interpose_report_add(&record);
  record.ranks = 2; /* another one without a name */
  lcomm_interpose_report_add(&record);
  record.comm = "unknown";
  lcomm_interpose_report_add(&record);
  EXPECT(line_of("call "), "communicator", "ranks");
  EXPECT(line_of("MPI_Allreduce  MPI_FLOAT  MPI_SUM  MPI_COMM_WORLD"), " 8 on 2 ");
  EXPECT(line_of("MPI_Allreduce  MPI_FLOAT  MPI_SUM  data parallel"), " 4 on 2 ");
  EXPECT(line_of("MPI_Allreduce  MPI_FLOAT  MPI_SUM  -"), " various ", " 2 ");
  EXPECT(line_of("MPI_Allreduce  MPI_FLOAT  MPI_SUM  unknown"), " 2 ");
  assert_null(line_of("on "));
}

/* All without a name, as parts mostly are. */
static void communicators_are_told_apart_by_their_ranks(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  record.comm = "unnamed split";
  record.ranks = 4;
  record.members = "0-3";
  lcomm_interpose_report_add(&record);
  lcomm_interpose_report_add(&record);
  record.members = "0-12:4";
  lcomm_interpose_report_add(&record);
  EXPECT(line_of("call "), "communicator", "ranks", "world ranks");
  assert_int_equal(lines_with("unnamed split"), 2);
  assert_int_equal(lines_with("0-12:4"), 1);
}

static void of_one_communicator_no_ranks_are_listed(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  record.members = "0-7";
  lcomm_interpose_report_add(&record);
  assert_null(strstr(print(), "world ranks"));
}

static void ranks_are_written_as_ranges(void **state) {
  static const int runs[] = {0, 1, 2, 3, 8, 10, 12, 5, 4}, pair[] = {3, 7};
  char ranks[64], cut[6];
  (void)state;
  assert_string_equal(lcomm_interpose_members_text(runs, 9, ranks, sizeof(ranks)),
                      "0-3,8-12:2,5,4");
  assert_string_equal(lcomm_interpose_members_text(pair, 2, ranks, sizeof(ranks)), "3,7");
  assert_string_equal(lcomm_interpose_members_text(pair, 0, ranks, sizeof(ranks)), "");
  assert_string_equal(lcomm_interpose_members_text(runs, 9, cut, sizeof(cut)), "0-3,8");
}

static void all_policies_in_force_are_listed(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  lcomm_interpose_report_begin("net=int8 min=64K");
  record.policy = "net=int8 min=64K";
  lcomm_interpose_report_add(&record);
  EXPECT(line_of("policy "), "net=int8 min=64K");
  record.policy = "net=bf16";
  lcomm_interpose_report_add(&record);
  EXPECT(line_of("policy "), "1: net=int8 min=64K");
  EXPECT(line_of("2: "), "net=bf16");
  assert_int_equal(lines_with("lossy, policy 1"), 1);
  assert_int_equal(lines_with("lossy, policy 2"), 1);
}

/* Names come from the program, and change under the report. */
static void names_are_copied_and_cannot_break_the_table(void **state) {
  char comm[400] = "a\nb\033[1mc\x7f", type[400];
  lcomm_interpose_record record = lossy;
  (void)state;
  memset(type, 'T', sizeof(type) - 1);
  type[sizeof(type) - 1] = '\0';
  record.comm = comm;
  record.type = type;
  lcomm_interpose_report_add(&record);
  lcomm_interpose_report_add(&record); /* the same class, though it is longer than what is kept */
  strcpy(comm, "x");
  strcpy(type, "y");
  EXPECT(print(), "on      a?b?[1mc?,");
  EXPECT(line_of("MPI_Allreduce"), "  TTTTTTTTTTTTTTTTTTTTTTTT  MPI_SUM", " 2 ");
}

/* ----------------------------------------------------------------------- form */

static void tables_of_common_calls_fit_into_100_columns(void **state) {
  static const char *const functions[] = {"MPI_Allreduce", "MPI_Bcast", "MPI_Iallreduce"};
  (void)state;
  for (int i = 0; i < 60; i++) {
    lcomm_interpose_record record = lossy;
    record.function = functions[i % 3];
    record.count = (i % 4 ? 100000000 : 0) + (uint64_t)i;
    record.choice = (lcomm_selection)(i % 4);
    record.type = i % 4 ? "MPI_FLOAT" : "MPI_DOUBLE";
    record.why =
        i % 4 ? "" : "a sum of this type stays exact without a rule of match= that names it";
    lcomm_interpose_report_add(&record);
  }
  print();
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    if (strlen(line) > COLUMNS_MAX) {
      fail_msg("%zu columns: %s", strlen(line), line);
    }
  }
}

/* Numbers end where their title does, in both tables. */
static void columns_are_aligned(void **state) {
  lcomm_interpose_record record = left_to_mpi(1, "small");
  int rows = 0;
  (void)state;
  lcomm_interpose_report_add(&lossy);
  lcomm_interpose_report_add(&record);
  record.function = "MPI_Reduce_scatter_block";
  record.choice = LCOMM_SELECT_LOSSY;
  lcomm_interpose_report_add(&record);
  const char *titles = strstr(print(), "  call ");
  assert_non_null(titles);
  long end = strstr(titles, "  calls  ") + strlen("  calls") - titles;
  for (const char *row = strstr(text, "\n  MPI_"); row; row = strstr(row + 1, "\n  MPI_"), rows++) {
    assert_memory_equal(row + 1 + end - 2, " 1  ", 4);
  }
  assert_int_equal(rows, 3);
}

static void a_short_buffer_cuts_the_table(void **state) {
  char copy[4096], cut[4096];
  (void)state;
  lcomm_interpose_report_add(&lossy);
  strcpy(copy, print());
  for (size_t size = 0; size <= strlen(copy) + 1; size++) {
    memset(cut, '#', sizeof(cut));
    assert_int_equal(lcomm_interpose_report_print(&about, cut, size), strlen(copy));
    assert_true(size == 0 || strncmp(cut, copy, size - 1) == 0);
    assert_true(size == 0 || cut[size - 1] == '\0');
    assert_int_equal(cut[size], '#');
  }
  assert_int_equal(lcomm_interpose_report_print(&about, NULL, 0), strlen(copy));
}

/* ------------------------------------------------------------------- counting */

static void bytes_of_a_known_class_need_not_be_computed_again(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  record.sent_bytes = record.exact_bytes = 1;
  assert_false(lcomm_interpose_report_lookup(&record));
  assert_int_equal(record.sent_bytes, 1);
  lcomm_interpose_report_add(&lossy);
  lcomm_interpose_report_add(&lossy);
  assert_true(lcomm_interpose_report_lookup(&record));
  assert_int_equal(record.sent_bytes, lossy.sent_bytes);
  assert_int_equal(record.exact_bytes, lossy.exact_bytes);
}

/* Each of these alone makes another class. */
static void classes_differ_in_what_they_are_told_apart_by(void **state) {
  lcomm_interpose_record notes[8];
  (void)state;
  for (int i = 0; i < 8; i++) {
    notes[i] = lossy;
  }
  notes[1].function = "MPI_Iallreduce";
  notes[2].type = "MPI_REAL";
  notes[3].op = "MPI_MAX";
  notes[4].comm = "other";
  notes[5].choice = LCOMM_SELECT_EF;
  notes[6].why = "why";
  notes[7].count++;
  for (int i = 0; i < 8; i++) {
    assert_false(lcomm_interpose_report_lookup(&notes[i]));
    lcomm_interpose_report_add(&notes[i]);
  }
  for (int i = 0; i < 8; i++) {
    assert_true(lcomm_interpose_report_lookup(&notes[i]));
  }
  assert_int_equal(lines_with("MPI_FLOAT") + lines_with("MPI_REAL"), 8);
  notes[0].ranks++; /* this does not */
  assert_true(lcomm_interpose_report_lookup(&notes[0]));
}

static void equal_texts_need_not_be_one(void **state) {
  char function[] = "MPI_Allreduce", op[] = "MPI_SUM";
  lcomm_interpose_record record = lossy;
  (void)state;
  lcomm_interpose_report_add(&lossy);
  record.function = function;
  record.op = op;
  assert_true(lcomm_interpose_report_lookup(&record));
}

static void more_than_256_classes_are_counted_together(void **state) {
  (void)state;
  for (uint64_t i = 0; i < CLASSES_MAX + 50; i++) {
    note_of(1000 + i);
  }
  for (int i = 0; i < 30; i++) {
    lcomm_interpose_record record = left_to_mpi(5, "small");
    lcomm_interpose_report_add(&record);
  }
  assert_int_equal(lines_with("MPI_Allreduce"), CLASSES_MAX);
  EXPECT(line_of("others"), " 1256..1305 ", " 50 ", " 200 MiB ", " 50.0 MiB ", " 200 MiB ",
         " various");
  EXPECT(strstr(print(), "left to MPI: too many kinds"), "others", " 5 ", " 30 ");
  EXPECT(line_of("Between"), "sent 306 MiB instead of 1.2 GiB: 918 MiB (75 %) saved.");
}

/* Computing them for every call would take the time that the program should have. */
static void when_classes_are_used_up_bytes_are_in_proportion(void **state) {
  lcomm_interpose_record record = lossy;
  (void)state;
  note_of(0);
  for (uint64_t i = 1; i < CLASSES_MAX; i++) {
    note_of((1 << 20) - 1 + i);
  }
  record.count = 3 << 20;
  assert_true(lcomm_interpose_report_lookup(&record));
  assert_int_equal(record.sent_bytes, 3 * lossy.sent_bytes);
  assert_int_equal(record.exact_bytes, 3 * lossy.exact_bytes);
  record.op = "MPI_MAX"; /* like none */
  assert_false(lcomm_interpose_report_lookup(&record));
}

static void a_clear_forgets_all(void **state) {
  (void)state;
  for (uint64_t i = 0; i < 2 * CLASSES_MAX; i++) {
    note_of(i);
  }
  lcomm_interpose_report_clear();
  assert_int_equal(lines_with("MPI_Allreduce") + lines_with("others"), 0);
  lcomm_interpose_report_add(&lossy);
  EXPECT(line_of("MPI_Allreduce"), " 1 ");
}

/* -------------------------------------------------------------------- threads */

enum { THREADS = 4, CALLS = 3000 };

static void *noting(void *argument) {
  char name[16];
  snprintf(name, sizeof(name), "comm %d", *(int *)argument % 2);
  for (int i = 0; i < CALLS; i++) {
    lcomm_interpose_record record = lossy;
    record.comm = name;
    record.count = (uint64_t)(i % 3);
    record.sent_bytes = record.exact_bytes = 0;
    if (lcomm_interpose_report_lookup(&record)) {
      assert_int_equal(record.sent_bytes, record.count);
    }
    record.sent_bytes = record.count;
    lcomm_interpose_report_add(&record);
  }
  return NULL;
}

static void threads_lose_no_call(void **state) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  static char other[1 << 16];
  (void)state;
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, noting, &numbers[i]), 0);
  }
  for (int i = 0; i < 20; i++) {
    lcomm_interpose_report_print(&about, other, sizeof(other));
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
  }
  assert_int_equal(lines_with("MPI_Allreduce"), 6);
  assert_int_equal(lines_with(" 2000 "), 6); /* calls of each class */
}

int main(void) {
#define PROPERTY(name) cmocka_unit_test_setup(name, begin)
  const struct CMUnitTest tests[] = {
      PROPERTY(without_calls_it_says_so),
      PROPERTY(a_row_has_what_was_sent_and_what_exact_would_have),
      PROPERTY(of_a_report_it_says_what_would_be),
      PROPERTY(what_is_left_has_a_range_and_a_reason),
      PROPERTY(reasons_stand_once_over_their_calls),
      PROPERTY(what_waits_for_a_pattern_is_left_for_now),
      PROPERTY(exact_calls_of_libcomm_say_why),
      PROPERTY(the_largest_savings_come_first),
      PROPERTY(sizes_that_are_not_known_are_not_zero),
      PROPERTY(data_that_is_moved_has_no_operation),
      PROPERTY(one_communicator_is_named_in_the_heading),
      PROPERTY(several_communicators_have_columns),
      PROPERTY(names_are_copied_and_cannot_break_the_table),
      PROPERTY(tables_of_common_calls_fit_into_100_columns),
      PROPERTY(columns_are_aligned),
      PROPERTY(a_short_buffer_cuts_the_table),
      PROPERTY(bytes_of_a_known_class_need_not_be_computed_again),
      PROPERTY(classes_differ_in_what_they_are_told_apart_by),
      PROPERTY(equal_texts_need_not_be_one),
      PROPERTY(more_than_256_classes_are_counted_together),
      PROPERTY(when_classes_are_used_up_bytes_are_in_proportion),
      PROPERTY(a_clear_forgets_all),
      PROPERTY(communicators_are_told_apart_by_their_ranks),
      PROPERTY(of_one_communicator_no_ranks_are_listed),
      PROPERTY(ranks_are_written_as_ranges),
      PROPERTY(all_policies_in_force_are_listed),
      PROPERTY(threads_lose_no_call),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
