/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "trainer/train.h"
#include "trainer/train_clock.h"
#include "trainer/train_report.h"

/* One step of a training, and one test.
 *
 *   gradients [weight_count]  <- backward <- logits_delta <- loss <- logits <- forward <- samples
 */

/* The part of the order that this rank works on in batch `number` of the step. The samples of a
 * step are the same whatever the number of ranks they are spread over, as long as ranks x batch x
 * accumulate is. */
const uint32_t *training_samples(const training *self, int number) {
  return self->order + deal_place(&self->deal, replica_of(self), number);
}

double training_loss(training *self, const element *logits) {
  model *net = &self->net;
  int rows = self->deal.batch * self->task.labels;
  return net->on->loss(logits, self->labels, rows, self->task.classes, self->scale.factor,
                       model_logits_delta(net)) /
         rows;
}

/* Of images, B = batch; of text T positions stand in the place of each image:
 *
 *   images [B][28][28]  -> forward  -> logits [B][10] -> loss, logits_delta [B][10]
 *
 * What the scale multiplies goes through all of backward. Returns the mean loss. */
static double forward(training *self, int number) {
  model *net = &self->net;
  task_train_batch(&self->task, training_samples(self, number), self->deal.batch, model_input(net),
                   self->labels);
  return training_loss(self, model_forward(net, self->deal.batch));
}

/* ------------------------------------------------------------- accumulation
 * Of several batches the gradients of all but the last are summed up; with the last one each tensor
 * gets its sum and leaves. */

static void span_of_parameters(const model *net, int first, int count, size_t *begin, size_t *end) {
  const model_parameter *last = &net->parameters[first + count - 1];
  *begin = net->parameters[first].offset;
  *end = last->offset + last->count;
}

void training_keep_gradients(void *context, int first, int count) {
  training *self = context;
  size_t begin, end;
  span_of_parameters(&self->net, first, count, &begin, &end);
  self->net.on->accumulate(self->sum + begin, self->net.gradients + begin, end - begin);
}

void training_send_gradients(void *context, int first, int count) {
  training *self = context;
  size_t begin, end;
  float share = 1.0f / (float)self->deal.accumulate;
  span_of_parameters(&self->net, first, count, &begin, &end);
  if (self->deal.accumulate > 1 && self->net.gradients) {
    self->net.on->mean(self->net.gradients + begin, self->sum + begin, share, end - begin);
  }
  overlap_sent(&self->overlap, now_s());
  if (is_sharded(self)) {
    shard_ready(&self->shard, first, count);
  } else {
    gradients_ready(&self->gradients, first, count);
  }
}

/* Returns the sum of the losses of the batches before the last. */
static double accumulate(training *self) {
  double loss = 0.0;
  self->net.on->clear(self->sum, self->net.weight_count * sizeof(float));
  for (int i = 0; i + 1 < self->deal.accumulate; i++) {
    loss += forward(self, i);
    model_backward(&self->net, self->deal.batch, training_keep_gradients, self);
  }
  return loss;
}

/* ------------------------------------------------------------------ one step */

/* Backward of the last batch, and the averages. `spoilt`: they hold NaN or Inf. */
static lcomm_status average(training *self, bool *spoilt) {
  lcomm_status status;
  overlap_begin(&self->overlap, overlap_now(gradients_comm(self)));
  if (is_sharded(self)) {
    shard_begin(&self->shard, self->scale.factor);
    model_backward(&self->net, self->deal.batch, training_send_gradients, self);
    late_computed(self);
    overlap_waits(&self->overlap, now_s());
    status = shard_wait(&self->shard, self->discards, spoilt);
  } else {
    gradients_begin(&self->gradients);
    model_backward(&self->net, self->deal.batch, training_send_gradients, self);
    late_computed(self);
    overlap_waits(&self->overlap, now_s());
    status = gradients_wait(&self->gradients);
    *spoilt = lcomm_tensors_not_finite(gradients_comm(self)) > 0;
  }
  overlap_ends(&self->overlap, overlap_now(gradients_comm(self)));
  return status;
}

/* Batches are added up before they are averaged. */
static lcomm_status average_sum(training *self, double *loss, bool *spoilt) {
  *loss = self->deal.accumulate > 1 ? accumulate(self) : 0.0;
  *loss += forward(self, self->deal.accumulate - 1);
  return average(self, spoilt);
}

/* Where a rank keeps its part of the gradients only, each batch is averaged, and the parts are
 * added up. After a batch that holds NaN or Inf the step will be skipped. */
static lcomm_status average_each(training *self, double *loss, bool *spoilt) {
  lcomm_status status = LCOMM_OK;
  size_t count = self->shard.plan.count;
  const backend *on = self->net.on;
  float *part = self->shard.gradients, share = 1.0f / (float)self->deal.accumulate;
  *loss = 0.0;
  on->clear(self->sum, count * sizeof(float));
  for (int batch = 0; batch < self->deal.accumulate && status == LCOMM_OK; batch++) {
    bool bad = false;
    *loss += forward(self, batch);
    status = average(self, &bad);
    *spoilt |= bad;
    on->accumulate(self->sum, part, count);
  }
  on->copy(part, self->sum, count * sizeof(float));
  on->scale(part, share, count);
  return status;
}

static int average_batches(training *self, bool *spoilt, failure *why) {
  if (is_pipelined(self)) {
    return pipeline_step(self, spoilt, why);
  }
  /* A rank that leaves the step out has no loss of its own: that of its last step stands. */
  if (late_leaves_out(self)) {
    lcomm_status left_out = late_average(self);
    *spoilt = lcomm_tensors_not_finite(gradients_comm(self)) > 0;
    return peers_check(self->comm, left_out, "averaging the gradients", why);
  }
  late_begin(self);
  bool each = self->deal.accumulate > 1 && self->chosen->shard == SHARD_GRADIENTS;
  lcomm_status status = (each ? average_each : average_sum)(self, &self->now.loss, spoilt);
  self->now.loss /= self->deal.accumulate;
  return peers_check(self->comm, status, "averaging the gradients", why);
}

