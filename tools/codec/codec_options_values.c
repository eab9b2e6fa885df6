/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the values of options mean. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/codec/codec_options_internal.h"
#include "tools/common/tool_units.h"

static const char *const default_codecs[] = {"none",
                                             "none+zstd",
                                             "bf16",
                                             "bf16+zstd",
                                             "fp16",
                                             "fp16:scale=block",
                                             "fp8e4m3",
                                             "fp8e4m3:stochastic",
                                             "fp8e4m3+zstd",
                                             "fp8e5m2",
                                             "int8",
                                             "int8+zstd",
                                             "int4",
                                             "int2",
                                             "sign",
                                             "topk:0.01+ef",
                                             "topk:0.01+ef+zstd",
                                             "topk:0.01,values=int8+ef",
                                             "topk:0.001+ef",
                                             NULL};

static lcomm_bench_options *options_of(const tool_command_line *line) {
  return line->options;
}

/* ---------------------------------------------------------------- codecs */

static bool add_choice(tool_command_line *line, const lcomm_codec_spec *choice, lcomm_scope scope,
                       const lcomm_adam_policy *adam) {
  lcomm_bench_options *o = options_of(line);
  if (o->codec_count == LCOMM_BENCH_CODECS_MAX) {
    return tool_refuse(line, "more than %d codecs are too many for one run",
                       LCOMM_BENCH_CODECS_MAX);
  }
  lcomm_bench_codec *codec = &o->codecs[o->codec_count++];
  codec->choice = *choice;
  codec->scope = scope;
  lcomm_codec_spec_format(choice, codec->text, sizeof codec->text);
  if (scope == LCOMM_SCOPE_BUCKET && lcomm_format_is_sparse(&choice->format)) {
    strncat(codec->text, " scope=bucket", sizeof codec->text - strlen(codec->text) - 1);
  }
  if (adam->onebit) {
    size_t length = strlen(codec->text);
    snprintf(codec->text + length, sizeof codec->text - length, " adam=onebit,beta1=%g",
             adam->beta1);
  }
  codec->beta1 = adam->beta1;
  return true;
}

bool lcomm_bench_add_codec(tool_command_line *line, const char *text) {
  lcomm_codec_spec choice;
  lcomm_why why;
  if (lcomm_format_parse(text, &choice, &why) != LCOMM_OK) {
    return tool_refuse(line, "%s", why.text);
  }
  return add_choice(line, &choice, LCOMM_SCOPE_TENSOR, &(lcomm_adam_policy){.onebit = false});
}

bool lcomm_bench_add_policy(tool_command_line *line, const char *text) {
  lcomm_policy policy;
  lcomm_why why;
  if (lcomm_policy_parse(text, &policy, &why) != LCOMM_OK) {
    return tool_refuse(line, "%s", why.text);
  }
  return add_choice(line, &policy.net, policy.scope, &policy.adam);
}

bool lcomm_bench_add_default_codecs(tool_command_line *line) {
  for (size_t i = 0; default_codecs[i] != NULL; i++) {
    if (!lcomm_bench_add_codec(line, default_codecs[i])) {
      return false;
    }
  }
  return true;
}

/* ----------------------------------------------------------------- lists */

static bool is_wanted(const char *list, const char *name) {
  char word[TOOL_UNITS_TEXT_MAX];
  while (*list != '\0' && tool_units_next_word(&list, word, sizeof word)) {
    if (strcmp(word, name) == 0) {
      return true;
    }
  }
  return false;
}

/* Tables that follow one another under one name are variants for processors: the
 * last one that runs is what the library would take. */
static void add_table(lcomm_bench_options *o, const lcomm_kernels *kernels) {
  if (o->table_count > 0 && strcmp(o->tables[o->table_count - 1]->name, kernels->name) == 0) {
    o->table_count--;
  }
  if (o->table_count < LCOMM_BENCH_TABLES_MAX) {
    o->tables[o->table_count++] = kernels;
  }
}

void lcomm_bench_add_fastest_table(lcomm_bench_options *o) {
  add_table(o, lcomm_kernels_best());
}

/* NULL: all that run here. */
static void add_tables(lcomm_bench_options *o, const char *list) {
  o->table_count = 0;
  for (size_t i = 0; lcomm_kernels_list[i] != NULL; i++) {
    if (lcomm_kernels_runs(lcomm_kernels_list[i]) &&
        (!list || is_wanted(list, lcomm_kernels_list[i]->name))) {
      add_table(o, lcomm_kernels_list[i]);
    }
  }
}

/* Tables in their own order, whatever that of the list is. */
bool lcomm_bench_set_tables(tool_command_line *line, const char *list) {
  char word[TOOL_UNITS_TEXT_MAX];
  const char *why = "", *text = list;
  if (strcmp(list, "all") == 0) {
    add_tables(options_of(line), NULL);
    return true;
  }
  do {
    if (!tool_units_next_word(&text, word, sizeof word)) {
      return tool_refuse(line, "'%s' is no list of kernel tables; for example --isa scalar,avx2",
                         list);
    }
    if (!lcomm_kernels_by_name(word, &why)) {
      return tool_refuse(line, "--isa %s: %s", word, why);
    }
  } while (*text != '\0');
  add_tables(options_of(line), list);
  return true;
}

static int compare_sizes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

