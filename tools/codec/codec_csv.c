/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_csv.h"

#include <string.h>

#include "tools/common/tool_output.h"

/* What the figures of some lines have in common. */
typedef struct line_head {
  FILE *file;
  const char *section, *codec, *source, *tensor, *operation, *kernels;
  uint64_t size_bytes; /* 0: empty */
} line_head;

/* A field in quotes if it needs them. */
static void put_field(FILE *file, const char *text) {
  if (strpbrk(text, ",\"\r\n")) {
    tool_put_quoted(text, file);
  } else {
    fputs(text, file);
  }
}

static void put_head(const line_head *head, const char *figure) {
  const char *const fields[] = {head->section, head->codec,     head->source,
                                head->tensor,  head->operation, head->kernels};
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    put_field(head->file, fields[i] != NULL ? fields[i] : "");
    fputc(',', head->file);
  }
  if (head->size_bytes > 0) {
    fprintf(head->file, "%llu", (unsigned long long)head->size_bytes);
  }
  fprintf(head->file, ",%s,", figure);
}

static void put_number(const line_head *head, const char *figure, double value) {
  put_head(head, figure);
  fprintf(head->file, ",%.9g,\n", value);
}

static void put_spread(const line_head *head, const char *figure, tool_spread spread) {
  put_head(head, figure);
  fprintf(head->file, "%.9g,%.9g,%.9g\n", spread.min, spread.median, spread.max);
}

static void put_quality(const line_head *head, const lcomm_quality *q) {
  lcomm_named_figure figures[LCOMM_QUALITY_FIGURES];
  size_t count = lcomm_quality_figures(q, figures);
  for (size_t i = 0; i < count; i++) {
    put_number(head, figures[i].name, figures[i].value);
  }
}

static void put_speed(FILE *file, const char *codec, const lcomm_speed *speed) {
  line_head head = {.file = file,
                    .section = "speed",
                    .codec = codec,
                    .operation = lcomm_operation_name(speed->operation),
                    .kernels = speed->kernels->name,
                    .size_bytes = speed->size_bytes};
  put_spread(&head, "gb_s", speed->gb_s);
  put_spread(&head, "memcpy_gb_s", speed->memcpy_gb_s);
  put_spread(&head, "of_memcpy", speed->of_memcpy);
  put_spread(&head, "of_best", speed->of_best);
  if (!speed->roofline) {
    return;
  }
  put_spread(&head, "floor_gb_s", speed->roofline_gb_s);
  put_spread(&head, "of_floor", speed->of_roofline);
}

static void put_comparison(FILE *file, const char *codec, const lcomm_comparison *comparison) {
  line_head head = {.file = file,
                    .section = "duels",
                    .codec = codec,
                    .operation = comparison->name,
                    .kernels = comparison->kernels->name,
                    .size_bytes = comparison->size_bytes};
  put_spread(&head, "gb_s", comparison->gb_s);
  put_spread(&head, "rival_gb_s", comparison->other_gb_s);
  put_spread(&head, "times", comparison->times);
  if (comparison->ratio > 0.0) {
    put_number(&head, "ratio", comparison->ratio);
    put_number(&head, "rival_ratio", comparison->other_ratio);
  }
}

static void put_steps(const line_head *head, const lcomm_steps *steps) {
  double values = (double)steps->count * (double)steps->steps;
  put_number(head, "steps", (double)steps->steps);
  put_number(head, "nmse", lcomm_steps_nmse(steps));
  put_number(head, "bits_per_value", 8.0 * (double)steps->sent_bytes / values);
}

static void put_prediction(const line_head *head, const lcomm_prediction *prediction) {
  put_number(head, "codec_s", prediction->codec_s);
  put_number(head, "wire_s", prediction->wire_s);
  put_number(head, "sequential_s", prediction->sequential_s);
  put_number(head, "pipelined_s", prediction->pipelined_s);
  put_number(head, "fp32_s", prediction->fp32_s);
  put_number(head, "bf16_s", prediction->bf16_s);
  put_number(head, "pays_below_bytes_per_s", prediction->pipelined_pays_below);
}

static void put_codec(FILE *file, const lcomm_result *result) {
  const char *codec = result->codec->text;
  line_head head = {.file = file, .section = "accuracy", .codec = codec};
  if (result->quality.count > 0) {
    put_quality(&head, &result->quality);
  }
  for (size_t i = 0; i < result->tensor_count; i++) {
    const lcomm_tensor_quality *tensor = &result->tensors[i];
    head = (line_head){.file = file,
                       .section = "tensors",
                       .codec = codec,
                       .source = tensor->source,
                       .tensor = tensor->tensor};
    put_quality(&head, &tensor->quality);
  }
  head = (line_head){.file = file, .section = "steps", .codec = codec};
  if (result->steps.count > 0) {
    put_steps(&head, &result->steps);
  }
  for (size_t i = 0; i < result->speed_count; i++) {
    put_speed(file, codec, &result->speeds[i]);
  }
  for (size_t i = 0; i < result->comparison_count; i++) {
    put_comparison(file, codec, &result->comparisons[i]);
  }
  head.section = "prediction";
  if (result->prediction.pipelined_s > 0.0) {
    put_prediction(&head, &result->prediction);
  }
}

bool lcomm_csv_print(const lcomm_results *results, FILE *file) {
  fputs("section,codec,source,tensor,operation,kernels,size_bytes,figure,min,median,max\n", file);
  for (size_t i = 0; i < results->options->codec_count; i++) {
    put_codec(file, &results->codecs[i]);
  }
  return fflush(file) == 0 && !ferror(file);
}
