/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tables of accuracy. */

#include "tools/codec/codec_report.h"

static const char *const quality_columns[] = {
    "codec",      "values",       "ratio",    "bits\n/value",  "limit\n/value", "NMSE", "cosine",
    "max\nerror", "to zero\n(%)", "NaN, Inf", "index\n(bits)", "entry\n(bits)", NULL};
static const char quality_sides[] = "LRRRRRRRRRRR";

static void put_index(tool_table *table, const lcomm_bench_codec *codec,
                      const lcomm_quality *quality) {
  if (quality->entries == 0) {
    tool_table_put(table, TOOL_COLOUR_DIM, "-");
    tool_table_put(table, TOOL_COLOUR_DIM, "-");
    return;
  }
  if (codec->choice.format.zstd) {
    tool_table_put(table, TOOL_COLOUR_NONE, "%.2f > %.2f", lcomm_quality_index_bits(quality),
                   lcomm_quality_sent_index_bits(quality));
  } else {
    tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", lcomm_quality_index_bits(quality));
  }
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", lcomm_quality_entry_bits(quality));
}

static void put_quality(tool_table *table, const lcomm_bench_codec *codec, const lcomm_quality *q) {
  double peak = q->given_max > 0.0 ? q->error_max / q->given_max : q->error_max;
  tool_table_put(table, TOOL_COLOUR_NONE, "%llu", (unsigned long long)q->count);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", lcomm_quality_ratio(q));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.3f", lcomm_quality_bits(q));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.3f", lcomm_quality_limit(q));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2e", lcomm_quality_nmse(q));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.6f", lcomm_quality_cosine(q));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.1e", peak);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.3f", 100.0 * lcomm_quality_flushed(q));
  if (q->not_finite_in == 0 && q->not_finite_out == 0) {
    tool_table_put(table, TOOL_COLOUR_DIM, "-");
  } else {
    tool_table_put(table, TOOL_COLOUR_BAD, "%llu > %llu", (unsigned long long)q->not_finite_in,
                   (unsigned long long)q->not_finite_out);
  }
  put_index(table, codec, q);
}

void lcomm_page_quality(lcomm_page *p) {
  tool_table table = {.columns = quality_columns, .sides = quality_sides};
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    if (result->quality.count == 0) {
      continue;
    }
    tool_table_row(&table);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%s", result->codec->text);
    put_quality(&table, result->codec, &result->quality);
  }
  lcomm_page_title(p, "Accuracy");
  lcomm_page_print(p, &table);
}

void lcomm_page_tensors(lcomm_page *p) {
  char heading[LCOMM_BENCH_CODEC_TEXT_MAX + 32];
  static const char *const columns[] = {
      "tensor",     "values",       "ratio",    "bits\n/value",  "limit\n/value", "NMSE", "cosine",
      "max\nerror", "to zero\n(%)", "NaN, Inf", "index\n(bits)", "entry\n(bits)", NULL};
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    tool_table table = {.columns = columns, .sides = quality_sides};
    for (size_t t = 0; t < result->tensor_count; t++) {
      const lcomm_tensor_quality *tensor = &result->tensors[t];
      tool_table_row(&table);
      if (p->results->dataset->source_count > 1) {
        tool_table_put(&table, TOOL_COLOUR_NONE, "%.60s: %s", tensor->source, tensor->tensor);
      } else {
        tool_table_put(&table, TOOL_COLOUR_NONE, "%s", tensor->tensor);
      }
      put_quality(&table, result->codec, &tensor->quality);
    }
    if (result->tensor_count == 0) {
      continue;
    }
    snprintf(heading, sizeof heading, "Each tensor alone, %s", result->codec->text);
    lcomm_page_title(p, heading);
    lcomm_page_print(p, &table);
  }
}

void lcomm_page_steps(lcomm_page *p) {
  static const char *const columns[] = {"codec", "NMSE\nof the sum", "bits\n/value", NULL};
  tool_table table = {.columns = columns, .sides = "LRR"};
  char heading[64];
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_steps *steps = &p->results->codecs[i].steps;
    if (steps->count == 0) {
      continue;
    }
    double sent = (double)steps->count * (double)steps->steps;
    tool_table_row(&table);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%s", p->results->codecs[i].codec->text);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%.2e", lcomm_steps_nmse(steps));
    tool_table_put(&table, TOOL_COLOUR_NONE, "%.3f", 8.0 * (double)steps->sent_bytes / sent);
  }
  snprintf(heading, sizeof heading, "After %llu steps",
           (unsigned long long)p->results->options->steps);
  lcomm_page_title(p, heading);
  lcomm_page_print(p, &table);
}
