/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_checkpoint.h"
#include "trainer/train_folder.h"
#include "trainer/train_save.h"

/* A run goes on from its last checkpoint. */

enum { RANKS_MAX = 1 << 20 };

static int find_last(const char *folder, folder_path found, failure *why) {
  struct dirent **entries;
  int count = folder_list(folder, &entries, why);
  if (count > 0) {
    folder_join(found, folder, entries[count - 1]->d_name);
  }
  folder_list_free(entries, count);
  if (count == 0) {
    return failure_set(why, EXIT_SETUP, "%s holds no checkpoint to go on from", folder);
  }
  return count < 0 ? -1 : 0;
}

static int differs(const char *path, const char *option, const char *saved, const char *given,
                   failure *why) {
  return failure_set(why, EXIT_SETUP,
                     "the checkpoint %s is of a run with --%s %s, this one has %s; give the same",
                     path, option, saved, given);
}

/* What must be as it was. Ranks, batch, learning rate, epochs and policy may be others. */
static int compare(const training *self, const char *path, const checkpoint *head, failure *why) {
  const options *chosen = self->chosen;
  if (strcmp(head->model, chosen->model) != 0 || head->at.weight_count != self->net.weight_count) {
    return differs(path, "model", head->model, chosen->model, why);
  }
  if (head->at.optimizer != (uint64_t)chosen->optimizer) {
    const char *saved = head->at.optimizer < OPTIMIZER_COUNT
                            ? optimizer_name((optimizer_kind)head->at.optimizer)
                            : "of another version";
    return differs(path, "optimizer", saved, optimizer_name(chosen->optimizer), why);
  }
  if (head->at.seed != chosen->seed) {
    char saved[32], given[32];
    snprintf(saved, sizeof saved, "%" PRIu64, head->at.seed);
    snprintf(given, sizeof given, "%" PRIu64, chosen->seed);
    return differs(path, "seed", saved, given, why);
  }
  if (head->at.data_hash != task_hash(&self->task)) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is of a run with other data than %s; give the same "
                       "--data",
                       path, task_where(&self->task));
  }
  if (head->at.sharded != (uint64_t)is_sharded(self)) {
    return differs(path, "shard", head->at.sharded ? "optimizer or gradients" : "none",
                   shard_name(chosen->shard), why);
  }
  if (!(head->at.scale >= 1.0 && head->at.scale <= 0x1p24)) {
    return failure_set(why, EXIT_SETUP, "the checkpoint %s has a loss scale of %g", path,
                       head->at.scale);
  }
  if (head->at.skipped > head->at.steps || head->at.frozen > head->at.steps - head->at.skipped) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is of %" PRIu64 " steps, %" PRIu64
                       " of them skipped and %" PRIu64 " with momentum, which are more than all",
                       path, head->at.steps, head->at.skipped, head->at.frozen);
  }
  if (head->at.ranks < 1 || head->at.ranks > RANKS_MAX) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is of %" PRIu64 " ranks, expected 1 to %d", path,
                       head->at.ranks, RANKS_MAX);
  }
  if (head->at.epoch < 1 || head->at.epoch > (uint64_t)chosen->epochs) {
    return failure_set(why, EXIT_SETUP,
                       "the checkpoint %s is in epoch %" PRIu64 " of a run of %d; give more "
                       "--epochs",
                       path, head->at.epoch, chosen->epochs);
  }
  return 0;
}

/* On another number of ranks, or with another batch, a step has other samples: those that are used
 * stay so. */
static void take_up(training *self, const checkpoint *head) {
  uint64_t used = head->at.samples;
  self->deal.used = used < self->deal.count ? used : self->deal.count;
  self->epoch = (int)head->at.epoch;
  self->step_of_epoch = self->deal.used / (uint64_t)samples_per_step(self);
  self->steps_per_epoch = self->step_of_epoch + deal_steps_left(&self->deal);
  self->step = head->at.steps;
  self->skipped = head->at.skipped;
  self->loss_sum = head->at.loss;
  if (head->at.precision == (uint64_t)self->chosen->precision) {
    self->scale.factor = (float)head->at.scale;
    self->scale.good = (uint32_t)head->at.good;
  }
  optimizer_set_steps(&self->optimizer, head->at.steps - head->at.skipped, head->at.frozen);
}

