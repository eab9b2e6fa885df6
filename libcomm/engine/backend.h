/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_BACKEND_H
#define LCOMM_ENGINE_BACKEND_H

/* Where a run computes: on the host (backend_cpu.c) or on a CUDA device (backend_cuda.c). What is
 * computed from which slots, and when, is said once: ENCODE, DECODE and REDUCE in compute.c, the
 * staging of callers' data in call/ and tensor/. A backend has the primitive operations.
 *
 * On the host an operation is over when it returns, and succeeds unless it says otherwise. On a
 * device it is put into the stream of the run, between lcomm_run_enter and lcomm_run_leave;
 * SYSTEM when the device refuses: the communicator has failed then. */

#include "kernels/lowrank_step.h"
#include "kernels/sample.h"
#include "libcomm/engine/exec.h"

/* An ENCODE, of elements of the vector from `source` on. */
typedef struct lcomm_encoding {
  const lcomm_step *step;
  uint32_t index; /* of the step */
  float *source;
  lcomm_ef_array residual; /* NULL: without error feedback; of the kind step->feedback */
  float weight;            /* of an owner's error: undoes the factor of the sum */
} lcomm_encoding;

/* A REDUCE of payloads of dense codecs. */
typedef struct lcomm_summing {
  const lcomm_step *step;
  const lcomm_summand *summands; /* step->slot_count of them, in their order */
  float factor;
  float *destination;
  const lcomm_step *next; /* the ENCODE of the sum, which may be done in the same pass; or NULL */
} lcomm_summing;

/* A DECODE with COMMIT: of what was sent in slot `sent`, what the result applies leaves the
 * residual and loses its momentum. */
typedef struct lcomm_applying {
  uint32_t slot; /* the result, of top-k; LCOMM_NO_SLOT: a dense one, which applies all of it */
  lcomm_span span;
  float *destination; /* of the values of the result, where that is of top-k */
  uint32_t sent;
  float *residual, *momentum; /* of the span; no momentum: NULL */
} lcomm_applying;

/* A sample of an array that lies at `offset` of a vector, of which elements first .. first+count
 * are `values`. Where there is none, it counts as 0. */
typedef struct lcomm_sampling {
  lcomm_sample sample;
  const float *values;
  uint64_t first, count, offset;
  float factor; /* of values */
  float *destination;
} lcomm_sampling;

/* Payloads of slots. */
typedef struct lcomm_backend_payloads {
  /* Make a dense payload. */
  lcomm_status (*encode)(lcomm_run *run, const lcomm_encoding *it);
  /* Bring a dense payload to where messages take it from: the one that was made, or a copy of
   * `elements`, where that is not NULL. */
  lcomm_status (*publish)(lcomm_run *run, const lcomm_step *step, const uint8_t *elements);
  /* Where computations read a payload: it is brought there. */
  lcomm_status (*read)(lcomm_run *run, uint32_t slot, uint8_t **payload);
  /* Where lcomm_backend_vectors.copy reads it. */
  const uint8_t *(*at)(const lcomm_run *run, uint32_t slot);
  lcomm_status (*decode)(lcomm_run *run, const lcomm_step *step, uint8_t *payload);
  /* *encoded: the ENCODE it->next is done, too. */
  lcomm_status (*sum)(lcomm_run *run, const lcomm_summing *it, bool *encoded);
  /* The same of a plan without codecs. */
  lcomm_status (*sum_plain)(lcomm_run *run, const lcomm_step *step);

  /* Top-k: make payloads, and bring them to where messages take them from. How long they are is
   * known when the step is over. */
  lcomm_status (*topk_encode)(lcomm_run *run, const lcomm_encoding *it);
  void (*topk_sizes)(lcomm_run *run, const lcomm_step *step);
  /* destination = factor * payload; destination += factor * payload */
  lcomm_status (*topk_decode)(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                              float *destination);
  lcomm_status (*topk_add)(lcomm_run *run, uint32_t slot, lcomm_span span, float factor,
                           float *destination);
  lcomm_status (*topk_apply)(lcomm_run *run, const lcomm_applying *it);
  /* What was sent loses its momentum. */
  lcomm_status (*topk_mask)(lcomm_run *run, uint32_t sent, lcomm_span span, float *momentum);
} lcomm_backend_payloads;

