/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the values of options mean. */

#include <getopt.h>
#include <stdarg.h>
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
                                             "topk:0.01+ef",
                                             "topk:0.01+ef+zstd",
                                             "topk:0.01,values=int8+ef",
                                             "topk:0.001+ef",
                                             NULL};

bool lcomm_bench_fail(const lcomm_bench_reader *r, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(r->error, LCOMM_BENCH_ERROR_MAX, format, arguments);
  va_end(arguments);
  return false;
}

/* ---------------------------------------------------------------- codecs */

static bool add_choice(const lcomm_bench_reader *r, const lcomm_codec_choice *choice,
                       lcomm_scope scope) {
  lcomm_bench_options *o = r->options;
  if (o->codec_count == LCOMM_BENCH_CODECS_MAX) {
    return lcomm_bench_fail(r, "more than %d codecs are too many for one run",
                            LCOMM_BENCH_CODECS_MAX);
  }
  lcomm_bench_codec *codec = &o->codecs[o->codec_count++];
  codec->choice = *choice;
  codec->scope = scope;
  lcomm_codec_choice_format(choice, codec->text, sizeof codec->text);
  if (scope == LCOMM_SCOPE_BUCKET && lcomm_format_is_sparse(&choice->format)) {
    strncat(codec->text, " scope=bucket", sizeof codec->text - strlen(codec->text) - 1);
  }
  return true;
}

bool lcomm_bench_add_codec(const lcomm_bench_reader *r, const char *text) {
  lcomm_codec_choice choice;
  char why[LCOMM_POLICY_ERROR_MAX];
  if (lcomm_format_parse(text, &choice, why) != LCOMM_OK) {
    return lcomm_bench_fail(r, "%s", why);
  }
  return add_choice(r, &choice, LCOMM_SCOPE_TENSOR);
}

bool lcomm_bench_add_policy(const lcomm_bench_reader *r, const char *text) {
  lcomm_policy policy;
  char why[LCOMM_POLICY_ERROR_MAX];
  if (lcomm_policy_parse(text, &policy, why) != LCOMM_OK) {
    return lcomm_bench_fail(r, "%s", why);
  }
  return add_choice(r, &policy.net, policy.scope);
}

bool lcomm_bench_add_default_codecs(const lcomm_bench_reader *r) {
  for (size_t i = 0; default_codecs[i] != NULL; i++) {
    if (!lcomm_bench_add_codec(r, default_codecs[i])) {
      return false;
    }
  }
  return true;
}

/* ----------------------------------------------------------------- lists */

/* The word at *text, which ends with a comma or the text; moves on behind the
 * comma. false when it is empty or does not fit. */
static bool next_word(const char **text, char *word, size_t size) {
  size_t length = strcspn(*text, ",");
  if (length == 0 || length >= size) {
    return false;
  }
  memcpy(word, *text, length);
  word[length] = '\0';
  *text += length + ((*text)[length] == ',');
  return true;
}

static bool ends_with_comma(const char *text) {
  size_t length = strlen(text);
  return length > 0 && text[length - 1] == ',';
}

