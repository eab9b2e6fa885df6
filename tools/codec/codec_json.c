/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_json.h"

#include "tools/codec/codec_roofline.h"
#include "tools/common/tool_origin.h"

/* The name of a file may be anything, in JSON it has to be UTF-8. */
static void put_file_name(tool_json *w, cJSON *object, const char *key, const char *text) {
  char clean[1024];
  snprintf(clean, sizeof clean, "%s", text);
  for (char *c = clean; *c != '\0'; c++) {
    if ((unsigned char)*c >= 0x80) {
      *c = '?';
    }
  }
  tool_json_text(w, object, key, clean);
}

static void put_quality(tool_json *w, cJSON *object, const lcomm_quality *q) {
  lcomm_named_figure figures[LCOMM_QUALITY_FIGURES];
  size_t count = lcomm_quality_figures(q, figures);
  for (size_t i = 0; i < count; i++) {
    tool_json_number(w, object, figures[i].name, figures[i].value);
  }
}

static void put_tensors(tool_json *w, cJSON *codec, const lcomm_result *result) {
  cJSON *array = tool_json_array(w, codec, "tensors");
  for (size_t i = 0; i < result->tensor_count; i++) {
    cJSON *object = tool_json_object(w, array, NULL);
    put_file_name(w, object, "source", result->tensors[i].source);
    tool_json_text(w, object, "tensor", result->tensors[i].tensor);
    put_quality(w, object, &result->tensors[i].quality);
  }
}

static void put_steps(tool_json *w, cJSON *codec, const lcomm_steps *steps) {
  cJSON *object = tool_json_object(w, codec, "steps");
  double values = (double)steps->count * (double)steps->steps;
  tool_json_number(w, object, "steps", (double)steps->steps);
  tool_json_number(w, object, "nmse", lcomm_steps_nmse(steps));
  tool_json_number(w, object, "bits_per_value", 8.0 * (double)steps->sent_bytes / values);
}

static void put_speed(tool_json *w, cJSON *array, const lcomm_speed *speed) {
  cJSON *object = tool_json_object(w, array, NULL);
  tool_json_text(w, object, "operation", lcomm_operation_name(speed->operation));
  tool_json_text(w, object, "kernels", speed->kernels->name);
  tool_json_number(w, object, "size_bytes", (double)speed->size_bytes);
  tool_json_spread(w, object, "gb_s", speed->gb_s);
  tool_json_spread(w, object, "memcpy_gb_s", speed->memcpy_gb_s);
  tool_json_spread(w, object, "of_memcpy", speed->of_memcpy);
  tool_json_spread(w, object, "of_best", speed->of_best);
  if (!speed->roofline) {
    return;
  }
  tool_json_text(w, object, "floor", speed->roofline);
  tool_json_spread(w, object, "floor_gb_s", speed->roofline_gb_s);
  tool_json_spread(w, object, "of_floor", speed->of_roofline);
}

static void put_comparison(tool_json *w, cJSON *array, const lcomm_comparison *comparison) {
  cJSON *object = tool_json_object(w, array, NULL);
  tool_json_text(w, object, "name", comparison->name);
  tool_json_text(w, object, "rival", comparison->other);
  tool_json_text(w, object, "kernels", comparison->kernels->name);
  tool_json_number(w, object, "size_bytes", (double)comparison->size_bytes);
  tool_json_spread(w, object, "gb_s", comparison->gb_s);
  tool_json_spread(w, object, "rival_gb_s", comparison->other_gb_s);
  tool_json_spread(w, object, "times", comparison->times);
  if (comparison->ratio > 0.0) {
    tool_json_number(w, object, "ratio", comparison->ratio);
    tool_json_number(w, object, "rival_ratio", comparison->other_ratio);
  }
}

