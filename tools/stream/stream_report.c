/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/stream/stream_report.h"

#include "tools/common/tool_json.h"
#include "tools/common/tool_origin.h"
#include "tools/common/tool_table.h"

static const char *verdict_of(const stream_result *result) {
  if (result->is_wrong) {
    return "WRONG";
  }
  if (!result->measured) {
    return "not measured";
  }
  return result->what->target <= 0 ? "" : stream_case_met(result) ? "met" : "missed";
}

static tool_colour colour_of(const stream_result *result) {
  if (result->is_wrong) {
    return TOOL_COLOUR_BAD;
  }
  return stream_case_met(result) ? TOOL_COLOUR_GOOD : TOOL_COLOUR_BOLD;
}

static void put_row(tool_table *table, const stream_result *result) {
  const tool_spread *value = &result->value;
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->what->name);
  if (result->measured) {
    tool_table_put(table, TOOL_COLOUR_NONE, "%.4g", value->median);
    tool_table_put(table, TOOL_COLOUR_NONE, "%.4g", value->min);
    tool_table_put(table, TOOL_COLOUR_NONE, "%.4g", value->max);
    tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->what->unit);
  } else {
    for (int i = 0; i < 4; i++) {
      tool_table_put(table, TOOL_COLOUR_NONE, "%s", "");
    }
  }
  tool_table_put(table, colour_of(result), "%s", verdict_of(result));
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->why);
}

bool stream_print(const stream_world *world, const stream_result *results, size_t count,
                  FILE *file) {
  static const char *const columns[] = {"case", "median", "least", "greatest",
                                        "unit", "target", "",      NULL};
  tool_table table = {.columns = columns, .sides = "LRRRLLL"};
  fprintf(file, "%d ranks, nodes %d\n", lcomm_size(world->comm), world->options->nodes);
  for (size_t i = 0; i < count; i++) {
    put_row(&table, &results[i]);
  }
  return tool_table_print(&table, file, tool_table_colours(file)) && fflush(file) == 0;
}

bool stream_json(const stream_world *world, const stream_result *results, size_t count,
                 FILE *file) {
  tool_json w = tool_json_begin();
  tool_origin_put_here(&w, w.root);
  tool_json_number(&w, w.root, "ranks", lcomm_size(world->comm));
  tool_json_number(&w, w.root, "nodes", world->options->nodes);
  tool_json_number(&w, w.root, "samples", (double)world->options->samples);
  cJSON *cases = tool_json_array(&w, w.root, "cases");
  for (size_t i = 0; i < count; i++) {
    cJSON *one = tool_json_object(&w, cases, NULL);
    tool_json_text(&w, one, "case", results[i].what->name);
    tool_json_text(&w, one, "unit", results[i].what->unit);
    tool_json_text(&w, one, "verdict", verdict_of(&results[i]));
    if (results[i].what->target > 0) {
      tool_json_number(&w, one, "target", results[i].what->target);
    }
    if (results[i].measured) {
      tool_json_spread(&w, one, "value", results[i].value);
    } else {
      tool_json_text(&w, one, "why", results[i].why);
    }
  }
  return tool_json_end(&w, file);
}

bool stream_list(FILE *file) {
  fputs("case,unit,target\n", file);
  for (size_t i = 0; i < stream_case_count; i++) {
    const stream_case *it = &stream_cases[i];
    fprintf(file, "%s,%s,", it->name, it->unit);
    if (it->target > 0) {
      fprintf(file, "%s %g", it->is_least ? ">=" : "<=", it->target);
    }
    fputc('\n', file);
  }
  return fflush(file) == 0;
}
