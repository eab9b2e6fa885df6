/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_welcome.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "trainer/train_save.h"

/* Where the run stands, and whose run it is. */
enum { FACT_COUNT = 18, DESCRIPTION_SIZE = 1024 };
typedef union facts {
  struct {
    uint64_t whose; /* a hash of what all ranks have in common */
    uint64_t epoch, step, step_of_epoch, used, skipped, reported_step, run_steps;
    uint64_t at_first, rank_share, room; /* of the deal */
    uint64_t ended_steps, ended_used;
    double loss_sum, ended_loss;
    double scale; /* of the loss */
    uint64_t good, frozen;
  };
  uint64_t values[FACT_COUNT];
} facts;

_Static_assert(sizeof(facts) == FACT_COUNT * sizeof(uint64_t), "a fact is 64 bits");

/* Command lines that train the same on the same data. */
static uint64_t whose_run(const training *self) {
  char text[DESCRIPTION_SIZE];
  const options *chosen = self->chosen;
  int length = snprintf(
      text, sizeof text, "%s %d %a %a %a %a %d %a %d %d %d %d %llu %d %llu", chosen->model,
      (int)chosen->optimizer, (double)chosen->rate, (double)chosen->momentum, (double)chosen->decay,
      (double)chosen->clip, (int)chosen->schedule, (double)chosen->warmup, chosen->epochs,
      chosen->batch, chosen->accumulate, chosen->batch_global, (unsigned long long)chosen->seed,
      (int)chosen->precision, (unsigned long long)task_hash(&self->task));
  return XXH3_64bits_withSeed(text, (size_t)length, self->task.train_count);
}

static facts facts_of(const training *self) {
  return (facts){.whose = whose_run(self),
                 .epoch = (uint64_t)self->epoch,
                 .step = self->step,
                 .step_of_epoch = self->step_of_epoch,
                 .used = self->deal.used,
                 .skipped = self->skipped,
                 .reported_step = self->reported_step,
                 .run_steps = self->rates.steps,
                 .at_first = (uint64_t)self->deal.at_first,
                 .rank_share = (uint64_t)self->deal.rank_share,
                 .room = (uint64_t)self->deal.room,
                 .ended_steps = self->ended.steps,
                 .ended_used = self->ended.used,
                 .loss_sum = self->loss_sum,
                 .ended_loss = self->ended.loss_sum,
                 .scale = (double)self->scale.factor,
                 .good = self->scale.good,
                 .frozen = self->optimizer.frozen};
}

static int send_facts(training *self, facts *told, failure *why) {
  lcomm_status status = lcomm_broadcast(self->comm, told->values, FACT_COUNT, LCOMM_INT64, 0);
  return peers_check(self->comm, status, "telling newcomers where the run stands", why);
}

/* Rank 0's weights, and what its optimiser remembers: the same on all ranks that were there. What
 * layers remember is each rank's own, so it goes by a buffer. */
static int send_vectors(training *self, failure *why) {
  checkpoint_vectors vectors = checkpoint_vectors_of(self);
  size_t count = self->net.statistics_count;
  lcomm_status status = LCOMM_OK;
  self->net.on->finish(); /* a device may still be at work on them */
  for (int i = 0; i < vectors.count && status == LCOMM_OK; i++) {
    status =
        lcomm_broadcast(self->comm, vectors.values[i], self->net.weight_count, LCOMM_FLOAT32, 0);
  }
  if (status == LCOMM_OK && count > 0) {
    self->net.on->read(self->statistics, self->net.statistics, count * sizeof(float));
    status = lcomm_broadcast(self->comm, self->statistics, count, LCOMM_FLOAT32, 0);
  }
  return peers_check(self->comm, status, "telling newcomers the weights", why);
}

int welcome_tell(training *self, failure *why) {
  facts told = facts_of(self);
  return send_facts(self, &told, why) || send_vectors(self, why) ? -1 : 0;
}

static void take_facts(training *self, const facts *told) {
  self->epoch = (int)told->epoch;
  self->step = told->step;
  self->step_of_epoch = told->step_of_epoch;
  self->skipped = told->skipped;
  self->reported_step = told->reported_step;
  self->loss_sum = told->loss_sum;
  self->ended = (epoch_end){told->ended_steps, told->ended_used, told->ended_loss};
  self->rates = training_rates(self->chosen, told->run_steps);
  self->deal = (deal){.count = self->task.train_count,
                      .used = told->used,
                      .room = (int)told->room,
                      .at_first = (int)told->at_first,
                      .rank_share = (int)told->rank_share};
  deal_among(&self->deal, self->ranks.size);
}

/* Once there is a model. */
static void take_state(training *self, const facts *told) {
  self->scale.factor = (float)told->scale;
  self->scale.good = (uint32_t)told->good;
  optimizer_set_steps(&self->optimizer, told->step - told->skipped, told->frozen);
}

int welcome_be_told(training *self, failure *why) {
  facts told = {0};
  if (send_facts(self, &told, why)) {
    return -1;
  }
  if (told.whose != whose_run(self)) {
    return failure_set(
        why, EXIT_SETUP,
        "this rank has other options, or other data, than the training that it joins; "
        "start it by the same command line");
  }
  take_facts(self, &told);
  if (training_allocate(self, why)) {
    return -1;
  }
  take_state(self, &told);
  if (send_vectors(self, why)) {
    return -1;
  }
  self->net.on->write(self->net.statistics, self->statistics,
                      self->net.statistics_count * sizeof(float));
  return training_register(self, why);
}
