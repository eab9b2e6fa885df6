/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_BUCKET_H
#define LCOMM_TENSOR_BUCKET_H

/* Buckets: tensors that travel together, and the error-feedback state that
 * belongs to them. A bucket holds tensors of one data type and operation that
 * are all exact or all of one codec; the tensors of a bucket follow each
 * other in the order of lcomm_tensor_add. Buckets start in the order of their
 * last tensors. One that travels by low rank is two sums (feedback/ef_lowrank.h): the second starts
 * when the first is over, or, where both are played on a device, is put behind it at once; the next
 * bucket follows after that, so all ranks start the same sums in the same order.
 */

#include "libcomm/engine/operation.h"
#include "libcomm/feedback/ef.h"
#include "libcomm/observe/trace.h"
#include "libcomm/plan/auto_lowrank.h"
#include "libcomm/plan/eligibility.h"
#include "libcomm/shards/shards.h"
#include "libcomm/tensor/auto_revise.h"
#include "libcomm/tensor/guard.h"

typedef struct lcomm_bucket lcomm_bucket;

struct lcomm_tensor {
  lcomm_comm *comm;
  char name[128];
  void *data;
  uint64_t count;
  uint64_t rows, columns; /* of its shape; 0: it has none */
  lcomm_dtype dtype;
  lcomm_op op;
  double before, after; /* factors of the gradient and of the result */
  bool frozen;          /* as this rank wants it */
  bool planned;         /* as all ranks have agreed: it takes part in the steps */
  lcomm_bucket *bucket; /* of a tensor that is planned, once buckets are made */
  uint64_t offset;      /* in the bucket's vector */
  atomic_bool ready;
  atomic_bool returned;  /* in this step: the caller knows that the result is there */
  void *mirror;          /* tensor_mirror.h: where it is summed; NULL: in `data` */
  void *event;           /* of its device: a stream has made the gradient; made once */
  atomic_bool on_stream; /* in this step the gradient is there when the event is over */
  lcomm_guarded guarded; /* what the guard knows of it */
  lcomm_ef_parked state; /* while it is in no bucket: frozen, or buckets are planned anew */
};

struct lcomm_bucket {
  lcomm_comm *comm;
  lcomm_tensor **tensors; /* tensor_count of them, owned array of views */
  size_t tensor_count;
  char name[LCOMM_TRACE_NAME_MAX];        /* of the first tensor, "and 63 more"; for traces */
  char second_name[LCOMM_TRACE_NAME_MAX]; /* of the second sum of low rank, likewise */
  size_t last_tensor;                     /* index of the last one in lcomm_comm.tensors */
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  size_t element_size; /* of the vector: its elements are lcomm_sum_dtype(dtype) */
  uint8_t *vector;     /* the tensors one after the other; NULL: the one tensor itself */
  unsigned rungs;      /* of its tensors, see lcomm_guarded */
  uint64_t *ends;      /* in the vector, of what top-k looks at together; owned */
  lcomm_ef ef;
  lcomm_run *run; /* of this step: of low rank that of the first sum, then of the second */
  lcomm_shard_vector **shards; /* by what owners of pieces sum it, else NULL: lanes, */
  uint64_t begun, ended;       /* and rounds of them */
  bool under_way; /* of low rank: the first sum is in flight, the second has not begun */
  unsigned left;  /* sums that are not over: 2 of low rank */
  bool over;      /* in this step */
};

/* The step that was finished last, as lcomm_tensors_discard() needs it. */
typedef struct lcomm_step_past {
  bool exists;    /* it was finished with undo=, and nothing has changed since */
  bool discarded; /* it was undone already */
  bool begun;     /* the one in flight: its buckets have their runs */
  uint32_t seed;  /* of stochastic rounding, when it began */
} lcomm_step_past;

/* Elements of results: of this step and of the last. */
typedef struct lcomm_not_finite {
  uint64_t step, last;
} lcomm_not_finite;

/* Whom lcomm_guard_set() has named. */
typedef struct lcomm_guard_listener {
  lcomm_guard_function function; /* NULL: nobody */
  void *context;
} lcomm_guard_listener;

/* Where the program has all tensors of a communicator. */
typedef struct lcomm_tensor_place {
  lcomm_memory_location given;
  struct lcomm_tensor_mirrors *mirrors; /* tensor_mirror.h; NULL: they are summed there */
} lcomm_tensor_place;

/* The tensors of a communicator and their buckets, in order of lcomm_tensor_add. The number of
 * the step and whether one is open are in lcomm_comm.deferred. */
