/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The tables of accuracy. */

#include "tools/codec/codec_report_internal.h"

static const char *const quality_columns[] = {
    "codec",      "values",       "ratio",    "bits\n/value",  "limit\n/value", "NMSE", "cosine",
    "max\nerror", "to zero\n(%)", "NaN, Inf", "index\n(bits)", "entry\n(bits)", NULL};
static const char quality_sides[] = "LRRRRRRRRRRR";

static void put_index(lcomm_table *table, const lcomm_bench_codec *codec,
                      const lcomm_quality *quality) {
  if (quality->entries == 0) {
    lcomm_table_put(table, LCOMM_COLOUR_DIM, "-");
    lcomm_table_put(table, LCOMM_COLOUR_DIM, "-");
    return;
  }
  if (codec->choice.format.zstd) {
    lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f > %.2f", lcomm_quality_index_bits(quality),
                    lcomm_quality_sent_index_bits(quality));
  } else {
    lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", lcomm_quality_index_bits(quality));
  }
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", lcomm_quality_entry_bits(quality));
}

static void put_quality(lcomm_table *table, const lcomm_bench_codec *codec,
                        const lcomm_quality *q) {
  double peak = q->given_max > 0.0 ? q->error_max / q->given_max : q->error_max;
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%llu", (unsigned long long)q->count);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2f", lcomm_quality_ratio(q));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.3f", lcomm_quality_bits(q));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.3f", lcomm_quality_limit(q));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.2e", lcomm_quality_nmse(q));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.6f", lcomm_quality_cosine(q));
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.1e", peak);
  lcomm_table_put(table, LCOMM_COLOUR_NONE, "%.3f", 100.0 * lcomm_quality_flushed(q));
  if (q->not_finite_in == 0 && q->not_finite_out == 0) {
    lcomm_table_put(table, LCOMM_COLOUR_DIM, "-");
  } else {
    lcomm_table_put(table, LCOMM_COLOUR_BAD, "%llu > %llu", (unsigned long long)q->not_finite_in,
                    (unsigned long long)q->not_finite_out);
  }
  put_index(table, codec, q);
}

void lcomm_page_quality(lcomm_page *p) {
  lcomm_table table = {.columns = quality_columns, .sides = quality_sides};
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    if (result->quality.count == 0) {
      continue;
    }
    lcomm_table_row(&table);
    lcomm_table_put(&table, LCOMM_COLOUR_NONE, "%s", result->codec->text);
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
    lcomm_table table = {.columns = columns, .sides = quality_sides};
    for (size_t t = 0; t < result->tensor_count; t++) {
      const lcomm_tensor_quality *tensor = &result->tensors[t];
      lcomm_table_row(&table);
      if (p->results->dataset->source_count > 1) {
        lcomm_table_put(&table, LCOMM_COLOUR_NONE, "%.60s: %s", tensor->source, tensor->tensor);
      } else {
        lcomm_table_put(&table, LCOMM_COLOUR_NONE, "%s", tensor->tensor);
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
  lcomm_table table = {.columns = columns, .sides = "LRR"};
  char heading[64];
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_steps *steps = &p->results->codecs[i].steps;
    if (steps->count == 0) {
      continue;
    }
    double sent = (double)steps->count * (double)steps->steps;
    lcomm_table_row(&table);
    lcomm_table_put(&table, LCOMM_COLOUR_NONE, "%s", p->results->codecs[i].codec->text);
    lcomm_table_put(&table, LCOMM_COLOUR_NONE, "%.2e", lcomm_steps_nmse(steps));
    lcomm_table_put(&table, LCOMM_COLOUR_NONE, "%.3f", 8.0 * (double)steps->sent_bytes / sent);
  }
  snprintf(heading, sizeof heading, "After %llu steps",
           (unsigned long long)p->results->options->steps);
  lcomm_page_title(p, heading);
  lcomm_page_print(p, &table);
}