/* Vectors, whose elements are lcomm_sum_dtype of those of callers' buffers. A factor of 1 changes
 * no bit; integers have no other. */
typedef struct lcomm_backend_vectors {
  lcomm_status (*copy)(lcomm_run *run, void *to, const void *from, size_t size);
  /* vector = factor * buffer, which may be the vector where the elements are not converted;
   * buffer = vector, converted. */
  lcomm_status (*load)(lcomm_run *run, const lcomm_buffer *buffer, double factor, void *vector);
  lcomm_status (*store)(lcomm_run *run, const void *vector, const lcomm_buffer *buffer);
  /* The finished sum of an average of integers, divided by the number of ranks towards zero.
   * Other types are divided where the sum is made. */
  lcomm_status (*average)(lcomm_run *run, const lcomm_buffer *sum);
  /* Count NaN and Inf into run->not_finite, which is right once the run is over. */
  lcomm_status (*count_not_finite)(lcomm_run *run, const lcomm_buffer *values);

  /* Error feedback. values += before; now = 0 */
  lcomm_status (*fold)(lcomm_run *run, float *values, lcomm_ef_array residual, uint64_t n);
  /* sums += carried, of float32 or float64 */
  lcomm_status (*add)(lcomm_run *run, float *sums, const float *carried, uint64_t n);
  lcomm_status (*add_f64)(lcomm_run *run, double *sums, const float *carried, uint64_t n);
  /* now = factor * before + values; values = now */
  lcomm_status (*momentum)(lcomm_run *run, float factor, lcomm_ef_array momentum, float *values,
                           uint64_t n);
  /* now = keep * before + take * values, see lcomm_plain_mean_f32 */
  lcomm_status (*mean)(lcomm_run *run, float keep, lcomm_ef_array mean, float take,
                       const float *values, uint64_t n);
  /* Scale values of float32 or float64 down to an L2 norm of at most `norm`, see codecs/clip.h. */
  lcomm_status (*clip)(lcomm_run *run, const lcomm_buffer *values, double norm);
  /* The same in two steps, for vectors of several runs: count the squares of values, and those that
   * another run has counted (NULL: none); scale down so that the norm of all that `all` has counted
   * is at most `norm`. */
  lcomm_status (*squares)(lcomm_run *run, const lcomm_buffer *values, const lcomm_run *others);
  lcomm_status (*clip_to)(lcomm_run *run, const lcomm_buffer *values, const lcomm_run *all,
                          double norm);

  /* Bring elements of a vector to memory of the host, pinned where the run is on a device: they are
   * there once the run is over. Add them to what is there. */
  lcomm_status (*sample)(lcomm_run *run, const lcomm_sampling *it);
  lcomm_status (*sample_add)(lcomm_run *run, const lcomm_sampling *it);
} lcomm_backend_vectors;

/* Matrices that travel by low rank, as lcomm_cuda_lowrank in kernels/lowrank_step.h says; any
 * number of them. */
typedef struct lcomm_backend_lowrank {
  lcomm_status (*project)(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count);
  lcomm_status (*turn)(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count);
  lcomm_status (*finish)(lcomm_run *run, const lcomm_lowrank_matrix *list, size_t count);
} lcomm_backend_lowrank;

