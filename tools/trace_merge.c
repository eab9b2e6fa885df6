/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* trace_merge: the traces that LCOMM_TRACE made of all ranks, in one file on one
 * clock, and a table of where the time went. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/common/tool_options.h"
#include "tools/trace/trace_report.h"
#include "tools/trace/trace_timeline.h"

enum { FAILED = 1, BAD_INPUT = 2 };

static const char usage[] =
    "usage: trace_merge [OPTIONS] OUTPUT FILE...\n"
    "Make one timeline of the files that ranks wrote under LCOMM_TRACE. OUTPUT opens in\n"
    "https://ui.perfetto.dev and in chrome://tracing.\n"
    "  -q, --quiet   no table\n"
    "      --version\n"
    "  -h, --help\n"
    "Times are those of rank 0's clock. Arrows lead from a send to its receive.\n"
    "Columns: time: from the first event to the last; the shares are of it: encode; on the wire:\n"
    "with a message under way; decode, sum: decoding and summing; wait: with nothing to do but\n"
    "wait. Sent bytes have headers. Shares may overlap.\n"
    "What is odd is said on standard error: files of different runs, missing ranks, traces that\n"
    "end early, messages without a partner, clocks that contradict each other.\n"
    "Exit status: 1 the output cannot be written, 2 bad usage, or a file that is no trace.\n";

typedef struct work {
  const char *output;
  char *const *files;
  size_t count;
  bool quiet;
  lcomm_trace_survey *surveys;
  lcomm_trace_messages messages;
  lcomm_trace_match match;
} work;

static int complain(int result, const char *why) {
  fprintf(stderr, "trace_merge: %s\n", why);
  return result;
}

static void help(void) {
  fputs(usage, stdout);
}

/* 0 to go on, BAD_INPUT, or -1 when all has been said. */
static int parse_options(int argc, char **argv, work *w) {
  static const tool_option known[] = {TOOL_FLAG('q', "quiet", offsetof(work, quiet), true), {0}};
  char error[TOOL_ERROR_MAX];
  tool_command_line line = {.argc = argc, .argv = argv, .options = w, .error = error};
  tool_parse parse = tool_options_parse(&line, known);
  if (parse == TOOL_RUN && line.operand_count < 2) {
    tool_refuse(&line, "an output and at least one trace are needed");
    parse = TOOL_USAGE;
  }
  if (parse != TOOL_RUN) {
    int result = tool_answer("trace_merge", parse, help, error);
    return result == 0 ? -1 : result;
  }
  w->output = line.operands[0];
  w->files = line.operands + 1;
  w->count = line.operand_count - 1;
  return 0;
}

static bool is_file(const char *path) {
  struct stat found;
  return stat(path, &found) == 0 && S_ISREG(found.st_mode);
}

/* A user who leaves the output out names a trace as the output, which would be overwritten. */
static int check_output(const work *w) {
  lcomm_trace_source source;
  lcomm_trace_item item;
  char why[LCOMM_TRACE_WHY_MAX];
  if (!is_file(w->output) || !lcomm_trace_source_open(&source, w->output, why)) {
    return 0;
  }
  bool trace = lcomm_trace_source_next(&source, &item, why) == LCOMM_NEXT_ITEM;
  lcomm_trace_source_close(&source);
  if (trace) {
    snprintf(why, sizeof(why), "%.300s is the trace of a rank; the first argument is the output",
             w->output);
  }
  return trace ? complain(BAD_INPUT, why) : 0;
}

static int survey_files(work *w) {
  char why[LCOMM_TRACE_WHY_MAX] = "out of memory";
  w->surveys = calloc(w->count, sizeof *w->surveys);
  if (!w->surveys) {
    return complain(FAILED, why);
  }
  for (size_t i = 0; i < w->count; i++) {
    if (!lcomm_trace_survey_read(w->files[i], i, &w->surveys[i], &w->messages, why)) {
      return complain(BAD_INPUT, why);
    }
  }
  lcomm_trace_merge_processes(w->surveys, w->count);
  if (!lcomm_trace_match_make(&w->messages, w->surveys, w->count, &w->match)) {
    return complain(FAILED, why);
  }
  return 0;
}

static int write_output(const work *w) {
  char why[LCOMM_TRACE_WHY_MAX];
  FILE *file = fopen(w->output, "wb");
  if (!file) {
    snprintf(why, sizeof(why), "%.300s cannot be written: %s", w->output, strerror(errno));
    return complain(FAILED, why);
  }
  bool good = lcomm_trace_merge_write(w->surveys, w->count, &w->match, file, why);
  if (fclose(file) != 0 && good) {
    snprintf(why, sizeof(why), "%.300s cannot be written: %s", w->output, strerror(errno));
    good = false;
  }
  return good ? 0 : complain(FAILED, why);
}

static int merge(work *w) {
  int result = check_output(w);
  result = result ? result : survey_files(w);
  result = result ? result : write_output(w);
  if (result == 0 && !w->quiet &&
      !lcomm_trace_report_table(w->surveys, w->count, &w->match, stdout)) {
    result = complain(FAILED, "out of memory for the table");
  }
  if (result == 0) {
    lcomm_trace_report_oddities(w->surveys, w->count, &w->match, stderr);
  }
  return result;
}

int main(int argc, char **argv) {
  work w = {0};
  int result = parse_options(argc, argv, &w);
  if (result != 0) {
    return result < 0 ? 0 : result;
  }
  result = merge(&w);
  free(w.match.pairs);
  free(w.messages.all);
  free(w.surveys);
  return result;
}
