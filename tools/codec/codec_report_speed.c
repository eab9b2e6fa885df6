/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tables of speed. */

#include "tools/codec/codec_report_internal.h"
#include "tools/common/tool_units.h"

static lcomm_colour share_colour(double share) {
  return share >= 0.9 ? LCOMM_COLOUR_GOOD : share < 0.5 ? LCOMM_COLOUR_BAD : LCOMM_COLOUR_NONE;
}

static void put_speed(lcomm_table *table, const lcomm_result *result, const lcomm_speed *speed) {
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", result->codec->text);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", lcomm_operation_name(speed->operation));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", speed->kernels->name);
  lcomm_table_put(table, LCOMM_COLOUR_DIM, "%.2f", speed->gb_s.min);
  lcomm_table_put(table, LCOMM_COLOUR_BOLD, "%.2f", speed->gb_s.median);
  lcomm_table_put(table, LCOMM_COLOUR_DIM, "%.2f", speed->gb_s.max);
  if (speed->floor) {
    lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", speed->floor);
    lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", speed->floor_gb_s.median);
    lcomm_table_put(table, share_colour(speed->of_floor.median), "%.2f", speed->of_floor.median);
  } else {
    for (int i = 0; i < 3; i++) {
      lcomm_table_put(table, LCOMM_COLOUR_DIM, "-");
    }
  }
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", speed->of_memcpy.median);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", speed->of_best.median);
}

void lcomm_page_speed(lcomm_page *p, uint64_t size_bytes) {
  static const char *const columns[] = {
      "codec", "",         "kernels",   "min\n(GB/s)", "median\n(GB/s)", "max\n(GB/s)",
      "floor", "\n(GB/s)", "of\nfloor", "of\nmemcpy",  "of\nbest",       NULL};
  lcomm_table table = {.columns = columns, .sides = "LLLRRRLRRRR"};
  char heading[128], size[LCOMM_UNITS_TEXT_MAX];
  double copy = 0.0;
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    for (size_t s = 0; s < result->speed_count; s++) {
      if (result->speeds[s].size_bytes != size_bytes) {
        continue;
      }
      lcomm_table_row(&table);
      put_speed(&table, result, &result->speeds[s]);
      copy = result->speeds[s].memcpy_gb_s.median;
    }
  }
  unsigned long long threads = (unsigned long long)p->results->options->threads;
  snprintf(heading, sizeof heading, "Speed, buffers of %s, %llu thread%s; memcpy %.1f GB/s",
           lcomm_units_bytes(size_bytes, size), threads, threads == 1 ? "" : "s", copy);
  lcomm_page_title(p, heading);
  lcomm_page_print(p, &table);
}

static bool has_duels(const lcomm_page *p) {
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    if (p->results->codecs[i].duel_count > 0) {
      return true;
    }
  }
  return false;
}

static void put_duel(lcomm_table *table, const lcomm_result *result, const lcomm_duel *duel) {
  char size[LCOMM_UNITS_TEXT_MAX];
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", result->codec->text);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", duel->name);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", duel->rival);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", duel->kernels->name);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%s", lcomm_units_bytes(duel->size_bytes, size));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", duel->gb_s.median);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", duel->rival_gb_s.median);
  lcomm_table_put(table, LCOMM_COLOUR_DIM, "%.2f", duel->times.min);
  lcomm_table_put(table, LCOMM_COLOUR_BOLD, "%.2f", duel->times.median);
  lcomm_table_put(table, LCOMM_COLOUR_DIM, "%.2f", duel->times.max);
  if (duel->ratio > 0.0) {
    lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f, %.2f", duel->ratio, duel->rival_ratio);
  }
}

void lcomm_page_duels(lcomm_page *p) {
  static const char *const columns[] = {
      "codec",    "this",         "against",       "kernels",
      "size",     "this\n(GB/s)", "other\n(GB/s)", "times as fast:\nmin",
      "\nmedian", "\nmax",        "ratios",        NULL};
  lcomm_table table = {.columns = columns, .sides = "LLLLRRRRRRL"};
  if (!has_duels(p)) {
    return;
  }
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    for (size_t d = 0; d < p->results->codecs[i].duel_count; d++) {
      lcomm_table_row(&table);
      put_duel(&table, &p->results->codecs[i], &p->results->codecs[i].duels[d]);
    }
  }
  lcomm_page_title(p, "Against other ways");
  lcomm_page_print(p, &table);
}