/* Operations that end later. */
typedef struct lcomm_backend_queue {
  void (*start)(lcomm_run *run);         /* part of lcomm_run_start */
  bool (*is_full)(const lcomm_run *run); /* there is no room for a computation now */
  bool (*is_busy)(const lcomm_run *run); /* something that needs no peer is not over */
  /* Around operations of the backend that are not in a step; the answer is for leave. */
  int (*enter)(const lcomm_run *run);
  void (*leave)(const lcomm_run *run, int before);
  /* Around a round of the executor, likewise. */
  int (*round_begin)(const lcomm_run *run);
  void (*round_end)(const lcomm_run *run, int before);
  /* What follows comes after what is in a stream of the program now; after its event. */
  lcomm_status (*follow)(lcomm_run *run, void *stream);
  lcomm_status (*follow_event)(lcomm_run *run, void *event);
  /* A step's dependencies are over: its computation may be done. */
  lcomm_status (*compute)(lcomm_run *run, const lcomm_computation *it);
  /* One that is over, if any: *over tells. */
  lcomm_status (*pop)(lcomm_run *run, lcomm_computation *it, bool *over);
  /* All steps are over: the result is brought out; is it there? */
  lcomm_status (*close)(lcomm_run *run);
  lcomm_status (*poll_end)(lcomm_run *run, bool *over);
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
  /* Sends were given up: what they may still read is taken out of the run, for good, so that the
   * rest can be freed. False, or NULL: all of it has to stay. */
  bool (*leave_sent)(lcomm_run *run);

  const lcomm_backend_payloads *payloads;
  const lcomm_backend_vectors *vectors;
  const lcomm_backend_lowrank *lowrank;
  const lcomm_backend_queue *queue; /* NULL: operations are over when they return */

  /* Payloads that stay on a device: what travels in a message of its own. */
  const void *(*sent_bytes)(const lcomm_run *run, uint32_t slot, size_t *size);
} lcomm_backend;

/* On a device step by step, and by tapes (tape.h). */
extern const lcomm_backend lcomm_backend_cpu, lcomm_backend_cuda, lcomm_backend_taped;

/* Parts of these. */
extern const lcomm_backend_payloads lcomm_backend_cpu_payloads, lcomm_backend_cuda_payloads;
extern const lcomm_backend_vectors lcomm_backend_cpu_vectors, lcomm_backend_cuda_vectors;
extern const lcomm_backend_lowrank lcomm_backend_cpu_lowrank, lcomm_backend_cuda_lowrank;
extern const lcomm_backend_queue lcomm_proxy_queue, lcomm_stepped_queue;

/* Their tables, in files that name the functions as the members: no backend can leave one out. */
#define LCOMM_BACKEND_PAYLOADS_TABLE(READ, TOPK)                                                   \
  {                                                                                                \
    .encode = encode, .publish = publish, .read = READ, .at = at, .decode = decode, .sum = sum,    \
    .sum_plain = sum_plain, .topk_encode = TOPK##_encode, .topk_sizes = TOPK##_sizes,              \
    .topk_decode = TOPK##_decode, .topk_add = TOPK##_add, .topk_apply = TOPK##_apply,              \
    .topk_mask = TOPK##_mask                                                                       \
  }
#define LCOMM_BACKEND_VECTORS_TABLE                                                                \
  {                                                                                                \
    .copy = copy, .load = load, .store = store, .average = average,                                \
    .count_not_finite = count_not_finite, .fold = fold, .add = add, .add_f64 = add_f64,            \
    .momentum = momentum, .mean = mean, .clip = clip, .squares = squares, .clip_to = clip_to,      \
    .sample = sample, .sample_add = sample_add                                                     \
  }

/* The backend of a plan: where its vector is, and how it gets there (backend_choice.c). On a device
 * it is in use. */
const lcomm_backend *lcomm_backend_of(lcomm_comm *comm, const lcomm_plan *plan);

/* Around operations of a backend that are not in a step. Computations of the host are in the
 * standard floating-point environment. A run that plays tapes gives up the communicator's turn in
 * between: its caller has the device's (device_turn.h). */
typedef struct lcomm_run_entry {
  int before;
  uint32_t environment;
} lcomm_run_entry;

static inline lcomm_run_entry lcomm_run_enter(const lcomm_run *run) {
  const lcomm_backend_queue *queue = run->backend->queue;
  return (lcomm_run_entry){queue ? queue->enter(run) : 0, lcomm_fp_enter()};
}

static inline void lcomm_run_leave(const lcomm_run *run, lcomm_run_entry entry) {
  lcomm_fp_leave(entry.environment);
  if (run->backend->queue) {
    run->backend->queue->leave(run, entry.before);
  }
}

/* Values of a vector, multiplied in place. */
static inline lcomm_status lcomm_run_scale(lcomm_run *run, const lcomm_buffer *values,
                                           double factor) {
  return run->backend->vectors->load(run, values, factor, values->data);
}

#endif
