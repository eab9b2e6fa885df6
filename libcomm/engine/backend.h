/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_BACKEND_H
#define LCOMM_ENGINE_BACKEND_H

/* Where a run computes: on the host (backend_cpu.c) or on a CUDA device (backend_cuda.c). The
 * executor knows steps, slots and messages; what differs between the two is behind this table. */

#include "libcomm/engine/exec.h"

/* Computations that are put into a queue and end later. */
typedef struct lcomm_backend_queue {
  void (*start)(lcomm_run *run);         /* part of lcomm_run_start */
  bool (*is_full)(const lcomm_run *run); /* there is no room for a computation now */
  bool (*is_busy)(const lcomm_run *run); /* something was put into it that is not over */
  bool (*is_over)(const lcomm_run *run); /* the result is in its place */
  int (*enter)(const lcomm_run *run);    /* around what uses it; the answer is for leave */
  void (*leave)(const lcomm_run *run, int before);
  /* The next step that has become over, if any: *over tells. */
  lcomm_status (*poll)(lcomm_run *run, uint32_t *step, bool *over);
  /* All steps are over: bring the result to its place, and see whether it is there. */
  lcomm_status (*finish)(lcomm_run *run, bool *moved);
  /* Nothing of a run that was given up may touch its memory any more. */
  void (*cancel)(lcomm_run *run);
} lcomm_backend_queue;

typedef struct lcomm_backend {
  const char *name;
  /* It computes in memory of the host: slots may be parts of the vector, and payloads are read
   * where a peer has them. */
  bool is_host;

  /* Memory of a run, all of it made with the run by `rest` and what comes before and after. */
  lcomm_status (*make)(lcomm_run *run, lcomm_status (*rest)(lcomm_run *run));
  uint8_t *(*slots_memory)(lcomm_run *run, size_t size); /* NULL: there is none */
  bool (*own_memory)(lcomm_run *run);                    /* own_vector, own_input */
  void (*free)(lcomm_run *run);

  /* Do a step that computes, or put it into the queue: *over tells. */
  lcomm_status (*compute)(lcomm_run *run, uint32_t step, bool *over);
  const lcomm_backend_queue *queue; /* NULL: computations are over when they return */

  /* Slots that are DIRECT: where their payload is received, and that it was. */
  void *(*receive_place)(const lcomm_run *run, uint32_t slot);
  void (*received)(lcomm_run *run, uint32_t slot);
  /* Payloads that are not in memory of the host: what travels in a message of its own. */
  const void *(*sent_bytes)(const lcomm_run *run, uint32_t slot, size_t *size);
} lcomm_backend;

extern const lcomm_backend lcomm_backend_cpu, lcomm_backend_cuda;

/* The backend of a plan whose vector is at `location`. */
static inline const lcomm_backend *lcomm_backend_of(lcomm_memory_location location) {
  return lcomm_memory_is_on_device(location) ? &lcomm_backend_cuda : &lcomm_backend_cpu;
}

#endif
