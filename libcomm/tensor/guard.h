/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TENSOR_GUARD_H
#define LCOMM_TENSOR_GUARD_H

/* The guard (guard= of the policy): every so many steps a sample of each lossy tensor is summed
 * exactly as well, after the step's buckets. What the figures mean, and what follows from them, is
 * in libcomm_tensors.h under GUARD.
 *
 * One check: lcomm_guard_take() copies what goes into the sum of a bucket, lcomm_guard_keep() what
 * came out of it; lcomm_guard_check() sums the samples over the ranks and evaluates them;
 * lcomm_guard_change() groups tensors anew whose codec changes. Samples and results are the same on
 * all ranks, so all decide alike without another message.
 *
 * guard.c has the life, guard_memory.c the memory, guard_sample.c where samples lie and how they
 * are taken, guard_check.c the sum, guard_evaluate.c figures and decisions, guard_report.c who is
 * told.
 */

#include "kernels/sample.h"
#include "libcomm/engine/operation.h"
#include "libcomm/feedback/ef.h"

struct lcomm_bucket;
struct lcomm_tensor;

enum {
  LCOMM_GUARD_BLOCK = 16,           /* elements that lie together: a line of a cache */
  LCOMM_GUARD_SAMPLE_MAX = 1 << 16, /* elements of a tensor in one check */
  LCOMM_GUARD_SAMPLE_MIN = 1 << 10, /* likewise at least, as far as half of 1 % of all allows */
  LCOMM_GUARD_PATIENCE = 10         /* good checks until a codec is tried again */
};

/* What a tensor remembers of its checks. */
typedef struct lcomm_guarded {
  unsigned rungs;                  /* how much milder than the policy's for it its codec is */
  uint64_t good, patience;         /* good checks in a row; how many let it come back */
  bool came_back;                  /* so the next fall doubles the patience */
  lcomm_guard_figures figures;     /* of the last check */
  struct lcomm_guard_share *share; /* of the next check; NULL: it is not checked */
} lcomm_guarded;

/* Where the backend brings a sample to. */
typedef struct lcomm_guard_staged {
  float *gradient, *residual; /* contributions, then residuals behind them */
  float *result;
} lcomm_guard_staged;

/* The sample of one tensor, or of the calls with one residual. Elements count from its first one.
 */
typedef struct lcomm_guard_share {
  lcomm_guarded *guarded; /* what is known of it */
  const lcomm_ef *ef;     /* of its bucket, or of the residual */
  uint64_t offset;        /* of its first element in the vector of `ef` */
  lcomm_sample sample;    /* in this check */
  uint32_t number;        /* of this share: other shares have other blocks */
  bool has_residual;      /* its codec may have, see `by` */
  bool taken;             /* in this step, or in a call whose samples are not summed yet */
  uint64_t step;          /* or call, whose sample it is */
  lcomm_codec_spec by;    /* of it, on the farthest links; of net=auto what it has chosen */
  /* In lcomm_guard.sums: contributions, then residuals if it has any, of all blocks; of a
   * reduce-scatter, of which each rank has a part, results as well; and in the end how many entries
   * waited. */
  float *sums, *waited;
  float *results; /* what the codec made of the sum */
  lcomm_guard_staged staged;
} lcomm_guard_share;

typedef struct lcomm_guard {
  lcomm_comm *comm;
  lcomm_ef ef; /* of the sum of samples, which is exact */
  float *sums; /* ef.request.count of them */
  float *results;
  lcomm_memory_location location; /* of what is sampled */
  float *pinned;                  /* of data on a device: what is staged; else NULL */
  lcomm_guard_share *shares;      /* share_count of them, bucket after bucket */
  size_t share_count;
  const lcomm_guard_figures **rows; /* of each share, for the table of statistics */
  bool over;                        /* the sum of this check */
  bool changed;                     /* a tensor has another codec from the next step on */
} lcomm_guard;

/* The operation that sums the samples of a check. */
typedef struct lcomm_guard_sum {
  lcomm_op_kind op_kind;
  uint64_t residual; /* by which ranks know the owner, 0: tensors */
} lcomm_guard_sum;

/* ---------------------------------------------------------------- guard.c */

/* Samples of the buckets there are, by the policy; none without guard=. Between the steps. MEMORY,
 * sticky. */
lcomm_status lcomm_guard_plan(lcomm_comm *comm);
void lcomm_guard_free(lcomm_comm *comm);

/* All tensors go back to the codec of the policy, which is another one. Before buckets are planned.
 */
void lcomm_guard_forget(lcomm_comm *comm);

/* A guard whose shares are there gets its memory, and the run of its sum: a check allocates
 * nothing. MEMORY, and what a plan can fail with. */
lcomm_status lcomm_guard_complete(lcomm_guard *guard);

/* What the policy has for such data on the farthest links, and the codec that is `rungs` milder,
 * see lcomm_ef.milder. */
