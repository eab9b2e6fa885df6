/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors
 *
 * Pipeline parallelism: each rank is a stage and has a layer, y = weight * x for each element.
 * Activations go to the next stage, their gradients come back, by the schedule 1F1B (PipeDream):
 * after some forwards each stage makes one forward and one backward in turn, so that it keeps few
 * activations. Two stages on one host that pose as two nodes, with activations in 8 bits:
 *   LCOMM_NODES=2 LCOMM_POLICY=pipe=fp8e4m3 RANK=0 WORLD_SIZE=2 ./pipeline_stages &
 *   LCOMM_NODES=2 LCOMM_POLICY=pipe=fp8e4m3 RANK=1 WORLD_SIZE=2 ./pipeline_stages */
#include <libcomm.h>

#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 65536, BATCHES = 4, STEPS = 40 };

typedef struct stage {
  lcomm_comm *comm;
  int number, last;
  float weight[COUNT], change[COUNT];
  float input[BATCHES][COUNT], output[BATCHES][COUNT]; /* of each micro-batch */
  float from[COUNT], back[BATCHES][COUNT];             /* gradients: received, and to be sent */
  lcomm_request sent[2 * BATCHES];
  int sends;
  double loss;
} stage;

static void check(const stage *s, lcomm_status status) {
  if (status != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(s->comm));
    exit(1); /* the others are told by the connection that breaks */
  }
}

/* What is sent stays as it is until the end of the step. */
static void start_send(stage *s, const float *data, int to) {
  check(s, lcomm_isend(s->comm, data, COUNT, LCOMM_FLOAT32, to, &s->sent[s->sends++]));
}

/* The first stage draws its samples. */
static void forward(stage *s, int batch) {
  if (s->number > 0) {
    check(s, lcomm_recv(s->comm, s->input[batch], COUNT, LCOMM_FLOAT32, s->number - 1));
  }
  for (int i = 0; i < COUNT && s->number == 0; i++) {
    s->input[batch][i] = 0.5f + (float)((i * 31 + batch * 7) % 64) / 64;
  }
  for (int i = 0; i < COUNT; i++) {
    s->output[batch][i] = s->weight[i] * s->input[batch][i];
  }
  if (s->number < s->last) {
    start_send(s, s->output[batch], s->number + 1);
  }
}

/* The last stage wants three times the samples. */
static void backward(stage *s, int batch) {
  if (s->number < s->last) {
    check(s, lcomm_recv(s->comm, s->from, COUNT, LCOMM_FLOAT32, s->number + 1));
  }
  for (int i = 0; i < COUNT && s->number == s->last; i++) {
    float sample = 0.5f + (float)((i * 31 + batch * 7) % 64) / 64;
    s->from[i] = s->output[batch][i] - 3 * sample;
    s->loss += (double)s->from[i] * (double)s->from[i] / (COUNT * BATCHES);
  }
  for (int i = 0; i < COUNT; i++) {
    s->change[i] += s->from[i] * s->input[batch][i];
    s->back[batch][i] = s->from[i] * s->weight[i];
  }
  if (s->number > 0) {
    start_send(s, s->back[batch], s->number - 1);
  }
}

static void step(stage *s) {
  static const float RATE = 0.1f;
  int ahead = s->last - s->number < BATCHES ? s->last - s->number : BATCHES;
  s->sends = 0;
  s->loss = 0;
  for (int i = 0; i < COUNT; i++) {
    s->change[i] = 0;
  }
  for (int batch = 0; batch < ahead; batch++) {
    forward(s, batch);
  }
  for (int batch = 0; batch < BATCHES; batch++) {
    if (batch + ahead < BATCHES) {
      forward(s, batch + ahead);
    }
    backward(s, batch);
  }
  for (int i = 0; i < s->sends; i++) {
    check(s, lcomm_wait(s->comm, &s->sent[i]));
  }
  for (int i = 0; i < COUNT; i++) {
    s->weight[i] -= RATE * s->change[i] / BATCHES;
  }
}

int main(void) {
  static stage s;
  if (lcomm_create_env(NULL, &s.comm) != LCOMM_OK) {
    fprintf(stderr, "%s\n", lcomm_last_error(NULL));
    return 1;
  }
  s.number = lcomm_rank(s.comm);
  s.last = lcomm_size(s.comm) - 1;
  for (int i = 0; i < COUNT; i++) {
    s.weight[i] = 1;
  }
  for (int i = 0; i < STEPS; i++) {
    step(&s);
  }
  if (s.number == s.last) {
    printf("stage %d of %d: the loss of the last step is %.4f\n", s.number, s.last + 1, s.loss);
  }
  return lcomm_destroy(s.comm) == LCOMM_OK ? 0 : 1;
}
