/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The results as JSON, one line for each: scripts read them with grep, too. */

#include <math.h>
#include <stdio.h>

#include "tools/perf/perf_report.h"

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

/* JSON has neither NaN nor Inf. */
static void put_number(FILE *file, double number) {
  if (isfinite(number)) {
    fprintf(file, "%.9g", number);
  } else {
    fputs("null", file);
  }
}

static void put_key(FILE *file, const char *key, double number) {
  fprintf(file, ", \"%s\": ", key);
  put_number(file, number);
}

static void put_count(FILE *file, const char *key, double number) {
  fprintf(file, ", \"%s\": %.0f", key, number);
}

static void put_text(FILE *file, const char *key, const char *text) {
  fprintf(file, ", \"%s\": ", key);
  put_string(file, text);
}

void lcomm_perf_json_begin(const lcomm_perf_report *report, int argc, char **argv) {
  const lcomm_perf_options *o = report->options;
  FILE *file = report->json;
  fprintf(file, "{\"tool\": \"%s\", \"collective\": \"%s\", \"ranks\": %d, \"nodes\": %d",
          o->collective->tool, o->collective->name, report->ranks, report->nodes);
  put_text(file, "op",
           !o->collective->reduces ? "none"
           : o->op_count > 1       ? "all"
                                   : lcomm_perf_op_name(o->ops[0]));
  put_text(file, "transport", o->transport != NULL ? o->transport : "default");
  put_text(file, "progress", lcomm_perf_progress_name(o->progress));
  put_text(file, "boot", o->boot == LCOMM_PERF_BOOT_ENV ? "env" : "mpi");
  put_text(file, "through", o->through_mpi ? "mpi" : "libcomm");
  put_text(file, "memory", o->libcomm_memory ? "libcomm" : "malloc");
  fprintf(file, ", \"in_place\": %s, \"tensors\": %s", o->in_place ? "true" : "false",
          o->tensors ? "true" : "false");
  fprintf(file, ", \"iterations\": %d, \"warmups\": %d, \"version\": %d", o->iterations, o->warmups,
          lcomm_version());
  fputs(",\n\"command\": [", file);
  for (int i = 0; i < argc; i++) {
    fputs(i > 0 ? ", " : "", file);
    put_string(file, argv[i]);
  }
  fputs("],\n\"results\": [", file);
}

static void put_times(FILE *file, const lcomm_perf_row *row, int ranks) {
  put_key(file, "min_s", row->min_s);
  put_key(file, "median_s", row->median_s);
  put_key(file, "max_s", row->max_s);
  put_key(file, "p10_s", row->p10_s);
  put_key(file, "p90_s", row->p90_s);
  put_key(file, "p99_s", row->p99_s);
  put_key(file, "algbw_gb_s", lcomm_perf_algbw(row));
  put_key(file, "busbw_gb_s", lcomm_perf_busbw(row, ranks));
  put_key(file, "cpu_s", row->cpu_s);
}

/* What the library counted, in sum and for each rank. */
static void put_counters(FILE *file, const lcomm_perf_row *row, int ranks) {
  static const char *const keys[] = {
#define KEY(name, key) [name] = key,
      LCOMM_PERF_PHASE_LIST(KEY)
#undef KEY
  };
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    const char *name = lcomm_link_name((lcomm_link)link);
    fprintf(file, ", \"%s_bytes\": %.0f, \"%s_messages\": %.9g", name, row->sent_bytes[link], name,
            row->messages[link]);
  }
  put_key(file, "ratio", lcomm_perf_ratio(row));
  put_count(file, "memory_bytes", row->memory_bytes);
  for (int phase = 0; phase < LCOMM_PERF_PHASE_COUNT && row->rank_phases != NULL; phase++) {
    fprintf(file, ", \"%s\": [", keys[phase]);
    for (int rank = 0; rank < ranks; rank++) {
      fputs(rank > 0 ? ", " : "", file);
      put_number(file, row->rank_phases[phase * ranks + rank]);
    }
    fputc(']', file);
  }
}

static void put_overlap(FILE *file, const lcomm_perf_overlap *overlap) {
  put_key(file, "alone_s", overlap->alone_s);
  put_key(file, "compute_s", overlap->compute_s);
  put_key(file, "both_s", overlap->both_s);
  put_key(file, "hidden", overlap->hidden);
}

void lcomm_perf_json_row(const lcomm_perf_report *report, const lcomm_perf_row *row) {
  const lcomm_perf_options *o = report->options;
  FILE *file = report->json;
  fprintf(file, "%s\n  {\"policy\": ", report->rows > 0 ? "," : "");
  put_string(file, row->label);
  put_text(file, "dtype", lcomm_dtype_name(row->call.dtype));
  put_text(file, "redop", lcomm_perf_redop(row));
  if (o->collective->has_root) {
    put_count(file, "root", row->call.root);
  }
  put_count(file, "size", row->size_bytes);
  put_count(file, "count", (double)row->call.count);
  put_count(file, "batch", row->batch);
  if (o->overlap) {
    put_overlap(file, &row->overlap);
  } else {
    put_times(file, row, report->ranks);
  }
  if (row->is_libcomm && !o->overlap) {
    put_counters(file, row, report->ranks);
  }
  if (row->times_mpi > 0.0) {
    put_key(file, "times_mpi", row->times_mpi);
  }
  if (o->interface_name) {
    put_count(file, "interface_bytes", row->interface_bytes);
    put_count(file, "interface_packets", row->interface_packets);
  }
  if (row->is_checked) {
    put_key(file, "error", row->error);
    put_count(file, "wrong", (double)row->wrong);
  }
  fputc('}', file);
  fflush(file);
}

void lcomm_perf_json_end(const lcomm_perf_report *report) {
  fprintf(report->json, "\n]}\n");
}
