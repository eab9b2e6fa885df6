/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/cuda/cuda_report.h"

#include <string.h>

#include "tools/common/tool_output.h"
#include "tools/common/tool_table.h"
#include "tools/common/tool_units.h"

static const char torch_case[] = "top-k against torch";

static bool is_written(FILE *file) {
  return fflush(file) == 0 && !ferror(file);
}

/* ------------------------------------------------------------------- table */

static void put_figure(tool_table *table, const lcomm_gpu_figure *figure) {
  char time[TOOL_UNITS_TEXT_MAX];
  tool_table_row(table);
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", figure->what->name);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", figure->bytes);
  if (figure->verdict == LCOMM_GPU_WRONG) {
    for (int column = 0; column < 6; column++) {
      tool_table_put(table, TOOL_COLOUR_NONE, "-");
    }
    tool_table_put(table, TOOL_COLOUR_BAD, "%s: %.120s", lcomm_gpu_verdict_name(figure->verdict),
                   figure->why);
    return;
  }
  tool_table_put(table, TOOL_COLOUR_NONE, "%s", tool_units_seconds(figure->seconds.median, time));
  tool_table_put(table, TOOL_COLOUR_NONE, "%.4g", figure->gb_s.median);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.4g", figure->copy_gb_s.median);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.3f", figure->of_copy.median);
  tool_table_put(table, TOOL_COLOUR_NONE, "%.2f..%.2f", figure->of_copy.min, figure->of_copy.max);
  if (figure->what->target > 0.0) {
    tool_table_put(table, TOOL_COLOUR_NONE, "%.2f", figure->what->target);
  } else {
    tool_table_put(table, TOOL_COLOUR_NONE, "-");
  }
  tool_table_put(table, figure->verdict == LCOMM_GPU_MET ? TOOL_COLOUR_GOOD : TOOL_COLOUR_BAD, "%s",
                 lcomm_gpu_verdict_name(figure->verdict));
}

static void print_head(const lcomm_gpu_results *results, FILE *file) {
  const lcomm_gpu_options *options = results->options;
  char memory[TOOL_UNITS_TEXT_MAX];
  fprintf(file,
          "%s (compute capability %d.%d, %s, CUDA driver %d.%d, runtime %d.%d)\n"
          "%llu values, %llu launches a sample, %llu samples, medians\n\n",
          results->facts.name, results->facts.major, results->facts.minor,
          tool_units_bytes(results->facts.memory_size, memory), results->driver / 1000,
          results->driver % 1000 / 10, results->runtime / 1000, results->runtime % 1000 / 10,
          (unsigned long long)options->count, (unsigned long long)options->launches,
          (unsigned long long)options->samples);
}

static void print_torch(const lcomm_gpu_results *results, FILE *file) {
  char time[TOOL_UNITS_TEXT_MAX];
  double times = lcomm_gpu_times_torch(results);
  if (!lcomm_gpu_torch_is_over(&results->torch)) {
    return;
  }
  if (!results->torch.measured) {
    fprintf(file, "%s: not measured: %s\n", torch_case, results->torch.why);
  } else if (times > 0.0) {
    fprintf(file, "%s: %s for topk, scatter and residual, %.3g times as long (target %g, %s)\n",
            torch_case, tool_units_seconds(results->torch.seconds.median, time), times,
            LCOMM_GPU_TORCH_TARGET, times >= LCOMM_GPU_TORCH_TARGET ? "met" : "missed");
  } else {
    fprintf(file, "%s: %s by torch, nothing to compare with\n", torch_case,
            tool_units_seconds(results->torch.seconds.median, time));
  }
}

bool lcomm_gpu_print(const lcomm_gpu_results *results, FILE *file) {
  static const char *const columns[] = {"kernel", "bytes\na value", "time",   "GB/s", "copy\nGB/s",
                                        "share",  "range",          "target", "",     NULL};
  tool_table table = {.columns = columns, .sides = "LRRRRRRRL"};
  size_t targets = 0, met = 0;
  print_head(results, file);
  for (size_t i = 0; i < results->figure_count; i++) {
    put_figure(&table, &results->figures[i]);
    targets += results->figures[i].what->target > 0.0;
    met += results->figures[i].verdict == LCOMM_GPU_MET;
  }
  bool good = tool_table_print(&table, file, tool_table_colours(file));
  print_torch(results, file);
  if (results->lost) {
    fputs("the device is lost to this process: the other cases were not tried\n", file);
  }
  fprintf(file, "met %zu of %zu\n", met, targets);
  return is_written(file) && good;
}

/* --------------------------------------------------------------------- CSV */

static void put_line(const lcomm_gpu_figure *f, FILE *file) {
  fprintf(file, "%s,", f->what->name);
  if (f->what->target > 0.0) {
    fprintf(file, "%g", f->what->target);
  }
  fprintf(file, ",%s,", lcomm_gpu_verdict_name(f->verdict));
  if (f->verdict == LCOMM_GPU_WRONG) {
    fprintf(file, ",,,%.9g,,,,,,", f->bytes);
  } else {
    fprintf(file, "%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,%.9g,", f->of_copy.median,
            f->of_copy.min, f->of_copy.max, f->bytes, f->seconds.median, f->seconds.min,
            f->seconds.max, f->gb_s.median, f->copy_gb_s.median);
  }
  tool_put_quoted(f->why, file);
  fputc('\n', file);
}

static void put_torch_line(const lcomm_gpu_results *results, FILE *file) {
  const lcomm_gpu_torch *torch = &results->torch;
  double times = lcomm_gpu_times_torch(results);
  fprintf(file, "%s,%g,", torch_case, LCOMM_GPU_TORCH_TARGET);
  if (times > 0.0) {
    fprintf(file, "%s,%.9g,,,,%.9g,%.9g,%.9g,,,",
            times >= LCOMM_GPU_TORCH_TARGET ? "met" : "missed", times, torch->seconds.median,
            torch->seconds.min, torch->seconds.max);
  } else {
    fputs("not measured,,,,,,,,,,", file);
  }
  tool_put_quoted(torch->measured && times <= 0.0 ? "top-k itself was not measured" : torch->why,
                  file);
  fputc('\n', file);
}

bool lcomm_gpu_csv(const lcomm_gpu_results *results, FILE *file) {
  fputs("case,target,verdict,share,share_min,share_max,bytes_per_value,seconds,seconds_min,"
        "seconds_max,gb_s,copy_gb_s,why\n",
        file);
  for (size_t i = 0; i < results->figure_count; i++) {
    put_line(&results->figures[i], file);
  }
  if (lcomm_gpu_torch_is_over(&results->torch)) {
    put_torch_line(results, file);
  }
  return is_written(file);
}

bool lcomm_gpu_list(const lcomm_gpu_options *options, FILE *file) {
  fputs("case,target\n", file);
  for (size_t i = 0; i < lcomm_gpu_case_count; i++) {
    if (lcomm_gpu_is_wanted(options, &lcomm_gpu_cases[i])) {
      fprintf(file, "%s,", lcomm_gpu_cases[i].name);
      if (lcomm_gpu_cases[i].target > 0.0) {
        fprintf(file, "%g", lcomm_gpu_cases[i].target);
      }
      fputc('\n', file);
    }
  }
  if (options->torch_script) {
    fprintf(file, "%s,%g\n", torch_case, LCOMM_GPU_TORCH_TARGET);
  }
  return is_written(file);
}
