/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/codec/codec_options.h"

#include <getopt.h>
#include <stdio.h>

#include "tools/codec/codec_options_internal.h"

enum {
  OPTION_LAYERS = 256,
  OPTION_SYNTHETIC,
  OPTION_SEED,
  OPTION_PER_TENSOR,
  OPTION_STEPS,
  OPTION_PEERS,
  OPTION_BASELINES,
  OPTION_PREDICT,
  OPTION_BASELINE,
  OPTION_EXPORT,
  OPTION_NO_QUALITY,
  OPTION_NO_SPEED,
  OPTION_ISA,
  OPTION_SIZE,
  OPTION_THREADS,
  OPTION_JSON,
  OPTION_CSV,
  OPTION_PLOT,
  OPTION_VERSION
};

static const struct option names[] = {{"codec", required_argument, NULL, 'c'},
                                      {"policy", required_argument, NULL, 'p'},
                                      {"layers", required_argument, NULL, OPTION_LAYERS},
                                      {"synthetic", required_argument, NULL, OPTION_SYNTHETIC},
                                      {"seed", required_argument, NULL, OPTION_SEED},
                                      {"per-tensor", no_argument, NULL, OPTION_PER_TENSOR},
                                      {"steps", required_argument, NULL, OPTION_STEPS},
                                      {"peers", required_argument, NULL, OPTION_PEERS},
                                      {"baselines", no_argument, NULL, OPTION_BASELINES},
                                      {"predict", required_argument, NULL, OPTION_PREDICT},
                                      {"no-quality", no_argument, NULL, OPTION_NO_QUALITY},
                                      {"no-speed", no_argument, NULL, OPTION_NO_SPEED},
                                      {"baseline", required_argument, NULL, OPTION_BASELINE},
                                      {"export", required_argument, NULL, OPTION_EXPORT},
                                      {"isa", required_argument, NULL, OPTION_ISA},
                                      {"size", required_argument, NULL, OPTION_SIZE},
                                      {"threads", required_argument, NULL, OPTION_THREADS},
                                      {"repetitions", required_argument, NULL, 'n'},
                                      {"json", required_argument, NULL, OPTION_JSON},
                                      {"csv", required_argument, NULL, OPTION_CSV},
                                      {"plot", required_argument, NULL, OPTION_PLOT},
                                      {"version", no_argument, NULL, OPTION_VERSION},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

static bool apply_flag(int option, lcomm_bench_options *o) {
  switch (option) {
  case OPTION_PER_TENSOR:
    return o->per_tensor = true;
  case OPTION_BASELINES:
    return o->baselines = true;
  case OPTION_NO_QUALITY:
    o->quality = false;
    return true;
  default: /* OPTION_NO_SPEED */
    o->speed = false;
    return true;
  }
}

static bool apply(const lcomm_bench_reader *r, int option, const char *value) {
  lcomm_bench_options *o = r->options;
  switch (option) {
  case 'c':
    return lcomm_bench_add_codec(r, value);
  case 'p':
    return lcomm_bench_add_policy(r, value);
  case OPTION_LAYERS:
    o->layers = value;
    return true;
  case OPTION_SYNTHETIC:
    return lcomm_bench_set_synthetic(r, value);
  case OPTION_SEED:
    return lcomm_bench_set_seed(r, value);
  case OPTION_STEPS:
    return lcomm_bench_set_whole(r, "steps", value, LCOMM_BENCH_STEPS_MAX, &o->steps);
  case OPTION_PEERS:
    return lcomm_bench_set_whole(r, "peers", value, LCOMM_BENCH_PEERS_MAX, &o->peers);
  case OPTION_THREADS:
    return lcomm_bench_set_whole(r, "threads", value, LCOMM_BENCH_THREADS_MAX, &o->threads);
  case 'n':
    return lcomm_bench_set_whole(r, "repetitions", value, LCOMM_BENCH_REPETITIONS_MAX,
                                 &o->repetitions);
  case OPTION_PREDICT:
    return lcomm_bench_set_prediction(r, value);
  case OPTION_BASELINE:
    return lcomm_bench_set_baseline(r, value);
  case OPTION_EXPORT:
    o->export_path = value;
    return true;
  case OPTION_ISA:
    return lcomm_bench_set_tables(r, value);
  case OPTION_SIZE:
    return lcomm_bench_set_sizes(r, value);
  case OPTION_JSON:
    o->json_path = value;
    return true;
  case OPTION_CSV:
    o->csv_path = value;
    return true;
  case OPTION_PLOT:
    return lcomm_bench_set_plot(r, value);
  default:
    return apply_flag(option, o);
  }
}

/* Words that do not go together, and what was not given. */
static bool complete(const lcomm_bench_reader *r) {
  lcomm_bench_options *o = r->options;
  o->paths = r->argv + optind;
  o->path_count = (size_t)(r->argc - optind);
  if (o->path_count == 0) {
    o->synthetic_wanted = true;
  }
  if (!o->quality && !o->speed) {
    return lcomm_bench_fail(r, "--no-quality and --no-speed together leave nothing to measure");
  }
  if (!o->quality && (o->per_tensor || o->steps > 0)) {
    return lcomm_bench_fail(r, "--%s is about accuracy, which --no-quality leaves out",
                            o->per_tensor ? "per-tensor" : "steps");
  }
  if (!o->speed && (o->peers > 0 || o->baselines)) {
    return lcomm_bench_fail(r, "--%s is about speed, which --no-speed leaves out",
                            o->peers > 0 ? "peers" : "baselines");
  }
  if (o->bandwidth > 0.0 && !(o->quality && o->speed)) {
    return lcomm_bench_fail(r, "--predict needs both the accuracy and the speed of the codecs");
  }
  if (o->plot_path && !o->quality) {
    return lcomm_bench_fail(
        r, "--plot needs the accuracy of the codecs, which --no-quality leaves out");
  }
  if (o->layers && o->path_count == 0) {
    return lcomm_bench_fail(r, "--layers is about files, and no file is given");
  }
  if (o->table_count == 0) {
    lcomm_bench_add_fastest_table(o);
  }
  return o->codec_count > 0 || lcomm_bench_add_default_codecs(r);
}

lcomm_bench_parse lcomm_bench_options_parse(int argc, char **argv, lcomm_bench_options *options,
                                            char *error) {
  lcomm_bench_reader r = {argc, argv, options, error};
  *options = (lcomm_bench_options){
      .synthetic = {.kind = LCOMM_SYNTHETIC_LAYERS, .seed = 1, .count = 16 << 20},
      .quality = true,
      .speed = true,
      .sizes = {256 << 10, 256 << 20},
      .size_count = 2,
      .threads = 1,
      .repetitions = 7};
  opterr = 0; /* one sentence of ours */
  optind = 0; /* from the start, whoever called before */
  for (int c; (c = getopt_long(argc, argv, ":c:p:n:h", names, NULL)) != -1;) {
    if (c == 'h') {
      return LCOMM_BENCH_HELP;
    }
    if (c == OPTION_VERSION) {
      return LCOMM_BENCH_VERSION;
    }
    if (c == ':' || c == '?') {
      lcomm_bench_fail(&r, "%s '%s'", c == ':' ? "a value is missing after" : "there is no option",
                       argv[optind - 1]);
      return LCOMM_BENCH_USAGE;
    }
    if (!apply(&r, c, optarg)) {
      return LCOMM_BENCH_USAGE;
    }
  }
  return complete(&r) ? LCOMM_BENCH_RUN : LCOMM_BENCH_USAGE;
}
