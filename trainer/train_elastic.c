/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_elastic.h"

#include <inttypes.h>
#include <stdlib.h>

#include "trainer/train_report.h"

/* -------------------------------------------------------------------- the start */

int elastic_check_launcher(failure *why) {
  if (getenv("RANK") || !(getenv("OMPI_COMM_WORLD_RANK") || getenv("PMI_RANK"))) {
    return 0;
  }
  return failure_set_common(why, EXIT_SETUP,
                            "--elastic does not go with mpirun, which ends a job when a rank dies; "
                            "start the ranks by launch, torchrun or srun");
}

static int check_ranks(const options *chosen, const lcomm_comm *comm, failure *why) {
  int ranks = lcomm_size(comm);
  if (ranks >= chosen->elastic_min && ranks <= chosen->elastic_max) {
    return 0;
  }
  return failure_set_common(
      why, EXIT_SETUP,
      "there are %d ranks, and --elastic %d:%d asks for %d to %d; start as many "
      "by launch, torchrun or srun",
      ranks, chosen->elastic_min, chosen->elastic_max, chosen->elastic_min, chosen->elastic_max);
}

int elastic_create(const options *chosen, lcomm_comm **comm, failure *why) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = chosen->policy;
  setenv("LCOMM_ELASTIC", "on", 1);
  if (lcomm_create_env(&config, comm) != LCOMM_OK) {
    return failure_set_common(why, EXIT_SETUP, "%s",
                              lcomm_last_error(NULL)); /* it names the rank */
  }
  return check_ranks(chosen, *comm, why);
}

/* ------------------------------------------------------------------------- losses */

static bool has_lost_ranks(const training *self) {
  lcomm_status status = lcomm_progress(self->comm);
  return status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_TIMEOUT;
}

static int take_comm(training *self, lcomm_comm *next, failure *why) {
  lcomm_destroy(self->comm);
  self->comm = next;
  self->gradients.comm = next;
  peers_destroy(&self->ranks);
  if (peers_create(next, &self->ranks)) {
    failure_set(why, EXIT_SETUP, "no memory to go on");
    lcomm_abort(next, why->text);
    return -1;
  }
  return 0;
}

/* The communicator of those that are left. Where others had the averages of the step that failed
 * here, they are here as well, and the step is finished; else it is as if it had not begun. */
static int shrink(training *self, change *made, failure *why) {
  lcomm_comm *next = NULL;
  lcomm_shrunk found;
  if (lcomm_shrink(self->comm, &next) != LCOMM_OK) {
    return failure_set(why, EXIT_TRAINING, "cannot go on without the ranks that were lost: %s",
                       lcomm_last_error(self->comm));
  }
  if (take_comm(self, next, why)) {
    return -1;
  }
  lcomm_shrunk_get(next, &found);
  made->lost += found.lost;
  made->finished |= found.finished;
  made->lost_residual += (1.0 - made->lost_residual) * found.lost_residual;
  bool spoilt = lcomm_tensors_not_finite(next) > 0;
  return found.finished ? training_finish_step(self, spoilt, why) : 0;
}

/* ------------------------------------------------------------------- meeting again */

/* To the end of the epoch before, which others have yet to come to: what follows it is between the
 * ranks, and nothing is changed by it. */
static void go_back(training *self) {
  self->epoch--;
  self->step_of_epoch = self->ended.steps;
  self->deal.used = self->ended.used;
  self->loss_sum = self->ended.loss_sum;
}

/* All have done the same steps. */
static int agree_on_epoch(training *self, failure *why) {
  uint64_t mine[] = {self->step, (uint64_t)self->epoch};
  const uint64_t *all = peers_gather(&self->ranks, mine, 2, why);
  uint64_t least = mine[1];
  for (int rank = 0; all && rank < self->ranks.size; rank++) {
    least = all[2 * rank + 1] < least ? all[2 * rank + 1] : least;
    if (all[2 * rank] != all[0]) {
      return failure_set_common(why, EXIT_TRAINING,
                                "rank %d has done %" PRIu64 " steps, rank 0 %" PRIu64
                                ", after ranks were lost; please report it",
                                rank, all[2 * rank], all[0]);
    }
  }
  if (all && mine[1] > least) {
    go_back(self);
  }
  return all ? 0 : -1;
}

/* Log and screen are those of rank 0, which may be another one now. */
static int prepare(training *self, failure *why) {
  failure mine = {0};
  deal_among(&self->deal, self->ranks.size);
  self->steps_per_epoch = self->step_of_epoch + deal_steps_left(&self->deal);
  self->saved_step = UINT64_MAX;
  if (training_make_sum(self)) {
    failure_set(&mine, EXIT_SETUP, "no memory to accumulate batches");
  } else if (self->ranks.rank == 0 && !self->log) {
    log_go_on(self->chosen, &self->log, &mine);
  }
  if (peers_agree(&self->ranks, &mine)) {
    *why = mine;
    return -1;
  }
  return 0;
}

static int meet_again(training *self, change *made, failure *why) {
  if (agree_on_epoch(self, why) || prepare(self, why)) {
    return -1;
  }
  return replicas_compare(&self->ranks, training_weights(self), self->net.weight_count, self->epoch,
                          &made->weights_hash, why);
}

static int count_ranks(training *self, failure *why) {
  const options *chosen = self->chosen;
  if (self->ranks.size >= chosen->elastic_min) {
    return 0;
  }
  self->too_few = true;
  return failure_set_common(
      why, EXIT_TRAINING,
      "%d of the ranks are left, too few for --elastic %d:%d; stopped after step "
      "%" PRIu64,
      self->ranks.size, chosen->elastic_min, chosen->elastic_max, self->step);
}

int elastic_go_on(training *self, failure *why) {
  change made = {.before = self->ranks.size};
  double began_s = progress_now_s();
  bool met = false;
  while (!met) {
    if (!is_elastic(self->chosen) || !has_lost_ranks(self)) {
      return -1;
    }
    *why = (failure){0};
    if (shrink(self, &made, why)) {
      return -1;
    }
    met = meet_again(self, &made, why) == 0;
  }
  made.seconds = progress_now_s() - began_s;
  report_change(self, &made);
  log_change(self, &made);
  return count_ranks(self, why);
}
