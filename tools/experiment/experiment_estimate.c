/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/experiment/experiment_estimate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_timing.h"
#include "tools/common/tool_units.h"
#include "tools/experiment/experiment_programs.h"

/* Assumed: seconds to start and to end a run, of one core for a mini-batch of 32, and of a run that
 * nothing is known about. */
#define START_S 3.0
#define BATCH_S 0.003
#define UNKNOWN_S 12.0

double experiment_option_number(const char *options, const char *name, double otherwise) {
  const char *found = strstr(options, name);
  if (!found) {
    return otherwise;
  }
  double number = strtod(found + strlen(name), NULL);
  return number > 0.0 ? number : otherwise;
}

/* How many times fewer bytes than float32, about. */
static double ratio_of(const char *policy) {
  static const struct {
    const char *codec;
    double ratio;
  } codecs[] = {{"topk", 40.0}, {"int8", 3.8}, {"int4", 6.0}, {"int2", 15.5},
                {"sign", 30.0}, {"fp8", 3.8},  {"bf16", 2.0}, {"fp16", 2.0}};
  for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
    if (strstr(policy, codecs[i].codec)) {
      return codecs[i].ratio;
    }
  }
  return 1.0;
}

static double training_s(const experiment_case *of) {
  const char *options = of->of->options;
  double hosts = of->world.hosts, ranks = hosts * of->world.ranks, bytes_per_s = 0.0;
  double batch = experiment_option_number(options, "--batch ", 32.0);
  double epochs = experiment_option_number(options, "--epochs ", 4.0);
  double steps =
      epochs * ceil(experiment_option_number(options, "--images ", 60000.0) / (ranks * batch));
  bool mlp = strcmp(of->model, "mlp") == 0 || strstr(options, "--model mlp");
  double weights = mlp ? 235146.0 : 206922.0;
  double sent = 2.0 * (hosts - 1.0) / hosts * 4.0 * weights / ratio_of(of->policy);
  double here = of->of->where <= EXPERIMENT_POSE ? (double)tool_timing_processors() : ranks;
  double compute_s = BATCH_S * (mlp ? 1.0 : 4.0) * batch / 32.0 * fmax(1.0, ranks / here);
  double wire_s = 0.0;
  if (of->rate[0] != '\0' && tool_units_read_bandwidth(of->rate, &bytes_per_s)) {
    wire_s = sent / bytes_per_s + 4e-3 * of->delay_ms;
  }
  return START_S + steps * (compute_s + wire_s);
}

double experiment_estimate(const experiment_case *of, double limit_s) {
  bool trains = experiment_kind_of(of->of) == EXPERIMENT_TRAIN;
  return fmin(limit_s, trains ? training_s(of) : UNKNOWN_S);
}

const char *experiment_show_time(double seconds, char *text, size_t size) {
  double minutes = rint(seconds / 60.0);
  if (seconds < 100.0) {
    snprintf(text, size, "%.0f s", ceil(seconds));
  } else if (minutes < 100.0) {
    snprintf(text, size, "%.0f min", minutes);
  } else {
    snprintf(text, size, "%.0f h %.0f min", floor(minutes / 60.0), fmod(minutes, 60.0));
  }
  return text;
}