lcomm_codec_spec lcomm_guard_policy_codec(const lcomm_ef *ef);
lcomm_codec_spec lcomm_guard_codec(const lcomm_ef *ef, unsigned rungs);

/* Elements of it are sampled at most, as one of several with `all_count` elements together. */
void lcomm_guard_share_out(lcomm_guard_share *share, uint64_t count, uint64_t all_count,
                           size_t all);

/* Nothing is remembered: the codec is that of the policy. */
void lcomm_guarded_forget(lcomm_guarded *guarded);

/* ---------------------------------------------------------- guard_check.c */

/* Does the guard look at this step? */
bool lcomm_guard_is_due(const lcomm_comm *comm);

/* The end of a step whose buckets are over, not yet counted: sum and evaluate, if samples were
 * taken. Collective. Errors of an operation. */
lcomm_status lcomm_guard_check(lcomm_comm *comm);

/* Start the sum of samples that are there; evaluate what was summed. Errors of an operation. */
lcomm_status lcomm_guard_start_sum(lcomm_guard *guard, const lcomm_guard_sum *of);
void lcomm_guard_evaluate_all(lcomm_guard *guard);

/* The step was counted: regroup tensors whose codec changes. Collective. As lcomm_buckets_plan. */
lcomm_status lcomm_guard_change(lcomm_comm *comm);

/* --------------------------------------------------------- guard_sample.c */

/* How many elements of a tensor are looked at, `lanes` numbers each. `all` tensors with
 * `all_count` elements together are guarded. */
uint64_t lcomm_guard_sample_count(uint64_t count, unsigned lanes, uint64_t all_count, size_t all);

/* The sample of `elements` elements, or a block at least, of a tensor of `count`. */
lcomm_sample lcomm_guard_sample_of(uint64_t count, uint64_t elements);

/* Numbers that are summed of each element. */
unsigned lcomm_guard_lanes(const lcomm_guard_share *share);

/* Where it lies in the check of step `step`. */
void lcomm_guard_sample_draw(lcomm_guard_share *share, uint64_t step);

/* The vector of the bucket is ready for `run`; the run's sum is complete, and nothing was added to
 * it. Both do nothing in steps that are not due, and for sums that lose nothing. Operations of the
 * run's backend, whose errors they have. */
lcomm_status lcomm_guard_take(struct lcomm_bucket *bucket, lcomm_run *run, const void *vector);
lcomm_status lcomm_guard_keep(struct lcomm_bucket *bucket, lcomm_run *run, const void *vector);

/* The same of one share. */
lcomm_status lcomm_guard_take_share(lcomm_guard_share *share, lcomm_run *run, const void *vector,
                                    uint64_t step);
lcomm_status lcomm_guard_keep_share(const lcomm_guard_share *share, lcomm_run *run,
                                    const void *vector);

/* --------------------------------------------------------- guard_memory.c */

/* Memory of all shares; false without it. The runs are freed with it. */
bool lcomm_guard_place(lcomm_guard *guard);
void lcomm_guard_free_memory(lcomm_guard *guard);

/* The run is over: what was staged comes to where it is summed and compared. */
void lcomm_guard_fetch(const lcomm_guard_share *share);

/* What is sampled from here on lies elsewhere. Nothing is staged. False without memory. */
bool lcomm_guard_move(lcomm_guard *guard, lcomm_memory_location location);

/* ---------------------------------------------------------- guard_evaluate.c */

/* error, cosine and residual of `count` elements: exact sums of contributions and of residuals
 * (NULL: none), and results. False, and nothing is written, where there is nothing to compare: all
 * contributions are 0, or something is not finite. */
bool lcomm_guard_compare(const float *sums, const float *residuals, const float *results,
                         uint64_t count, lcomm_guard_figures *figures);

typedef enum lcomm_guard_verdict {
  LCOMM_GUARD_STAY,
  LCOMM_GUARD_FALL, /* to the next milder codec */
  LCOMM_GUARD_RETURN
} lcomm_guard_verdict;

/* What follows from the figures of a tensor, whose `beyond` this sets; has_milder: there is a
 * milder codec. Changes rungs, good and patience. */
lcomm_guard_verdict lcomm_guard_evaluate(const lcomm_guard_policy *policy, bool has_residual,
                                         bool has_milder, lcomm_guarded *guarded);

/* --------------------------------------------------------- guard_report.c */

/* A check begins: statistics of the last one are forgotten. A tensor was evaluated: statistics,
 * trace, callback. */
void lcomm_guard_begin_tell(lcomm_guard *guard);
void lcomm_guard_tell(lcomm_guard *guard, const lcomm_guard_share *share, double begin_s);

/* What a check has come to, in one sentence for each verdict; rank 0 logs it. */
typedef struct lcomm_guard_news {
  const lcomm_guard_share *first; /* with this verdict, or NULL */
  size_t count;                   /* how many tensors */
} lcomm_guard_news;
void lcomm_guard_log(const lcomm_guard *guard, lcomm_guard_verdict verdict,
                     const lcomm_guard_news *news);

#endif
