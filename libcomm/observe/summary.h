/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_OBSERVE_SUMMARY_H
#define LCOMM_OBSERVE_SUMMARY_H

/* Statistics by collective and by codec, and the table of them that LCOMM_STATS=exit (rank 0) or
 * LCOMM_STATS=exit:all (every rank) asks for at the end of a communicator, on standard error. Each
 * rank shows its own numbers: nothing is exchanged.
 *
 * The numbers are kept whether a table is wanted or not, and lcomm_stats_reset leaves them: the
 * table is about the whole life of the communicator. The thread that makes progress on it changes
 * them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"
#include "libcomm/base/exit_hook.h"
#include "libcomm/plan/op_kind.h"
#include "libcomm/plan/plan.h"

typedef enum lcomm_summary_mode {
  LCOMM_SUMMARY_NONE,
  LCOMM_SUMMARY_FIRST, /* exit: rank 0 */
  LCOMM_SUMMARY_ALL    /* exit:all: every rank */
} lcomm_summary_mode;

/* The value of LCOMM_STATS, NULL when it is not set. ARGUMENT with a sentence
 * in `why`. */
lcomm_status lcomm_summary_parse(const char *text, lcomm_summary_mode *mode, lcomm_why *why);

/* What an operation took. Zero it when the operation starts, add as it goes. */
typedef struct lcomm_summary_cost {
  uint64_t data_bytes;                    /* of the elements it was called on */
  uint64_t sent_bytes[LCOMM_LINK_COUNT];  /* as in lcomm_stats */
  uint64_t exact_bytes[LCOMM_LINK_COUNT]; /* as in lcomm_stats */
  double encode_s;                        /* in encoders */
  double decode_s;                        /* in decoders and sums */
  double wire_s;                          /* with a message of it in flight */
  uint64_t picked, waited;                /* entries of top-k, as in lcomm_stats */
  lcomm_codec_id codec;                   /* between nodes */
} lcomm_summary_cost;

typedef struct lcomm_summary_row {
  uint64_t operations; /* that succeeded */
  lcomm_summary_cost cost;
  double total_s; /* from start to end; operations that overlap count each */
  double wait_s;  /* with nothing to do but wait, while it was the oldest */
} lcomm_summary_row;

enum {
  LCOMM_SUMMARY_TENSORS = LCOMM_COLLECTIVE_COUNT, /* the row of tensors' buckets */
  LCOMM_SUMMARY_SENDS,                            /* messages between two ranks */
  LCOMM_SUMMARY_RECEIVES,
  LCOMM_SUMMARY_ROWS,
  LCOMM_SUMMARY_CODECS = 16, /* more than there are */
  LCOMM_SUMMARY_TEXT_MAX = 8192,
  LCOMM_SUMMARY_TRANSPORTS_MAX = 64
};

/* The heading of the table. */
typedef struct lcomm_summary_about {
  int rank, size, nodes;
  char host[LCOMM_HOST_MAX];
  char policy[LCOMM_POLICY_MAX];
  char transports[LCOMM_SUMMARY_TRANSPORTS_MAX]; /* in use, such as "shm, ucx" */
} lcomm_summary_about;

typedef struct lcomm_summary {
  lcomm_exit_hook hook; /* the first member: the hook is the summary */
  lcomm_summary_row rows[LCOMM_SUMMARY_ROWS];
  lcomm_summary_row codecs[LCOMM_SUMMARY_CODECS]; /* the same operations by lcomm_codec_id, without
                                                     wait_s and those of the fast path */
  /* Time during which at least one operation was in flight. */
  uint32_t in_flight;
  double active_since_s, active_s;
  uint64_t missed_wakeups, flow_waits; /* as in lcomm_stats */
  /* What the guard found, of guarded_count tensors; owned by it, who guards them. */
  const lcomm_guard_figures *const *guarded;
  size_t guarded_count;
  lcomm_summary_about about;
} lcomm_summary;

/* The row of an operation: its collective, with a residual or without, or tensors
 * for a bucket of them. For wait_s, the row of the oldest operation when the wait
 * began; a row stays where it is. */
static inline lcomm_summary_row *
lcomm_summary_find(lcomm_summary *summary, lcomm_collective collective, lcomm_op_kind op_kind) {
  bool bucket = op_kind == LCOMM_OP_KIND_BUCKET;
  return &summary->rows[bucket ? LCOMM_SUMMARY_TENSORS : (int)collective];
}

/* An operation starts; it ends, and succeeded; it ends in any other way. Each
 * start has one end. */
void lcomm_summary_begin(lcomm_summary *summary, double now_s);
void lcomm_summary_add(lcomm_summary *summary, lcomm_summary_row *row,
                       const lcomm_summary_cost *cost, double begin_s, double now_s);
void lcomm_summary_drop(lcomm_summary *summary, double now_s);

/* All rows together. */
void lcomm_summary_sum(const lcomm_summary *summary, lcomm_summary_row *sum);

/* The table as text, cut to `size` bytes with the terminator; returns the
 * length it would have. Allocates nothing. */
size_t lcomm_summary_print(const lcomm_summary *summary, double now_s, char *text, size_t size);

/* A table is wanted at the end of this communicator: by lcomm_summary_close, or
 * when the process exits without it. Does nothing when the mode does not ask for
 * the rank's. `about` is copied. guard: held by whoever changes the numbers,
 * when another thread than the one that calls exit() may; else NULL. Both
 * pointers must stay valid until lcomm_summary_close. */
void lcomm_summary_open(lcomm_summary *summary, lcomm_summary_mode mode,
                        const lcomm_summary_about *about, pthread_mutex_t *guard);

/* Another guard from here on; for whoever has the old one. */
void lcomm_summary_guard(lcomm_summary *summary, pthread_mutex_t *guard);

/* It was opened, and no table is wanted after all. */
void lcomm_summary_hide(lcomm_summary *summary);

/* Write the table if it is wanted, once. The caller holds the guard, or nobody
 * else uses it any more. Also for a summary that was never opened (all zeros). */
void lcomm_summary_close(lcomm_summary *summary);

#endif
