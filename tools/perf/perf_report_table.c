/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table as users of nccl-tests know it. One list of columns makes the
 * header and the rows, so that they cannot get out of step. */

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "tools/perf/perf_report.h"

enum { CELL_SIZE = 256, LABEL_WIDTH_MIN = 12, LABEL_WIDTH_MAX = 48 };

typedef struct view {
  const lcomm_perf_report *report;
  const lcomm_perf_row *row;
} view;

typedef struct column {
  const char *title;
  const char *unit;
  int width; /* 0: of the labels, which begin at the left */
  int (*is_shown)(const lcomm_perf_options *options);
  void (*write)(const view *v, char *cell);
} column;

__attribute__((format(printf, 2, 3))) static void put(char *cell, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(cell, CELL_SIZE, format, arguments);
  va_end(arguments);
}

/* Four digits or so. */
static void put_time(char *cell, double seconds) {
  double us = seconds * 1e6;
  put(cell, us < 1e4 ? "%.2f" : us < 1e6 ? "%.1f" : "%.0f", us);
}

static void put_rate(char *cell, double gb_s) {
  put(cell, gb_s < 10.0 ? "%.4f" : "%.2f", gb_s);
}

/* All link classes from `nearest` to `farthest`. */
static void put_bytes(const view *v, char *cell, lcomm_link nearest, lcomm_link farthest) {
  double bytes = 0.0;
  for (int link = nearest; link <= (int)farthest; link++) {
    bytes += v->row->sent_bytes[link];
  }
  if (v->row->is_libcomm) {
    put(cell, "%.0f", bytes);
  } else {
    put(cell, "-");
  }
}

static void write_size(const view *v, char *cell) {
  put(cell, "%.0f", v->row->size_bytes);
}
static void write_count(const view *v, char *cell) {
  put(cell, "%llu", (unsigned long long)v->row->call.count);
}
static void write_type(const view *v, char *cell) {
  put(cell, "%s", lcomm_dtype_name(v->row->call.dtype));
}
static void write_redop(const view *v, char *cell) {
  put(cell, "%s", lcomm_perf_redop(v->row));
}
static void write_root(const view *v, char *cell) {
  put(cell, "%d", v->row->call.root);
}
static void write_label(const view *v, char *cell) {
  put(cell, "%s", v->row->label);
}
#define WRITE_TIME(write, time_s)                                                                  \
  static void write(const view *v, char *cell) { put_time(cell, v->row->time_s); }
WRITE_TIME(write_min, min_s)
WRITE_TIME(write_median, median_s)
WRITE_TIME(write_max, max_s)
WRITE_TIME(write_p10, p10_s)
WRITE_TIME(write_p90, p90_s)
WRITE_TIME(write_p99, p99_s)
static void write_algbw(const view *v, char *cell) {
  put_rate(cell, lcomm_perf_algbw(v->row));
}
static void write_busbw(const view *v, char *cell) {
  put_rate(cell, lcomm_perf_busbw(v->row, v->report->site.ranks));
}
static void write_node(const view *v, char *cell) {
  put_bytes(v, cell, LCOMM_LINK_SAME_DEVICE, LCOMM_LINK_SHM);
}
static void write_net(const view *v, char *cell) {
  put_bytes(v, cell, LCOMM_LINK_NET, LCOMM_LINK_NET);
}
static void write_interface(const view *v, char *cell) {
  put(cell, "%.0f", v->row->interface_bytes);
}
static void write_ratio(const view *v, char *cell) {
  if (v->row->is_libcomm) {
    put(cell, "%.2f", lcomm_perf_ratio(v->row));
  } else {
    put(cell, "-");
  }
}
WRITE_TIME(write_cpu, cpu_s)
static void write_times_mpi(const view *v, char *cell) {
  if (v->row->times_mpi > 0.0) {
    put(cell, "%.2f", v->row->times_mpi);
  } else {
    put(cell, "-");
  }
}
static void write_alone(const view *v, char *cell) {
  put_time(cell, v->row->overlap.alone_s);
}
static void write_compute(const view *v, char *cell) {
  put_time(cell, v->row->overlap.compute_s);
}
static void write_both(const view *v, char *cell) {
  put_time(cell, v->row->overlap.both_s);
}
static void write_hidden(const view *v, char *cell) {
  put(cell, "%.1f", 100.0 * v->row->overlap.hidden);
}
static void write_error(const view *v, char *cell) {
  if (v->row->is_checked) {
    put(cell, "%.2e", v->row->error);
  } else {
    put(cell, "-");
  }
}
static void write_wrong(const view *v, char *cell) {
  if (v->row->is_checked) {
    put(cell, "%llu", (unsigned long long)v->row->wrong);
  } else {
    put(cell, "N/A");
  }
}

static int always(const lcomm_perf_options *options) {
  (void)options;
  return 1;
}
static int with_root(const lcomm_perf_options *options) {
  return options->collective->has_root;
}
static int with_times(const lcomm_perf_options *options) {
  return !options->overlap.wanted;
}
static int with_percentiles(const lcomm_perf_options *options) {
  return options->percentiles && !options->overlap.wanted;
}
static int with_interface(const lcomm_perf_options *options) {
  return options->interface_name != NULL;
}
static int with_mpi(const lcomm_perf_options *options) {
  return options->against_mpi;
}
static int with_overlap(const lcomm_perf_options *options) {
  return options->overlap.wanted;
}