bool lcomm_bench_set_sizes(tool_command_line *line, const char *list) {
  lcomm_bench_options *o = options_of(line);
  if (!tool_units_read_sizes(list, o->sizes, LCOMM_BENCH_SIZES_MAX, &o->size_count)) {
    return tool_refuse(line, "'%s' is no list of 1 to %d sizes; for example --size 256K,1G", list,
                       LCOMM_BENCH_SIZES_MAX);
  }
  for (size_t i = 0; i < o->size_count; i++) {
    if (o->sizes[i] < 4096 || o->sizes[i] > UINT64_C(8) << 30) {
      return tool_refuse(line, "a buffer of '%s' is not between 4 KiB and 8 GiB", list);
    }
    o->sizes[i] = o->sizes[i] / 4096 * 4096;
  }
  qsort(o->sizes, o->size_count, sizeof *o->sizes, compare_sizes);
  return true;
}

bool lcomm_bench_set_pages(tool_command_line *line, const char *name) {
  bool usual = strcmp(name, "usual") == 0;
  if (!usual && strcmp(name, "huge") != 0) {
    return tool_refuse(line, "--pages is huge or usual, not '%s'", name);
  }
  options_of(line)->pages = usual ? TOOL_PAGES_USUAL : TOOL_PAGES_HUGE;
  return true;
}

/* ---------------------------------------------------------------- others */

bool lcomm_bench_set_synthetic(tool_command_line *line, const char *text) {
  lcomm_synthetic *synthetic = &options_of(line)->synthetic;
  char name[TOOL_UNITS_TEXT_MAX];
  size_t length = strcspn(text, ":");
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
  if (!lcomm_synthetic_by_name(name, &synthetic->kind)) {
    return tool_refuse(line, "there is no distribution '%s'; codec_bench --help lists them", name);
  }
  uint64_t count = synthetic->count;
  if (text[length] == ':' && !tool_units_read_size(text + length + 1, &count)) {
    return tool_refuse(line, "'%s' is no number of values; for example --synthetic normal:16M",
                       text + length + 1);
  }
  if (count == 0 || count > LCOMM_SYNTHETIC_COUNT_MAX) {
    return tool_refuse(line, "--synthetic %s: the number of values is not between 1 and 1024G",
                       text);
  }
  synthetic->count = count;
  options_of(line)->synthetic_wanted = true;
  return true;
}

bool lcomm_bench_set_prediction(tool_command_line *line, const char *bandwidth) {
  lcomm_bench_options *o = options_of(line);
  if (!tool_units_read_bandwidth(bandwidth, &o->bandwidth)) {
    return tool_refuse(line, "'%s' is no bandwidth; for example 200mbit, 25Gbit or 5GB", bandwidth);
  }
  const char *nodes = tool_next_word(line);
  if (!nodes) {
    return tool_refuse(line, "the number of nodes is missing; for example --predict %s 16",
                       bandwidth);
  }
  tool_take_word(line);
  if (!tool_units_read_whole(nodes, 2, 1000000, &o->nodes)) {
    return tool_refuse(line, "'%s' is no number of nodes, 2 or more; for example --predict %s 16",
                       nodes, bandwidth);
  }
  return true;
}

bool lcomm_bench_set_seed(tool_command_line *line, const char *text) {
  if (tool_units_read_whole(text, 0, UINT64_MAX, &options_of(line)->synthetic.seed)) {
    return true;
  }
  return tool_refuse(line, "'%s' is no seed; for example --seed 7", text);
}

bool lcomm_bench_set_baseline(tool_command_line *line, const char *name) {
  for (int i = LCOMM_BASELINE_BF16; i <= LCOMM_BASELINE_FP32; i++) {
    if (strcmp(name, lcomm_baseline_name((lcomm_baseline)i)) == 0) {
      options_of(line)->baseline = (lcomm_baseline)i;
      return true;
    }
  }
  return tool_refuse(line, "'%s' is no baseline; use --baseline fp32 or --baseline bf16", name);
}

/* One number of ROWSxCOLUMNS:RANK, and the sign behind it. */
static bool read_part(const char **text, const char *end, uint64_t most, uint64_t *value) {
  char part[TOOL_UNITS_TEXT_MAX];
  size_t length = strcspn(*text, end);
  if (length >= sizeof part || (*text)[length] != *end) {
    return false;
  }
  snprintf(part, sizeof part, "%.*s", (int)length, *text);
  *text += length + (*end != '\0');
  return tool_units_read_whole(part, 1, most, value);
}

bool lcomm_bench_set_matrix(tool_command_line *line, const char *text) {
  lcomm_matrix_shape *matrix = &options_of(line)->matrix;
  const char *rest = text;
  enum { MOST = 1 << 20 };
  if (!strchr(text, 'x') && tool_units_read_whole(text, 1, LCOMM_BENCH_RANK_MAX, &matrix->rank)) {
    return true;
  }
  if (read_part(&rest, "x", MOST, &matrix->rows) && read_part(&rest, ":", MOST, &matrix->columns) &&
      read_part(&rest, "", LCOMM_BENCH_RANK_MAX, &matrix->rank) &&
      matrix->rows * matrix->columns <= (UINT64_C(8) << 30) / sizeof(float)) {
    return true;
  }
  return tool_refuse(
      line,
      "'%s' is no matrix of up to 8 GiB and its rank, nor a rank alone; for example --low-rank "
      "4096x1024:4",
      text);
}

bool lcomm_bench_set_plot(tool_command_line *line, const char *path) {
  size_t length = strlen(path);
  options_of(line)->files.plot_path = path;
  if (length > 4 &&
      (strcmp(path + length - 4, ".png") == 0 || strcmp(path + length - 4, ".svg") == 0)) {
    return true;
  }
  return tool_refuse(line, "'%s' is neither a .png nor a .svg file", path);
}
