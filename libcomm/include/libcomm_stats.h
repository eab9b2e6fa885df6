/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LIBCOMM_STATS_H
#define LIBCOMM_STATS_H

/* Counters of a communicator, and the plans that its calls follow. libcomm.h includes this header
 * at its end. */

#include "libcomm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ statistics */

typedef struct lcomm_stats {
  uint64_t operations;                       /* finished, tensors' buckets included */
  uint64_t sent_bytes[LCOMM_LINK_COUNT];     /* sent by this rank, headers included */
  uint64_t received_bytes[LCOMM_LINK_COUNT]; /* received by this rank, headers included */
  uint64_t exact_bytes[LCOMM_LINK_COUNT];    /* sent, had the same messages been exact; the
                                                ratio to sent_bytes is the compression of the
                                                messages, whose number depends on the plan */
  uint64_t not_finite;                       /* NaN and Inf in the results of tensors, and of
                                                plain sums that went through a lossy codec */
  uint64_t sent_messages[LCOMM_LINK_COUNT];  /* a header with its payload is one */
  uint64_t memory_bytes;                     /* of slots and vectors of all plans, now */
  double encode_s;                           /* time in encoders */
  double decode_s;                           /* ... in decoders and sums */
  double wire_s;                             /* ... with a message of an operation in flight,
                                                summed over the operations */
  double wait_s;                             /* ... with nothing to do but wait */
  uint64_t missed_wakeups;                   /* sleeps that ran to their limit while a message
                                                was complete; 0 unless a transport is at fault */
  uint64_t flow_waits;                       /* operations that waited until a peer had caught up:
                                                where a rank only sends to a peer, as the root of
                                                a broadcast does, it is at most 64 operations or
                                                4 MiB and one operation ahead of it */
  uint64_t run_hits;                         /* plain calls of a shape that was kept, */
  uint64_t run_misses;                       /* and of one that had to be made, LCOMM_RUN_CACHE */
  uint64_t discarded;                        /* steps of tensors, and calls with a residual, that
                                                were undone */
  /* guard= of the policy; of the last check the worst of all tensors, see lcomm_guard_figures */
  uint64_t guard_checks; /* steps that were checked, and calls with a residual */
  uint64_t guard_beyond; /* tensors found beyond a limit, each check counted */
  uint64_t guard_waited; /* entries of top-k found waiting, over all checks */
  double guard_error, guard_cosine, guard_residual;
  uint64_t topk_picked; /* entries that top-k picked here for other ranks, in all operations, */
  uint64_t topk_waited; /* and those of them that found no room in the message to their owner:
                           they wait in the residual. More than a few in a hundred only where the
                           large values of most ranks lie in the tiles of a few owners */
} lcomm_stats;

/* Counters of this rank since creation or the last reset. Not collective. */
LCOMM_API lcomm_status lcomm_stats_get(const lcomm_comm *comm, lcomm_stats *stats);
LCOMM_API lcomm_status lcomm_stats_reset(lcomm_comm *comm);

/* ------------------------------------------------------------------- racks */

/* Where racks are known (LCOMM_RACK, or a topology file): what of the bytes between nodes stayed in
 * this rank's rack. The rest of sent_bytes[LCOMM_LINK_NET] went to other racks. */
typedef struct lcomm_rack_stats {
  uint64_t racks;         /* of the communicator; 0: not known, and the others are 0 */
  uint64_t sent_bytes;    /* to other nodes of this rank's rack, headers included */
  uint64_t sent_messages; /* a header with its payload is one */
} lcomm_rack_stats;

/* Of collectives, tensors and messages between two ranks, since creation or the last
 * lcomm_stats_reset(); what a quorum sends is not in it. Not collective. Errors: ARGUMENT (NULL).
 */
LCOMM_API lcomm_status lcomm_rack_stats_get(const lcomm_comm *comm, lcomm_rack_stats *stats);

/* ---------------------------------------------------------------- lateness */

/* With quorum= of the policy: how often a rank was late, as the results say that this rank has. The
 * bucket of a step is a sum (with algo=servers each 65536 elements of it are), and so is a call
 * with a residual that need not wait for all; each rank owns a piece of it, and says for its piece
 * who was used. What of a rank waits for later sums tell lcomm_tensor_residual() and
 * lcomm_residual_get(). */
typedef struct lcomm_lateness {
  uint64_t sums, late_sums;     /* all, and those of which a piece did not use it */
  uint64_t pieces, late_pieces; /* all, and those that did not use it */
} lcomm_lateness;

/* Fills in what is known of `rank`; zeros without quorum=. Local, between the steps. Errors:
 * ARGUMENT (NULL; no rank of the communicator). */
LCOMM_API lcomm_status lcomm_lateness_get(const lcomm_comm *comm, int rank,
                                          lcomm_lateness *lateness);

/* With stale= of the policy: how old what this rank computes is. The age of a gradient is the
 * number of steps before its own whose results had not been handed out to its rank. */
typedef struct lcomm_staleness {
  uint64_t steps;     /* that this rank has made */
  uint64_t under_way; /* of these: their results were not handed out */
  uint64_t age;       /* of the last gradient, */
  uint64_t age_most;  /* and the most of all: N at most */
  double age_mean;    /* over all */
} lcomm_staleness;

/* Fills it in; zeros without stale=. Local, between the steps. Errors: ARGUMENT (NULL). */
LCOMM_API lcomm_status lcomm_staleness_get(const lcomm_comm *comm, lcomm_staleness *staleness);

/* With quorum= of the policy: is this rank behind the others? After lcomm_tensors_wait() *steps is
 * the number of the next steps for which it had better compute no gradients: the results of all but
 * the last of them are there already, and the last is under way. In these steps it fills its
 * tensors with zeros, reports them, waits and applies the results as always: so it sends what was
 * not used of it, and is with the others again. With stale=N:drop, after lcomm_tensors_next() has
 * said 0, it is the number of steps whose results are there already. Of calls with a residual it is
 * the number of the next calls with each, and after the calls of a step that of steps: the least of
 * all residuals and tensors, so one that has no part in the steps had better be destroyed. 0 where
 * the rank is not behind, and without either. Local, between the steps. Errors: ARGUMENT (NULL). */
LCOMM_API lcomm_status lcomm_behind(const lcomm_comm *comm, uint64_t *steps);

/* Print in words the plan an all-reduce of this shape would follow and why:
 * algorithm, codec per link class, chunks, messages and bytes. tensor: 1 for
 * a bucket of tensors or a call with a residual, without a name (see lcomm_tensor_codec), 0 for a
 * plain call. Of tensors follows, where net=auto decides whether matrices go by low rank, a line
 * for each bucket of them that there is: what was chosen, and the predicted times. Writes at most
 * `size` bytes with the terminating zero; cuts what does not fit. Local call. Errors: ARGUMENT,
 * MEMORY. */
LCOMM_API lcomm_status lcomm_plan_print(lcomm_comm *comm, uint64_t count, lcomm_dtype dtype,
                                        int tensor, char *text, size_t size);

#ifdef __cplusplus
}
#endif

#endif
