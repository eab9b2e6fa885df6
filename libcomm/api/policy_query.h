/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_API_POLICY_QUERY_H
#define LCOMM_API_POLICY_QUERY_H

/* What a policy says of a call on given ranks: of a communicator (choice.c), or of ranks that
 * are none yet (preview.c). */

#include "libcomm/include/libcomm_interpose.h"
#include "libcomm/plan/plan.h"

/* Views. */
typedef struct lcomm_choice_place {
  const lcomm_policy *policy;
  const lcomm_topo *topo;
  int rank;
  const char *name; /* for match=comm= */
  uint32_t named;   /* lcomm_match_named() of both */
} lcomm_choice_place;

/* As lcomm_choose(). */
lcomm_choice lcomm_choice_of(const lcomm_choice_place *place, lcomm_call_kind kind, uint64_t count,
                             lcomm_dtype dtype, lcomm_op op, const char **why);

/* A call, as lcomm_call_bytes() takes it. */
typedef struct lcomm_choice_call {
  lcomm_call_kind kind;
  uint64_t count;
  lcomm_dtype dtype;
  lcomm_op op;
  int lasting;
} lcomm_choice_call;

enum { LCOMM_CHOICE_ERROR_MAX = 384 };

/* As lcomm_call_bytes(); on failure `error` (LCOMM_CHOICE_ERROR_MAX bytes) is the sentence. */
lcomm_status lcomm_choice_bytes(const lcomm_choice_place *place, const lcomm_choice_call *call,
                                uint64_t *sent_bytes, uint64_t *exact_bytes, char *error);

lcomm_policy_facts lcomm_choice_facts(const lcomm_policy *policy);

/* As how many nodes some ranks of a communicator pose: those on which they are. 0: they do not
 * pose. */
int lcomm_choice_posed_nodes(const lcomm_comm *comm, const int *members, int count);

#endif
