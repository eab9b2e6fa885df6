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

int lcomm_perf_report_begin(lcomm_perf_report *report, const lcomm_perf_options *options, int ranks,
                            int nodes, FILE *table, int argc, char **argv) {
  *report = (lcomm_perf_report){.options = options, .ranks = ranks, .nodes = nodes, .table = table};
  if (options->json_path) {
    report->json = fopen(options->json_path, "w");
    if (!report->json) {
      return 0;
    }
    lcomm_perf_json_begin(report, argc, argv);
  }
  lcomm_perf_table_begin(report);
  return 1;
}

static void add_to_average(lcomm_perf_report *report, const lcomm_perf_row *row) {
  int i = 0;
  while (i < report->average_count && strcmp(report->averages[i].label, row->label) != 0) {
    i++;
  }
  if (i == report->average_count) {
    report->averages[report->average_count++] = (lcomm_perf_average){row->label, 0.0, 0};
  }
  report->averages[i].sum_gb_s += lcomm_perf_busbw(row, report->ranks);
  report->averages[i].rows++;
}

void lcomm_perf_report_row(lcomm_perf_report *report, const lcomm_perf_row *row) {
  lcomm_perf_table_row(report, row);
  if (report->json) {
    lcomm_perf_json_row(report, row);
  }
  add_to_average(report, row);
  report->wrong += row->wrong;
  report->rows++;
}

int lcomm_perf_report_end(lcomm_perf_report *report) {
  lcomm_perf_table_end(report);
  if (!report->json) {
    return 1;
  }
  lcomm_perf_json_end(report);
  int failed = ferror(report->json);
  return (fclose(report->json) | failed) == 0;
}
