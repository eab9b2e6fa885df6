/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_TAPE_COUNT_H
#define LCOMM_ENGINE_TAPE_COUNT_H

/* What an operation asks of its device, without one: the tape of a plan is played to a table that
 * only counts. Payloads stay on devices as they do once all memory of peers is open
 * (peer_memory.h): between devices that reach each other by the topology, and not with
 * LCOMM_CUDA_IPC=off. */

#include "libcomm/plan/plan.h"

/* Of which operation, and of which rank. */
typedef struct lcomm_tape_case {
  lcomm_plan_request request;
  const lcomm_policy *policy;
  const lcomm_topo *topo;
  int rank;
} lcomm_tape_case;

/* Calls of CUDA. */
typedef struct lcomm_tape_calls {
  uint64_t launches;
  uint64_t copies;  /* and fills */
  uint64_t numbers; /* batches of waits and writes */
  uint64_t events;  /* recorded, and waited for */
  /* No calls: payloads that are read on devices of peers; of these, those that lanes wait for by
   * gates. */
  uint64_t stay, gates;
} lcomm_tape_calls;

/* Those of the caller for one operation in a stream, over buffers that need no copy, whatever
 * location the request has. Of a request with error feedback: with a residual that has a name, or
 * of a tensor that is a bucket by itself, without clipping. Of top-k as many launches as its
 * kernels may be (kernels/cuda.h), which are fewer for short payloads. MEMORY, or what
 * lcomm_plan_create met. */
lcomm_status lcomm_tape_count(const lcomm_tape_case *it, lcomm_tape_calls *calls);

/* The same of a call that is captured: what each launch of the graph does. */
lcomm_status lcomm_tape_count_captured(const lcomm_tape_case *it, lcomm_tape_calls *calls);

static inline uint64_t lcomm_tape_calls_all(const lcomm_tape_calls *calls) {
  return calls->launches + calls->copies + calls->numbers + calls->events;
}

#endif
