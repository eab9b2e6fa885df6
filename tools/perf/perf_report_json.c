/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The results as JSON, one line for each: scripts read them with grep, too. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_origin.h"
#include "tools/perf/perf_report.h"

/* Control characters become blanks: scripts read the results line by line, too. */
static void put_visible(tool_json *json, cJSON *parent, const char *key, const char *text) {
  char *copy = strdup(text);
  for (char *c = copy; c && *c != '\0'; c++) {
    *c = (unsigned char)*c < ' ' ? ' ' : *c;
  }
  tool_json_text(json, parent, key, copy);
  free(copy);
}

void lcomm_perf_json_begin(const lcomm_perf_report *report, int argc, char **argv) {
  const lcomm_perf_options *o = report->options;
  tool_json json = tool_json_begin();
  cJSON *head = json.root;
  tool_json_text(&json, head, "tool", o->collective->tool);
  tool_json_text(&json, head, "collective", o->collective->name);
  tool_json_number(&json, head, "ranks", report->site.ranks);
  tool_json_number(&json, head, "nodes", report->site.nodes);
  tool_json_text(&json, head, "op",
                 !o->collective->reduces ? "none"
                 : o->op_count > 1       ? "all"
                                         : lcomm_perf_op_name(o->ops[0]));
  tool_json_text(&json, head, "transport", o->transport ? o->transport : "default");
  tool_json_text(&json, head, "progress", lcomm_perf_progress_name(o->progress));
  tool_json_text(&json, head, "boot", o->boot == LCOMM_PERF_BOOT_ENV ? "env" : "mpi");
  tool_json_text(&json, head, "through", o->through_mpi ? "mpi" : "libcomm");
  tool_json_text(&json, head, "memory", o->libcomm_memory ? "libcomm" : "malloc");
  tool_json_flag(&json, head, "in_place", o->in_place);
  tool_json_flag(&json, head, "tensors", o->tensors);
  tool_json_number(&json, head, "iterations", o->sampling.iterations);
  tool_json_number(&json, head, "warmups", o->sampling.warmups);
  tool_origin_put(
      &json, head,
      &(tool_origin){report->site.hosts, report->site.transports, report->site.interfaces});
  fputc('{', report->json);
  tool_json_put_members(head, report->json);
  tool_json_drop(&json);
  json = tool_json_begin();
  cJSON *command = tool_json_array(&json, json.root, "command");
  for (int i = 0; i < argc; i++) {
    put_visible(&json, command, NULL, argv[i]);
  }
  fputs(",\n", report->json);
  tool_json_put_members(json.root, report->json);
  fputs(",\n\"results\": [", report->json);
  tool_json_drop(&json);
}

static void put_times(tool_json *json, const lcomm_perf_row *row, int ranks) {
  tool_json_number(json, json->root, "min_s", row->min_s);
  tool_json_number(json, json->root, "median_s", row->median_s);
  tool_json_number(json, json->root, "max_s", row->max_s);
  tool_json_number(json, json->root, "p10_s", row->p10_s);
  tool_json_number(json, json->root, "p90_s", row->p90_s);
  tool_json_number(json, json->root, "p99_s", row->p99_s);
  tool_json_number(json, json->root, "algbw_gb_s", lcomm_perf_algbw(row));
  tool_json_number(json, json->root, "busbw_gb_s", lcomm_perf_busbw(row, ranks));
  tool_json_number(json, json->root, "cpu_s", row->cpu_s);
}

/* Of a link class: its name and `unit` are the key. Bytes are whole. */
static void put_of_link(tool_json *json, int link, const char *unit, double value) {
  char key[48];
  snprintf(key, sizeof key, "%s_%s", lcomm_link_name((lcomm_link)link), unit);
  tool_json_number(json, json->root, key, value);
}

/* What the library counted, in sum and for each rank. */
static void put_counters(tool_json *json, const lcomm_perf_row *row, int ranks) {
  static const char *const keys[] = {
#define KEY(name, key) [name] = key,
      LCOMM_PERF_PHASE_LIST(KEY)
#undef KEY
  };
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    put_of_link(json, link, "bytes", rint(row->sent_bytes[link]));
    put_of_link(json, link, "messages", row->messages[link]);
  }
  tool_json_number(json, json->root, "ratio", lcomm_perf_ratio(row));
  tool_json_number(json, json->root, "memory_bytes", rint(row->memory_bytes));
  for (int phase = 0; phase < LCOMM_PERF_PHASE_COUNT && row->rank_phases != NULL; phase++) {
    cJSON *array = tool_json_array(json, json->root, keys[phase]);
    for (int rank = 0; rank < ranks; rank++) {
      tool_json_number(json, array, NULL, row->rank_phases[phase * ranks + rank]);
    }
  }
}

static void put_overlap(tool_json *json, const lcomm_perf_overlap *overlap) {
  tool_json_number(json, json->root, "alone_s", overlap->alone_s);
  tool_json_number(json, json->root, "compute_s", overlap->compute_s);
  tool_json_number(json, json->root, "both_s", overlap->both_s);
  tool_json_number(json, json->root, "hidden", overlap->hidden);
}

static void put_row(tool_json *json, const lcomm_perf_report *report, const lcomm_perf_row *row) {
  const lcomm_perf_options *o = report->options;
  cJSON *root = json->root;
  put_visible(json, root, "policy", row->label);
  tool_json_text(json, root, "dtype", lcomm_dtype_name(row->call.dtype));
  tool_json_text(json, root, "redop", lcomm_perf_redop(row));
  if (o->collective->has_root) {
    tool_json_number(json, root, "root", row->call.root);
  }
  tool_json_number(json, root, "size", row->size_bytes);
  tool_json_number(json, root, "count", (double)row->call.count);
  tool_json_number(json, root, "batch", row->batch);
  if (row->plan[0] != '\0') {
    tool_json_text(json, root, "plan", row->plan);
  }
  if (o->overlap.wanted) {
    put_overlap(json, &row->overlap);
  } else {
    put_times(json, row, report->site.ranks);
  }
  if (row->is_libcomm && !o->overlap.wanted) {
    put_counters(json, row, report->site.ranks);
  }
  if (row->times_mpi > 0.0) {
    tool_json_number(json, root, "times_mpi", row->times_mpi);
  }
  if (o->interface_name) {
    tool_json_number(json, root, "interface_bytes", rint(row->interface_bytes));
    tool_json_number(json, root, "interface_packets", rint(row->interface_packets));
  }
  if (row->is_checked) {
    tool_json_number(json, root, "error", row->error);
    tool_json_number(json, root, "wrong", (double)row->wrong);
  }
}

void lcomm_perf_json_row(const lcomm_perf_report *report, const lcomm_perf_row *row) {
  tool_json json = tool_json_begin();
  put_row(&json, report, row);
  fputs(report->rows > 0 ? ",\n  " : "\n  ", report->json);
  tool_json_put_line(json.root, report->json);
  tool_json_drop(&json);
  fflush(report->json);
}

void lcomm_perf_json_end(const lcomm_perf_report *report) {
  fprintf(report->json, "\n]}\n");
}