typedef struct lcomm_tensor_set {
  lcomm_tensor **list;
  size_t count, room;
  lcomm_bucket *buckets;
  size_t bucket_count;
  bool begun;             /* this step: the first bucket was prepared */
  size_t buckets_started; /* in this step, all of their sums */
  lcomm_not_finite not_finite;
  atomic_bool sends_momentum; /* the step that began last */
  bool compared;              /* between the ranks */
  bool grouped;               /* once at least: there may be state to move */
  bool regrouping;            /* buckets are being planned, or a communicator failed meanwhile */
  bool complete;       /* all results of the step in flight are here; others may not have theirs */
  bool untold;         /* the last step is counted, and lcomm_tensors_wait() has not returned so */
  atomic_bool undrawn; /* lcomm_tensors_next() has not said since the last step: no more */
  lcomm_auto_watch watch;
  lcomm_auto_trust trust;         /* of rank 0, in what net=auto finds */
  size_t pending;                 /* added or (un)frozen here, not agreed on yet */
  atomic_bool moved;              /* a tensor was given another buffer, ever */
  lcomm_tensor_place place;       /* where the program has all tensors, */
  lcomm_memory_location location; /* and where they are summed */
  const lcomm_run *counted;       /* clip=NORM:global: has the norm of the buckets so far */
  lcomm_step_past past;
  struct lcomm_guard *guard; /* guard.h, NULL: nothing is checked */
  lcomm_guard_listener listener;
} lcomm_tensor_set;

/* Part of making and freeing a communicator: an empty set, and the hooks of the engine. MEMORY. */
lcomm_status lcomm_tensor_set_make(lcomm_comm *comm);
void lcomm_tensor_set_free(lcomm_comm *comm);

/* Do all ranks have the same tensors, frozen ones included, and are buckets made for
 * them? Nothing starts before. */
bool lcomm_tensors_are_planned(const lcomm_comm *comm);

/* A tensor that a program gives; needs no turn. ARGUMENT for NULL, one that does not live, or one
 * of another communicator; `call` is named. */
lcomm_status lcomm_tensor_check(lcomm_comm *comm, const lcomm_tensor *tensor, const char *call);

/* What the policy says of it. */
lcomm_named_data lcomm_tensor_policy(const lcomm_tensor *tensor);

/* Do the buffers of two tensors overlap? */
bool lcomm_tensors_overlap(const lcomm_tensor *one, const lcomm_tensor *other);

/* Compare the tensors and group them into buckets, unless that was done. Collective;
 * MISMATCH, MEMORY and transport errors, sticky. */
lcomm_status lcomm_tensors_plan(lcomm_comm *comm);

/* Group the tensors that are planned; between the steps. A bucket that would hold the
 * same tensors as before stays as it is, the state of others moves. Collective; MEMORY
 * and transport errors, sticky. */
lcomm_status lcomm_buckets_plan(lcomm_comm *comm);

/* Take the tensors out of their buckets, with their state. The next lcomm_buckets_plan
 * groups all of them anew, by the policy of then. MEMORY, sticky. */
lcomm_status lcomm_buckets_dissolve(lcomm_comm *comm);

/* Parts of these. Move a tensor's state out of its bucket; MEMORY. Put the states of tensors back
 * into buckets that were made for them, the same on all ranks; is_new: of each bucket. Collective;
 * errors as lcomm_buckets_plan. */
lcomm_status lcomm_tensor_state_take(lcomm_tensor *tensor);
void lcomm_tensor_state_free(lcomm_tensor *tensor);
lcomm_status lcomm_tensor_states_restore(lcomm_comm *comm, const bool *is_new);

/* Make a call of the library's own about tensors, in the sequence space of the buckets: so ranks
 * whose tensors differ find out, wherever they are between their other calls. Its op kind is one of
 * that space. */
struct lcomm_call;
lcomm_status lcomm_tensors_call(lcomm_comm *comm, struct lcomm_call *call);

/* tensor_discard.c. The first bucket of a step is about to start; the step is finished, and what is
 * not finite in it known. */
void lcomm_step_begin(lcomm_comm *comm);
void lcomm_step_end(lcomm_comm *comm);

/* Inside: the step in flight is over on all ranks, and counted. Or it was broken off: it never was.
 */
void lcomm_step_finish(lcomm_comm *comm);
void lcomm_step_undo(lcomm_comm *comm);

/* bucket_clip.c. Does a step scale all gradients by one factor (clip=NORM:global)? Then no bucket
 * starts before all tensors are ready. The vector of a bucket is counted in the norm; it is scaled,
 * after all of them were counted. */
