/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_train.h"

#include <stdlib.h>
#include <string.h>

#include "tools/common/tool_timing.h"
#include "tools/fidelity/fidelity_overflow.h"
#include "tools/fidelity/fidelity_world.h"
#include "trainer/train_random.h"

enum { TEST_BATCH = 200 };

/* Epoch e, from 1, draws its order from stream ORDER_STREAM + e of the random numbers, as in the
 * trainer. */
#define ORDER_STREAM ((uint64_t)1 << 40)

typedef struct learning {
  const fidelity_cell *cell;
  const dataset *data;
  int share; /* images of a worker and step */
  uint64_t steps_per_epoch, steps;
  model net;
  optimizer optimizer;
  fidelity_world world;
  uint32_t *order; /* [images] of this epoch */
  uint8_t *labels;
} learning;

/* ------------------------------------------------------------------- set-up */

static int make_model(learning *self, failure *why) {
  const fidelity_case *of = &self->cell->of;
  layer_shape image = {1, self->data->train.height, self->data->train.width};
  int batch_max = self->share > TEST_BATCH ? self->share : TEST_BATCH;
  self->order = malloc(self->data->train.count * sizeof *self->order);
  self->labels = malloc((size_t)batch_max);
  if (!self->order || !self->labels ||
      model_create(of->model, image, DATASET_CLASSES, batch_max, &self->net)) {
    return failure_set(why, EXIT_SETUP, "no memory for the model %s", of->model);
  }
  model_draw_weights(&self->net, self->cell->seed);
  return 0;
}

static int set_up(learning *self, failure *why) {
  const fidelity_case *of = &self->cell->of;
  const fidelity_training *training = of->training;
  int workers = fidelity_workers(of->world);
  self->share = training->batch / workers;
  self->steps_per_epoch = fidelity_steps_per_epoch(training, self->data->train.count);
  self->steps = self->steps_per_epoch * (uint64_t)training->epochs;
  if (self->share * workers != training->batch || self->steps == 0) {
    return failure_set(why, EXIT_SETUP,
                       "%u images in steps of %d cannot be spread over %d workers: the batch must "
                       "be a multiple of the workers, and not above the images",
                       self->data->train.count, training->batch, workers);
  }
  if (make_model(self, why) ||
      fidelity_world_make(of->world, of->preset->policy, &self->net, &self->world, why)) {
    return -1;
  }
  bool kept = fidelity_world_keeps_momentum(&self->world);
  if (optimizer_create(of->optimizer, self->net.weight_count, kept ? 0.0f : training->momentum,
                       &self->optimizer)) {
    return failure_set(why, EXIT_SETUP, "no memory for the optimiser");
  }
  return 0;
}

static void tear_down(learning *self) {
  fidelity_world_free(&self->world);
  optimizer_destroy(&self->optimizer);
  model_destroy(&self->net);
  free(self->order);
  free(self->labels);
}

/* ------------------------------------------------------------------- a step */

/* Workers report their gradients together, once all of them are made. */
static void ignore_ready(void *context, int first, int count) {
  (void)context;
  (void)first;
  (void)count;
}

/* Gradient of one worker's images into its buffer. Returns the sum of the losses. */
static double work(learning *self, int worker, const uint32_t *images) {
  model *net = &self->net;
  dataset_batch(self->data, &self->data->train, images, self->share, model_input(net),
                self->labels);
  const float *logits = model_forward(net, self->share);
  double loss = loss_cross_entropy(logits, self->labels, self->share, DATASET_CLASSES,
                                   model_logits_delta(net));
  model_backward(net, self->share, ignore_ready, NULL);
  memcpy(self->world.workers[worker].values, net->gradients, net->weight_count * sizeof(float));
  return loss;
}

static int step(learning *self, uint64_t number, double *loss, failure *why) {
  const fidelity_training *training = self->cell->of.training;
  const uint32_t *images = self->order + number % self->steps_per_epoch * (uint64_t)training->batch;
  double sum = 0.0;
  for (int worker = 0; worker < self->world.size; worker++) {
    sum += work(self, worker, images + (long)worker * self->share);
  }
  *loss = sum / training->batch;
  bool spoilt = fidelity_overflow_is_due(&self->cell->of, number, self->steps);
  if (spoilt) {
    fidelity_overflow_spoil(&self->world, self->cell->of.overflow);
  }
  if (fidelity_world_step(&self->world, why)) {
    return -1;
  }
  if (spoilt && fidelity_overflow_is_lost(&self->world)) {
    return 0;
  }
  float rate = optimizer_rate(training->rates[self->cell->of.optimizer], number, self->steps);
  optimizer_step(&self->optimizer, self->net.weights, self->world.workers[0].values, rate);
  return 0;
}

/* ------------------------------------------------------------------ the run */

/* Part `part` of the curve is the mean of the steps begin .. end-1. */
static int run_part(learning *self, uint64_t begin, uint64_t end, float *mean, failure *why) {
  double sum = 0.0;
  for (uint64_t number = begin; number < end; number++) {
    double loss = 0.0;
    if (number % self->steps_per_epoch == 0) {
      uint64_t epoch = 1 + number / self->steps_per_epoch;
      random_stream random = random_begin(self->cell->seed, ORDER_STREAM + epoch);
      random_permutation(&random, self->order, self->data->train.count);
    }
    if (step(self, number, &loss, why)) {
      return -1;
    }
    sum += loss;
  }
  *mean = (float)(sum / (double)(end - begin));
  return 0;
}

static int run(learning *self, fidelity_outcome *made, failure *why) {
  made->curve_count = self->steps < FIDELITY_CURVE_MAX ? self->steps : FIDELITY_CURVE_MAX;
  for (size_t part = 0; part < made->curve_count; part++) {
    uint64_t begin = self->steps * part / made->curve_count;
    uint64_t end = self->steps * (part + 1) / made->curve_count;
    if (run_part(self, begin, end, &made->curve[part], why)) {
      return -1;
    }
  }
  return 0;
}

static double accuracy(learning *self) {
  const image_set *test = &self->data->test;
  uint32_t picked[TEST_BATCH];
  uint64_t correct = 0;
  for (uint32_t first = 0; first < test->count; first += TEST_BATCH) {
    int count = (int)(test->count - first < TEST_BATCH ? test->count - first : TEST_BATCH);
    for (int i = 0; i < count; i++) {
      picked[i] = first + (uint32_t)i;
    }
    dataset_batch(self->data, test, picked, count, model_input(&self->net), self->labels);
    const float *logits = model_forward(&self->net, count);
    correct += (uint64_t)loss_count_correct(logits, self->labels, count, DATASET_CLASSES);
  }
  return (double)correct / test->count;
}

int fidelity_train(const fidelity_cell *cell, const dataset *data, fidelity_outcome *made,
                   failure *why) {
  learning self = {.cell = cell, .data = data};
  double begin = tool_now_s();
  memset(made, 0, sizeof *made);
  int failed = set_up(&self, why);
  if (!failed) {
    failed = run(&self, made, why);
  }
  if (!failed) {
    made->accuracy = accuracy(&self);
    made->bytes = (double)fidelity_world_net_bytes(&self.world);
    made->steps = (double)self.steps;
    made->seconds = tool_now_s() - begin;
  }
  tear_down(&self);
  return failed;
}
