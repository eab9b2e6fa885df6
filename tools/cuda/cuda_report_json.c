/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The report for programs. */

#include "tools/common/tool_origin.h"
#include "tools/cuda/cuda_report.h"

static void put_version(tool_json *w, cJSON *object, const char *key, int version) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d", version / 1000, version % 1000 / 10);
  tool_json_text(w, object, key, text);
}

static void put_device(tool_json *w, cJSON *root, const lcomm_gpu_results *results) {
  cJSON *device = tool_json_object(w, root, "device");
  char capability[32];
  snprintf(capability, sizeof capability, "%d.%d", results->facts.major, results->facts.minor);
  tool_json_text(w, device, "name", results->facts.name);
  tool_json_text(w, device, "compute_capability", capability);
  tool_json_number(w, device, "memory_bytes", (double)results->facts.memory_size);
  put_version(w, device, "driver", results->driver);
  put_version(w, device, "runtime", results->runtime);
}

static void put_figure(tool_json *w, cJSON *object, const lcomm_gpu_figure *figure) {
  tool_json_text(w, object, "case", figure->what->name);
  tool_json_number(w, object, "bytes_per_value", figure->bytes);
  if (figure->what->target > 0.0) {
    tool_json_number(w, object, "target", figure->what->target);
  }
  tool_json_text(w, object, "verdict", lcomm_gpu_verdict_name(figure->verdict));
  if (figure->verdict == LCOMM_GPU_WRONG) {
    tool_json_text(w, object, "why", figure->why);
    return;
  }
  tool_json_spread(w, object, "share", figure->of_copy);
  tool_json_spread(w, object, "seconds", figure->seconds);
  tool_json_spread(w, object, "gb_s", figure->gb_s);
  tool_json_spread(w, object, "copy_gb_s", figure->copy_gb_s);
}

static void put_torch(tool_json *w, cJSON *root, const lcomm_gpu_results *results) {
  cJSON *torch = tool_json_object(w, root, "torch");
  double times = lcomm_gpu_times_torch(results);
  tool_json_number(w, torch, "target", LCOMM_GPU_TORCH_TARGET);
  if (results->torch.measured) {
    tool_json_spread(w, torch, "seconds", results->torch.seconds);
  } else {
    tool_json_text(w, torch, "why", results->torch.why);
  }
  if (times > 0.0) {
    tool_json_number(w, torch, "times", times);
  }
}

bool lcomm_gpu_json(const lcomm_gpu_results *results, FILE *file) {
  tool_json w = tool_json_begin();
  tool_origin_put_here(&w, w.root);
  put_device(&w, w.root, results);
  tool_json_number(&w, w.root, "count", (double)results->options->count);
  tool_json_number(&w, w.root, "samples", (double)results->options->samples);
  tool_json_number(&w, w.root, "launches", (double)results->options->launches);
  cJSON *cases = tool_json_array(&w, w.root, "cases");
  for (size_t i = 0; i < results->figure_count; i++) {
    put_figure(&w, tool_json_object(&w, cases, NULL), &results->figures[i]);
  }
  if (lcomm_gpu_torch_is_over(&results->torch)) {
    put_torch(&w, w.root, results);
  }
  return tool_json_end(&w, file);
}