static void put_prediction(tool_json *w, cJSON *codec, const lcomm_results *results,
                           const lcomm_result *result) {
  const lcomm_prediction *p = &result->prediction;
  lcomm_prediction_case given = lcomm_result_case(results, result);
  char verdict[LCOMM_VERDICT_MAX];
  cJSON *object = tool_json_object(w, codec, "prediction");
  tool_json_text(w, object, "baseline", lcomm_baseline_name(given.baseline));
  tool_json_number(w, object, "bandwidth_bytes_per_s", given.bandwidth);
  tool_json_number(w, object, "nodes", (double)given.nodes);
  tool_json_number(w, object, "codec_s", p->codec_s);
  tool_json_number(w, object, "wire_s", p->wire_s);
  tool_json_number(w, object, "sequential_s", p->sequential_s);
  tool_json_number(w, object, "pipelined_s", p->pipelined_s);
  tool_json_number(w, object, "fp32_s", p->fp32_s);
  tool_json_number(w, object, "bf16_s", p->bf16_s);
  tool_json_number(w, object, "pays_below_bytes_per_s", p->pipelined_pays_below);
  tool_json_text(w, object, "verdict", lcomm_predict_verdict(&given, p, verdict));
}

static void put_codec(tool_json *w, cJSON *array, const lcomm_results *results,
                      const lcomm_result *result) {
  cJSON *object = tool_json_object(w, array, NULL);
  tool_json_text(w, object, "codec", result->codec->text);
  if (result->quality.count > 0) {
    put_quality(w, tool_json_object(w, object, "accuracy"), &result->quality);
  }
  if (result->tensor_count > 0) {
    put_tensors(w, object, result);
  }
  if (result->steps.count > 0) {
    put_steps(w, object, &result->steps);
  }
  cJSON *speeds = result->speed_count > 0 ? tool_json_array(w, object, "speed") : NULL;
  for (size_t i = 0; i < result->speed_count; i++) {
    put_speed(w, speeds, &result->speeds[i]);
  }
  cJSON *comparisons = result->comparison_count > 0 ? tool_json_array(w, object, "duels") : NULL;
  for (size_t i = 0; i < result->comparison_count; i++) {
    put_comparison(w, comparisons, &result->comparisons[i]);
  }
  if (result->prediction.pipelined_s > 0.0) {
    put_prediction(w, object, results, result);
  }
  if (result->refusal[0] != '\0') {
    tool_json_text(w, object, "refusal", result->refusal);
  }
}

static void put_source(tool_json *w, cJSON *array, const lcomm_source *source) {
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  cJSON *object = tool_json_object(w, array, NULL);
  put_file_name(w, object, "name", lcomm_source_name(source));
  tool_json_number(w, object, "values", (double)contents->count);
  tool_json_number(w, object, "tensors", (double)contents->tensor_count);
  tool_json_number(w, object, "skipped", (double)contents->skipped_count);
}

static void put_run(tool_json *w, const lcomm_bench_options *options) {
  tool_json_text(w, w->root, "tool", "codec_bench");
  tool_origin_put_here(w, w->root);
  tool_json_text(w, w->root, "floors", lcomm_roofline_instructions());
  tool_json_number(w, w->root, "threads", (double)options->threads);
  tool_json_number(w, w->root, "repetitions", (double)options->repetitions);
  tool_json_number(w, w->root, "owners", (double)options->owners);
  tool_json_text(w, w->root, "pages", options->pages == TOOL_PAGES_HUGE ? "huge" : "usual");
  cJSON *kernels = tool_json_array(w, w->root, "kernels");
  for (size_t i = 0; i < options->table_count; i++) {
    tool_json_text(w, kernels, NULL, options->tables[i]->name);
  }
}

bool lcomm_json_print(const lcomm_results *results, FILE *file) {
  const lcomm_dataset *dataset = results->dataset;
  tool_json w = tool_json_begin();
  put_run(&w, results->options);
  cJSON *sources = tool_json_array(&w, w.root, "sources");
  for (size_t i = 0; i < dataset->source_count; i++) {
    put_source(&w, sources, dataset->sources[i]);
  }
  cJSON *unreadable = tool_json_array(&w, w.root, "left_out");
  for (size_t i = 0; i < dataset->unreadable_count; i++) {
    tool_json_text(&w, unreadable, NULL, dataset->unreadable[i]);
  }
  cJSON *codecs = tool_json_array(&w, w.root, "codecs");
  for (size_t i = 0; i < results->options->codec_count; i++) {
    put_codec(&w, codecs, results, &results->codecs[i]);
  }
  return tool_json_end(&w, file);
}