bool lcomm_step_clips_globally(const lcomm_comm *comm);
lcomm_status lcomm_step_clip_count(lcomm_comm *comm, lcomm_run *run, const lcomm_buffer *all);
lcomm_status lcomm_step_clip(lcomm_comm *comm, lcomm_run *run, const lcomm_buffer *all);

/* bucket_quorum.c, with quorum= or stale= of the policy. Give all buckets that have none vectors of
 * shards; collective, MEMORY and transport errors, sticky. */
lcomm_status lcomm_buckets_make_shards(lcomm_comm *comm);
/* By what ranks contribute, and owners answer, as a plan of all ranks would have it. Errors as of a
 * plan. */
lcomm_status lcomm_quorum_choose_format(const lcomm_ef *ef, lcomm_format *format);
/* A tensor that is added, or its data, must be what shards sum. ARGUMENT. */
lcomm_status lcomm_quorum_check(lcomm_comm *comm, const lcomm_tensor *tensor,
                                lcomm_memory_location location);
/* Start a bucket by its vector; end those whose results are here. Errors of the communicator. */
lcomm_status lcomm_bucket_start_shards(lcomm_bucket *bucket);
lcomm_status lcomm_buckets_end_shards(lcomm_comm *comm);
/* tensor_servers.c, with algo=servers. Agree whether servers have an update function; collective,
 * MISMATCH and transport errors, sticky. May `call` begin or end a step here and now? STATE. Part
 * of lcomm_tensors_sync, collective where servers do not serve yet: they begin; STATE, or as
 * lcomm_tensors_plan. Part of lcomm_destroy: end what servers do for this rank. */
lcomm_status lcomm_servers_agree(lcomm_comm *comm);
lcomm_status lcomm_servers_check(lcomm_comm *comm, const char *call);
lcomm_status lcomm_servers_meet(lcomm_comm *comm);
lcomm_status lcomm_servers_leave(lcomm_comm *comm);
/* Wait for a bucket that has started, whatever sums it; with stale= for its contribution alone. */
lcomm_status lcomm_bucket_wait(lcomm_bucket *bucket);
/* The vectors of its oldest round, whose result was not taken, and of its newest. */
lcomm_shard_vector *lcomm_bucket_oldest(const lcomm_bucket *bucket);
lcomm_shard_vector *lcomm_bucket_newest(const lcomm_bucket *bucket);
/* The result of the oldest, which is here, into the tensors. */
lcomm_status lcomm_bucket_end_shards(lcomm_bucket *bucket);

/* tensor_results.c. The step is contributed: wait as long as stale= asks for. Are there results
 * that were not handed out? Wait for all of them, and hand none out. All do nothing without stale=.
 */
lcomm_status lcomm_results_await(lcomm_comm *comm);
bool lcomm_results_are_under_way(const lcomm_comm *comm);
lcomm_status lcomm_results_finish(lcomm_comm *comm);

/* bucket_lowrank.c. A bucket whose tensors are matrices that travel by low rank gets what that
 * needs; does nothing for others. MEMORY, and what a plan can fail with. */
lcomm_status lcomm_bucket_make_lowrank(lcomm_bucket *bucket);

/* Does net=auto decide whether it does? By what, with the figures of now: sticky errors as of a
 * plan. */
bool lcomm_bucket_may_choose_lowrank(const lcomm_bucket *bucket);
lcomm_status lcomm_bucket_rate_lowrank(const lcomm_bucket *bucket, lcomm_lowrank_rating *rating);
lcomm_lowrank_sizes lcomm_bucket_lowrank_sizes(const lcomm_bucket *bucket);

/* A line for each such bucket. Errors as of a plan. */
lcomm_status lcomm_buckets_describe_lowrank(const lcomm_comm *comm, lcomm_writer *w,
                                            lcomm_why *why);

/* bucket_stage.c. The gradients come into the vector; they become what this rank contributes; the
 * result is brought to the tensors, a callback of the operation. What its run sums: the vector, or
 * one of two factors. Errors of the run's backend. */
lcomm_status lcomm_bucket_stage_in(lcomm_bucket *bucket);
lcomm_status lcomm_bucket_amend(lcomm_bucket *bucket);
lcomm_status lcomm_bucket_stage_out(lcomm_run *run);
uint8_t *lcomm_bucket_summed(const lcomm_bucket *bucket);

/* Start every bucket whose turn it is and whose tensors are ready; none before all ranks
 * have agreed on the tensors (lcomm_tensors_plan). */
lcomm_status lcomm_buckets_start(lcomm_comm *comm);

/* The part of a tensor whose residual is in `feedback` (NULL: none). */
lcomm_ef_shard lcomm_tensor_shard(const lcomm_tensor *tensor, const lcomm_feedback_state *feedback);

#endif
