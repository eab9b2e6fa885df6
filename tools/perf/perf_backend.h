/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_PERF_PERF_BACKEND_H
#define LCOMM_TOOLS_PERF_PERF_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#include "libcomm.h"
#include "tools/perf/perf_collective.h"
#include "tools/perf/perf_mpi_call.h"
#include "tools/perf/perf_options.h"
#include "tools/perf/perf_world.h"

/* One way to do an operation: a policy of libcomm, or MPI under one of its names. */
typedef struct lcomm_perf_backend {
  const char *label;
  lcomm_comm *comm;       /* NULL: MPI */
  lcomm_perf_mpi mpi;     /* then: under which names */
  int is_baseline;        /* what the others are compared with */
  lcomm_tensor **tensors; /* owned; NULL: plain calls */
  int tensor_count;
  int ready_count; /* tensors reported ready in this step */
  int is_exact;    /* the result must be the exact one */
  lcomm_request request;
} lcomm_perf_backend;

/* Make a backend. Tensors, if the options or the policy ask for some, lie in
 * place.receive, which must outlive it. Collective. On a failure `error` holds
 * one sentence, the same on all ranks as far as libcomm's errors are. */
lcomm_status lcomm_perf_backend_make(lcomm_perf_backend *backend, const lcomm_perf_world *world,
                                     const lcomm_perf_options *options, const char *policy,
                                     const lcomm_perf_call *call, lcomm_perf_place place,
                                     char *error, size_t error_size);

/* MPI's call: what the policies are compared with, or, `through` it, whatever a
 * library that was preloaded makes of it under the policy of the environment. */
lcomm_perf_backend lcomm_perf_backend_against(const lcomm_perf_options *options,
                                              const lcomm_perf_call *call);
lcomm_perf_backend lcomm_perf_backend_through(const lcomm_perf_call *call);
void lcomm_perf_backend_destroy(lcomm_perf_backend *backend);

/* The configuration of a policy's communicator. */
lcomm_config lcomm_perf_config(const lcomm_perf_options *options, const char *policy);

/* One operation, from beginning to end. */
lcomm_status lcomm_perf_backend_run(lcomm_perf_backend *backend, const lcomm_perf_call *call,
                                    lcomm_perf_place place);

/* The same in parts, not for MPI: start it; report the tensors ready that are
 * due when `share` (0 to 1) of the computation is done; wait for its end. */
lcomm_status lcomm_perf_backend_start(lcomm_perf_backend *backend, const lcomm_perf_call *call,
                                      lcomm_perf_place place);
lcomm_status lcomm_perf_backend_ready(lcomm_perf_backend *backend, double share);
lcomm_status lcomm_perf_backend_finish(lcomm_perf_backend *backend);

/* Where the result of a run lies. */
const void *lcomm_perf_backend_result(const lcomm_perf_backend *backend,
                                      const lcomm_perf_call *call, lcomm_perf_place place);

/* Does a canonical policy leave every value as it is? `is_plain`: for calls
 * that are not made through tensors, where error feedback means exact. */
int lcomm_perf_policy_is_exact(const char *policy, int is_plain);

/* Does a canonical policy keep error feedback? */
int lcomm_perf_policy_has_feedback(const char *policy);

#endif
