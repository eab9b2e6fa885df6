/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <string.h>

#include "trainer/train_clock.h"
#include "trainer/train_report.h"

/* A step and a test of a training whose model is shared out over stages. */

static bool is_first(const training *self) {
  return self->net.part.stage == 0;
}

static bool is_last(const training *self) {
  return self->net.part.stage == self->pipe.last;
}

/* Messages of a pipeline move while a stage computes. Their errors stay until somebody waits. */
static void keep(void *context, int first, int count) {
  training *self = context;
  training_keep_gradients(self, first, count);
  lcomm_progress(self->pipe.stages);
}

static void send(void *context, int first, int count) {
  training *self = context;
  training_send_gradients(self, first, count);
  lcomm_progress(self->pipe.stages);
}

/* ----------------------------------------------------------------- batches */

/* The last stage needs the labels only: activations take the place of the samples. */
static lcomm_status forward(training *self, int number) {
  model *net = &self->net;
  int batch = self->deal.batch, at = number % net->part.kept;
  model_turn_to(net, at);
  if (is_first(self) || is_last(self)) {
    task_train_batch(&self->task, training_samples(self, number), batch, model_input(net),
                     self->labels);
  }
  lcomm_status status = pipeline_receive(&self->pipe, at, batch);
  if (status != LCOMM_OK) {
    return status;
  }
  const element *made = model_forward(net, batch);
  if (!is_last(self)) {
    return pipeline_send_on(&self->pipe, at, batch);
  }
  self->now.loss += training_loss(self, made);
  return LCOMM_OK;
}

static lcomm_status backward(training *self, int number) {
  model *net = &self->net;
  bool ends = number + 1 == self->deal.accumulate;
  lcomm_status status = is_last(self) ? LCOMM_OK : pipeline_await(&self->pipe);
  if (status != LCOMM_OK) {
    return status;
  }
  model_turn_to(net, number % net->part.kept);
  model_backward(net, self->deal.batch, ends ? send : keep, self);
  return is_first(self) ? LCOMM_OK : pipeline_send_back(&self->pipe, number, self->deal.batch);
}

/* 1F1B. A gradient is expected before the forward that it may arrive in. */
static lcomm_status run_batches(training *self) {
  int count = self->deal.accumulate, ahead = self->pipe.last - self->net.part.stage;
  lcomm_status status = LCOMM_OK;
  ahead = ahead < count ? ahead : count;
  for (int i = 0; i < ahead && status == LCOMM_OK; i++) {
    status = forward(self, i);
  }
  for (int i = 0; i < count && status == LCOMM_OK; i++) {
    status = is_last(self) ? LCOMM_OK : pipeline_expect(&self->pipe, self->deal.batch);
    if (status == LCOMM_OK && i + ahead < count) {
      status = forward(self, i + ahead);
    }
    if (status == LCOMM_OK) {
      status = backward(self, i);
    }
  }
  return first_error(status, pipeline_finish(&self->pipe));
}

/* -------------------------------------------------------------------- step */

static int check_stages(training *self, lcomm_status status, failure *why) {
  return peers_check(self->pipe.stages, status,
                     "a message between stages, rank s of a pipeline being stage s,", why);
}

static int average(training *self, failure *why) {
  lcomm_comm *replicas = self->pipe.replicas;
  overlap_begin(&self->overlap, overlap_now(replicas));
  gradients_begin(&self->gradients);
  if (self->sum) {
    self->net.on->clear(self->sum, self->net.weight_count * sizeof(float));
  }
  if (check_stages(self, run_batches(self), why)) {
    return -1;
  }
  overlap_waits(&self->overlap, now_s());
  lcomm_status status = gradients_wait(&self->gradients);
  overlap_ends(&self->overlap, overlap_now(replicas));
  if (peers_check(replicas, status, "averaging the gradients of a stage", why)) {
    return -1;
  }
  return check_stages(self, pipeline_add_tied(&self->pipe), why);
}

/* All stages skip a step that is spoilt in one, and all know the loss, which only the last stage
 * has: the mean over its replicas. */
static int agree(training *self, bool *spoilt, failure *why) {
  double loss = self->now.loss / self->deal.accumulate;
  uint64_t mine[2] = {lcomm_tensors_not_finite(self->pipe.replicas) > 0, 0};
  memcpy(&mine[1], &loss, sizeof loss);
  const uint64_t *all = peers_gather(&self->ranks, mine, 2, why);
  self->now.loss = 0.0;
  for (int rank = 0; all && rank < self->ranks.size; rank++) {
    memcpy(&loss, &all[2 * rank + 1], sizeof loss);
    self->now.loss += loss / replicas_of(self);
    *spoilt |= all[2 * rank] > 0;
  }
  return all ? 0 : -1;
}

void training_give_up(training *self, const failure *why) {
  lcomm_comm *all[TRAINING_COMMS];
  bool failed = self->served && self->step == 0; /* servers wait for the first step */
  int count = training_comms(self, all);
  for (int i = 0; i < count && count > 1; i++) {
    failed |= lcomm_progress(all[i]) != LCOMM_OK;
  }
  for (int i = 0; i < count && failed; i++) {
    lcomm_abort(all[i], why->text);
  }
}

int pipeline_step(training *self, bool *spoilt, failure *why) {
  self->now.loss = 0.0;
  if (average(self, why) || agree(self, spoilt, why)) {
    training_give_up(self, why);
    return -1;
  }
  return 0;
}

/* -------------------------------------------------------------------- test */

static lcomm_status test_batch(training *self, uint32_t first, int batch, int at, verdict *sums) {
  model *net = &self->net;
  model_turn_to(net, at);
  if (is_first(self) || is_last(self)) {
    task_test_batch(&self->task, first, batch, model_input(net), self->labels);
  }
  lcomm_status status = pipeline_receive(&self->pipe, at, batch);
  if (status != LCOMM_OK) {
    return status;
  }
  const element *made = model_infer(net, batch);
  if (!is_last(self)) {
    return pipeline_send_on(&self->pipe, at, batch);
  }
  training_judge(self, made, batch, sums);
  return LCOMM_OK;
}

int pipeline_test(training *self, uint32_t first, uint32_t end, verdict *sums, failure *why) {
  lcomm_status status = LCOMM_OK;
  uint32_t batch = (uint32_t)self->deal.batch;
  pipeline *pipe = &self->pipe;
  double waited_s = pipe->waited_s; /* counts steps only */
  pipeline_sum before = pipeline_sent(pipe);
  for (int i = 0; first < end && status == LCOMM_OK; i++, first += batch) {
    int count = (int)(end - first < batch ? end - first : batch);
    status = test_batch(self, first, count, i % self->net.part.kept, sums);
  }
  status = first_error(status, pipeline_finish(pipe));
  pipeline_sum after = pipeline_sent(pipe);
  pipe->waited_s = waited_s;
  pipe->tested.sent_bytes += after.sent_bytes - before.sent_bytes;
  pipe->tested.exact_bytes += after.exact_bytes - before.exact_bytes;
  if (check_stages(self, status, why)) {
    training_give_up(self, why);
    return -1;
  }
  return 0;
}
