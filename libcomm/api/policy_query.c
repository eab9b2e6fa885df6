/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the policy of a communicator says of calls that were not made yet. */

#include "libcomm/api/policy_query.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/engine/entry.h"
#include "libcomm/plan/eligibility.h"
#include "libcomm/plan/policy_match.h"

/* ------------------------------------------------------------------ calls */

static bool exists(lcomm_call_kind kind, lcomm_dtype dtype, lcomm_op op) {
  return (unsigned)kind < LCOMM_CALL_KINDS && lcomm_dtype_size(dtype) > 0 &&
         (unsigned)op <= LCOMM_MAX;
}

static lcomm_plan_request request_of(const lcomm_policy_scope *place, lcomm_call_kind kind,
                                     uint64_t count, lcomm_dtype dtype, lcomm_op op) {
  static const lcomm_collective collectives[LCOMM_CALL_KINDS] = {
      [LCOMM_CALL_ALLREDUCE] = LCOMM_COLLECTIVE_ALLREDUCE,
      [LCOMM_CALL_REDUCE_SCATTER] = LCOMM_COLLECTIVE_REDUCE_SCATTER,
      [LCOMM_CALL_ALLGATHER] = LCOMM_COLLECTIVE_ALLGATHER,
      [LCOMM_CALL_BROADCAST] = LCOMM_COLLECTIVE_BROADCAST,
  };
  return (lcomm_plan_request){.collective = collectives[kind],
                              .count = count,
                              .dtype = dtype,
                              .op = op,
                              .name = place->name};
}

static lcomm_policy_scope place_of(const lcomm_comm *comm) {
  return (lcomm_policy_scope){
      .policy = &comm->settings.policy,
      .topo = lcomm_topo_of_calls(comm),
      .rank = comm->rank,
      .name = comm->identity.name,
      .named = atomic_load_explicit(&comm->identity.named_rules, memory_order_relaxed)};
}

lcomm_selection lcomm_policy_query_in(const lcomm_policy_scope *place, lcomm_call_kind kind,
                                      uint64_t count, lcomm_dtype dtype, lcomm_op op,
                                      const char **why) {
  const char *unheard = NULL;
  why = why ? why : &unheard;
  *why = "there is no such call";
  if (!exists(kind, dtype, op)) {
    return LCOMM_SELECT_NONE;
  }
  lcomm_plan_request request = request_of(place, kind, count, dtype, op);
  return lcomm_eligibility_select(&request, place->policy, place->topo, place->named, why);
}

lcomm_selection lcomm_policy_query(const lcomm_comm *comm, lcomm_call_kind kind, uint64_t count,
                                   lcomm_dtype dtype, lcomm_op op, const char **why) {
  if (!comm) {
    if (why) {
      *why = "there is no such call";
    }
    return LCOMM_SELECT_NONE;
  }
  lcomm_policy_scope place = place_of(comm);
  return lcomm_policy_query_in(&place, kind, count, dtype, op, why);
}

static lcomm_status count_bytes(const lcomm_policy_scope *place, const lcomm_plan_request *request,
                                uint64_t *bytes, lcomm_why *error) {
  lcomm_why why;
  lcomm_plan *plan = NULL;
  lcomm_status status =
      lcomm_plan_create(request, place->policy, place->topo, place->rank, &plan, &why);
  if (status != LCOMM_OK) {
    return lcomm_why_set(error, status, "lcomm_call_bytes: %s", why.text);
  }
  *bytes = lcomm_plan_bytes_between_nodes(plan, place->topo);
  lcomm_plan_destroy(plan);
  return LCOMM_OK;
}

lcomm_status lcomm_policy_query_bytes(const lcomm_policy_scope *place,
                                      const lcomm_policy_query_call *call, uint64_t *sent_bytes,
                                      uint64_t *exact_bytes, lcomm_why *error) {
  uint64_t sent = 0, exact = 0;
  if (!exists(call->kind, call->dtype, call->op)) {
    return lcomm_why_set(error, LCOMM_ERR_ARGUMENT,
                         "lcomm_call_bytes: there is no call %d with type %d and operation %d",
                         (int)call->kind, (int)call->dtype, (int)call->op);
  }
  bool is_sum = call->kind == LCOMM_CALL_ALLREDUCE || call->kind == LCOMM_CALL_REDUCE_SCATTER;
  if (call->error_feedback && (!is_sum || call->dtype != LCOMM_FLOAT32)) {
    return lcomm_why_set(
        error, LCOMM_ERR_ARGUMENT,
        "lcomm_call_bytes: only sums of float32 have a residual, not %s of %s; ask "
        "with error_feedback = 0",
        lcomm_call_name(call->kind), lcomm_dtype_name(call->dtype));
  }
  lcomm_plan_request request = request_of(place, call->kind, call->count, call->dtype, call->op);
  request.error_feedback = call->error_feedback != 0;
  LCOMM_TRY(count_bytes(place, &request, &sent, error));
  request.exact = true;
  LCOMM_TRY(count_bytes(place, &request, &exact, error));
  *sent_bytes = sent;
  *exact_bytes = exact;
  return LCOMM_OK;
}

