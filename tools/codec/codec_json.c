/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_json.h"

#include <cjson/cJSON.h>

#include "tools/codec/codec_roofline.h"

/* cJSON takes NULL where it could not make something, and says so again; the
 * last word is whether all could be printed. */
typedef struct writer {
  bool broken;
} writer;

static cJSON *add_object(writer *w, cJSON *parent, const char *key) {
  cJSON *made = cJSON_AddObjectToObject(parent, key);
  w->broken |= !made;
  return made;
}

static cJSON *add_array(writer *w, cJSON *parent, const char *key) {
  cJSON *made = cJSON_AddArrayToObject(parent, key);
  w->broken |= !made;
  return made;
}

static cJSON *append_object(writer *w, cJSON *array) {
  cJSON *made = cJSON_CreateObject();
  if (made && cJSON_AddItemToArray(array, made)) {
    return made;
  }
  cJSON_Delete(made);
  w->broken = true;
  return NULL;
}

static void put_number(writer *w, cJSON *object, const char *key, double value) {
  w->broken |= !cJSON_AddNumberToObject(object, key, value);
}

static void put_text(writer *w, cJSON *object, const char *key, const char *text) {
  w->broken |= !cJSON_AddStringToObject(object, key, text);
}

/* The name of a file may be anything, in JSON it has to be UTF-8. */
static void put_file_name(writer *w, cJSON *object, const char *key, const char *text) {
  char clean[1024];
  snprintf(clean, sizeof clean, "%s", text);
  for (char *c = clean; *c != '\0'; c++) {
    if ((unsigned char)*c >= 0x80) {
      *c = '?';
    }
  }
  put_text(w, object, key, clean);
}

static void put_spread(writer *w, cJSON *object, const char *key, tool_spread spread) {
  cJSON *inner = add_object(w, object, key);
  put_number(w, inner, "min", spread.min);
  put_number(w, inner, "median", spread.median);
  put_number(w, inner, "max", spread.max);
}

static void put_quality(writer *w, cJSON *object, const lcomm_quality *q) {
  put_number(w, object, "values", (double)q->count);
  put_number(w, object, "sent_bytes", (double)q->sent_bytes);
  put_number(w, object, "ratio", lcomm_quality_ratio(q));
  put_number(w, object, "bits_per_value", lcomm_quality_bits(q));
  put_number(w, object, "limit_bits_per_value", lcomm_quality_limit(q));
  put_number(w, object, "nmse", lcomm_quality_nmse(q));
  put_number(w, object, "cosine", lcomm_quality_cosine(q));
  put_number(w, object, "error_max", q->error_max);
  put_number(w, object, "given_max", q->given_max);
  put_number(w, object, "flushed_share", lcomm_quality_flushed(q));
  put_number(w, object, "not_finite_in", (double)q->not_finite_in);
  put_number(w, object, "not_finite_out", (double)q->not_finite_out);
  if (q->entries == 0) {
    return;
  }
  put_number(w, object, "entries", (double)q->entries);
  put_number(w, object, "index_bits", lcomm_quality_index_bits(q));
  put_number(w, object, "sent_index_bits", lcomm_quality_sent_index_bits(q));
  put_number(w, object, "entry_bits", lcomm_quality_entry_bits(q));
}

static void put_tensors(writer *w, cJSON *codec, const lcomm_result *result) {
  cJSON *array = add_array(w, codec, "tensors");
  for (size_t i = 0; i < result->tensor_count; i++) {
    cJSON *object = append_object(w, array);
    put_file_name(w, object, "source", result->tensors[i].source);
    put_text(w, object, "tensor", result->tensors[i].tensor);
    put_quality(w, object, &result->tensors[i].quality);
  }
}

static void put_steps(writer *w, cJSON *codec, const lcomm_steps *steps) {
  cJSON *object = add_object(w, codec, "steps");
  double values = (double)steps->count * (double)steps->steps;
  put_number(w, object, "steps", (double)steps->steps);
  put_number(w, object, "nmse", lcomm_steps_nmse(steps));
  put_number(w, object, "bits_per_value", 8.0 * (double)steps->sent_bytes / values);
}

static void put_speed(writer *w, cJSON *array, const lcomm_speed *speed) {
  cJSON *object = append_object(w, array);
  put_text(w, object, "operation", lcomm_operation_name(speed->operation));
  put_text(w, object, "kernels", speed->kernels->name);
  put_number(w, object, "size_bytes", (double)speed->size_bytes);
  put_spread(w, object, "gb_s", speed->gb_s);
  put_spread(w, object, "memcpy_gb_s", speed->memcpy_gb_s);
  put_spread(w, object, "of_memcpy", speed->of_memcpy);
  put_spread(w, object, "of_best", speed->of_best);
  if (!speed->roofline) {
    return;
  }
  put_text(w, object, "floor", speed->roofline);
  put_spread(w, object, "floor_gb_s", speed->roofline_gb_s);
  put_spread(w, object, "of_floor", speed->of_roofline);
}

