/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef TRAINER_TRAIN_OPTIONS_H
#define TRAINER_TRAIN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "trainer/train_device.h"
#include "trainer/train_optimizer.h"
#include "trainer/train_peers.h"
#include "trainer/train_precision.h"
#include "trainer/train_shard.h"
#include "trainer/train_slow.h"

/* The command line. */
typedef struct options {
  const char *model;
  const char *data;    /* NULL: look for it */
  const char *policy;  /* NULL: LCOMM_POLICY, else exact */
  const char *log;     /* NULL: no log */
  const char *plot;    /* NULL: none */
  slowness slow;       /* --late */
  uint64_t log_every;  /* steps */
  const char *save;    /* folder; NULL: save nothing */
  const char *resume;  /* folder; NULL: begin anew */
  uint64_t save_every; /* steps; 0: at the end of each epoch */
  optimizer_kind optimizer;
  bool optimizer_given;
  float rate; /* peak learning rate */
  float momentum;
  float decay;
  float clip; /* norm of the gradients; 0: any */
  schedule_kind schedule;
  float warmup; /* share of the run */
  int epochs;
  int batch;        /* images or windows per rank at once */
  int accumulate;   /* times in a step */
  int batch_global; /* of all ranks in a step, in place of that; 0: not given */
  uint32_t images;  /* train on the first so many; 0: all */
  uint64_t seed;
  precision_kind precision;
  shard_kind shard;
  device_kind device;
  bool serve_weights;           /* servers of the policy step the weights */
  int pipeline;                 /* stages that the model is shared out over; 1: none */
  int elastic_min, elastic_max; /* ranks that go on when others are lost; 0: the run ends then */
  bool help, version;
} options;

static inline bool is_elastic(const options *of) {
  return of->elastic_max > 0;
}

/* Returns 0, or -1 with `why`. Texts are views of the arguments. */
int options_parse(int argc, char **argv, options *made, failure *why);

/* Fill in what was not given, and refuse what does not go together; a part of options_parse(). */
int options_complete(options *made, failure *why);

const char *options_help(void);

#endif