/* On as many ranks each goes on with its own statistics, else all with the mean. */
static void take_up_statistics(training *self, float *all, uint64_t ranks) {
  size_t count = self->net.statistics_count;
  if (ranks == (uint64_t)self->ranks.size) {
    self->net.on->write(self->net.statistics, all + (size_t)self->ranks.rank * count,
                        count * sizeof(float));
  } else {
    statistics_take_mean(self, all, (int)ranks);
  }
}

/* This rank's part of each bucket of it, if it is sharded. */
static int get_vector(training *self, checkpoint_file *file, float *values, failure *why) {
  if (!is_sharded(self)) {
    size_t count = self->net.weight_count;
    float *read = self->host ? self->host : values;
    int result = checkpoint_get(file, read, count, why);
    self->net.on->write(values, read, count * sizeof *read);
    return result;
  }
  for (int i = 0; i < self->shard.plan.bucket_count; i++) {
    size_t count = self->shard.plan.buckets[i].count;
    float *read = self->host ? self->host : self->shard.bucket;
    if (checkpoint_get(file, read, count, why)) {
      return -1;
    }
    self->net.on->write(self->shard.bucket, read, count * sizeof *read);
    shard_take_values(&self->shard, i, values);
  }
  return 0;
}

static int get_statistics(training *self, checkpoint_file *file, uint64_t ranks, failure *why) {
  size_t count = ranks * self->net.statistics_count;
  float *all = malloc(count * sizeof(float) + 1);
  if (!all) {
    return failure_set(why, EXIT_SETUP, "no memory to load %s", file->path);
  }
  int result = checkpoint_get(file, all, count, why);
  if (result == 0) {
    take_up_statistics(self, all, ranks);
  }
  free(all);
  return result;
}

static int load_vectors(training *self, checkpoint_file *file, uint64_t ranks, failure *why) {
  checkpoint_vectors vectors = checkpoint_vectors_of(self);
  if (checkpoint_expect(file, checkpoint_values_of(self, ranks), why)) {
    return -1;
  }
  for (int i = 0; i < vectors.count; i++) {
    if (get_vector(self, file, vectors.values[i], why)) {
      return -1;
    }
  }
  return get_statistics(self, file, ranks, why) || checkpoint_end(file, why) ? -1 : 0;
}

static int load_trainer(training *self, const char *folder, failure *why) {
  folder_path path;
  checkpoint_file file;
  checkpoint head;
  folder_join(path, folder, "trainer");
  if (checkpoint_open(path, &file, &head, why)) {
    return -1;
  }
  int result = compare(self, path, &head, why);
  if (result == 0) {
    result = load_vectors(self, &file, head.at.ranks, why);
  }
  checkpoint_close(&file);
  if (result == 0) {
    take_up(self, &head);
  }
  return result;
}

/* Ranks of hosts that see other folders may have found other checkpoints. */
static int compare_steps(training *self, failure *why) {
  uint64_t mine = self->step;
  const uint64_t *all = peers_gather(&self->ranks, &mine, 1, why);
  for (int rank = 1; all && rank < self->ranks.size; rank++) {
    if (all[rank] != all[0]) {
      return failure_set_common(why, EXIT_SETUP,
                                "rank %d found the checkpoint of step %" PRIu64
                                " in %s, rank 0 that of step %" PRIu64
                                "; --resume needs a folder that all ranks see",
                                rank, all[rank], self->chosen->resume, all[0]);
    }
  }
  return all ? 0 : -1;
}

int resume_checkpoint(training *self, failure *why) {
  folder_path folder, states;
  if (!self->chosen->resume) {
    return 0;
  }
  failure mine = {0};
  if (find_last(self->chosen->resume, folder, &mine) == 0) {
    load_trainer(self, folder, &mine);
  }
  if (peers_agree(&self->ranks, &mine)) {
    *why = mine;
    return -1;
  }
  folder_join(states, folder, "libcomm");
  if (compare_steps(self, why) ||
      peers_check(self->comm, lcomm_state_load(self->comm, states), "loading the state", why)) {
    return -1;
  }
  if (training_scale(self, why) || training_publish(self, why)) {
    return -1;
  }
  self->saved_step = self->step;
  snprintf(self->resumed, sizeof self->resumed, "%s", folder);
  return 0;
}
