/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The report for programs. */

#include <cjson/cJSON.h>
#include <string.h>

#include "tools/cuda/cuda_report.h"

/* cJSON takes NULL where it could not make something, and says so again; the
 * last word is whether all could be printed. */
typedef struct writer {
  bool broken;
} writer;

static void put_number(writer *w, cJSON *object, const char *key, double value) {
  w->broken |= !cJSON_AddNumberToObject(object, key, value);
}

static void put_text(writer *w, cJSON *object, const char *key, const char *text) {
  w->broken |= !cJSON_AddStringToObject(object, key, text);
}

static cJSON *add_object(writer *w, cJSON *parent, const char *key) {
  cJSON *made = cJSON_AddObjectToObject(parent, key);
  w->broken |= !made;
  return made;
}

static void put_spread(writer *w, cJSON *object, const char *key, tool_spread spread) {
  cJSON *inner = add_object(w, object, key);
  put_number(w, inner, "min", spread.min);
  put_number(w, inner, "median", spread.median);
  put_number(w, inner, "max", spread.max);
}

static void put_version(writer *w, cJSON *object, const char *key, int version) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
  put_text(w, object, key, text);
}

static void put_device(writer *w, cJSON *root, const lcomm_gpu_results *results) {
  cJSON *device = add_object(w, root, "device");
  char capability[32];
  snprintf(capability, sizeof capability, "%d.%d", results->facts.major, results->facts.minor);
  put_text(w, device, "name", results->facts.name);
  put_text(w, device, "compute_capability", capability);
  put_number(w, device, "memory_bytes", (double)results->facts.memory_size);
  put_version(w, device, "driver", results->driver);
  put_version(w, device, "runtime", results->runtime);
}

static void put_figure(writer *w, cJSON *object, const lcomm_gpu_figure *figure) {
  put_text(w, object, "case", figure->what->name);
  put_number(w, object, "bytes_per_value", figure->bytes);
  if (figure->what->target > 0.0) {
    put_number(w, object, "target", figure->what->target);
  }
  put_text(w, object, "verdict", lcomm_gpu_verdict_name(figure->verdict));
  if (figure->verdict == LCOMM_GPU_WRONG) {
    put_text(w, object, "why", figure->why);
    return;
  }
  put_spread(w, object, "share", figure->of_copy);
  put_spread(w, object, "seconds", figure->seconds);
  put_spread(w, object, "gb_s", figure->gb_s);
  put_spread(w, object, "copy_gb_s", figure->copy_gb_s);
}

static void put_torch(writer *w, cJSON *root, const lcomm_gpu_results *results) {
  cJSON *torch = add_object(w, root, "torch");
  double times = lcomm_gpu_times_torch(results);
  put_number(w, torch, "target", LCOMM_GPU_TORCH_TARGET);
  if (results->torch.measured) {
    put_spread(w, torch, "seconds", results->torch.seconds);
  } else {
    put_text(w, torch, "why", results->torch.why);
  }
  if (times > 0.0) {
    put_number(w, torch, "times", times);
  }
}

static void put_all(writer *w, cJSON *root, const lcomm_gpu_results *results) {
  put_device(w, root, results);
  put_number(w, root, "count", (double)results->options->count);
  put_number(w, root, "samples", (double)results->options->samples);
  put_number(w, root, "launches", (double)results->options->launches);
  cJSON *cases = cJSON_AddArrayToObject(root, "cases");
  for (size_t i = 0; i < results->figure_count; i++) {
    cJSON *made = cJSON_CreateObject();
    if (!cJSON_AddItemToArray(cases, made)) {
      cJSON_Delete(made);
      w->broken = true;
      return;
    }
    put_figure(w, made, &results->figures[i]);
  }
  if (lcomm_gpu_torch_is_over(&results->torch)) {
    put_torch(w, root, results);
  }
}

bool lcomm_gpu_json(const lcomm_gpu_results *results, FILE *file) {
  writer w = {false};
  cJSON *root = cJSON_CreateObject();
  put_all(&w, root, results);
  char *text = cJSON_Print(root);
  bool good = text != NULL && !w.broken && fputs(text, file) >= 0 && fputc('\n', file) != EOF;
  cJSON_free(text);
  cJSON_Delete(root);
  return fflush(file) == 0 && good && !ferror(file);
}
