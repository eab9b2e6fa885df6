/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_options.h"

#include <stdio.h>
#include <string.h>

#include "tools/common/tool_timing.h"
#include "tools/common/tool_units.h"
#include "tools/fidelity/fidelity_overflow.h"
#include "tools/fidelity/fidelity_preset.h"
#include "trainer/train_model.h"

static const char usage[] =
    "usage: fidelity_bench [OPTIONS]\n"
    "Train small models under several policies, with all workers simulated in one process by the\n"
    "library itself, and compare the accuracies with those of exact sums.\n"
    "  --models LIST         of cnn, mlp, resnet, which learn from images, or of gpt-nano and "
    "larger\n"
    "                        ones, which learn from text (default cnn,mlp)\n"
    "  --optimizers LIST     of sgd, adam (default both); Adam takes momentum in the place of\n"
    "                        gradients where a policy sends it (adam=onebit)\n"
    "  --worlds LIST         NODESxRANKS: ranks of each node (default 2x2,4x1); up to 64 workers\n"
    "  --preset NAME=POLICY  may be given several times, also NAME of those that are known: fp16,\n"
    "                        bf16, fp8e4m3, fp8e5m2, int8, int4, int2, sign, lowrank:2,\n"
    "                        lowrank:4, topk-1%, topk-0.1%, topk:safe, topk:fast, int4:safe\n"
    "                        (default all of these). fp32, exact, always comes first\n"
    "  --seeds N|FIRST-LAST  of weights and order of images: 1 to N, or FIRST to LAST, at most 64 "
    "of\n"
    "                        them (default 5)\n"
    "  --images N            the first N of the data, of text windows (default 12000)\n"
    "  --epochs N            (default 4)\n"
    "  --batch N             images of a step, all workers together (default 64)\n"
    "  --sgd-lr RATE         highest learning rate of SGD, whose momentum is 0.9 (default 0.05)\n"
    "  --adam-lr RATE        (default 0.001)\n"
    "  --data PLACE          a folder of Fashion-MNIST, or a text; else below LCOMM_DATA, data,\n"
    "                        ../shared/data, else built-in images or text\n"
    "  --overflow FACTOR     train each preset once more with one step in the middle whose "
    "gradients\n"
    "                        are FACTOR times too large and hold one Inf, and skip it; a second\n"
    "                        table compares. nonfinite=discard in a policy undoes such a step\n"
    "  --results FILE        one line for each training; what is there is not trained again\n"
    "                        (default fidelity.jsonl)\n"
    "  --jobs N              trainings at once (default: one for each processor)\n"
    "  --no-train            show what is in the file\n"
    "  --csv FILE            the table for programs\n"
    "  --plot PREFIX         draw PREFIX-accuracy.svg and PREFIX-loss.svg by gnuplot\n"
    "  --version\n"
    "  --help\n"
    "Columns: accuracy on the test images, or bytes of text, and its standard deviation over the\n"
    "seeds, in percent; points: difference to fp32 at equal seeds, mean and standard deviation;\n"
    "verdict: within, when the mean is at most one standard deviation of fp32 below that of fp32;\n"
    "bytes that all nodes "
    "send to each other in a step, and in the run; ratio: those of fp32 over these.\n"
    "Exit status: 1 a training failed, 2 bad usage, or a file that cannot be read or written.\n";

void fidelity_options_help(void) {
  fputs(usage, stdout);
}

/* --------------------------------------------------------------------- lists */

static bool read_models(tool_command_line *line, const char *value) {
  fidelity_grid *grid = &((fidelity_options *)line->options)->grid;
  char word[FIDELITY_NAME_MAX];
  grid->model_count = 0;
  do {
    if (!tool_units_next_word(&value, word, sizeof word) || !model_describe(word) ||
        grid->model_count == FIDELITY_MODELS_MAX ||
        (grid->model_count > 0 && model_context(word) != model_context(grid->models[0]))) {
      return tool_refuse(line, "--models takes a list of %s, which learn from the same data",
                         model_names());
    }
    strcpy(grid->models[grid->model_count++], word);
  } while (*value != '\0');
  return true;
}

