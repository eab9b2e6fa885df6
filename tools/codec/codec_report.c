/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_report.h"

#include "tools/common/tool_units.h"

void lcomm_page_title(const lcomm_page *p, const char *text) {
  fputc('\n', p->file);
  tool_table_say(p->file, p->colours, TOOL_COLOUR_BOLD, text);
}

void lcomm_page_print(lcomm_page *p, tool_table *table) {
  if (!tool_table_print(table, p->file, p->colours)) {
    p->failed = true;
  }
}

size_t lcomm_page_codecs(const lcomm_page *p) {
  return p->results->options->codec_count;
}

/* ------------------------------------------------------------- prediction */

static void put_prediction(tool_table *table, const lcomm_result *result,
                           const lcomm_prediction_case *given) {
  const lcomm_prediction *prediction = &result->prediction;
  char text[TOOL_UNITS_TEXT_MAX], verdict[LCOMM_VERDICT_MAX];
  bool pays = prediction->pipelined_s < prediction->baseline_s;
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", result->codec->text);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_seconds(prediction->codec_s, text));
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_seconds(prediction->wire_s, text));
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_seconds(prediction->sequential_s, text));
  tool_table_put(table, TOOL_COLOUR_BOLD, "%s", tool_units_seconds(prediction->pipelined_s, text));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", prediction->fp32_s / prediction->pipelined_s);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", prediction->bf16_s / prediction->pipelined_s);
  tool_table_put(table, pays ? TOOL_COLOUR_GOOD : TOOL_COLOUR_BAD, "%s",
                 lcomm_predict_verdict(given, prediction, verdict));
}

static void print_baseline(const lcomm_page *p, const lcomm_prediction *prediction) {
  const lcomm_bench_options *o = p->results->options;
  char bandwidth[TOOL_UNITS_TEXT_MAX], fp32[TOOL_UNITS_TEXT_MAX], bf16[TOOL_UNITS_TEXT_MAX];
  char heading[160];
  snprintf(heading, sizeof heading, "Prediction for %llu values on %llu nodes with %s each",
           (unsigned long long)lcomm_dataset_count(p->results->dataset),
           (unsigned long long)o->nodes, tool_units_bandwidth(o->bandwidth, bandwidth));
  lcomm_page_title(p, heading);
  fprintf(p->file, "Exact on the wire: fp32 %s, bf16 %s; the baseline is %s.\n",
          tool_units_seconds(prediction->fp32_s, fp32),
          tool_units_seconds(prediction->bf16_s, bf16), lcomm_baseline_name(o->baseline));
}

static void print_predictions(lcomm_page *p) {
  static const char *const columns[] = {"codec",        "codec\ntime",    "wire\ntime",
                                        "in\nsequence", "in a\npipeline", "times\nfp32",
                                        "times\nbf16",  "does it pay?",   NULL};
  tool_table table = {.columns = columns, .sides = "LRRRRRRL"};
  const lcomm_prediction *first = NULL;
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    const lcomm_result *result = &p->results->codecs[i];
    if (!(result->prediction.pipelined_s > 0.0)) {
      continue;
    }
    lcomm_prediction_case given = lcomm_result_case(p->results, result);
    first = !first ? &result->prediction : first;
    tool_table_row(&table);
    put_prediction(&table, result, &given);
  }
  if (!first) {
    return;
  }
  print_baseline(p, first);
  lcomm_page_print(p, &table);
}

/* -------------------------------------------------------------------- all */

/* The name of a file may be anything. */
static void put_name(FILE *file, const char *name) {
  for (; *name != '\0'; name++) {
    fputc((unsigned char)*name < ' ' || *name == 0x7f ? '?' : *name, file);
  }
}

static void print_sources(const lcomm_page *p) {
  const lcomm_dataset *dataset = p->results->dataset;
  for (size_t i = 0; i < dataset->source_count; i++) {
    const lcomm_source_contents *contents = lcomm_source_contents_of(dataset->sources[i]);
    put_name(p->file, lcomm_source_name(dataset->sources[i]));
    fprintf(p->file, ": %llu values in %zu tensor%s", (unsigned long long)contents->count,
            contents->tensor_count, contents->tensor_count == 1 ? "" : "s");
    for (size_t s = 0; s < contents->skipped_count; s++) {
      fprintf(p->file, "%s%s (%s)", s == 0 ? "; skipped: " : ", ", contents->skipped[s].name,
              contents->skipped[s].why);
    }
    fputc('\n', p->file);
  }
}

/* The sentences are fit to be shown. */
static void print_unreadable(const lcomm_page *p) {
  const lcomm_dataset *dataset = p->results->dataset;
  for (size_t i = 0; i < dataset->unreadable_count; i++) {
    fprintf(p->file, "left out: %s\n", dataset->unreadable[i]);
  }
}

static void print_refusals(const lcomm_page *p) {
  for (size_t i = 0; i < lcomm_page_codecs(p); i++) {
    if (p->results->codecs[i].refusal[0] != '\0') {
      fprintf(p->file, "%s: %s\n", p->results->codecs[i].codec->text,
              p->results->codecs[i].refusal);
    }
  }
}

bool lcomm_report_print(const lcomm_results *results, FILE *file) {
  const lcomm_bench_options *options = results->options;
  lcomm_page p = {.results = results, .file = file, .colours = tool_table_colours(file)};
  print_sources(&p);
  print_unreadable(&p);
  lcomm_page_verdict(&p);
  if (options->bandwidth > 0.0) {
    print_predictions(&p);
  }
  if (options->quality) {
    lcomm_page_quality(&p);
  }
  if (options->per_tensor) {
    lcomm_page_tensors(&p);
  }
  if (options->steps > 0) {
    lcomm_page_steps(&p);
  }
  for (size_t i = 0; options->speed && i < options->size_count; i++) {
    lcomm_page_speed(&p, options->sizes[i]);
  }
  lcomm_page_comparisons(&p);
  print_refusals(&p);
  return !p.failed && fflush(file) == 0 && !ferror(file);
}
