/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
/* mpirun: 2 */

/* A training in fp16 that meets a step whose loss is scaled by far too much goes on, and ends with
 * the bits of one that leaves this step out. */

#include <string.h>
#include <xxhash.h>

#include "tests/support/mpi_property.h"
#include "trainer/train_report.h"

enum { BAD_STEP = 60 };

typedef enum bad_step { SPOILT, LEFT_OUT } bad_step;

typedef struct end {
  double loss;
  uint64_t skipped;
  float scale;
} end;

static void require_good(int result, const failure *why) {
  require(result == 0, "%s", why->text);
}

static options options_of(const char *policy, const char *sharded) {
  options made;
  failure why = {0};
  char words[][48] = {"train",     "--model=mlp", "--data=builtin",   "--images=4096",
                      "--lr=0.02", "--epochs=6",  "--precision=fp16", ""};
  char *arguments[9] = {0};
  snprintf(words[7], sizeof words[7], "--shard=%s", sharded);
  for (int i = 0; i < 8; i++) {
    arguments[i] = words[i];
  }
  require_good(options_parse(8, arguments, &made, &why), &why);
  made.model = "mlp";
  made.data = "builtin";
  made.policy = policy;
  return made;
}

static void set_scale(training *self, float factor) {
  failure why = {0};
  self->scale.factor = factor;
  require_good(training_scale(self, &why), &why);
}

/* What error feedback keeps on this rank. */
static uint64_t hash_residuals(const training *self) {
  static float kept[1 << 18];
  uint64_t hash = 0;
  int count = is_sharded(self) ? self->shard.plan.bucket_count : self->net.parameter_count;
  for (int i = 0; i < count; i++) {
    size_t size =
        (is_sharded(self) ? self->shard.plan.buckets[i].count : self->net.parameters[i].count) *
        sizeof(float);
    require(size <= sizeof kept, "the model is small");
    memset(kept, 0, size);
    if (!is_sharded(self)) {
      lcomm_tensor_residual(self->comm, self->gradients.tensors[i], kept);
    } else if (self->shard.residuals[i]) {
      lcomm_residual_get(self->shard.residuals[i], kept);
    }
    hash = XXH3_64bits_withSeed(kept, size, hash);
  }
  return hash;
}

static void make_step(training *self) {
  failure why = {0};
  double loss;
  require_good(training_step(self, schedule_rate(&self->rates, self->step), &loss, &why), &why);
}

static void make_bad_step(training *self, bad_step how) {
  failure why = {0};
  float scale = self->scale.factor;
  uint64_t skipped = self->skipped, kept = hash_residuals(self);
  if (how == SPOILT) {
    set_scale(self, 0x1p24f);
    make_step(self);
    require(hash_residuals(self) == kept, "the skipped step is in the residuals");
  } else {
    require_good(training_finish_step(self, true, &why), &why);
  }
  require(self->skipped == skipped + 1, "the overflow is not seen");
  set_scale(self, 0.5f * scale);
}

static void train_epochs(training *self, bad_step how) {
  for (; self->epoch <= self->chosen->epochs; training_next_epoch(self)) {
    task_begin_epoch(&self->task, self->chosen->seed, self->epoch, self->order);
    while (self->step_of_epoch < self->steps_per_epoch) {
      if (self->step == BAD_STEP) {
        make_bad_step(self, how);
      } else {
        make_step(self);
      }
    }
  }
}

static end train_to_the_end(const char *policy, const char *sharded, bad_step how) {
  options chosen = options_of(policy, sharded);
  training self = {.chosen = &chosen, .epoch = 1, .saved_step = UINT64_MAX};
  results tested = {0};
  failure why = {0};
  self.comm = make_comm(policy, 2);
  require_good(training_set_up(&self, &why), &why);
  train_epochs(&self, how);
  require_good(training_test(&self, &tested, &why), &why);
  end made = {tested.test_loss, self.skipped, self.scale.factor};
  require(lcomm_destroy(self.comm) == LCOMM_OK, "it ends");
  training_tear_down(&self);
  return made;
}

static void compare(const char *policy, const char *sharded) {
  end without = train_to_the_end(policy, sharded, LEFT_OUT),
      spoilt = train_to_the_end(policy, sharded, SPOILT);
  printf("%s, %s: loss %.5f without the step, with an overflow %.5f (%llu steps skipped)\n", policy,
         sharded, without.loss, spoilt.loss, (unsigned long long)spoilt.skipped);
  require(memcmp(&spoilt.loss, &without.loss, sizeof spoilt.loss) == 0,
          "'%s': the step has left something behind", policy);
  require(spoilt.skipped == without.skipped, "'%s': other steps are skipped", policy);
  require(memcmp(&spoilt.scale, &without.scale, sizeof spoilt.scale) == 0,
          "'%s': the scale is another one", policy);
  require(spoilt.loss < 2.0, "'%s': nothing is learned", policy);
}

static void an_overflow_is_skipped(void) {
  compare("net=none", "none");
}

static void and_leaves_nothing_in_residuals(void) {
  compare("net=int8+ef min=4K", "none");
}

static void nor_in_those_of_shards(void) {
  compare("net=int8+ef min=4K", "optimizer");
  compare("net=none", "gradients");
}

static const mpi_property properties[] = {
    PROPERTY(an_overflow_is_skipped),
    PROPERTY(and_leaves_nothing_in_residuals),
    PROPERTY(nor_in_those_of_shards),
};
RUN_PROPERTIES(mpi_property_main, properties)
