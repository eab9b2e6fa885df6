/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/perf_report.h"

#include <string.h>

double lcomm_perf_algbw(const lcomm_perf_row *row) {
  return row->median_s > 0.0 ? row->size_bytes / row->median_s / 1e9 : 0.0;
}

double lcomm_perf_busbw(const lcomm_perf_row *row, int ranks) {
  return lcomm_perf_algbw(row) * lcomm_perf_bus_factor(row->call.collective, ranks);
}

double lcomm_perf_ratio(const lcomm_perf_row *row) {
  double sent = row->sent_bytes[LCOMM_LINK_NET];
  double exact = row->exact_bytes[LCOMM_LINK_NET];
  if (sent <= 0.0) {
    for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
      sent += row->sent_bytes[link];
      exact += row->exact_bytes[link];
    }
  }
  return sent > 0.0 ? exact / sent : 1.0;
}

const char *lcomm_perf_progress_name(lcomm_progress_mode mode) {
  return mode == LCOMM_PROGRESS_THREAD  ? "thread"
         : mode == LCOMM_PROGRESS_CALLS ? "calls"
                                        : "default";
}

const char *lcomm_perf_redop(const lcomm_perf_row *row) {
  return row->call.collective->reduces ? lcomm_perf_op_name(row->call.op) : "none";
}

/* Files that are not asked for stay NULL. */
static bool open_file(const char *path, FILE **file) {
  *file = path ? fopen(path, "w") : NULL;
  return !path || *file;
}

const char *lcomm_perf_report_begin(lcomm_perf_report *report, const lcomm_perf_options *options,
                                    const lcomm_perf_site *site, FILE *table, int argc,
                                    char **argv) {
  *report = (lcomm_perf_report){.options = options, .site = *site, .table = table};
  if (!open_file(options->json_path, &report->json)) {
    return "the file named by --json cannot be written";
  }
  if (!open_file(options->csv_path, &report->csv)) {
    return "the file named by --csv cannot be written";
  }
  if (report->json) {
    lcomm_perf_json_begin(report, argc, argv);
  }
  if (report->csv) {
    lcomm_perf_csv_begin(report);
  }
  lcomm_perf_table_begin(report);
  return NULL;
}

static void add_to_average(lcomm_perf_report *report, const lcomm_perf_row *row) {
  int i = 0;
  while (i < report->average_count && strcmp(report->averages[i].label, row->label) != 0) {
    i++;
  }
  if (i == report->average_count) {
    report->averages[report->average_count++] = (lcomm_perf_average){row->label, 0.0, 0};
  }
  report->averages[i].sum_gb_s += lcomm_perf_busbw(row, report->site.ranks);
  report->averages[i].rows++;
}

void lcomm_perf_report_row(lcomm_perf_report *report, const lcomm_perf_row *row) {
  lcomm_perf_table_row(report, row);
  if (report->json) {
    lcomm_perf_json_row(report, row);
  }
  if (report->csv) {
    lcomm_perf_csv_row(report, row);
  }
  add_to_average(report, row);
  report->wrong += row->wrong;
  report->rows++;
}

static bool close_file(FILE *file) {
  bool failed = file && ferror(file);
  return (!file || fclose(file) == 0) && !failed;
}

const char *lcomm_perf_report_end(lcomm_perf_report *report) {
  lcomm_perf_table_end(report);
  if (report->json) {
    lcomm_perf_json_end(report);
  }
  bool json = close_file(report->json), csv = close_file(report->csv);
  return !json  ? "the file named by --json is incomplete; is the disk full?"
         : !csv ? "the file named by --csv is incomplete; is the disk full?"
                : NULL;
}
