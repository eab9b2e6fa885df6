/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_FIDELITY_FIDELITY_WORLD_H
#define LCOMM_TOOLS_FIDELITY_FIDELITY_WORLD_H

/* All ranks of a data-parallel training in this process. Each has a communicator of libcomm, whose
 * messages, codecs and error feedback are those of ranks on hosts of their own; the nodes are
 * posed. One thread makes all calls and asks one rank after the other until all have their results;
 * it never sleeps. Only creation, the first step and the end are calls in which every rank waits
 * for the others; each rank has a thread for those. */

#include <stdbool.h>

#include "tools/fidelity/fidelity_case.h"
#include "trainer/train_gradients.h"

typedef struct fidelity_worker {
  lcomm_comm *comm;
  float *values; /* [weights of the model]: its gradient, then the average */
  gradients gradients;
  failure why; /* of what it did last */
} fidelity_worker;

typedef struct fidelity_world {
  fidelity_place place;
  int size;
  size_t count;             /* weights */
  int parameters;           /* tensors */
  fidelity_worker *workers; /* [size] */
  const char *policy;       /* used while the world is made */
  const model *net;         /* likewise */
  bool meets; /* ranks wait for each other at the end of a step: each in its own thread */
} fidelity_world;

/* Returns 0, or -1 with `why`; then nothing is kept. The tensors are those of the model. */
int fidelity_world_make(fidelity_place place, const char *policy, const model *net,
                        fidelity_world *made, failure *why);
void fidelity_world_free(fidelity_world *self);

/* Average what the workers have in `values`. Returns 0, or -1 with `why`, also when two workers
 * do not have the same bits then. */
int fidelity_world_step(fidelity_world *self, failure *why);

/* Does the policy keep the momentum, so that the optimiser must not? */
bool fidelity_world_keeps_momentum(const fidelity_world *self);

/* Does the policy send Adam's momentum after its warm-up (adam=), and has the last step? */
bool fidelity_world_sends_momentum(const fidelity_world *self);
bool fidelity_world_has_momentum(const fidelity_world *self);

/* Bytes that all nodes together have sent to each other in the steps so far. */
uint64_t fidelity_world_net_bytes(const fidelity_world *self);

#endif
