/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_model.h"
#include "trainer/train_pipeline.h"

static const options defaults = {
    .model = "cnn",
    .optimizer = OPTIMIZER_SGD,
    .momentum = 0.9f,
    .log_every = 50,
    .warmup = 0.05f,
    .decay = -1.0f,
    .epochs = 4,
    .accumulate = 1,
    .pipeline = 1,
    .seed = 1,
};

static const struct option long_options[] = {
    {"model", required_argument, NULL, 'm'},
    {"data", required_argument, NULL, 'd'},
    {"policy", required_argument, NULL, 'p'},
    {"log", required_argument, NULL, 'l'},
    {"optimizer", required_argument, NULL, 'o'},
    {"lr", required_argument, NULL, 'r'},
    {"momentum", required_argument, NULL, 'u'},
    {"weight-decay", required_argument, NULL, 'w'},
    {"clip", required_argument, NULL, 'c'},
    {"schedule", required_argument, NULL, 'S'},
    {"warmup", required_argument, NULL, 'W'},
    {"accumulate", required_argument, NULL, 'a'},
    {"batch-global", required_argument, NULL, 'B'},
    {"epochs", required_argument, NULL, 'e'},
    {"batch", required_argument, NULL, 'b'},
    {"images", required_argument, NULL, 'i'},
    {"seed", required_argument, NULL, 's'},
    {"precision", required_argument, NULL, 'x'},
    {"shard", required_argument, NULL, 'z'},
    {"device", required_argument, NULL, 'D'},
    {"late", required_argument, NULL, 't'},
    {"log-every", required_argument, NULL, 'L'},
    {"plot", required_argument, NULL, 'P'},
    {"save", required_argument, NULL, 'K'},
    {"save-every", required_argument, NULL, 'E'},
    {"resume", required_argument, NULL, 'R'},
    {"elastic", required_argument, NULL, 'y'},
    {"pipeline", required_argument, NULL, 'n'},
    {"serve", required_argument, NULL, 'v'},
    {"version", no_argument, NULL, 'V'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int read_whole(const char *name, uint64_t least, uint64_t most, uint64_t *value,
                      failure *why) {
  char *end = NULL;
  errno = 0;
  unsigned long long read = strtoull(optarg, &end, 10);
  bool digits = optarg[0] >= '0' && optarg[0] <= '9';
  if (!digits || *end || errno || read < least || read > most) {
    return failure_set_common(why, EXIT_SETUP,
                              "--%s is \"%s\", expected a number from %llu to %llu", name, optarg,
                              (unsigned long long)least, (unsigned long long)most);
  }
  *value = read;
  return 0;
}

static int read_real(const char *name, float least, float most, float *value, failure *why) {
  char *end = NULL;
  float read = strtof(optarg, &end);
  if (end == optarg || *end || !(read >= least && read <= most)) {
    return failure_set_common(why, EXIT_SETUP, "--%s is \"%s\", expected a number from %g to %g",
                              name, optarg, (double)least, (double)most);
  }
  *value = read;
  return 0;
}

static int read_int(const char *name, int most, int *value, failure *why) {
  uint64_t read = 0;
  if (read_whole(name, 1, (uint64_t)most, &read, why)) {
    return -1;
  }
  *value = (int)read;
  return 0;
}

static int read_late(options *made, failure *why) {
  if (slow_read(optarg, &made->slow) == 0) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP,
                            "--late is \"%s\", expected rank=R:xF, such as rank=3:x3, or "
                            "pause=MSms:N%%, such as pause=200ms:5%%",
                            optarg);
}

static int read_images(options *made, failure *why) {
  uint64_t read = 0;
  if (read_whole("images", 1, UINT32_MAX, &read, why)) {
    return -1;
  }
  made->images = (uint32_t)read;
  return 0;
}

/* Of an option whose value is one of some names. */
static int check_known(bool is_known, const char *name, const char *known, failure *why) {
  return is_known ? 0
                  : failure_set_common(why, EXIT_SETUP, "--%s is \"%s\", expected %s", name, optarg,
                                       known);
}

static int read_optimizer(options *made, failure *why) {
  made->optimizer = optimizer_find(optarg);
  made->optimizer_given = true;
  return check_known(made->optimizer != OPTIMIZER_COUNT, "optimizer",
                     "sgd, adam, adamw, lars, lamb or onebit-adam", why);
}

static int read_schedule(options *made, failure *why) {
  made->schedule = schedule_find(optarg);
  return check_known(made->schedule != SCHEDULE_COUNT, "schedule", "cosine, step or constant", why);
}

static int read_precision(options *made, failure *why) {
  made->precision = precision_find(optarg);
  return check_known(made->precision != PRECISION_COUNT, "precision", "fp32, bf16 or fp16", why);
}

static int read_shard(options *made, failure *why) {
  made->shard = shard_find(optarg);
  return check_known(made->shard != SHARD_COUNT, "shard", "none, optimizer or gradients", why);
}

static int read_device(options *made, failure *why) {
  made->device = device_find(optarg);
  return check_known(made->device != DEVICE_COUNT, "device", "cpu, cuda or auto", why);
}

static int read_serve(options *made, failure *why) {
  made->serve_weights = strcmp(optarg, "weights") == 0;
  return check_known(made->serve_weights || strcmp(optarg, "gradients") == 0, "serve",
                     "gradients or weights", why);
}

static int read_model(options *made, failure *why) {
  if (!model_describe(optarg)) {
    return failure_set_common(why, EXIT_SETUP, "--model is \"%s\", expected one of %s", optarg,
                              model_names());
  }
  made->model = optarg;
  return 0;
}

/* "2:8" */
static int read_elastic(options *made, failure *why) {
  char rest = '\0';
  int read = sscanf(optarg, "%7d:%7d%c", &made->elastic_min, &made->elastic_max, &rest);
  if (read == 2 && made->elastic_min >= 1 && made->elastic_max >= made->elastic_min) {
    return 0;
  }
  made->elastic_max = 0;
  return failure_set_common(why, EXIT_SETUP,
                            "--elastic is \"%s\", expected the least and the greatest number of "
                            "ranks, such as 2:8",
                            optarg);
}

static int read_option(int letter, options *made, failure *why) {
  switch (letter) {
  case 'm':
    return read_model(made, why);
  case 'd':
    made->data = optarg;
    return 0;
  case 'p':
    made->policy = optarg;
    return 0;
  case 'l':
    made->log = optarg;
    return 0;
  case 'o':
    return read_optimizer(made, why);
  case 'r':
    return read_real("lr", 1e-9f, 1e9f, &made->rate, why);
  case 'u':
    return read_real("momentum", 0.0f, 0.9999f, &made->momentum, why);
  case 'w':
    return read_real("weight-decay", 0.0f, 10.0f, &made->decay, why);
  case 'c':
    return read_real("clip", 1e-9f, 1e9f, &made->clip, why);
  case 'S':
    return read_schedule(made, why);
  case 'W':
    return read_real("warmup", 0.0f, 1.0f, &made->warmup, why);
  case 'a':
    return read_int("accumulate", 100000, &made->accumulate, why);
  case 'B':
    return read_int("batch-global", 1 << 24, &made->batch_global, why);
  case 'e':
    return read_int("epochs", 100000, &made->epochs, why);
  case 'b':
    return read_int("batch", 4096, &made->batch, why);
  case 'i':
    return read_images(made, why);
  case 's':
    return read_whole("seed", 0, UINT64_MAX, &made->seed, why);
  case 'x':
    return read_precision(made, why);
  case 'z':
    return read_shard(made, why);
  case 'D':
    return read_device(made, why);
  case 't':
    return read_late(made, why);
  case 'L':
    return read_whole("log-every", 1, UINT64_MAX, &made->log_every, why);
  case 'P':
    made->plot = optarg;
    return 0;
  case 'K':
    made->save = optarg;
    return 0;
  case 'E':
    return read_whole("save-every", 1, UINT64_MAX, &made->save_every, why);
  case 'R':
    made->resume = optarg;
    return 0;
  case 'y':
    return read_elastic(made, why);
  case 'n':
    return read_int("pipeline", PIPELINE_MAX, &made->pipeline, why);
  case 'v':
    return read_serve(made, why);
  case 'V':
    made->version = true;
    return 0;
  default:
    made->help = true;
    return 0;
  }
}

int options_parse(int argc, char **argv, options *made, failure *why) {
  *made = defaults;
  opterr = 0;
  optind = 0; /* begin anew: the function may be called again */
  int letter;
  while ((letter = getopt_long(argc, argv, ":", long_options, NULL)) != -1) {
    if (letter == ':') {
      return failure_set_common(why, EXIT_SETUP, "%s needs a value; --help lists the options",
                                argv[optind - 1]);
    }
    if (letter == '?') {
      return failure_set_common(why, EXIT_SETUP, "%s is not an option; --help lists the options",
                                argv[optind - 1]);
    }
    if (read_option(letter, made, why)) {
      return -1;
    }
  }
  if (optind < argc) {
    return failure_set_common(why, EXIT_SETUP,
                              "\"%s\" is not understood, options begin with --; --help lists them",
                              argv[optind]);
  }
  return options_complete(made, why);
}
