/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/perf/report.h"

#include <string.h>

/* Text as a JSON string; control characters become spaces. */
static void put_string(FILE *file, const char *text) {
  fputc('"', file);
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\') {
      fputc('\\', file);
    }
    fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
  }
  fputc('"', file);
}

int perf_report_begin(perf_report *report, const perf_options *options, int ranks, int nodes) {
  *report = (perf_report){options, ranks, nodes, NULL, 0};
  if (options->json_path != NULL) {
    report->json = fopen(options->json_path, "w");
    if (report->json == NULL) {
      return 0;
    }
    fprintf(report->json, "{\"ranks\": %d, \"nodes\": %d, \"op\": \"%s\", \"results\": [", ranks,
            nodes, options->op == LCOMM_AVG ? "avg" : "sum");
  }
  printf("# all-reduce (%s), %d ranks on %d nodes, in place, %d timed runs after %d\n",
         options->op == LCOMM_AVG ? "average" : "sum", ranks, nodes, options->iterations,
         options->warmups);
  printf("#%11s %11s %8s  %-24s %9s %9s %9s %8s %8s %11s %11s", "size", "count", "type", "policy",
         "min", "med", "max", "algbw", "busbw", "shm", "net");
  printf("%s %7s %9s %7s\n", options->interface_name != NULL ? "       iface" : "", "ratio",
         "error", "#wrong");
  printf("#%11s %11s %8s  %-24s %9s %9s %9s %8s %8s %11s %11s", "(B)", "", "", "", "(ms)", "(ms)",
         "(ms)", "(GB/s)", "(GB/s)", "(B)", "(B)");
  printf("%s\n", options->interface_name != NULL ? "         (B)" : "");
  return 1;
}

static double effective_ratio(const perf_row *row) {
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

static void put_json(const perf_report *report, const perf_row *row, double size, double busbw) {
  FILE *file = report->json;
  fprintf(file, "%s\n  {\"policy\": ", report->rows > 0 ? "," : "");
  put_string(file, row->label);
  fprintf(file, ", \"dtype\": \"%s\", \"size\": %.0f, \"count\": %llu",
          lcomm_dtype_name(report->options->dtype), size, (unsigned long long)row->count);
  fprintf(file, ", \"min_s\": %.9g, \"median_s\": %.9g, \"max_s\": %.9g, \"busbw_gb_s\": %.6g",
          row->min_s, row->median_s, row->max_s, busbw);
  for (int link = 0; row->is_libcomm && link < LCOMM_LINK_COUNT; link++) {
    fprintf(file, ", \"%s_bytes\": %.0f", lcomm_link_name((lcomm_link)link), row->sent_bytes[link]);
  }
  if (row->is_libcomm) {
    fprintf(file, ", \"ratio\": %.6g", effective_ratio(row));
  }
  if (report->options->interface_name != NULL) {
    fprintf(file, ", \"interface_bytes\": %.0f, \"interface_packets\": %.0f", row->interface_bytes,
            row->interface_packets);
  }
  if (row->is_checked) {
    fprintf(file, ", \"error\": %.6g, \"wrong\": %llu", row->error, (unsigned long long)row->wrong);
  }
  fputc('}', file);
}

void perf_report_row(perf_report *report, const perf_row *row) {
  double size = (double)row->count * (double)lcomm_dtype_size(report->options->dtype);
  double algbw = row->median_s > 0.0 ? size / row->median_s / 1e9 : 0.0;
  double busbw = algbw * 2.0 * (report->ranks - 1) / report->ranks;
  printf(" %11.0f %11llu %8s  %-24s %9.3f %9.3f %9.3f %8.4f %8.4f", size,
         (unsigned long long)row->count, lcomm_dtype_name(report->options->dtype), row->label,
         row->min_s * 1e3, row->median_s * 1e3, row->max_s * 1e3, algbw, busbw);
  if (row->is_libcomm) {
    printf(" %11.0f %11.0f", row->sent_bytes[LCOMM_LINK_SHM], row->sent_bytes[LCOMM_LINK_NET]);
  } else {
    printf(" %11s %11s", "-", "-");
  }
  if (report->options->interface_name != NULL) {
    printf(" %11.0f", row->interface_bytes);
  }
  printf(row->is_libcomm ? " %7.2f" : "       -", effective_ratio(row));
  if (row->is_checked) {
    printf(" %9.2e %7llu\n", row->error, (unsigned long long)row->wrong);
  } else {
    printf(" %9s %7s\n", "-", "-");
  }
  fflush(stdout);
  if (report->json != NULL) {
    put_json(report, row, size, busbw);
  }
  report->rows++;
}

int perf_report_end(perf_report *report) {
  if (report->json == NULL) {
    return 1;
  }
  fprintf(report->json, "\n]}\n");
  int failed = ferror(report->json);
  return (fclose(report->json) | failed) == 0;
}
