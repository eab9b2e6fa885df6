/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "trainer/train_elastic.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/train_clock.h"
#include "trainer/train_report.h"
#include "trainer/train_welcome.h"

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

bool elastic_joins(void) {
  const char *join = getenv("LCOMM_JOIN");
  return join && strcmp(join, "on") == 0;
}

int elastic_create(const options *chosen, lcomm_comm **comm, failure *why) {
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = chosen->policy;
  setenv("LCOMM_ELASTIC", "on", 1);
  if (lcomm_create_env(&config, comm) != LCOMM_OK) {
    return failure_set_common(why, EXIT_SETUP, "%s",
                              lcomm_last_error(NULL)); /* it names the rank */
  }
  return elastic_is_newcomer(*comm) ? 0 : check_ranks(chosen, *comm, why);
}

/* ------------------------------------------------------------------------- losses */

static bool has_lost_ranks(const training *self) {
  lcomm_status status = lcomm_progress(self->comm);
  return status == LCOMM_ERR_TRANSPORT || status == LCOMM_ERR_TIMEOUT;
}

/* Who has joined and left, also where others knew of it before these were lost. */
static void take_changes(change *made, const lcomm_comm *next) {
  lcomm_regrouped found;
  if (lcomm_regrouped_get(next, &found) == LCOMM_OK && found.ranks_before > 0) {
    made->left += found.left;
    made->joined += found.joined;
  }
}

static int take_comm(training *self, change *made, lcomm_comm *next, failure *why) {
  lcomm_destroy(self->comm);
  self->comm = next;
  self->gradients.comm = next;
  take_changes(made, next);
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
  if (take_comm(self, made, next, why)) {
    return -1;
  }
  lcomm_shrunk_get(next, &found);
  made->finished |= found.finished;
  made->lost_norm = hypot(made->lost_norm, found.lost_norm);
  made->lost_residual += (1.0 - made->lost_residual) * found.lost_residual;
  bool spoilt = lcomm_tensors_not_finite(next) > 0;
  return found.finished ? training_finish_step(self, spoilt, why) : 0;
}

/* ------------------------------------------------------------- leaving and joining */

void elastic_ask(const training *self) {
  if (is_elastic(self->chosen) && leave_signal_noted()) {
    lcomm_leave(self->comm);
  }
}

/* Would so many ranks have a step to make? In the last epoch a newcomer may come too late. */
static bool have_steps(const training *self, int ranks) {
  deal then = self->deal;
  deal_among(&then, ranks);
  return self->epoch < self->chosen->epochs || deal_steps_left(&then) > 0;
}

/* All ranks see the same. */
int elastic_look(training *self, failure *why) {
  const options *chosen = self->chosen;
  lcomm_changes asked = {0};
  if (!is_elastic(chosen) || lcomm_changes_get(self->comm, &asked) != LCOMM_OK) {
    return 0;
  }
  int stay = self->ranks.size - asked.leaving;
  if (asked.leaving > 0 && stay < chosen->elastic_min) {
    return failure_set_common(why, EXIT_SIGNAL + SIGTERM, "stopped after a step by a signal: %s",
                              strsignal(SIGTERM));
  }
  int with_all = stay + asked.waiting;
  self->changes = asked.leaving > 0 || (asked.waiting > 0 && with_all <= chosen->elastic_max &&
                                        have_steps(self, with_all));
  return self->changes ? -1 : 0;
}

/* The communicator of those that stay and of the newcomers; none for who leaves. */
static int regroup(training *self, change *made, failure *why) {
  lcomm_comm *next = NULL;
  self->changes = false;
  lcomm_status status = lcomm_regroup(self->comm, &next);
  if (peers_check(self->comm, status, "changing the ranks", why)) {
    return -1;
  }
  self->has_left = next == NULL;
  return self->has_left ? -1 : take_comm(self, made, next, why);
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

static bool have_joined(const training *self) {
  lcomm_regrouped found = {0};
  return lcomm_regrouped_get(self->comm, &found) == LCOMM_OK && found.joined > 0;
}

/* Log and screen are those of rank 0, which may be another one now. */
static int prepare(training *self, failure *why) {
  failure mine = {0};
  deal_among(&self->deal, self->ranks.size);
  self->steps_per_epoch = self->step_of_epoch + deal_steps_left(&self->deal);
  self->saved_step = UINT64_MAX;
  self->joined_step = have_joined(self) ? self->step : self->joined_step;
  if (training_make_room(self)) {
    failure_set(&mine, EXIT_SETUP, "no memory to go on");
  } else if (self->ranks.rank == 0 && !self->log) {
    log_go_on(self->chosen, &self->log, &mine);
  }
  if (peers_agree(&self->ranks, &mine)) {
    *why = mine;
    return -1;
  }
  return 0;
}

/* Of all ranks, newcomers too. */
static int stand_alike(training *self, uint64_t *weights_hash, failure *why) {
  if (agree_on_epoch(self, why) || prepare(self, why)) {
    return -1;
  }
  return replicas_compare(&self->ranks, training_weights(self), self->net.weight_count, self->epoch,
                          weights_hash, why);
}

static int meet_again(training *self, change *made, failure *why) {
  bool newcomers = made->joined > made->told;
  made->told = made->joined;
  if (newcomers && welcome_tell(self, why)) {
    return -1;
  }
  return stand_alike(self, &made->weights_hash, why);
}

bool elastic_is_newcomer(const lcomm_comm *comm) {
  lcomm_regrouped found;
  return lcomm_regrouped_get(comm, &found) == LCOMM_OK && found.is_newcomer;
}

int elastic_join(training *self, failure *why) {
  uint64_t weights_hash;
  if (peers_create(self->comm, &self->ranks)) {
    return failure_set(why, EXIT_SETUP, "no memory to join");
  }
  return welcome_be_told(self, why) || stand_alike(self, &weights_hash, why) ? -1 : 0;
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

/* Returns 0 where there is another communicator; else -1, and *again, if it may be tried again. */
static int change_ranks(training *self, change *made, bool *again, failure *why) {
  *again = self->changes;
  if (self->changes) {
    *why = (failure){0};
    return regroup(self, made, why);
  }
  if (!has_lost_ranks(self)) {
    return -1;
  }
  *why = (failure){0};
  return shrink(self, made, why);
}

int elastic_go_on(training *self, failure *why) {
  change made = {.before = self->ranks.size};
  double began_s = now_s();
  bool met = false, again = true;
  if (!is_elastic(self->chosen)) {
    return -1;
  }
  while (!met) {
    bool changed = change_ranks(self, &made, &again, why) == 0;
    if (self->has_left || (!changed && !again)) {
      return -1;
    }
    met = changed && meet_again(self, &made, why) == 0;
  }
  made.lost = made.before - made.left + made.joined - self->ranks.size;
  made.seconds = now_s() - began_s;
  report_change(self, &made);
  log_change(self, &made);
  return count_ranks(self, why);
}
