/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_OBSERVE_TRACE_RANKS_H
#define LCOMM_TESTS_OBSERVE_TRACE_RANKS_H

/* Traces of several ranks, made by one process, and merged. */

#include "tests/observe/trace_files.h"

#include <math.h>

#include "libcomm/observe/trace_format.h"
#include "tests/support/written_text.h"
#include "tools/trace/trace_report.h"
#include "tools/trace/trace_timeline.h"

enum { FILES_MAX = 8 };

/* Files as ranks write them, without the numbers that communicators of one
 * process get. */
typedef struct rank_file {
  FILE *file;
  lcomm_trace_origin origin;
  int lines;
} rank_file;

static inline void write_line(rank_file *f, const lcomm_trace_line *line) {
  fprintf(f->file, "%s%.*s", f->lines++ ? ",\n" : "[\n", (int)line->length, line->text);
}

static inline rank_file begin_file(const char *name, int rank, int size, uint64_t run,
                                   double offset_s) {
  rank_file f = {.file = fopen(in_folder(name), "wb"),
                 .origin = {.rank = rank,
                            .size = size,
                            .host = "n1",
                            .communicator = 1,
                            .process_rank = rank,
                            .process = 1000 + rank,
                            .base_s = 50}};
  lcomm_trace_line line;
  assert_non_null(f.file);
  lcomm_trace_format_origin(&line, &f.origin);
  write_line(&f, &line);
  lcomm_trace_format_run(&line, &f.origin, run, rank / 2);
  write_line(&f, &line);
  lcomm_trace_format_clock(&line, &f.origin, (int64_t)llround(offset_s * 1e9), 1000);
  write_line(&f, &line);
  return f;
}

/* Times in microseconds from the base. */
static inline void put_event(rank_file *f, const lcomm_trace_event *event, int64_t begin_us,
                             int64_t end_us) {
  lcomm_trace_place place = {.process_rank = f->origin.process_rank,
                             .row = lcomm_trace_row(1, lcomm_trace_group(event), 0),
                             .begin_ns = 1000 * begin_us,
                             .end_ns = 1000 * end_us};
  lcomm_trace_line line;
  lcomm_trace_format_event(&line, event, &place);
  write_line(f, &line);
}

static inline void put_message(rank_file *f, lcomm_trace_kind kind, int peer, uint32_t message,
                               int64_t begin_us, int64_t end_us) {
  lcomm_trace_event event = make_message(kind, peer, message, 0, 0);
  put_event(f, &event, begin_us, end_us);
}

static inline void end_file(rank_file *f) {
  fputs("\n]\n", f->file);
  assert_int_equal(fclose(f->file), 0);
}

/* ----------------------------------------------------------------- merging */

typedef struct merged {
  lcomm_trace_survey surveys[FILES_MAX];
  lcomm_trace_messages messages;
  lcomm_trace_match match;
  size_t count;
  char *oddities;
  size_t oddity_count;
  char *table;
} merged;

static inline char *text_written(void (*write)(merged *m, FILE *file), merged *m) {
  char *text = NULL;
  FILE *file = open_text(&text);
  write(m, file);
  fclose(file);
  return text;
}

static inline void write_oddities(merged *m, FILE *file) {
  m->oddity_count = lcomm_trace_report_oddities(m->surveys, m->count, &m->match, file);
}

static inline void write_table(merged *m, FILE *file) {
  assert_true(lcomm_trace_report_table(m->surveys, m->count, &m->match, file));
}

/* Merge into "merged"; NULL after the last name. */
static inline merged merge(const char *first, ...) {
  static char paths[FILES_MAX][PATH_SIZE + 64];
  merged m = {.count = 0};
  char why[LCOMM_TRACE_WHY_MAX] = "";
  va_list names;
  va_start(names, first);
  for (const char *name = first; name; name = va_arg(names, const char *)) {
    snprintf(paths[m.count], sizeof(paths[0]), "%s", in_folder(name));
    if (!lcomm_trace_survey_read(paths[m.count], m.count, &m.surveys[m.count], &m.messages, why)) {
      fail_msg("%s", why);
    }
    m.count++;
  }
  va_end(names);
  lcomm_trace_merge_processes(m.surveys, m.count);
  assert_true(lcomm_trace_match_make(&m.messages, m.surveys, m.count, &m.match));
  FILE *file = fopen(in_folder("merged"), "wb");
  assert_non_null(file);
  assert_true(lcomm_trace_merge_write(m.surveys, m.count, &m.match, file, why));
  fclose(file);
  m.oddities = text_written(write_oddities, &m);
  m.table = text_written(write_table, &m);
  return m;
}

static inline void release(merged *m) {
  free(m->messages.all);
  free(m->match.pairs);
  free(m->oddities);
  free(m->table);
}

#endif
