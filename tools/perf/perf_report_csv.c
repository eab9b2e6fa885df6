/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The results as comma-separated values: a line for each row of the table, which says by itself
 * where it comes from. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "tools/common/tool_origin.h"
#include "tools/common/tool_output.h"
#include "tools/perf/perf_report.h"

void lcomm_perf_csv_begin(const lcomm_perf_report *report) {
  fputs("tool,ranks,nodes,hosts,rate,delay_ms,transport,interface,policy,dtype,redop,root,size,"
        "count,batch,min_s,median_s,max_s,p10_s,p90_s,p99_s,algbw_gb_s,busbw_gb_s,cpu_s,"
        "node_bytes,net_bytes,interface_bytes,ratio,times_mpi,alone_s,compute_s,both_s,hidden,"
        "error,wrong,version,commit,date,machine\n",
        report->csv);
}

static void put_word(const char *text, FILE *file) {
  tool_put_quoted(text ? text : "", file);
  fputc(',', file);
}

/* An empty cell where it was not measured. */
static void put_figure(bool known, double value, FILE *file) {
  if (known && isfinite(value)) {
    fprintf(file, "%.9g", value);
  }
  fputc(',', file);
}

static void put_where(const lcomm_perf_report *report) {
  const lcomm_perf_site *site = &report->site;
  FILE *file = report->csv;
  put_word(report->options->collective->tool, file);
  fprintf(file, "%d,%d,%d,", site->ranks, site->nodes, site->hosts);
  put_word(getenv("CLUSTER_RATE"), file);
  put_word(getenv("CLUSTER_DELAY_MS"), file);
  put_word(site->transports, file);
  put_word(site->interfaces, file);
}

static void put_call(const lcomm_perf_row *row, FILE *file) {
  put_word(row->label, file);
  put_word(lcomm_dtype_name(row->call.dtype), file);
  put_word(lcomm_perf_redop(row), file);
  fprintf(file, "%d,%.0f,%" PRIu64 ",%d,", row->call.root, row->size_bytes, row->call.count,
          row->batch);
}

static void put_times(const lcomm_perf_row *row, int ranks, bool known, FILE *file) {
  const double figures[] = {row->min_s,
                            row->median_s,
                            row->max_s,
                            row->p10_s,
                            row->p90_s,
                            row->p99_s,
                            lcomm_perf_algbw(row),
                            lcomm_perf_busbw(row, ranks),
                            row->cpu_s};
  for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
    put_figure(known, figures[i], file);
  }
}

static void put_bytes(const lcomm_perf_row *row, bool has_interface, bool known, FILE *file) {
  double near = 0.0;
  for (int link = 0; link < LCOMM_LINK_NET; link++) {
    near += row->sent_bytes[link];
  }
  put_figure(known, near, file);
  put_figure(known, row->sent_bytes[LCOMM_LINK_NET], file);
  put_figure(has_interface, row->interface_bytes, file);
  put_figure(known, lcomm_perf_ratio(row), file);
  put_figure(row->times_mpi > 0.0, row->times_mpi, file);
}

static void put_origin(FILE *file) {
  char text[TOOL_ORIGIN_TEXT_MAX];
  put_word(tool_origin_version(), file);
  put_word(build_revision(), file);
  put_word(tool_origin_date(text), file);
  tool_put_quoted(tool_origin_machine(text), file);
  fputc('\n', file);
}

void lcomm_perf_csv_row(const lcomm_perf_report *report, const lcomm_perf_row *row) {
  const lcomm_perf_options *o = report->options;
  bool overlaps = o->overlap.wanted;
  FILE *file = report->csv;
  put_where(report);
  put_call(row, file);
  put_times(row, report->site.ranks, !overlaps, file);
  put_bytes(row, o->interface_name != NULL, row->is_libcomm && !overlaps, file);
  put_figure(overlaps, row->overlap.alone_s, file);
  put_figure(overlaps, row->overlap.compute_s, file);
  put_figure(overlaps, row->overlap.both_s, file);
  put_figure(overlaps, row->overlap.hidden, file);
  put_figure(row->is_checked, row->error, file);
  put_figure(row->is_checked, (double)row->wrong, file);
  put_origin(file);
  fflush(file);
}