static void put_comparison(writer *w, cJSON *array, const lcomm_comparison *comparison) {
  cJSON *object = append_object(w, array);
  put_text(w, object, "name", comparison->name);
  put_text(w, object, "rival", comparison->other);
  put_text(w, object, "kernels", comparison->kernels->name);
  put_number(w, object, "size_bytes", (double)comparison->size_bytes);
  put_spread(w, object, "gb_s", comparison->gb_s);
  put_spread(w, object, "rival_gb_s", comparison->other_gb_s);
  put_spread(w, object, "times", comparison->times);
  if (comparison->ratio > 0.0) {
    put_number(w, object, "ratio", comparison->ratio);
    put_number(w, object, "rival_ratio", comparison->other_ratio);
  }
}

static void put_prediction(writer *w, cJSON *codec, const lcomm_results *results,
                           const lcomm_result *result) {
  const lcomm_prediction *p = &result->prediction;
  lcomm_prediction_case given = lcomm_result_case(results, result);
  char verdict[LCOMM_VERDICT_MAX];
  cJSON *object = add_object(w, codec, "prediction");
  put_text(w, object, "baseline", lcomm_baseline_name(given.baseline));
  put_number(w, object, "bandwidth_bytes_per_s", given.bandwidth);
  put_number(w, object, "nodes", (double)given.nodes);
  put_number(w, object, "codec_s", p->codec_s);
  put_number(w, object, "wire_s", p->wire_s);
  put_number(w, object, "sequential_s", p->sequential_s);
  put_number(w, object, "pipelined_s", p->pipelined_s);
  put_number(w, object, "fp32_s", p->fp32_s);
  put_number(w, object, "bf16_s", p->bf16_s);
  put_number(w, object, "pays_below_bytes_per_s", p->pipelined_pays_below);
  put_text(w, object, "verdict", lcomm_predict_verdict(&given, p, verdict));
}

static void put_codec(writer *w, cJSON *array, const lcomm_results *results,
                      const lcomm_result *result) {
  cJSON *object = append_object(w, array);
  put_text(w, object, "codec", result->codec->text);
  if (result->quality.count > 0) {
    put_quality(w, add_object(w, object, "accuracy"), &result->quality);
  }
  if (result->tensor_count > 0) {
    put_tensors(w, object, result);
  }
  if (result->steps.count > 0) {
    put_steps(w, object, &result->steps);
  }
  cJSON *speeds = result->speed_count > 0 ? add_array(w, object, "speed") : NULL;
  for (size_t i = 0; i < result->speed_count; i++) {
    put_speed(w, speeds, &result->speeds[i]);
  }
  cJSON *comparisons = result->comparison_count > 0 ? add_array(w, object, "duels") : NULL;
  for (size_t i = 0; i < result->comparison_count; i++) {
    put_comparison(w, comparisons, &result->comparisons[i]);
  }
  if (result->prediction.pipelined_s > 0.0) {
    put_prediction(w, object, results, result);
  }
  if (result->refusal[0] != '\0') {
    put_text(w, object, "refusal", result->refusal);
  }
}

static void put_source(writer *w, cJSON *array, const lcomm_source *source) {
  const lcomm_source_contents *contents = lcomm_source_contents_of(source);
  cJSON *object = append_object(w, array);
  put_file_name(w, object, "name", lcomm_source_name(source));
  put_number(w, object, "values", (double)contents->count);
  put_number(w, object, "tensors", (double)contents->tensor_count);
  put_number(w, object, "skipped", (double)contents->skipped_count);
}

static void put_run(writer *w, cJSON *root, const lcomm_bench_options *options) {
  put_text(w, root, "tool", "codec_bench");
  put_text(w, root, "floors", lcomm_roofline_instructions());
  put_number(w, root, "threads", (double)options->threads);
  put_number(w, root, "repetitions", (double)options->repetitions);
  cJSON *kernels = add_array(w, root, "kernels");
  for (size_t i = 0; i < options->table_count; i++) {
    w->broken |= !cJSON_AddItemToArray(kernels, cJSON_CreateString(options->tables[i]->name));
  }
}

bool lcomm_json_print(const lcomm_results *results, FILE *file) {
  writer w = {0};
  cJSON *root = cJSON_CreateObject();
  put_run(&w, root, results->options);
  cJSON *sources = add_array(&w, root, "sources");
  for (size_t i = 0; i < results->dataset->source_count; i++) {
    put_source(&w, sources, results->dataset->sources[i]);
  }
  cJSON *unreadable = add_array(&w, root, "left_out");
  for (size_t i = 0; i < results->dataset->unreadable_count; i++) {
    cJSON *sentence = cJSON_CreateString(results->dataset->unreadable[i]);
    w.broken |= !cJSON_AddItemToArray(unreadable, sentence);
  }
  cJSON *codecs = add_array(&w, root, "codecs");
  for (size_t i = 0; i < results->options->codec_count; i++) {
    put_codec(&w, codecs, results, &results->codecs[i]);
  }
  char *text = w.broken ? NULL : cJSON_Print(root);
  bool good = text != NULL && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
  cJSON_free(text);
  cJSON_Delete(root);
  return good && fflush(file) == 0;
}