lcomm_status lcomm_call_bytes(lcomm_comm *comm, lcomm_call_kind kind, uint64_t count,
                              lcomm_dtype dtype, lcomm_op op, int error_feedback,
                              uint64_t *sent_bytes, uint64_t *exact_bytes) {
  lcomm_why error;
  if (!comm || !sent_bytes || !exact_bytes) {
    return lcomm_refuse_null(comm, "lcomm_call_bytes", sent_bytes ? "exact_bytes" : "sent_bytes");
  }
  LCOMM_TRY(lcomm_check_process(comm));
  lcomm_policy_scope place = place_of(comm);
  lcomm_policy_query_call call = {kind, count, dtype, op, error_feedback};
  lcomm_status status = lcomm_policy_query_bytes(&place, &call, sent_bytes, exact_bytes, &error);
  if (status != LCOMM_OK) {
    return lcomm_refuse(comm, status, "%s", error.text);
  }
  return LCOMM_OK;
}

/* ----------------------------------------------------------- communicators */

lcomm_policy_facts lcomm_policy_query_facts(const lcomm_policy *policy) {
  bool lossy = policy->node.format.codec->id != LCOMM_CODEC_NONE, error_feedback = false;
  for (unsigned i = 0; i < lcomm_policy_net_count(policy); i++) {
    const lcomm_codec_spec *net = lcomm_policy_net_codec(policy, i);
    bool acts = net->rank == 0; /* low rank is for tensors */
    lossy |= acts && net->format.codec->id != LCOMM_CODEC_NONE;
    error_feedback |= acts && net->error_feedback;
  }
  return (lcomm_policy_facts){
      .min_bytes = policy->min_bytes,
      .lossy = lossy,
      .error_feedback = error_feedback,
      .uses_names = lcomm_match_uses_names(policy),
      .inside_nodes = policy->node.format.codec->id != LCOMM_CODEC_NONE,
      .step_calls = policy->step_calls,
  };
}

lcomm_status lcomm_policy_facts_get(const lcomm_comm *comm, lcomm_policy_facts *facts) {
  if (!comm || !facts) {
    return lcomm_refuse_null(comm, "lcomm_policy_facts_get", "facts");
  }
  *facts = lcomm_policy_query_facts(&comm->settings.policy);
  return LCOMM_OK;
}

/* Plans that are kept were made for the name of their time. */
static lcomm_status set_name(lcomm_comm *comm, const char *name) {
  lcomm_status status = (lcomm_status)atomic_load(&comm->errors.status);
  if (!name) {
    return lcomm_refuse(comm, LCOMM_ERR_ARGUMENT, "lcomm_name_set: no name was given");
  }
  if (status != LCOMM_OK) {
    return status;
  }
  /* A step of tensors, too, begins with a call, which compares them. */
  if (comm->operations.next[LCOMM_SEQUENCE_SPACE_CALLS] != 0) {
    return lcomm_refuse(comm, LCOMM_ERR_STATE,
                        "lcomm_name_set: the communicator has been used, so its calls were already "
                        "matched by the name '%s'; name it before its first operation",
                        comm->identity.name);
  }
  size_t length = strnlen(name, sizeof(comm->identity.name) - 1);
  memset(comm->identity.name, 0, sizeof(comm->identity.name));
  memcpy(comm->identity.name, name, length);
  atomic_store(&comm->identity.named_rules,
               lcomm_match_named(&comm->settings.policy, comm->identity.name));
  return LCOMM_OK;
}

lcomm_status lcomm_name_set(lcomm_comm *comm, const char *name) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_name_set"));
  lcomm_status status = set_name(comm, name);
  lcomm_exit(comm);
  return status;
}
