/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_plot.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/codec/codec_plot_panel.h"
#include "tools/common/tool_units.h"

enum { HEIGHT = 820, PANEL_WIDTH = 900, TITLE_MAX = 256 };

bool lcomm_plot_available(void) {
  return system("command -v gnuplot >/dev/null 2>&1") == 0;
}

/* One colour for each kind of codec. */
static const char *colour_of(const lcomm_codec *codec) {
  switch (codec->id) {
  case LCOMM_CODEC_NONE:
    return "#555555";
  case LCOMM_CODEC_FP16:
  case LCOMM_CODEC_BF16:
    return "#1f77b4";
  case LCOMM_CODEC_FP8E4M3:
  case LCOMM_CODEC_FP8E5M2:
    return "#d95f02";
  case LCOMM_CODEC_INT8:
  case LCOMM_CODEC_INT4:
  case LCOMM_CODEC_INT2:
  case LCOMM_CODEC_SIGN:
    return "#2a9d4e";
  case LCOMM_CODEC_TOPK:
    return "#7a3fb0";
  }
  return "#000000";
}

static void add_distortion(const lcomm_result *result, lcomm_panel *panel) {
  double nmse = lcomm_quality_nmse(&result->quality), bits = lcomm_quality_bits(&result->quality);
  if (!(bits > 0.0) || !isfinite(nmse)) {
    return;
  }
  lcomm_mark mark = {.name = result->codec->text,
                     .colour = colour_of(result->codec->choice.format.codec),
                     .x = bits,
                     .y = nmse};
  lcomm_panel_add(panel, &mark);
}

static void add_throughput(const lcomm_result *result, lcomm_panel *panel) {
  const lcomm_speed *encode = lcomm_result_speed(result, LCOMM_OPERATION_ENCODE);
  const lcomm_speed *decode = lcomm_result_speed(result, LCOMM_OPERATION_DECODE);
  double ratio = lcomm_quality_ratio(&result->quality);
  if (!encode || !decode || !(ratio > 0.0)) {
    return;
  }
  lcomm_mark mark = {.name = result->codec->text,
                     .colour = colour_of(result->codec->choice.format.codec),
                     .x = ratio,
                     .y = encode->gb_s.median,
                     .second = decode->gb_s.median};
  lcomm_panel_add(panel, &mark);
}

static void draw_distortion(const lcomm_results *results, size_t panels, FILE *script) {
  lcomm_panel panel = {.title = "Rate against distortion",
                       .x_label = "bits sent for a value",
                       .y_label = "NMSE (mean squared error / mean square)",
                       .zero_label = "exact",
                       .number = 0,
                       .panels = panels,
                       .canvas_width = (double)(panels * PANEL_WIDTH),
                       .canvas_height = HEIGHT};
  for (size_t i = 0; i < results->options->codec_count; i++) {
    add_distortion(&results->codecs[i], &panel);
  }
  lcomm_panel_draw(&panel, script);
}

static void draw_throughput(const lcomm_results *results, FILE *script) {
  const lcomm_bench_options *o = results->options;
  char y_label[TITLE_MAX], size[TOOL_UNITS_TEXT_MAX];
  snprintf(y_label, sizeof y_label, "GB/s of float32 (%s, %s, %llu thread%s)",
           o->tables[o->table_count - 1]->name, tool_units_bytes(o->sizes[o->size_count - 1], size),
           (unsigned long long)o->threads, o->threads == 1 ? "" : "s");
  lcomm_panel panel = {
      .title = "Throughput against ratio",
      .x_label = "compression ratio (float32 bytes / bytes sent), equal ones side by side",
      .y_label = y_label,
      .first_key = "encode",
      .second_key = "decode",
      .number = 1,
      .panels = 2,
      .canvas_width = 2.0 * PANEL_WIDTH,
      .canvas_height = HEIGHT};
  for (size_t i = 0; i < o->codec_count; i++) {
    add_throughput(&results->codecs[i], &panel);
  }
  lcomm_panel_draw(&panel, script);
}

/* The sources' names, as far as they fit. */
static void put_title(const lcomm_results *results, FILE *script) {
  const lcomm_dataset *dataset = results->dataset;
  char title[TITLE_MAX];
  int used = snprintf(title, sizeof title, "codec_bench: %llu values of %.80s",
                      (unsigned long long)lcomm_dataset_count(dataset),
                      lcomm_source_name(dataset->sources[0]));
  if (dataset->source_count > 1 && used > 0 && (size_t)used < sizeof title) {
    snprintf(title + used, sizeof title - (size_t)used, " and %zu more", dataset->source_count - 1);
  }
  fputs("set multiplot title ", script);
  lcomm_panel_quote(title, script);
  fputs(" font ',15' noenhanced\n", script);
}

void lcomm_plot_script(const lcomm_results *results, const char *path, FILE *script) {
  size_t panels = results->options->speed ? 2 : 1, length = strlen(path);
  bool png = length > 4 && strcmp(path + length - 4, ".png") == 0;
  fprintf(script, "set terminal %s size %zu,%d font 'sans,%d' enhanced background '#ffffff'\n",
          png ? "pngcairo" : "svg", panels * PANEL_WIDTH, HEIGHT, png ? 11 : 13);
  fputs("set encoding utf8\nset output ", script);
  lcomm_panel_quote(path, script);
  fputc('\n', script);
  put_title(results, script);
  draw_distortion(results, panels, script);
  if (panels == 2) {
    draw_throughput(results, script);
  }
  fputs("unset multiplot\nunset output\n", script);
}

bool lcomm_plot_draw(const lcomm_results *results, const char *path) {
  FILE *gnuplot = popen("gnuplot", "w");
  if (!gnuplot) {
    return false;
  }
  lcomm_plot_script(results, path, gnuplot);
  return pclose(gnuplot) == 0;
}
