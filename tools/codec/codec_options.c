/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_options.h"

#include "tools/codec/codec_options_internal.h"
#include "tools/codec/codec_owners.h"

#define MEMBER(member) offsetof(lcomm_bench_options, member)
static const tool_option known[] = {
    TOOL_READ('c', "codec", lcomm_bench_add_codec),
    TOOL_READ('p', "policy", lcomm_bench_add_policy),
    TOOL_TEXT(0, "layers", MEMBER(layers)),
    TOOL_READ(0, "synthetic", lcomm_bench_set_synthetic),
    TOOL_READ(0, "seed", lcomm_bench_set_seed),
    TOOL_FLAG(0, "per-tensor", MEMBER(per_tensor), true),
    TOOL_WHOLE(0, "steps", MEMBER(steps), 1, LCOMM_BENCH_STEPS_MAX),
    TOOL_WHOLE(0, "peers", MEMBER(peers), 1, LCOMM_BENCH_PEERS_MAX),
    TOOL_FLAG(0, "baselines", MEMBER(baselines), true),
    TOOL_READ(0, "predict", lcomm_bench_set_prediction),
    TOOL_FLAG(0, "no-quality", MEMBER(quality), false),
    TOOL_FLAG(0, "no-speed", MEMBER(speed), false),
    TOOL_READ(0, "baseline", lcomm_bench_set_baseline),
    TOOL_READ(0, "low-rank", lcomm_bench_set_matrix),
    TOOL_TEXT(0, "export", MEMBER(export_path)),
    TOOL_READ(0, "isa", lcomm_bench_set_tables),
    TOOL_READ(0, "size", lcomm_bench_set_sizes),
    TOOL_READ(0, "pages", lcomm_bench_set_pages),
    TOOL_WHOLE(0, "owners", MEMBER(owners), 1, LCOMM_OWNERS_MAX),
    TOOL_WHOLE(0, "threads", MEMBER(threads), 1, LCOMM_BENCH_THREADS_MAX),
    TOOL_WHOLE('n', "repetitions", MEMBER(repetitions), 1, LCOMM_BENCH_REPETITIONS_MAX),
    TOOL_TEXT(0, "json", MEMBER(files.json_path)),
    TOOL_TEXT(0, "csv", MEMBER(files.csv_path)),
    TOOL_READ(0, "plot", lcomm_bench_set_plot),
    {0}};

/* Of sums, whose payloads have no lossless stage here and no peers. */
static bool can_be_owned(tool_command_line *line) {
  const lcomm_bench_options *o = line->options;
  if (o->owners > 1 && (o->peers > 0 || o->baselines)) {
    return tool_refuse(line, "--owners is about sums in parts, --%s about whole vectors",
                       o->peers > 0 ? "peers" : "baselines");
  }
  for (size_t i = 0; o->owners > 1 && i < o->codec_count; i++) {
    const lcomm_format *format = &o->codecs[i].choice.format;
    if (lcomm_format_is_sparse(format) && format->zstd) {
      return tool_refuse(line, "--owners does not measure %s; name others with --codec",
                         o->codecs[i].text);
    }
  }
  return true;
}

/* A matrix is measured alone, and has no accuracy without a gradient; a rank alone is for the
 * matrices of gradients. */
static bool can_be_a_matrix(tool_command_line *line) {
  const lcomm_bench_options *o = line->options;
  bool shaped = o->matrix.rows > 0, taken = o->codec_count > 0 || o->export_path;
  if (o->matrix.rank == 0) {
    return true;
  }
  if (!shaped && (taken || o->path_count == 0 || o->steps == 0)) {
    return tool_refuse(line, "--low-rank with a rank alone takes --steps and the gradients of "
                             "files, without codecs; with a matrix it is --low-rank 4096x1024:4");
  }
  if (shaped && (taken || o->path_count > 0)) {
    return tool_refuse(line, "--low-rank measures a matrix of its own; leave out codecs and files");
  }
  if (o->files.json_path || o->files.plot_path) {
    return tool_refuse(line, "--low-rank writes a table and --csv, no --json and no --plot");
  }
  return true;
}

/* Words that do not go together, and what was not given. */
static bool complete(tool_command_line *line) {
  lcomm_bench_options *o = line->options;
  o->paths = line->operands;
  o->path_count = line->operand_count;
  if (!can_be_a_matrix(line)) {
    return false;
  }
  if (o->path_count == 0) {
    o->synthetic_wanted = true;
  }
  if (!o->quality && !o->speed) {
    return tool_refuse(line, "--no-quality and --no-speed together leave nothing to measure");
  }
  if (!o->quality && (o->per_tensor || o->steps > 0)) {
    return tool_refuse(line, "--%s is about accuracy, which --no-quality leaves out",
                       o->per_tensor ? "per-tensor" : "steps");
  }
  if (!o->speed && (o->peers > 0 || o->baselines)) {
    return tool_refuse(line, "--%s is about speed, which --no-speed leaves out",
                       o->peers > 0 ? "peers" : "baselines");
  }
  if (o->bandwidth > 0.0 && !(o->quality && o->speed)) {
    return tool_refuse(line, "--predict needs both the accuracy and the speed of the codecs");
  }
  if (o->files.plot_path && !o->quality) {
    return tool_refuse(line,
                       "--plot needs the accuracy of the codecs, which --no-quality leaves out");
  }
  if (o->layers && o->path_count == 0) {
    return tool_refuse(line, "--layers is about files, and no file is given");
  }
  if (o->table_count == 0) {
    lcomm_bench_add_fastest_table(o);
  }
  return (o->codec_count > 0 || lcomm_bench_add_default_codecs(line)) && can_be_owned(line);
}

tool_parse lcomm_bench_options_parse(int argc, char **argv, lcomm_bench_options *options,
                                     char *error) {
  tool_command_line line = {.argc = argc, .argv = argv, .options = options, .error = error};
  *options = (lcomm_bench_options){
      .synthetic = {.kind = LCOMM_SYNTHETIC_LAYERS, .seed = 1, .count = 16 << 20},
      .quality = true,
      .speed = true,
      .sizes = {256 << 10, 256 << 20},
      .size_count = 2,
      .threads = 1,
      .owners = 1,
      .repetitions = 7};
  tool_parse parse = tool_options_parse(&line, known);
  return parse == TOOL_RUN && !complete(&line) ? TOOL_USAGE : parse;
}
