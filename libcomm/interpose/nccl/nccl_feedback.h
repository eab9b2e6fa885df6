/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_FEEDBACK_H
#define LCOMM_INTERPOSE_NCCL_FEEDBACK_H

/* Error feedback of sums that name no buffer (interpose_ef_by_pattern.h), in order with streams: a
 * call site has a residual, and its next sum waits for its last one. All with the lock of the
 * backing. */

#include "libcomm/interpose/interpose_ef_by_pattern.h"
#include "libcomm_interpose.h"

typedef struct lcomm_nccl_feedback lcomm_nccl_feedback;

/* Where a sum's residual is. */
typedef struct lcomm_nccl_site {
  lcomm_nccl_feedback *feedback; /* NULL: the sum has none */
  lcomm_interpose_feedback what;
  lcomm_call_kind kind; /* an all-reduce, or a reduce-scatter of even parts */
  uint32_t number;
} lcomm_nccl_site;

/* Of a communicator whose policy asks for it, which lives longer. NULL: no memory. */
lcomm_nccl_feedback *lcomm_nccl_feedback_create(lcomm_comm *comm, uint32_t step_calls);

/* Wait for the sums in flight, forget all. NULL ok. */
void lcomm_nccl_feedback_destroy(lcomm_nccl_feedback *feedback);

/* A communicator of libcomm, and the error feedback of its sums, NULL without. */
typedef struct lcomm_nccl_made {
  lcomm_comm *comm;
  lcomm_nccl_feedback *feedback;
  bool was_captured; /* a graph may have sums of it, so it stays */
} lcomm_nccl_made;

/* With the error feedback that the communicator's policy asks for. */
lcomm_nccl_made lcomm_nccl_made_of(lcomm_comm *comm);

/* Decide about the next sum of float32 with error feedback: a sum of site->kind. PLAIN: NCCL makes
 * it, exactly. MEMORY: this rank cannot make it. */
lcomm_status lcomm_nccl_feedback_next(lcomm_nccl_feedback *feedback, uint64_t count, lcomm_op op,
                                      lcomm_nccl_site *site);

/* Decide about such a sum after the policy has gone: does it flush what a call site
 * carries? */
bool lcomm_nccl_feedback_flushes(lcomm_nccl_feedback *feedback, uint64_t count, lcomm_op op,
                                 lcomm_nccl_site *site);

/* Compress no further sums, or do so again. NULL ok. */
void lcomm_nccl_feedback_suspend(lcomm_nccl_feedback *feedback);
void lcomm_nccl_feedback_resume(lcomm_nccl_feedback *feedback);

/* Is there a residual that was not flushed? NULL: no. */
bool lcomm_nccl_feedback_carries(const lcomm_nccl_feedback *feedback);

/* Where several buffers take turns at the call site of the last answer, rank 0 says so, once. */
void lcomm_nccl_feedback_watch(lcomm_nccl_feedback *feedback, const void *buffer, uint64_t count,
                               int rank);

/* Make the sum of a site in order with the stream, behind the site's last one. */
lcomm_status lcomm_nccl_feedback_sum(const lcomm_nccl_site *site, const void *send, void *receive,
                                     void *stream);

/* The same of data that is there; the request is over when the result is. */
lcomm_status lcomm_nccl_feedback_begin(const lcomm_nccl_site *site, const void *send, void *receive,
                                       lcomm_request *request);

/* Where it lives. */
lcomm_comm *lcomm_nccl_feedback_comm(const lcomm_nccl_feedback *feedback);

#endif