static const column columns[] = {
    {"size", "(B)", 13, always, write_size},
    {"count", "(elements)", 12, always, write_count},
    {"type", "", 8, always, write_type},
    {"redop", "", 6, always, write_redop},
    {"root", "", 5, with_root, write_root},
    {"policy", "", 0, always, write_label},
    {"min", "(us)", 10, with_times, write_min},
    {"med", "(us)", 10, with_times, write_median},
    {"max", "(us)", 10, with_times, write_max},
    {"p10", "(us)", 10, with_percentiles, write_p10},
    {"p90", "(us)", 10, with_percentiles, write_p90},
    {"p99", "(us)", 10, with_percentiles, write_p99},
    {"algbw", "(GB/s)", 8, with_times, write_algbw},
    {"busbw", "(GB/s)", 8, with_times, write_busbw},
    {"node", "(B)", 11, with_times, write_node},
    {"net", "(B)", 11, with_times, write_net},
    {"iface", "(B)", 11, with_interface, write_interface},
    {"ratio", "", 7, with_times, write_ratio},
    {"cpu", "(us)", 10, with_times, write_cpu},
    {"vs mpi", "(times)", 8, with_mpi, write_times_mpi},
    {"alone", "(us)", 10, with_overlap, write_alone},
    {"compute", "(us)", 10, with_overlap, write_compute},
    {"both", "(us)", 10, with_overlap, write_both},
    {"hidden", "(%)", 7, with_overlap, write_hidden},
    {"error", "", 9, always, write_error},
    {"#wrong", "", 7, always, write_wrong},
};

static int label_width(const lcomm_perf_options *options) {
  size_t width = LABEL_WIDTH_MIN;
  for (int p = 0; p < options->policy_count; p++) {
    size_t length = strlen(options->policies[p]);
    width = length > width ? length : width;
  }
  if ((options->against_mpi || options->through_mpi) &&
      strlen(options->collective->pmpi_name) > width) {
    width = strlen(options->collective->pmpi_name);
  }
  return (int)(width < LABEL_WIDTH_MAX ? width : LABEL_WIDTH_MAX);
}

static void put_cell(const lcomm_perf_report *report, const column *c, const char *text) {
  if (c->width > 0) {
    fprintf(report->table, " %*s", c->width, text);
  } else {
    fprintf(report->table, "  %-*s", label_width(report->options), text);
  }
}

static void put_header(const lcomm_perf_report *report) {
  for (int line = 0; line < 2; line++) {
    fputc('#', report->table);
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
      if (columns[c].is_shown(report->options)) {
        put_cell(report, &columns[c], line == 0 ? columns[c].title : columns[c].unit);
      }
    }
    fputc('\n', report->table);
  }
}

void lcomm_perf_table_begin(const lcomm_perf_report *report) {
  const lcomm_perf_options *o = report->options;
  FILE *out = report->table;
  fprintf(out, "# %s: %s, %d rank%s on %d node%s, %s, libcomm %d.%d.%d\n", o->collective->tool,
          o->collective->name, report->site.ranks, report->site.ranks == 1 ? "" : "s",
          report->site.nodes, report->site.nodes == 1 ? "" : "s",
          o->in_place ? "in place" : "out of place", lcomm_version() / 10000,
          lcomm_version() / 100 % 100, lcomm_version() % 100);
  fprintf(out, "# minbytes %llu maxbytes %llu step: ", (unsigned long long)o->sizes.min_bytes,
          (unsigned long long)o->sizes.max_bytes);
  if (o->sizes.step_bytes > 0) {
    fprintf(out, "%llu(bytes)", (unsigned long long)o->sizes.step_bytes);
  } else {
    fprintf(out, "%g(factor)", o->sizes.factor);
  }
  fprintf(out, " warmup iters: %d iters: %d batch: ", o->sampling.warmups, o->sampling.iterations);
  fprintf(out, o->overlap.wanted ? "1" : o->sampling.batch > 0 ? "%d" : "auto", o->sampling.batch);
  fprintf(out, " validation: %d transport: %s progress: %s boot: %s through: %s memory: %s\n#\n",
          o->check, o->transport != NULL ? o->transport : "default",
          lcomm_perf_progress_name(o->progress), o->boot == LCOMM_PERF_BOOT_ENV ? "env" : "mpi",
          o->through_mpi ? "mpi" : "libcomm", o->libcomm_memory ? "libcomm" : "malloc");
  put_header(report);
  fflush(out);
}

void lcomm_perf_table_row(const lcomm_perf_report *report, const lcomm_perf_row *row) {
  view v = {report, row};
  char cell[CELL_SIZE];
  fputc(' ', report->table);
  for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
    if (columns[c].is_shown(report->options)) {
      columns[c].write(&v, cell);
      put_cell(report, &columns[c], cell);
    }
  }
  fputc('\n', report->table);
  fflush(report->table);
}

void lcomm_perf_table_end(const lcomm_perf_report *report) {
  if (report->options->check) {
    fprintf(report->table, "# Out of bounds values : %llu %s\n", (unsigned long long)report->wrong,
            report->wrong == 0 ? "OK" : "FAILED");
  } else {
    fprintf(report->table, "# Out of bounds values : not checked (-c)\n");
  }
  for (int i = 0; i < report->average_count && !report->options->overlap.wanted; i++) {
    const lcomm_perf_average *a = &report->averages[i];
    fprintf(report->table, "# Avg bus bandwidth    : %g GB/s, %s\n", a->sum_gb_s / a->rows,
            a->label);
  }
  fflush(report->table);
}
