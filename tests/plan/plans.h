/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_PLANS_H
#define LCOMM_TESTS_PLANS_H

/* Plans for machines that need not be there. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "libcomm/plan/plan.h"

enum { PLANS_RANKS_MAX = 64 };

static inline lcomm_status try_plan(const char *policy_text, int ranks, int nodes, int rank,
                                    const lcomm_plan_request *request, lcomm_plan **plan,
                                    lcomm_why *why) {
  lcomm_why error = {""};
  static const lcomm_identity identities[PLANS_RANKS_MAX];
  lcomm_topo topo;
  lcomm_policy policy;
  assert_int_equal(lcomm_policy_parse(policy_text, &policy, &error), LCOMM_OK);
  assert_int_equal(lcomm_topo_create(identities, ranks, nodes, &topo, &error), LCOMM_OK);
  lcomm_status status = lcomm_plan_create(request, &policy, &topo, rank, plan, why);
  lcomm_topo_free(&topo);
  return status;
}

static inline lcomm_plan *make_plan(const char *policy_text, int ranks, int nodes, int rank,
                                    lcomm_plan_request request) {
  lcomm_why why;
  lcomm_plan *plan = NULL;
  if (try_plan(policy_text, ranks, nodes, rank, &request, &plan, &why) != LCOMM_OK) {
    fail_msg("%s", why.text);
  }
  return plan;
}

static inline lcomm_plan_request request_of(lcomm_collective collective, uint64_t count,
                                            lcomm_dtype dtype, lcomm_op op) {
  return (lcomm_plan_request){.collective = collective, .count = count, .dtype = dtype, .op = op};
}

/* Ranks on so many nodes, between which a message costs `net`. */
static inline lcomm_topo topo_over(int ranks, int nodes, lcomm_link_cost net) {
  static const lcomm_identity identities[PLANS_RANKS_MAX];
  lcomm_why error;
  lcomm_topo topo;
  assert_int_equal(lcomm_topo_create(identities, ranks, nodes, &topo, &error), LCOMM_OK);
  topo.cost[LCOMM_LINK_NET] = net;
  return topo;
}

/* A plan of a sum of `count` float32 there. */
static inline lcomm_plan *allreduce_plan_over(const lcomm_topo *topo, const char *policy_text,
                                              int rank, uint64_t count, bool error_feedback) {
  lcomm_why why;
  lcomm_policy policy;
  lcomm_plan *plan = NULL;
  lcomm_plan_request request =
      request_of(LCOMM_COLLECTIVE_ALLREDUCE, count, LCOMM_FLOAT32, LCOMM_SUM);
  request.error_feedback = error_feedback;
  assert_int_equal(lcomm_policy_parse(policy_text, &policy, &why), LCOMM_OK);
  if (lcomm_plan_create(&request, &policy, topo, rank, &plan, &why) != LCOMM_OK) {
    fail_msg("%s: %s", policy_text, why.text);
  }
  return plan;
}

#endif
