/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_model.h"

static const options defaults = {
    .model = "cnn",
    .optimizer = OPTIMIZER_SGD,
    .momentum = 0.9f,
    .log_every = 50,
    .warmup = 0.05f,
    .decay = -1.0f,
    .epochs = 4,
    .accumulate = 1,
    .seed = 1,
};

/* Learning rates and decays that suit the models at the default batch; LARS and LAMB are for large
 * ones. */
static const float default_rates[] = {[OPTIMIZER_SGD] = 0.05f,
                                      [OPTIMIZER_ADAM] = 0.002f,
                                      [OPTIMIZER_ADAMW] = 0.002f,
                                      [OPTIMIZER_LARS] = 15.0f,
                                      [OPTIMIZER_LAMB] = 0.01f};
static const float default_decays[] = {
    [OPTIMIZER_ADAMW] = 0.1f, [OPTIMIZER_LARS] = 1e-4f, [OPTIMIZER_LAMB] = 0.01f};

static const char help_text[] =
    "Usage: mpirun -np RANKS train [options]\n"
    "\n"
    "Trains an image classifier, or a model of text, on all ranks; gradients are averaged by\n"
    "libcomm.\n"
    "\n"
    "  --policy POLICY     what libcomm compresses; without it LCOMM_POLICY, else nothing:\n"
    "                        net=int8               8-bit integers between nodes\n"
    "                        net=topk:0.01+ef       only the largest 1 % of the values\n"
    "                        net=int4:safe          a preset, as are topk:safe and topk:fast\n"
    "                        \"net=bf16 min=0\"       small tensors too\n"
    "                        \"net[size<=64K]=bf16 net=topk:0.01+ef\"\n"
    "                                               each in its own way\n"
    "  --model NAME        of images: cnn, mlp or resnet; of text: gpt-nano (minutes on two\n"
    "                      cores), gpt-micro, gpt-mini, gpt-124m (cnn)\n"
    "  --data PLACE        of images: folder of the IDX files of Fashion-MNIST or MNIST; of\n"
    "                      text: a file, or a folder of files; plain or gzip. Without it\n"
    "                      LCOMM_DATA, ./data, ../shared/data, else built-in images or\n"
    "                      text; \"builtin\" asks for those\n"
    "  --images N          train on the first N images, or windows of text, only (all)\n"
    "  --epochs N          passes over the training data (4)\n"
    "  --batch N           images or windows per rank and step (32; of text 16)\n"
    "  --accumulate N      times that many in a step, one batch after the other (1)\n"
    "  --batch-global N    images or windows of a step, of all ranks together; a rank whose\n"
    "                      share is above --batch accumulates\n"
    "  --optimizer NAME    sgd, adam, adamw, lars or lamb (sgd; of text adamw)\n"
    "  --lr RATE           highest learning rate (sgd 0.05, adam and adamw 0.002, lars 15,\n"
    "                      lamb 0.01)\n"
    "  --momentum M        momentum of sgd and lars (0.9)\n"
    "  --weight-decay D    of matrices (adamw 0.1, lars 0.0001, lamb 0.01; others have none)\n"
    "  --clip NORM         scale the averaged gradients down to this norm (never)\n"
    "  --schedule NAME     of the learning rate after its rise: cosine, step or constant\n"
    "                      (cosine)\n"
    "  --warmup SHARE      part of the run in which the rate rises (0.05)\n"
    "  --seed N            of the first weights and the order of the images (1)\n"
    "  --log FILE          write a log, one JSON object per line\n"
    "  --log-every N       steps between two records (50)\n"
    "  --plot FILE.svg     draw loss and test over the steps when the run ends, by gnuplot\n"
    "  --save DIR          save checkpoints in DIR, which all ranks see: at the end of each\n"
    "                      epoch and when a signal ends the run; the last two are kept\n"
    "  --save-every N      save after every N steps, and at the end, instead\n"
    "  --resume DIR        go on from the last checkpoint in DIR, to the bit on as many\n"
    "                      ranks; --log is added to\n"
    "  --version           print the version\n"
    "  --help              this text\n"
    "\n"
    "Steps whose averages hold NaN or Inf are skipped. Where the policy has error feedback,\n"
    "nonfinite=discard is added to it: such a step leaves nothing behind.\n"
    "\n"
    "LCOMM_NODES=2 lets the ranks of one machine pose as two nodes, so that a policy for\n"
    "links between nodes can be tried. `libcomm-info --env` lists all variables.\n"
    "\n"
    "Exit codes: 0 trained; 2 bad option, data or connection; 3 the training failed (loss\n"
    "not a number, or replicas that differ); 128 + N stopped by signal N. After SIGINT or\n"
    "SIGTERM, to one rank or to all, the run ends in order with the step that it is at and\n"
    "a last record in the log; a second one ends it at once.\n"
    "Records of the log have the time and the step; mean losses come with --log-every.\n";

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
    {"log-every", required_argument, NULL, 'L'},
    {"plot", required_argument, NULL, 'P'},
    {"save", required_argument, NULL, 'K'},
    {"save-every", required_argument, NULL, 'E'},
    {"resume", required_argument, NULL, 'R'},
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

