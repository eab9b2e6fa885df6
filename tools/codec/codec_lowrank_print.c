/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_lowrank.h"
#include "tools/common/tool_table.h"

typedef unsigned long long whole;

bool lcomm_lowrank_print(const lcomm_bench_options *options, const lcomm_lowrank_speed *speeds,
                         FILE *file) {
  static const char *const columns[] = {
      "kernels",    "project\n(ms)", "orthonormalise\n(ms)", "project back\n(ms)", "expand\n(ms)",
      "step\n(ms)", "m += g\n(ms)",  "passes\nmin",          "passes\nmedian",     "passes\nmax",
      NULL};
  const lcomm_matrix_shape *is = &options->matrix;
  fprintf(
      file,
      "Low rank: %llu x %llu, rank %llu, %llu thread%s; %.4g times fewer bytes than float32\n\n",
      (whole)is->rows, (whole)is->columns, (whole)is->rank, (whole)options->threads,
      options->threads == 1 ? "" : "s", lcomm_lowrank_ratio(is));
  tool_table table = {.columns = columns, .sides = "LRRRRRRRRR"};
  for (size_t t = 0; t < options->table_count; t++) {
    const lcomm_lowrank_speed *s = &speeds[t];
    tool_table_row(&table);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%s", s->kernels->name);
    for (size_t part = 0; part < LCOMM_LOWRANK_PARTS; part++) {
      tool_table_put(&table, TOOL_COLOUR_NONE, "%.3f", 1e3 * s->part_s[part].median);
    }
    tool_table_put(&table, TOOL_COLOUR_NONE, "%.3f", 1e3 * s->step_s.median);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%.3f", 1e3 * s->pass_s.median);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%.2f", s->passes.min);
    tool_table_put(&table, TOOL_COLOUR_BOLD, "%.2f", s->passes.median);
    tool_table_put(&table, TOOL_COLOUR_NONE, "%.2f", s->passes.max);
  }
  return tool_table_print(&table, file, tool_table_colours(file)) && !ferror(file);
}

static double bits_a_value(const lcomm_steps *steps) {
  return 8.0 * (double)steps->sent_bytes / ((double)steps->count * (double)steps->steps);
}

bool lcomm_lowrank_print_errors(const lcomm_bench_options *options,
                                const lcomm_lowrank_errors *errors, FILE *file) {
  static const char *const columns[] = {
      "low rank",           "matrices", "of all values\n(%)", "bits a value", "NMSE\nof one step",
      "NMSE\nof all steps", NULL};
  const lcomm_steps *all = &errors->all;
  tool_table table = {.columns = columns, .sides = "LRRRRR"};
  fprintf(file,
          "%llu steps with feedback, of each source by itself; what is no matrix is exact\n\n",
          (whole)all->steps);
  tool_table_row(&table);
  tool_table_put(&table, TOOL_COLOUR_NONE, "lowrank:%llu", (whole)options->matrix.rank);
  tool_table_put(&table, TOOL_COLOUR_NONE, "%llu", (whole)errors->matrices);
  tool_table_put(&table, TOOL_COLOUR_NONE, "%.1f",
                 100.0 * (double)errors->covered / (double)all->count);
  tool_table_put(&table, TOOL_COLOUR_NONE, "%.3g", bits_a_value(all));
  tool_table_put(&table, TOOL_COLOUR_NONE, "%.3g", lcomm_steps_nmse(&errors->first));
  tool_table_put(&table, TOOL_COLOUR_BOLD, "%.3g", lcomm_steps_nmse(all));
  return tool_table_print(&table, file, tool_table_colours(file)) && !ferror(file);
}

bool lcomm_lowrank_print_errors_csv(const lcomm_bench_options *options,
                                    const lcomm_lowrank_errors *errors, FILE *file) {
  whole rank = options->matrix.rank;
  fputs("section,codec,source,tensor,operation,kernels,size_bytes,figure,min,median,max\n", file);
  fprintf(file, "accuracy,lowrank:%llu,,,,,,nmse,,%.9g,\n", rank, lcomm_steps_nmse(&errors->first));
  fprintf(file, "steps,lowrank:%llu,,,,,,steps,,%llu,\n", rank, (whole)errors->all.steps);
  fprintf(file, "steps,lowrank:%llu,,,,,,nmse,,%.9g,\n", rank, lcomm_steps_nmse(&errors->all));
  fprintf(file, "steps,lowrank:%llu,,,,,,bits_per_value,,%.9g,\n", rank,
          bits_a_value(&errors->all));
  fprintf(file, "steps,lowrank:%llu,,,,,,matrices,,%llu,\n", rank, (whole)errors->matrices);
  return !ferror(file);
}

static void put_spread(const lcomm_bench_options *o, const lcomm_lowrank_speed *speed,
                       const char *operation, const char *figure, tool_spread spread, FILE *file) {
  const lcomm_matrix_shape *is = &o->matrix;
  fprintf(file, "lowrank,%llux%llu:%llu,,,%s,%s,%llu,%s,%.9g,%.9g,%.9g\n", (whole)is->rows,
          (whole)is->columns, (whole)is->rank, operation, speed->kernels->name,
          (whole)(is->rows * is->columns * sizeof(float)), figure, spread.min, spread.median,
          spread.max);
}

bool lcomm_lowrank_print_csv(const lcomm_bench_options *options, const lcomm_lowrank_speed *speeds,
                             FILE *file) {
  static const char *const names[LCOMM_LOWRANK_PARTS] = {"project", "orthonormalise",
                                                         "project_back", "expand"};
  double ratio = lcomm_lowrank_ratio(&options->matrix);
  fputs("section,codec,source,tensor,operation,kernels,size_bytes,figure,min,median,max\n", file);
  for (size_t t = 0; t < options->table_count; t++) {
    const lcomm_lowrank_speed *s = &speeds[t];
    for (size_t part = 0; part < LCOMM_LOWRANK_PARTS; part++) {
      put_spread(options, s, names[part], "seconds", s->part_s[part], file);
    }
    put_spread(options, s, "step", "seconds", s->step_s, file);
    put_spread(options, s, "pass", "seconds", s->pass_s, file);
    put_spread(options, s, "step", "passes", s->passes, file);
    put_spread(options, s, "step", "ratio", (tool_spread){ratio, ratio, ratio}, file);
  }
  return !ferror(file);
}