static bool add_optimizer(fidelity_grid *grid, const char *word) {
  for (int kind = OPTIMIZER_SGD; kind <= OPTIMIZER_ADAM; kind++) {
    if (strcmp(word, fidelity_optimizer_name((optimizer_kind)kind)) == 0 &&
        grid->optimizer_count < FIDELITY_OPTIMIZERS_MAX) {
      grid->optimizers[grid->optimizer_count++] = (optimizer_kind)kind;
      return true;
    }
  }
  return false;
}

static bool read_optimizers(tool_command_line *line, const char *value) {
  fidelity_grid *grid = &((fidelity_options *)line->options)->grid;
  char word[FIDELITY_NAME_MAX];
  grid->optimizer_count = 0;
  do {
    if (!tool_units_next_word(&value, word, sizeof word) || !add_optimizer(grid, word)) {
      return tool_refuse(line, "--optimizers takes a list of sgd, adam");
    }
  } while (*value != '\0');
  return true;
}

static bool read_place(const char *word, fidelity_place *place) {
  char rest = '\0';
  return sscanf(word, "%2dx%2d%c", &place->nodes, &place->ranks, &rest) == 2 && place->nodes >= 2 &&
         place->ranks >= 1 && fidelity_workers(*place) <= FIDELITY_WORKERS_MAX;
}

static bool read_worlds(tool_command_line *line, const char *value) {
  fidelity_grid *grid = &((fidelity_options *)line->options)->grid;
  char word[FIDELITY_NAME_MAX];
  grid->world_count = 0;
  do {
    fidelity_place place;
    if (!tool_units_next_word(&value, word, sizeof word) || !read_place(word, &place) ||
        grid->world_count == FIDELITY_WORLDS_MAX) {
      return tool_refuse(line,
                         "--worlds takes up to %d words such as 4x2, of at least 2 nodes and at "
                         "most %d workers",
                         FIDELITY_WORLDS_MAX, FIDELITY_WORKERS_MAX);
    }
    grid->worlds[grid->world_count++] = place;
  } while (*value != '\0');
  return true;
}

static bool read_preset(tool_command_line *line, const char *value) {
  fidelity_grid *grid = &((fidelity_options *)line->options)->grid;
  fidelity_preset made;
  if (!fidelity_preset_read(value, &made) || grid->preset_count == FIDELITY_PRESETS_MAX) {
    return tool_refuse(line,
                       "--preset takes a known name or NAME=POLICY, %d times at most; a name has "
                       "up to %d letters, digits and :.,_+-%%",
                       FIDELITY_PRESETS_MAX - 1, FIDELITY_NAME_MAX - 1);
  }
  grid->presets[grid->preset_count++] = made;
  return true;
}

/* N, or FIRST-LAST. */
static bool read_seeds(tool_command_line *line, const char *value) {
  fidelity_grid *grid = &((fidelity_options *)line->options)->grid;
  char first[TOOL_UNITS_TEXT_MAX];
  size_t length = strcspn(value, "-");
  uint64_t last = 0;
  grid->first_seed = 1;
  if (value[length] == '-' && length < sizeof first) {
    memcpy(first, value, length);
    first[length] = '\0';
    if (!tool_units_read_whole(first, 1, UINT32_MAX, &grid->first_seed)) {
      return false;
    }
    value += length + 1;
  }
  bool good = tool_units_read_whole(value, grid->first_seed,
                                    grid->first_seed + FIDELITY_SEEDS_MAX - 1, &last);
  grid->seeds = last - grid->first_seed + 1;
  return good;
}

static bool read_rate(tool_command_line *line, const char *value, optimizer_kind kind) {
  double rate = 0.0;
  bool good = tool_units_read_number(value, 0.0, &rate);
  ((fidelity_options *)line->options)->grid.training.rates[kind] = (float)rate;
  return good;
}

static bool read_sgd_rate(tool_command_line *line, const char *value) {
  return read_rate(line, value, OPTIMIZER_SGD);
}