static bool is_wanted(const char *list, const char *name) {
  char word[TOOL_UNITS_TEXT_MAX];
  while (*list != '\0' && next_word(&list, word, sizeof word)) {
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
bool lcomm_bench_set_tables(const lcomm_bench_reader *r, const char *list) {
  char word[TOOL_UNITS_TEXT_MAX];
  const char *why = "", *text = list;
  if (strcmp(list, "all") == 0) {
    add_tables(r->options, NULL);
    return true;
  }
  do {
    if (ends_with_comma(list) || !next_word(&text, word, sizeof word)) {
      return lcomm_bench_fail(r, "'%s' is no list of kernel tables; for example --isa scalar,avx2",
                              list);
    }
    if (!lcomm_kernels_by_name(word, &why)) {
      return lcomm_bench_fail(r, "--isa %s: %s", word, why);
    }
  } while (*text != '\0');
  add_tables(r->options, list);
  return true;
}

static int compare_sizes(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

bool lcomm_bench_set_sizes(const lcomm_bench_reader *r, const char *list) {
  lcomm_bench_options *o = r->options;
  char word[TOOL_UNITS_TEXT_MAX];
  const char *text = list;
  o->size_count = 0;
  do {
    uint64_t size = 0;
    if (ends_with_comma(list) || o->size_count == LCOMM_BENCH_SIZES_MAX ||
        !next_word(&text, word, sizeof word) || !tool_units_read_size(word, &size)) {
      return lcomm_bench_fail(r, "'%s' is no list of 1 to %d sizes; for example --size 256K,1G",
                              list, LCOMM_BENCH_SIZES_MAX);
    }
    if (size < 4096 || size > UINT64_C(8) << 30) {
      return lcomm_bench_fail(r, "a buffer of '%s' is not between 4 KiB and 8 GiB", word);
    }
    o->sizes[o->size_count++] = size / 4096 * 4096;
  } while (*text != '\0');
  qsort(o->sizes, o->size_count, sizeof *o->sizes, compare_sizes);
  return true;
}

/* ---------------------------------------------------------------- others */

bool lcomm_bench_set_synthetic(const lcomm_bench_reader *r, const char *text) {
  lcomm_synthetic *synthetic = &r->options->synthetic;
  char name[TOOL_UNITS_TEXT_MAX];
  size_t length = strcspn(text, ":");
  snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name), text);
  if (!lcomm_synthetic_by_name(name, &synthetic->kind)) {
    return lcomm_bench_fail(r, "there is no distribution '%s'; codec_bench --help lists them",
                            name);
  }
  uint64_t count = synthetic->count;
  if (text[length] == ':' && !tool_units_read_size(text + length + 1, &count)) {
    return lcomm_bench_fail(r, "'%s' is no number of values; for example --synthetic normal:16M",
                            text + length + 1);
  }
  if (count == 0 || count > LCOMM_SYNTHETIC_COUNT_MAX) {
    return lcomm_bench_fail(r, "--synthetic %s: the number of values is not between 1 and 1024G",
                            text);
  }
  synthetic->count = count;
  r->options->synthetic_wanted = true;
  return true;
}

bool lcomm_bench_set_whole(const lcomm_bench_reader *r, const char *name, const char *text,
                           uint64_t most, uint64_t *number) {
  if (tool_units_read_whole(text, 1, most, number)) {
    return true;
  }
  return lcomm_bench_fail(r, "'%s' is no whole number from 1 to %llu, as --%s needs one", text,
                          (unsigned long long)most, name);
}

bool lcomm_bench_set_prediction(const lcomm_bench_reader *r, const char *bandwidth) {
  lcomm_bench_options *o = r->options;
  if (!tool_units_read_bandwidth(bandwidth, &o->bandwidth)) {
    return lcomm_bench_fail(r, "'%s' is no bandwidth; for example 200mbit, 25Gbit or 5GB",
                            bandwidth);
  }
  if (optind >= r->argc) {
    return lcomm_bench_fail(r, "the number of nodes is missing; for example --predict %s 16",
                            bandwidth);
  }
  const char *nodes = r->argv[optind++];
  if (!tool_units_read_whole(nodes, 2, 1000000, &o->nodes)) {
    return lcomm_bench_fail(r, "'%s' is no number of nodes, 2 or more; for example --predict %s 16",
                            nodes, bandwidth);
  }
  return true;
}

bool lcomm_bench_set_seed(const lcomm_bench_reader *r, const char *text) {
  if (tool_units_read_whole(text, 0, UINT64_MAX, &r->options->synthetic.seed)) {
    return true;
  }
  return lcomm_bench_fail(r, "'%s' is no seed; for example --seed 7", text);
}

bool lcomm_bench_set_baseline(const lcomm_bench_reader *r, const char *name) {
  for (int i = LCOMM_BASELINE_BF16; i <= LCOMM_BASELINE_FP32; i++) {
    if (strcmp(name, lcomm_baseline_name((lcomm_baseline)i)) == 0) {
      r->options->baseline = (lcomm_baseline)i;
      return true;
    }
  }
  return lcomm_bench_fail(r, "'%s' is no baseline; use --baseline fp32 or --baseline bf16", name);
}

bool lcomm_bench_set_plot(const lcomm_bench_reader *r, const char *path) {
  size_t length = strlen(path);
  r->options->plot_path = path;
  if (length > 4 &&
      (strcmp(path + length - 4, ".png") == 0 || strcmp(path + length - 4, ".svg") == 0)) {
    return true;
  }
  return lcomm_bench_fail(r, "'%s' is neither a .png nor a .svg file", path);
}