static int read_images(options *made, failure *why) {
  uint64_t read = 0;
  if (read_whole("images", 1, UINT32_MAX, &read, why)) {
    return -1;
  }
  made->images = (uint32_t)read;
  return 0;
}

static int read_optimizer(options *made, failure *why) {
  made->optimizer = optimizer_find(optarg);
  made->optimizer_given = true;
  if (made->optimizer != OPTIMIZER_COUNT) {
    return 0;
  }
  return failure_set_common(
      why, EXIT_SETUP, "--optimizer is \"%s\", expected sgd, adam, adamw, lars or lamb", optarg);
}

static int read_schedule(options *made, failure *why) {
  made->schedule = schedule_find(optarg);
  if (made->schedule != SCHEDULE_COUNT) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP,
                            "--schedule is \"%s\", expected cosine, step or constant", optarg);
}

static int read_model(options *made, failure *why) {
  if (!model_describe(optarg)) {
    return failure_set_common(why, EXIT_SETUP, "--model is \"%s\", expected one of %s", optarg,
                              model_names());
  }
  made->model = optarg;
  return 0;
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
  case 'V':
    made->version = true;
    return 0;
  default:
    made->help = true;
    return 0;
  }
}

/* What was not given depends on the rest. */
static void complete(options *made) {
  bool text = model_context(made->model) > 0;
  if (!made->optimizer_given && text) {
    made->optimizer = OPTIMIZER_ADAMW;
  }
  if (made->batch == 0) {
    made->batch = text ? 16 : 32;
  }
  if (made->rate == 0.0f) {
    made->rate = default_rates[made->optimizer];
  }
  if (made->decay < 0.0f) {
    made->decay = default_decays[made->optimizer];
  }
}

/* Names of files are added to it. */
static int check_folder(const char *option, const char *folder, failure *why) {
  enum { LONGEST = 900 };
  if (!folder || (*folder && strlen(folder) <= LONGEST)) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP, "--%s needs the name of a folder, of at most %d bytes",
                            option, LONGEST);
}

/* Options that do not go together. */
static int check(const options *made, failure *why) {
  if (made->decay > 0.0f && !optimizer_decays(made->optimizer)) {
    return failure_set_common(why, EXIT_SETUP,
                              "--weight-decay is for adamw, lars and lamb, not for %s",
                              optimizer_name(made->optimizer));
  }
  if (made->save_every > 0 && !made->save) {
    return failure_set_common(why, EXIT_SETUP, "--save-every needs --save DIR");
  }
  if (check_folder("save", made->save, why) || check_folder("resume", made->resume, why)) {
    return -1;
  }
  if (made->batch_global > 0 && made->accumulate > 1) {
    return failure_set_common(
        why, EXIT_SETUP, "--batch-global says how often to accumulate; leave --accumulate out");
  }
  return 0;
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
  complete(made);
  return check(made, why);
}

const char *options_help(void) {
  return help_text;
}