static bool read_adam_rate(tool_command_line *line, const char *value) {
  return read_rate(line, value, OPTIMIZER_ADAM);
}

static bool read_overflow(tool_command_line *line, const char *value) {
  return tool_units_read_number(value, 0.0, &((fidelity_options *)line->options)->grid.overflow);
}

static bool read_images(tool_command_line *line, const char *value) {
  uint64_t images = 0;
  bool good = tool_units_read_whole(value, 1, UINT32_MAX, &images);
  ((fidelity_options *)line->options)->grid.training.images = (uint32_t)images;
  return good;
}

/* -------------------------------------------------------------------- the whole */

static const fidelity_options defaults = {
    .grid = {.models = {"cnn", "mlp"},
             .model_count = 2,
             .optimizers = {OPTIMIZER_SGD, OPTIMIZER_ADAM},
             .optimizer_count = 2,
             .worlds = {{2, 2}, {4, 1}},
             .world_count = 2,
             .first_seed = 1,
             .seeds = 5,
             .training = {.batch = 64,
                          .images = 12000,
                          .epochs = 4,
                          .rates = {[OPTIMIZER_SGD] = 0.05f, [OPTIMIZER_ADAM] = 0.001f},
                          .momentum = 0.9f}},
    .results = "fidelity.jsonl",
    .train = true,
};

static bool check_worlds(tool_command_line *line, const fidelity_grid *grid) {
  for (size_t i = 0; i < grid->world_count; i++) {
    int workers = fidelity_workers(grid->worlds[i]);
    if (grid->training.batch % workers != 0) {
      return tool_refuse(
          line, "a --batch of %d images cannot be spread over the %d workers of %dx%d",
          grid->training.batch, workers, grid->worlds[i].nodes, grid->worlds[i].ranks);
    }
  }
  return true;
}

tool_parse fidelity_options_parse(int argc, char **argv, fidelity_options *made, char *error) {
  static const tool_option known[] = {
      TOOL_READ(0, "models", read_models),
      TOOL_READ(0, "optimizers", read_optimizers),
      TOOL_READ(0, "worlds", read_worlds),
      TOOL_READ(0, "preset", read_preset),
      TOOL_READ(0, "seeds", read_seeds),
      TOOL_READ(0, "images", read_images),
      TOOL_INT(0, "epochs", offsetof(fidelity_options, grid.training.epochs), 1, 10000),
      TOOL_INT(0, "batch", offsetof(fidelity_options, grid.training.batch), 1, 65536),
      TOOL_READ(0, "sgd-lr", read_sgd_rate),
      TOOL_READ(0, "adam-lr", read_adam_rate),
      TOOL_READ(0, "overflow", read_overflow),
      TOOL_TEXT(0, "data", offsetof(fidelity_options, data)),
      TOOL_NAME(0, "results", offsetof(fidelity_options, results)),
      TOOL_INT(0, "jobs", offsetof(fidelity_options, jobs), 1, 1024),
      TOOL_FLAG(0, "no-train", offsetof(fidelity_options, train), false),
      TOOL_NAME(0, "csv", offsetof(fidelity_options, csv)),
      TOOL_NAME(0, "plot", offsetof(fidelity_options, plot)),
      {0}};
  tool_command_line line = {.argc = argc, .argv = argv, .options = made, .error = error};
  *made = defaults;
  made->jobs = (int)tool_timing_processors();
  made->grid.presets[made->grid.preset_count++] = fidelity_preset_reference();
  tool_parse parse = tool_options_parse(&line, known);
  if (parse == TOOL_RUN && (!tool_refuse_operands(&line) || !check_worlds(&line, &made->grid))) {
    parse = TOOL_USAGE;
  }
  if (made->grid.preset_count == 1) {
    fidelity_preset_add_known(&made->grid);
  }
  if (parse == TOOL_RUN && made->grid.overflow > 0.0 && !fidelity_overflow_add(&made->grid)) {
    tool_refuse(&line, "--overflow trains each preset twice; give at most %d of them",
                FIDELITY_PRESETS_MAX / 2 - 1);
    parse = TOOL_USAGE;
  }
  return parse;
}
