/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_ENGINE_EXEC_H
#define LCOMM_ENGINE_EXEC_H

/* The executor: one running instance of a plan. One engine runs every
 * algorithm over every codec and transport, so there is one place to count,
 * to time out and to cancel.
 *
 * A run owns the memory of its slots and the state of its codecs; everything
 * is allocated when it is made. Steps whose dependencies are over are done in
 * program order; messages are posted as soon as they can be.
 */

#include "codecs/clip.h"
#include "codecs/codec_sum.h"
#include "codecs/lossless.h"
#include "libcomm/base/clock.h"
#include "libcomm/engine/engine.h"
#include "libcomm/engine/feedback_state.h"
#include "libcomm/engine/payload.h"
#include "libcomm/observe/trace.h"

/* What ranks have to mean alike by an operation, besides the calls before it. */
typedef struct lcomm_run_terms {
  uint64_t plan;     /* its hash */
  uint64_t residual; /* which one, by the order in which they were made; 0: none */
  double before, after;
  uint64_t factors; /* of a bucket, see lcomm_operation_data */
  lcomm_op op;
  lcomm_op_kind op_kind;
} lcomm_run_terms;

_Static_assert(sizeof(lcomm_run_terms) == 48, "terms are hashed: they have no padding");

enum {
  /* A header and a payload up to this size are one message: over links with zero-copy
   * receives, where a longer one is read in place, and over others, where a message of its own
   * costs more than copying 16 KiB. */
  LCOMM_INLINE_SIZE = 4160,
  LCOMM_REMOTE_INLINE_SIZE = 16448,
  /* Long messages a rank has in flight between nodes. All ranks visit their
   * peers in rotated order, so a short queue keeps senders and receivers
   * paired; without it several senders crowd one receiver's link. Two, so that
   * the next one is there when one ends. */
  LCOMM_NET_SENDS_MAX = 2,
  LCOMM_GET_SIZE = 128 << 10 /* of a remote source, at a time */
};

/* What an operation works on. */
typedef struct lcomm_operation_data {
  uint8_t *vector;      /* plan->vector_count - plan->input_count elements */
  const uint8_t *input; /* plan->input_count elements, or NULL */
  lcomm_op op;
  double before, after; /* factors; the caller of the operation has applied `before` */
  uint64_t factors;     /* a hash of those of a bucket's tensors; 0: all are 1 */
  lcomm_op_kind op_kind;
  uint64_t residual;         /* which one, see lcomm_run_terms */
  lcomm_trace_factor factor; /* what of matrices is summed, for statistics and traces */
  const char *name;          /* of the data, for traces; NULL: none. Stays valid. */
  bool on_stream;            /* it is in order with a stream of the program */
  /* After the last step: bring the result to where it is wanted, by the backend's operations.
   * NULL: it is there. An error is one of the communicator. */
  lcomm_status (*stage_out)(lcomm_run *run);
  lcomm_buffer receive; /* for stage_out: the caller's buffer, */
  void *owner;          /* and a bucket or a residual */
} lcomm_operation_data;

/* A computation that has begun. */
typedef struct lcomm_computation {
  uint32_t step;
  double begun_s;
} lcomm_computation;

typedef enum lcomm_run_phase {
  LCOMM_RUN_STEPS,  /* steps are left, or have just ended */
  LCOMM_RUN_ENDING, /* the result is on its way to where it is wanted */
  LCOMM_RUN_OVER
} lcomm_run_phase;

typedef struct lcomm_message {
  lcomm_run *run;
  uint32_t step;
  uint32_t place; /* among those in flight */
  bool due;       /* to be looked at */
  bool first_over, payload_under_way;
  bool awaits_read; /* the payload is on a peer's device, and a thread of the program reads it */
  lcomm_transfer first, payload;
  double begun_s; /* for traces */
} lcomm_message;

/* A message that was sent before its step. */
typedef struct lcomm_fastpath_send {
  lcomm_transfer transfer;
  bool over;
} lcomm_fastpath_send;

/* Contexts of the codecs. */
typedef struct lcomm_run_codecs {
  lcomm_topk **encoders; /* per step, NULL where the step is no top-k ENCODE */
  uint64_t *picks;       /* per step: entries that such an encoder picks */
  lcomm_lossless *lossless[LCOMM_STAGE_COUNT]; /* NULL where the stage has none */
} lcomm_run_codecs;

