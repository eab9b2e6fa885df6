/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_COMM_H
#define LCOMM_COMM_H

/* The inside of a communicator, shared by the files of this folder only. */

#include <pthread.h>
#include <stdatomic.h>

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm.h"
#include "libcomm/plan/plan.h"
#include "libcomm/transport/transport.h"

typedef struct lcomm_run lcomm_run;             /* exec.h */
typedef struct lcomm_operation lcomm_operation; /* op.h */
typedef struct lcomm_bucket lcomm_bucket;       /* bucket.h */

struct lcomm_comm {
  int rank, size;
  lcomm_topo topo;
  lcomm_policy policy;
  char policy_text[LCOMM_POLICY_MAX];
  double timeout_s;
  const lcomm_kernels *kernels;
  lcomm_transport *transport;
  lcomm_stats stats;
  struct lcomm_capture *capture; /* capture.h; NULL: off */

  /* Errors. status is sticky; lock guards error and the abort text, which
   * other threads may write. */
  pthread_mutex_t lock;
  _Atomic int status;
  char error[LCOMM_ERROR_MAX];
  atomic_bool abort_asked; /* lcomm_abort() was called, peers not told yet */

  /* Operations in flight, in the order in which they were started. */
  lcomm_operation *first, *last;
  lcomm_operation *idle; /* finished ones, for reuse */
  lcomm_operation *made; /* all ever made, for freeing */
  uint32_t sequence;     /* number of the next operation */
  uint32_t quiet_polls;  /* polls in a row that moved nothing */

  /* Runs of plain calls, kept for the next call of the same shape. */
  lcomm_run *cached_runs;
  unsigned cached_run_count;

  /* Tensors and their buckets, in order of lcomm_tensor_add. */
  lcomm_tensor **tensors;
  size_t tensor_count, tensor_room;
  lcomm_bucket *buckets;
  size_t bucket_count;
  size_t buckets_started; /* in this step */
  uint64_t step;
  uint64_t step_not_finite, last_not_finite; /* in the results of this step and of the last */
  atomic_bool step_open;                     /* a tensor was reported ready since the last wait */
  bool tensors_compared;                     /* between the ranks */
};

/* Name of a rank for people: "rank 3 (host n1)". Returns text. */
const char *lcomm_comm_who(const lcomm_comm *comm, int rank, char *text, size_t size);

/* A mistake of the caller: write the sentence, nothing sticks. Returns status. */
__attribute__((format(printf, 3, 4))) lcomm_status
lcomm_refuse(lcomm_comm *comm, lcomm_status status, const char *format, ...);

/* A failure of an operation: make it sticky, log it, tell all peers. The
 * sentence is prefixed with who we are. The first failure wins. Returns the
 * status in force. */
__attribute__((format(printf, 3, 4))) lcomm_status lcomm_fail(lcomm_comm *comm, lcomm_status status,
                                                              const char *format, ...);

/* Hear what peers have to say, and tell them of an abort asked for by another
 * thread. Returns the status in force. */
lcomm_status lcomm_comm_listen(lcomm_comm *comm);

/* Copy `count` elements of a caller's buffer to float32, and back. */
void lcomm_copy_in(const lcomm_comm *comm, const void *buffer, lcomm_dtype dtype, uint64_t count,
                   float *vector);
void lcomm_copy_out(const lcomm_comm *comm, const float *vector, lcomm_dtype dtype, uint64_t count,
                    void *buffer);

/* Create over a transport opener; used by lcomm_create and lcomm_create_mpi.
 * open is called once on every rank after all ranks agree; context is its. */
typedef lcomm_status (*lcomm_transport_opener)(void *context, lcomm_transport **transport,
                                               const char **why);
lcomm_status lcomm_comm_create(const lcomm_boot *boot, const lcomm_config *config,
                               lcomm_transport_opener open, void *context, lcomm_comm **comm);

#endif