/* A rank whose device fails ends the others. */
static int check_device(training *self, failure *why) {
  const char *trouble = self->net.on->finish();
  if (!trouble) {
    return 0;
  }
  failure_set(why, EXIT_TRAINING, "rank %d cannot go on, its device reports: %s", self->ranks.rank,
              trouble);
  lcomm_abort(self->comm, why->text);
  return -1;
}

int training_finish_step(training *self, bool spoilt, failure *why) {
  if (check_device(self, why) || late_update(self, spoilt, why)) {
    return -1;
  }
  deal_use(&self->deal);
  self->step++;
  self->step_of_epoch++;
  self->loss_sum += self->now.loss;
  return 0;
}

/* Each tensor of gradients leaves as soon as backward has made it. After the
 * wait the gradients are averages of all ranks, so all ranks make the same step,
 * or skip the same one: libcomm has discarded it then, see complete_policy().
 * Where the averages are there the step is done, whatever becomes of the signal. */
int training_step(training *self, float rate, double *loss, failure *why) {
  stop_signal stop = {0};
  bool spoilt = false;
  self->now.rate = rate;
  bool asks = late_asks_all(self);
  lcomm_status asked = asks ? stop_signal_ask(self->comm, &stop) : LCOMM_OK;
  int failed = average_batches(self, &spoilt, why);
  lcomm_status told = asks ? first_error(asked, stop_signal_wait(self->comm, &stop)) : LCOMM_OK;
  *loss = self->now.loss;
  if (failed || training_finish_step(self, spoilt, why) ||
      peers_check(self->comm, told, "asking for a signal", why)) {
    return -1;
  }
  return stop_signal_check(&stop, why);
}

void training_next_epoch(training *self) {
  self->ended = (epoch_end){self->step_of_epoch, self->deal.used, self->loss_sum};
  self->epoch++;
  self->step_of_epoch = 0;
  self->loss_sum = 0.0;
  self->deal.used = 0;
  self->steps_per_epoch = deal_steps_left(&self->deal);
}

/* ----------------------------------------------------------------- one test */

void training_judge(const training *self, const element *logits, int batch, verdict *sums) {
  const backend *on = self->net.on;
  int rows = batch * self->task.labels, classes = self->task.classes;
  sums->correct += (uint64_t)on->correct(logits, self->labels, rows, classes);
  sums->loss += on->loss(logits, self->labels, rows, classes, 1.0f, NULL);
}

static void test_batch(training *self, uint32_t first, int batch, verdict *sums) {
  task_test_batch(&self->task, first, batch, model_input(&self->net), self->labels);
  training_judge(self, model_infer(&self->net, batch), batch, sums);
}

static uint32_t begin_of_part(const training *self, int replica) {
  uint64_t all = self->task.test_count;
  return (uint32_t)(all * (uint64_t)replica / (uint64_t)replicas_of(self));
}

/* Until the rank notes a signal: then the figures mean nothing, and the caller has to ask whether
 * to stop. Stages of a pipeline go on, as the others wait for them. */
static int test_part(training *self, uint32_t first, uint32_t end, verdict *sums, failure *why) {
  uint32_t batch = (uint32_t)self->deal.batch;
  if (is_pipelined(self)) {
    return pipeline_test(self, first, end, sums, why);
  }
  for (; first < end && !stop_signal_noted(); first += batch) {
    test_batch(self, first, (int)(end - first < batch ? end - first : batch), sums);
  }
  return 0;
}

/* What layers remember becomes the mean over the ranks, which all ranks test with. All-gathers are
 * exact, and all ranks add in the same order. */
static int share_statistics(training *self, failure *why) {
  model *net = &self->net;
  if (net->statistics_count == 0) {
    return 0;
  }
  if (statistics_gather(self, why)) {
    return -1;
  }
  statistics_take_mean(self, self->statistics, self->ranks.size);
  return 0;
}

int statistics_gather(training *self, failure *why) {
  size_t count = self->net.statistics_count;
  float *own = self->statistics + (size_t)self->ranks.rank * count;
  self->net.on->read(own, self->net.statistics, count * sizeof *own);
  lcomm_status status = lcomm_allgather(self->comm, own, self->statistics, count, LCOMM_FLOAT32);
  return peers_check(self->comm, status, "an exchange of statistics", why);
}

void statistics_take_mean(training *self, float *all, int ranks) {
  size_t count = self->net.statistics_count;
  for (size_t i = 0; i < count; i++) {
    double sum = 0.0;
    for (int rank = 0; rank < ranks; rank++) {
      sum += (double)all[(size_t)rank * count + i];
    }
    all[i] = (float)(sum / ranks);
  }
  self->net.on->write(self->net.statistics, all, count * sizeof *all);
}

/* Accuracy and mean loss on the test samples. Every rank looks at its part of them. */
int training_test(training *self, results *made, failure *why) {
  verdict sums = {0};
  if (share_statistics(self, why)) {
    return -1;
  }
  uint32_t first = begin_of_part(self, replica_of(self));
  if (test_part(self, first, begin_of_part(self, replica_of(self) + 1), &sums, why)) {
    return -1;
  }
  if (peers_sum(&self->ranks, &sums.correct, 1, why) ||
      peers_sum_real(&self->ranks, &sums.loss, why)) {
    return -1;
  }
  double rows = (double)self->task.test_count * self->task.labels;
  made->accuracy = (double)sums.correct / rows;
  made->test_loss = sums.loss / rows;
  return 0;
}