/* Scratch of one computation: as many entries as a step has slots. */
typedef struct lcomm_run_scratch {
  uint8_t **payloads; /* of an ENCODE */
  size_t *sizes;
  const void **sources; /* of a REDUCE */
  lcomm_summand *summands;
  lcomm_squares squares; /* that were counted, on the host */
} lcomm_run_scratch;

/* Flow control, see flow.h. */
typedef struct lcomm_run_flow {
  struct lcomm_flow_part *parts; /* peers that this rank only sends to, or receives from */
  uint32_t part_count;
  bool admitted; /* it may move */
  int held_by;   /* the peer whose credit it waits for, or -1 */
} lcomm_run_flow;

/* Which steps may run (exec.c). */
typedef struct lcomm_run_steps {
  uint32_t *waiting;   /* per step: steps it still waits for */
  uint64_t *ready;     /* bit per step that may run now */
  uint64_t *throttled; /* bit per ready SEND that waits for its turn */
  uint32_t throttled_count;
  uint32_t net_sends;   /* long messages in flight between nodes */
  uint32_t ready_first; /* no ready step lies before this one */
  uint32_t left;        /* steps that are not over */
} lcomm_run_steps;

typedef struct lcomm_run_messages {
  lcomm_message *of_step; /* per step that is a message */
  uint32_t *in_flight;    /* those on their way, `count` of them */
  uint32_t count;
  uint32_t *due; /* those of them that are to be looked at, `due_count` */
  uint32_t due_count;
  double since_s; /* when the first of them was posted */
  bool abandoned; /* cancelled in flight: memory stays until the links are closed */
} lcomm_run_messages;

/* The small-message fast path (exec_fastpath.c). */
typedef struct lcomm_run_fastpath {
  lcomm_fastpath_send *sends; /* per peer; NULL where the run cannot take it */
  bool is_sent;               /* the messages of the first round have been sent already */
} lcomm_run_fastpath;

/* In run_cache.h: runs of the same hash, and by recency. next links retired and abandoned ones,
 * too. */
typedef struct lcomm_run_cached {
  lcomm_run *next, *newer, *older;
  uint64_t key, charge;
  bool in_use;
  bool expired; /* to be given up when it is given back */
} lcomm_run_cached;

/* Where its operations are counted. */
typedef struct lcomm_run_series {
  lcomm_sequence_space space;
  uint32_t channel;    /* of its messages, from 1, where it is recorded; else 0 */
  uint32_t seed_shift; /* added to an operation's number where that seeds stochastic rounding */
} lcomm_run_series;

/* Memory of its own. */
typedef struct lcomm_run_memory {
  /* Vector and input, for types that are not float32 and for calls whose buffers cannot serve;
   * NULL when not needed. */
  uint8_t *own_vector, *own_input;
  uint8_t *arena; /* of all slots */
} lcomm_run_memory;

struct lcomm_run {
  const lcomm_plan *plan; /* owned */
  lcomm_comm *comm;
  lcomm_run_series series;
  const struct lcomm_backend *backend; /* backend.h: where it computes */
  struct lcomm_run_device *device;     /* run_device.h; of backends on devices */
  struct lcomm_tape *tape;             /* tape.h; of operations that are played, else NULL */
  struct lcomm_recording *recording;   /* recording.h; of a call that is in a graph, else NULL */

  /* What it works on, set by lcomm_run_start. */
  lcomm_operation_data data;
  double factor;                  /* applied when a sum over all ranks is complete */
  lcomm_feedback_state *feedback; /* of bucket or residual, NULL without error feedback */
  uint32_t sequence;              /* number of the operation */
  lcomm_run_phase phase;
  uint64_t not_finite; /* in the result, where that is counted */

  /* What ranks compare in every message: the terms. */
  lcomm_run_terms terms;
  struct {
    uint32_t key, parameters; /* without and with the calls before */
  } hash;

  lcomm_run_memory memory;
  lcomm_slot_memory *slots;
  lcomm_run_codecs codecs;
  lcomm_run_scratch scratch;
  lcomm_run_flow flow;
  lcomm_run_steps steps;
  lcomm_run_messages messages;
  lcomm_run_fastpath fastpath;
  lcomm_run_cached cached;
  lcomm_stats stats; /* of this operation */
};

/* Make a run for a plan, which it owns from then on, also on failure; its operations are in
 * `space`. MEMORY (the sentence is in lcomm_error_thread_text). Free with lcomm_run_destroy (NULL
 * ok). */
lcomm_status lcomm_run_create(lcomm_comm *comm, lcomm_plan *plan, lcomm_sequence_space space,
                              lcomm_run **run);
void lcomm_run_destroy(lcomm_run *run);

