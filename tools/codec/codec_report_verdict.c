/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The table that comes first. */

#include <math.h>

#include "tools/codec/codec_report.h"
#include "tools/common/tool_units.h"

static bool is_exact(const lcomm_result *result) {
  const lcomm_format *format = &result->codec->choice.format;
  return format->codec->id == LCOMM_CODEC_NONE && !format->zstd;
}

static void put_speed(tool_table *table, const lcomm_result *result, lcomm_operation operation) {
  if (is_exact(result)) {
    tool_table_put(table, TOOL_COLOUR_DIM, "-");
  } else {
    tool_table_put(table, TOOL_COLOUR_NONE, "%.2f",
                   lcomm_result_speed(result, operation)->gb_s.median);
  }
}

static void put_limit(tool_table *table, const lcomm_results *results, const lcomm_result *result) {
  const char *baseline = lcomm_baseline_name(results->options->baseline);
  double limit = lcomm_result_pays_below(results, result);
  char text[TOOL_UNITS_TEXT_MAX];
  if (limit <= 0.0) {
    tool_table_put(table, TOOL_COLOUR_BAD, "never against %s", baseline);
  } else if (!isfinite(limit)) {
    tool_table_put(table, TOOL_COLOUR_GOOD, "on any link");
  } else {
    tool_table_put(table, TOOL_COLOUR_GOOD, "below %s", tool_units_bandwidth(limit, text));
  }
}

static void put_row(tool_table *table, const lcomm_results *results, const lcomm_result *result) {
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->codec->text);
  tool_table_put(table, TOOL_COLOUR_BOLD, "%.2f", lcomm_quality_ratio(&result->quality));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2e", lcomm_quality_nmse(&result->quality));
  put_speed(table, result, LCOMM_OPERATION_ENCODE);
  put_speed(table, result, LCOMM_OPERATION_DECODE);
  put_limit(table, results, result);
}

void lcomm_page_verdict(lcomm_page *p) {
  static const char *const columns[] = {"codec",          "ratio",   "NMSE", "encode\n(GB/s)",
                                        "decode\n(GB/s)", "it pays", NULL};
  const lcomm_bench_options *o = p->results->options;
  tool_table table = {.columns = columns, .sides = "LRRRRL"};
  char heading[128];
  size_t rows = 0;
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    if (lcomm_result_is_fully_measured(result)) {
      put_row(&table, p->results, result);
      rows++;
    }
  }
  if (rows == 0) {
    return;
  }
  snprintf(heading, sizeof heading, "Verdict: against %s, between %llu nodes",
           lcomm_baseline_name(o->baseline),
           (unsigned long long)(o->nodes > 0 ? o->nodes : LCOMM_VERDICT_NODES));
  lcomm_page_title(p, heading);
  lcomm_page_print(p, &table);
}
