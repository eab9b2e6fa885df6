/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#include "tools/fidelity/fidelity_world.h"

#include <stdlib.h>
#include <string.h>

#include "tools/fidelity/fidelity_meeting.h"
#include "trainer/train_report.h"

/* The first sentence of those that workers have. */
static int complain(const fidelity_world *self, failure *why) {
  for (int rank = 0; rank < self->size; rank++) {
    if (self->workers[rank].why.exit_code != 0) {
      *why = self->workers[rank].why;
      return -1;
    }
  }
  return failure_set(why, EXIT_SETUP, "the %d workers could not be started; is there memory?",
                     self->size);
}

/* ------------------------------------------------------------------ its life */

static bool make_worker(void *context, int rank, const lcomm_bootstrap *boot) {
  fidelity_world *self = context;
  fidelity_worker *mine = &self->workers[rank];
  lcomm_config config = LCOMM_CONFIG_INIT;
  config.policy = self->policy;
  config.nodes = self->place.nodes;
  config.transport = "shm";
  config.progress = LCOMM_PROGRESS_CALLS;
  lcomm_status status = lcomm_create(boot, &config, &mine->comm);
  if (status != LCOMM_OK) {
    failure_set(&mine->why, EXIT_SETUP, "%s", lcomm_last_error(NULL));
    return false;
  }
  model view = *self->net;
  view.gradients = mine->values;
  return gradients_register(&mine->gradients, mine->comm, &view, &mine->why) == 0;
}

static bool end_worker(void *context, int rank, const lcomm_bootstrap *boot) {
  fidelity_world *self = context;
  (void)boot;
  lcomm_destroy(self->workers[rank].comm);
  return true;
}

static int allocate(fidelity_world *self, failure *why) {
  bool good = true;
  self->workers = calloc((size_t)self->size, sizeof *self->workers);
  for (int rank = 0; self->workers && rank < self->size; rank++) {
    void *values = NULL;
    good = good && lcomm_memory_alloc(self->count * sizeof(float), &values) == LCOMM_OK;
    self->workers[rank].values = values;
  }
  return self->workers && good
             ? 0
             : failure_set(why, EXIT_SETUP, "no memory for %d workers; simulate fewer", self->size);
}

int fidelity_world_make(fidelity_place place, const char *policy, const model *net,
                        fidelity_world *made, failure *why) {
  *made = (fidelity_world){.place = place,
                           .size = fidelity_workers(place),
                           .count = net->weight_count,
                           .parameters = net->parameter_count,
                           .policy = policy,
                           .net = net,
                           .meets = true};
  int failed = allocate(made, why);
  if (!failed && !fidelity_meeting_run(made->size, make_worker, made)) {
    failed = complain(made, why);
  }
  if (failed) {
    fidelity_world_free(made);
  }
  return failed;
}

void fidelity_world_free(fidelity_world *self) {
  if (self->workers) {
    fidelity_meeting_run(self->size, end_worker, self);
  }
  for (int rank = 0; self->workers && rank < self->size; rank++) {
    lcomm_memory_free(self->workers[rank].values);
  }
  free(self->workers);
  memset(self, 0, sizeof *self);
}

/* -------------------------------------------------------------------- a step */

static bool wait_for(fidelity_worker *mine) {
  lcomm_status status = gradients_wait(&mine->gradients);
  return peers_check(mine->comm, status, "averaging the gradients", &mine->why) == 0;
}

static bool wait_here(void *context, int rank, const lcomm_bootstrap *boot) {
  fidelity_world *self = context;
  (void)boot;
  return wait_for(&self->workers[rank]);
}

/* Ask one rank after the other, which gives up no processor, until each has its results. A rank
 * that failed has none; its wait says why. */
static void move_all(fidelity_world *self) {
  for (int over = 0; over < self->size;) {
    over = 0;
    for (int rank = 0; rank < self->size; rank++) {
      gradients *at = &self->workers[rank].gradients;
      int done = 0;
      lcomm_status status = lcomm_tensor_test(at->comm, at->tensors[self->parameters - 1], &done);
      over += done || status != LCOMM_OK;
    }
  }
}

/* In the first step the ranks compare their tensors, and each waits for the others. Steps that a
 * guard checks, or after which net=auto is revised, end with a sum of all ranks, too. */
static bool sums_after_steps(const fidelity_world *self) {
  const char *policy = lcomm_policy_string(self->workers[0].comm);
  return strstr(policy, "guard=") || strstr(policy, "=auto");
}

static bool wait_all(fidelity_world *self) {
  if (self->meets) {
    self->meets = sums_after_steps(self);
    return fidelity_meeting_run(self->size, wait_here, self);
  }
  bool good = true;
  move_all(self);
  for (int rank = 0; rank < self->size && good; rank++) {
    good = wait_for(&self->workers[rank]);
  }
  return good;
}

int fidelity_world_step(fidelity_world *self, failure *why) {
  for (int rank = 0; rank < self->size; rank++) {
    gradients_begin(&self->workers[rank].gradients);
    gradients_ready(&self->workers[rank].gradients, 0, self->parameters);
  }
  if (!wait_all(self)) {
    return complain(self, why);
  }
  const float *first = self->workers[0].values;
  for (int rank = 1; rank < self->size; rank++) {
    if (memcmp(self->workers[rank].values, first, self->count * sizeof(float)) != 0) {
      return failure_set(why, EXIT_TRAINING,
                         "the average of worker %d is not that of worker 0 to the bit; this is an "
                         "error of libcomm",
                         rank);
    }
  }
  return 0;
}

/* ----------------------------------------------------------------- questions */

bool fidelity_world_keeps_momentum(const fidelity_world *self) {
  return policy_keeps_momentum(lcomm_policy_string(self->workers[0].comm));
}

bool fidelity_world_sends_momentum(const fidelity_world *self) {
  return policy_sends_momentum(lcomm_policy_string(self->workers[0].comm));
}

bool fidelity_world_has_momentum(const fidelity_world *self) {
  int is_momentum = 0;
  return lcomm_tensors_momentum(self->workers[0].comm, &is_momentum) == LCOMM_OK && is_momentum;
}

uint64_t fidelity_world_net_bytes(const fidelity_world *self) {
  uint64_t sum = 0;
  for (int rank = 0; rank < self->size; rank++) {
    lcomm_stats stats;
    if (lcomm_stats_get(self->workers[rank].comm, &stats) == LCOMM_OK) {
      sum += stats.sent_bytes[LCOMM_LINK_NET];
    }
  }
  return sum;
}