/* Part of the end of a communicator, after the links, once nobody reads there any more: the runs
 * that were destroyed with messages in flight. */
void lcomm_runs_free_abandoned(lcomm_comm *comm);

/* Begin over the data, which may be run->data. Nothing is sent yet. */
void lcomm_run_start(lcomm_run *run, const lcomm_operation_data *data, uint32_t sequence);

/* Choose what is compared in messages: the plan, and what is to be done with it. */
void lcomm_run_key(lcomm_run *run, const lcomm_operation_data *data);

/* Do what can be done without waiting. *moved is set if anything was. */
lcomm_status lcomm_run_progress(lcomm_run *run, bool *moved);
bool lcomm_run_over(const lcomm_run *run);

/* The part of it that takes messages which are over. Starts nothing. Only those are looked at that
 * are due: just posted, named by a transport, or of a transport that names none. */
lcomm_status lcomm_run_poll(lcomm_run *run, bool *moved);

/* Make due: all messages of a run; those that the transports have named since the last time, and
 * all of all operations once messages of a peer have failed. */
void lcomm_run_make_all_due(lcomm_run *run);
void lcomm_messages_make_due(lcomm_comm *comm);

/* Forget all messages in flight. */
void lcomm_run_cancel(lcomm_run *run);

/* The ranks that it waits for, at most `most` of them: those whose messages have not
 * come, then those that have not taken ours. Returns their number. */
uint32_t lcomm_run_awaits(const lcomm_run *run, lcomm_awaited *list, uint32_t most);

/* Inside the executor. */
static inline const lcomm_format *lcomm_run_format(const lcomm_run *run, uint32_t slot) {
  return &run->plan->stages[run->plan->schedule.slots[slot].stage].format;
}

static inline bool lcomm_factor_is_one(double factor) {
  return factor >= 1.0 && factor <= 1.0; /* NaN is not */
}

/* Where element `first` of the vector is. */
static inline uint8_t *lcomm_run_at(const lcomm_run *run, uint64_t first) {
  const lcomm_plan *plan = run->plan;
  if (first < plan->input_count) {
    return (uint8_t *)(uintptr_t)run->data.input + first * plan->element_size; /* only read */
  }
  return run->data.vector + (first - plan->input_count) * plan->element_size;
}

static inline float *lcomm_run_floats(const lcomm_run *run, uint64_t first) {
  return (float *)(void *)lcomm_run_at(run, first);
}

/* When a copy begins; 0 where nobody traces. */
static inline double lcomm_exec_copy_begin(const lcomm_run *run) {
  return run->comm->observers.trace ? lcomm_clock_s() : 0.0;
}

/* Add a copy to the trace, if there is one: begun at begin_s (0: not), `bytes` of the data called
 * `name` (NULL: none). Copies on a device take no time of this thread. */
void lcomm_exec_trace_copy(const lcomm_run *run, double begin_s, uint64_t bytes, const char *name);

/* What a step computes: begin, by operations of the backend; end, when those are over. */
lcomm_status lcomm_exec_compute(lcomm_run *run, uint32_t step);
void lcomm_exec_end_compute(lcomm_run *run, const lcomm_computation *it);

/* Undo the lossless stage of a slot that was received. WIRE, and *why. */
lcomm_status lcomm_exec_unpack(lcomm_run *run, uint32_t slot, const char **why);
lcomm_status lcomm_exec_post(lcomm_run *run, uint32_t step, lcomm_message *message);
/* Look at a message: *moved is set if a piece of it arrived or left, *over once all did. */
lcomm_status lcomm_exec_poll(lcomm_run *run, lcomm_message *message, bool *moved, bool *over);

/* A step that reads its slots is over: zero-copy payloads that no other step reads are
 * released. release_all: all that are left. */
void lcomm_exec_release(lcomm_run *run, const lcomm_step *step);
void lcomm_exec_release_all(lcomm_run *run);

/* Copy a part of a remote payload. TRANSPORT with the sentence. */
lcomm_status lcomm_exec_get(lcomm_run *run, uint32_t slot, size_t offset, size_t size, void *bytes);

/* The small-message fast path: is the whole plan one round of short messages? */
bool lcomm_fastpath_fits(const lcomm_run *run);

/* Try it with run->data, between lcomm_run_enter and lcomm_run_leave: *over tells whether the
 * result is in the vector. If it is not, the messages are sent, and the operation goes on from
 * there. */
lcomm_status lcomm_fastpath_try(lcomm_run *run, bool *over);

#endif
