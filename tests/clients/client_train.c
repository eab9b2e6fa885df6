/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* A data-parallel training as people write it with MPI: a network of two hidden layers (10
 * million parameters as it stands), SGD with momentum, in every step one all-reduce for the
 * gradients of each layer and one for the loss. The same options give the same numbers. */

#include <cblas.h>
#include <getopt.h>
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/clients/samples.h"

enum { LAYERS = 3, HELD_OUT = 256, WATCHED = 1 << 16 };

static struct {
  int steps, warmup, hidden, batch, check;
  float rate;
} options = {.steps = 20, .warmup = 5, .hidden = 1150, .batch = 8, .rate = 0.005f};

static int rank, ranks;

/* ------------------------------------------------------------------ network */

/* Weights with one row of biases after them, so that a layer is one buffer. */
typedef struct layer {
  int inputs, outputs, count;
  float *weights, *gradients, *velocities;
  float *in, *out_delta; /* batch x inputs, batch x outputs */
} layer;

static layer layers[LAYERS];

static void *memory(size_t count, size_t size) {
  void *all = calloc(count, size);
  if (!all) {
    fprintf(stderr, "train: rank %d has not enough memory for %zu bytes\n", rank, count * size);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return all;
}

static void make_layer(layer *self, int inputs, int outputs, int batch) {
  uint64_t state = (uint64_t)inputs * 31 + (uint64_t)outputs;
  *self = (layer){.inputs = inputs, .outputs = outputs, .count = (inputs + 1) * outputs};
  size_t count = (size_t)self->count;
  self->weights = memory(count, sizeof(float));
  self->gradients = memory(count, sizeof(float));
  self->velocities = memory(count, sizeof(float));
  self->in = memory((size_t)batch * (size_t)inputs, sizeof(float));
  self->out_delta = memory((size_t)batch * (size_t)outputs, sizeof(float));
  float scale = outputs == CLASSES ? 0 : sqrtf(2.0f / (float)inputs);
  for (int i = 0; i < inputs * outputs; i++) {
    self->weights[i] = scale * noise(&state);
  }
}

/* out = in * weights + biases; rectified except in the last layer */
static void forward(const layer *self, float *out, int batch, int rectified) {
  const float *biases = self->weights + self->inputs * self->outputs;
  for (int b = 0; b < batch; b++) {
    memcpy(out + b * self->outputs, biases, sizeof(float) * (size_t)self->outputs);
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, batch, self->outputs, self->inputs, 1,
              self->in, self->inputs, self->weights, self->outputs, 1, out, self->outputs);
  for (int i = 0; rectified && i < batch * self->outputs; i++) {
    out[i] = fmaxf(out[i], 0);
  }
}

/* Gradients from out_delta, and in_delta where there is a layer before. */
static void backward(layer *self, float *in_delta, int batch) {
  float *biases = self->gradients + self->inputs * self->outputs;
  cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, self->inputs, self->outputs, batch, 1,
              self->in, self->inputs, self->out_delta, self->outputs, 0, self->gradients,
              self->outputs);
  memset(biases, 0, sizeof(float) * (size_t)self->outputs);
  for (int b = 0; b < batch; b++) {
    for (int o = 0; o < self->outputs; o++) {
      biases[o] += self->out_delta[b * self->outputs + o];
    }
  }
  if (!in_delta) {
    return;
  }
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, batch, self->inputs, self->outputs, 1,
              self->out_delta, self->outputs, self->weights, self->outputs, 0, in_delta,
              self->inputs);
  for (int i = 0; i < batch * self->inputs; i++) {
    if (self->in[i] <= 0) {
      in_delta[i] = 0;
    }
  }
}

/* Softmax and its cross entropy: the mean loss; logits become their gradient. */
static double loss_of(float *logits, const int *labels, int batch) {
  double loss = 0;
  for (int b = 0; b < batch; b++) {
    float *row = logits + b * CLASSES, most = row[0], sum = 0;
    for (int c = 1; c < CLASSES; c++) {
      most = fmaxf(most, row[c]);
    }
    for (int c = 0; c < CLASSES; c++) {
      sum += expf(row[c] - most);
    }
    loss += (double)(logf(sum) + most - row[labels[b]]);
    for (int c = 0; c < CLASSES; c++) {
      row[c] = (expf(row[c] - most) / sum - (c == labels[b])) / (float)batch;
    }
  }
  return loss / batch;
}

/* The loss of this rank's batch that begins with the sample `first`. */
static double run_forward(uint64_t first, int batch) {
  int labels[HELD_OUT];
  for (int b = 0; b < batch; b++) {
    make_sample(first + (uint64_t)b, layers[0].in + b * INPUTS, &labels[b]);
  }
  for (int l = 0; l + 1 < LAYERS; l++) {
    forward(&layers[l], layers[l + 1].in, batch, 1);
  }
  forward(&layers[LAYERS - 1], layers[LAYERS - 1].out_delta, batch, 0);
  return loss_of(layers[LAYERS - 1].out_delta, labels, batch);
}

static double mean_over_ranks(double value) {
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return value / ranks;
}

/* ----------------------------------------------------------------- training */

/* --check: what went into the sums of the middle layer's first gradients and what came out. */
static struct {
  double in[WATCHED], out[WATCHED];
  int count;
} watched;

