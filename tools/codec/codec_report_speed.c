/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tables of speed. */

#include "tools/codec/codec_report.h"
#include "tools/common/tool_units.h"

static tool_colour share_colour(double share) {
  return share >= 0.9 ? TOOL_COLOUR_GOOD : share < 0.5 ? TOOL_COLOUR_BAD : TOOL_COLOUR_NONE;
}

static void put_speed(tool_table *table, const lcomm_result *result, const lcomm_speed *speed) {
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->codec->text);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", lcomm_operation_name(speed->operation));
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", speed->kernels->name);
  tool_table_put(table, TOOL_COLOUR_DIM, "%.2f", speed->gb_s.min);
  tool_table_put(table, TOOL_COLOUR_BOLD, "%.2f", speed->gb_s.median);
  tool_table_put(table, TOOL_COLOUR_DIM, "%.2f", speed->gb_s.max);
  if (speed->roofline) {
    tool_table_put(table, TOOL_COLOUR_NONE, "%s", speed->roofline);
    tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", speed->roofline_gb_s.median);
    tool_table_put(table, share_colour(speed->of_roofline.median), "%.2f",
                   speed->of_roofline.median);
  } else {
    for (int i = 0; i < 3; i++) {
      tool_table_put(table, TOOL_COLOUR_DIM, "-");
    }
  }
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", speed->of_memcpy.median);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", speed->of_best.median);
}

void lcomm_page_speed(lcomm_page *p, uint64_t size_bytes) {
  static const char *const columns[] = {
      "codec", "",         "kernels",   "min\n(GB/s)", "median\n(GB/s)", "max\n(GB/s)",
      "floor", "\n(GB/s)", "of\nfloor", "of\nmemcpy",  "of\nbest",       NULL};
  tool_table table = {.columns = columns, .sides = "LLLRRRLRRRR"};
  char heading[128], size[TOOL_UNITS_TEXT_MAX];
  double copy = 0.0;
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    for (size_t s = 0; s < result->speed_count; s++) {
      if (result->speeds[s].size_bytes != size_bytes) {
        continue;
      }
      tool_table_row(&table);
      put_speed(&table, result, &result->speeds[s]);
      copy = result->speeds[s].memcpy_gb_s.median;
    }
  }
  unsigned long long threads = (unsigned long long)p->results->options->threads;
  snprintf(heading, sizeof heading, "Speed, buffers of %s, %llu thread%s; memcpy %.1f GB/s",
           tool_units_bytes(size_bytes, size), threads, threads == 1 ? "" : "s", copy);
  lcomm_page_title(p, heading);
  lcomm_page_print(p, &table);
}

static bool has_comparisons(const lcomm_page *p) {
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    if (p->results->codecs[i].comparison_count > 0) {
      return true;
    }
  }
  return false;
}

static void put_comparison(tool_table *table, const lcomm_result *result,
                           const lcomm_comparison *comparison) {
  char size[TOOL_UNITS_TEXT_MAX];
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->codec->text);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", comparison->name);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", comparison->other);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", comparison->kernels->name);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_bytes(comparison->size_bytes, size));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", comparison->gb_s.median);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", comparison->other_gb_s.median);
  tool_table_put(table, TOOL_COLOUR_DIM, "%.2f", comparison->times.min);
  tool_table_put(table, TOOL_COLOUR_BOLD, "%.2f", comparison->times.median);
  tool_table_put(table, TOOL_COLOUR_DIM, "%.2f", comparison->times.max);
  if (comparison->ratio > 0.0) {
    tool_table_put(table, TOOL_COLOUR_NONE, "%.2f, %.2f", comparison->ratio,
                   comparison->other_ratio);
  }
}

void lcomm_page_comparisons(lcomm_page *p) {
  static const char *const columns[] = {
      "codec",    "this",         "against",       "kernels",
      "size",     "this\n(GB/s)", "other\n(GB/s)", "times as fast:\nmin",
      "\nmedian", "\nmax",        "ratios",        NULL};
  tool_table table = {.columns = columns, .sides = "LLLLRRRRRRL"};
  if (!has_comparisons(p)) {
    return;
  }
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    for (size_t d = 0; d < p->results->codecs[i].comparison_count; d++) {
      tool_table_row(&table);
      put_comparison(&table, &p->results->codecs[i], &p->results->codecs[i].comparisons[d]);
    }
  }
  lcomm_page_title(p, "Against other ways");
  lcomm_page_print(p, &table);
}
