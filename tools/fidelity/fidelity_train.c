/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_train.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/common/tool_timing.h"
#include "tools/fidelity/fidelity_overflow.h"
#include "tools/fidelity/fidelity_world.h"

enum { TEST_IMAGES = 200, TEST_WINDOWS = 16 }; /* at a time */

typedef struct learning {
  const fidelity_cell *cell;
  task data; /* lends all but where its epoch begins */
  int share; /* samples of a worker and step */
  uint64_t steps_per_epoch, steps;
  model net;
  optimizer optimizer;
  fidelity_world world;
  uint32_t *order; /* [samples] of this epoch */
  uint8_t *labels;
} learning;

/* ------------------------------------------------------------------- set-up */

static int test_batch_of(const task *data) {
  return task_is_text(data) ? TEST_WINDOWS : TEST_IMAGES;
}

static int make_model(learning *self, failure *why) {
  const fidelity_case *of = &self->cell->of;
  const task *data = &self->data;
  int test_batch = test_batch_of(data);
  int batch_max = self->share > test_batch ? self->share : test_batch;
  self->order = malloc(data->train_count * sizeof *self->order);
  self->labels = malloc((size_t)batch_max * (size_t)data->labels);
  if (!self->order || !self->labels ||
      model_create(of->model, data->sample, data->classes, batch_max, &self->net)) {
    return failure_set(why, EXIT_SETUP, "no memory for the model %s", of->model);
  }
  if (model_draw_weights(&self->net, self->cell->seed)) {
    return failure_set(why, EXIT_SETUP, "no memory for the weights of %s", of->model);
  }
  return 0;
}

/* Adam takes momentum in the place of gradients where the policy sends it. */
static int make_optimizer(learning *self, failure *why) {
  const fidelity_case *of = &self->cell->of;
  bool kept = fidelity_world_keeps_momentum(&self->world);
  bool sends = fidelity_world_sends_momentum(&self->world);
  if (sends && of->optimizer != OPTIMIZER_ADAM) {
    return failure_set(why, EXIT_SETUP,
                       "the policy %s sends Adam's momentum, and the optimiser is %s: choose "
                       "--optimizers adam",
                       of->preset->policy, fidelity_optimizer_name(of->optimizer));
  }
  if (optimizer_create(sends ? OPTIMIZER_ONEBIT_ADAM : of->optimizer, self->net.weight_count,
                       kept ? 0.0f : of->training->momentum, &self->optimizer)) {
    return failure_set(why, EXIT_SETUP, "no memory for the optimiser");
  }
  return 0;
}

static int set_up(learning *self, failure *why) {
  const fidelity_case *of = &self->cell->of;
  const fidelity_training *training = of->training;
  int workers = fidelity_workers(of->world);
  self->share = training->batch / workers;
  self->steps_per_epoch = fidelity_steps_per_epoch(training, self->data.train_count);
  self->steps = self->steps_per_epoch * (uint64_t)training->epochs;
  if (self->share * workers != training->batch || self->steps == 0) {
    return failure_set(why, EXIT_SETUP,
                       "%u %s in steps of %d cannot be spread over %d workers: the batch must be a "
                       "multiple of the workers, and not above the %s",
                       self->data.train_count, task_samples(&self->data), training->batch, workers,
                       task_samples(&self->data));
  }
  if (make_model(self, why) ||
      fidelity_world_make(of->world, of->preset->policy, &self->net, &self->world, why)) {
    return -1;
  }
  return make_optimizer(self, why);
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

/* Gradient of one worker's samples into its buffer. Returns the sum of the losses. */
static double work(learning *self, int worker, const uint32_t *samples) {
  model *net = &self->net;
  const task *data = &self->data;
  task_train_batch(data, samples, self->share, model_input(net), self->labels);
  const float *logits = model_forward(net, self->share);
  double loss = loss_cross_entropy(logits, self->labels, self->share * data->labels, data->classes,
                                   model_logits_delta(net));
  model_backward(net, self->share, ignore_ready, NULL);
  memcpy(self->world.workers[worker].values, net->gradients, net->weight_count * sizeof(float));
  return loss;
}

static int step(learning *self, uint64_t number, double *loss, failure *why) {
  const fidelity_training *training = self->cell->of.training;
  const uint32_t *samples =
      self->order + number % self->steps_per_epoch * (uint64_t)training->batch;
  double sum = 0.0;
  for (int worker = 0; worker < self->world.size; worker++) {
    sum += work(self, worker, samples + (long)worker * self->share);
  }
  *loss = sum / training->batch / self->data.labels;
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
  bool frozen =
      self->optimizer.kind == OPTIMIZER_ONEBIT_ADAM && fidelity_world_has_momentum(&self->world);
  (frozen ? optimizer_step_frozen : optimizer_step)(&self->optimizer, self->net.weights,
                                                    self->world.workers[0].values, rate);
  return 0;
}

/* ------------------------------------------------------------------ the run */

/* Part `part` of the curve is the mean of the steps begin .. end-1. */
static int run_part(learning *self, uint64_t begin, uint64_t end, float *mean, failure *why) {
  double sum = 0.0;
  for (uint64_t number = begin; number < end; number++) {
    double loss = 0.0;
    if (number % self->steps_per_epoch == 0) {
      int epoch = 1 + (int)(number / self->steps_per_epoch);
      task_begin_epoch(&self->data, self->cell->seed, epoch, self->order);
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

/* Of images, or of the bytes of a text. */
static double accuracy(learning *self) {
  const task *data = &self->data;
  uint32_t batch = (uint32_t)test_batch_of(data);
  uint64_t correct = 0;
  for (uint32_t first = 0; first < data->test_count; first += batch) {
    int count = (int)(data->test_count - first < batch ? data->test_count - first : batch);
    task_test_batch(data, first, count, model_input(&self->net), self->labels);
    const float *logits = model_infer(&self->net, count);
    correct +=
        (uint64_t)loss_count_correct(logits, self->labels, count * data->labels, data->classes);
  }
  return (double)correct / data->test_count / data->labels;
}

/* Of all threads of this process, so far. */
static double processor_s(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int fidelity_train(const fidelity_cell *cell, const task *data, fidelity_outcome *made,
                   failure *why) {
  learning self = {.cell = cell, .data = *data};
  double begin = tool_now_s(), begin_processor = processor_s();
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
    made->processor_s = processor_s() - begin_processor;
  }
  tear_down(&self);
  return failed;
}