static void watch(double *total, const layer *self) {
  for (int i = 0; i < watched.count && self == &layers[1]; i++) {
    total[i] += self->gradients[i];
  }
}

static void sum_gradients(layer *self) {
  if (options.check) {
    watch(watched.in, self);
  }
  MPI_Allreduce(MPI_IN_PLACE, self->gradients, self->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  if (options.check) {
    watch(watched.out, self);
  }
}

static void update(layer *self) {
  float scale = 1.0f / (float)ranks;
  for (int i = 0; i < self->count; i++) {
    self->velocities[i] = 0.9f * self->velocities[i] + scale * self->gradients[i];
    self->weights[i] -= options.rate * self->velocities[i];
  }
}

static uint64_t first_sample(int step) {
  return ((uint64_t)step * (uint64_t)ranks + (uint64_t)rank) * (uint64_t)options.batch;
}

static double train_step(int step) {
  double loss = run_forward(first_sample(step), options.batch);
  for (int l = LAYERS - 1; l >= 0; l--) {
    backward(&layers[l], l ? layers[l - 1].out_delta : NULL, options.batch);
    sum_gradients(&layers[l]);
  }
  for (int l = 0; l < LAYERS; l++) {
    update(&layers[l]);
  }
  return mean_over_ranks(loss);
}

/* Of data that was not trained with; the same whatever the number of steps. */
static double held_out_loss(void) {
  uint64_t first = (uint64_t)1 << 40;
  return mean_over_ranks(run_forward(first + (uint64_t)rank * HELD_OUT, HELD_OUT));
}

/* |out - in| / |in|, where `in` is summed over the ranks in double precision */
static double sum_error(double *in, const double *out) {
  double off = 0, all = 0;
  MPI_Allreduce(MPI_IN_PLACE, in, watched.count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < watched.count; i++) {
    off += (out[i] - in[i]) * (out[i] - in[i]);
    all += in[i] * in[i];
  }
  return sqrt(off / all);
}

static void sum_middle_layer(int step) {
  run_forward(first_sample(step), options.batch);
  backward(&layers[2], layers[1].out_delta, options.batch);
  backward(&layers[1], layers[0].out_delta, options.batch);
  sum_gradients(&layers[1]);
}

/* Two more sums, outside of the steps: the error of the first, and of the total of all. */
static void check(void) {
  static double in[WATCHED], out[WATCHED];
  memcpy(in, watched.in, sizeof(in));
  memcpy(out, watched.out, sizeof(out));
  sum_middle_layer(options.warmup + options.steps);
  for (int i = 0; i < watched.count; i++) {
    in[i] = watched.in[i] - in[i];
    out[i] = watched.out[i] - out[i];
  }
  sum_middle_layer(options.warmup + options.steps + 1);
  double once = sum_error(in, out), total = sum_error(watched.in, watched.out);
  if (rank == 0) {
    printf("sum_error %.3e\ntotal_error %.3e\n", once, total);
  }
}

/* ------------------------------------------------------------------ program */

static void usage(void) {
  if (rank == 0) {
    fputs("usage: train [--steps N] [--warmup N] [--hidden N] [--batch N] [--rate R] [--check]\n",
          stderr);
  }
  MPI_Finalize();
  exit(2);
}

static void parse(int argc, char **argv) {
  static int *const numbers[] = {&options.steps, &options.warmup, &options.hidden, &options.batch};
  static const struct option known[] = {{"steps", required_argument, NULL, 0},
                                        {"warmup", required_argument, NULL, 1},
                                        {"hidden", required_argument, NULL, 2},
                                        {"batch", required_argument, NULL, 3},
                                        {"rate", required_argument, NULL, 'r'},
                                        {"check", no_argument, NULL, 'c'},
                                        {NULL, 0, NULL, 0}};
  opterr = rank == 0;
  for (int c; (c = getopt_long(argc, argv, "", known, NULL)) != -1;) {
    if (c == '?') {
      usage();
    }
    if (c < 4) {
      *numbers[c] = atoi(optarg);
    }
    if (c == 'r') {
      options.rate = strtof(optarg, NULL);
    }
    if (c == 'c') {
      options.check = 1;
    }
  }
  if (options.steps < 1 || options.warmup < 0 || options.hidden < 1 || options.hidden > 15000 ||
      options.batch < 1 || options.batch > HELD_OUT || optind < argc) {
    usage();
  }
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  parse(argc, argv);
  make_directions();
  make_layer(&layers[0], INPUTS, 4 * options.hidden, HELD_OUT);
  make_layer(&layers[1], 4 * options.hidden, options.hidden, HELD_OUT);
  make_layer(&layers[2], options.hidden, CLASSES, HELD_OUT);
  watched.count = layers[1].count < WATCHED ? layers[1].count : WATCHED;

  double begin = 0, loss = 0;
  for (int step = 0; step < options.warmup + options.steps; step++) {
    if (step == options.warmup) {
      begin = MPI_Wtime();
    }
    loss = train_step(step);
    if (rank == 0 && step % 10 == 0) {
      printf("step %d loss %.9g\n", step, loss);
    }
  }
  double rate = options.steps / (MPI_Wtime() - begin);
  double final = held_out_loss();
  if (rank == 0) {
    printf("last loss %.9g\nfinal_loss %.9g\nsteps_per_s %.4g\n", loss, final, rate);
  }
  if (options.check) {
    check();
  }
  MPI_Finalize();
  return 0;
}
