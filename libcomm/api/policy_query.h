/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_API_POLICY_QUERY_H
#define LCOMM_API_POLICY_QUERY_H

/* What a policy says of a call on given ranks: of a communicator (policy_query.c), or of ranks that
 * are no communicator yet (policy_preview.c). */

#include "libcomm/base/error.h"
#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/plan.h"

/* Views. */
typedef struct lcomm_policy_scope {
  const lcomm_policy *policy;
  const lcomm_topo *topo;
  int rank;
  const char *name; /* for match=comm= */
  uint64_t named;   /* lcomm_match_named() of both */
} lcomm_policy_scope;

/* As lcomm_policy_query(). */
lcomm_selection lcomm_policy_query_in(const lcomm_policy_scope *place, lcomm_call_kind kind,
                                      uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                      const char **why);

/* A call, as lcomm_call_bytes() takes it. */
typedef struct lcomm_policy_query_call {
  lcomm_call_kind kind;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  int error_feedback;
} lcomm_policy_query_call;

/* As lcomm_call_bytes(); on failure `error` is the sentence.
 */
lcomm_status lcomm_policy_query_bytes(const lcomm_policy_scope *place,
                                      const lcomm_policy_query_call *call, uint64_t *sent_bytes,
                                      uint64_t *exact_bytes, lcomm_why *error);

lcomm_policy_facts lcomm_policy_query_facts(const lcomm_policy *policy);

/* As how many nodes some ranks of a communicator pose: those on which they are. 0: they do not
 * pose. */
int lcomm_policy_query_posed_nodes(const lcomm_comm *comm, const int *members, int count);

#endif
