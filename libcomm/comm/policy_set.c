/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* lcomm_policy_set(): all ranks agree on another policy, then change to it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "libcomm/base/text.h"
#include "libcomm/base/verdict.h"
#include "libcomm/call/call.h"
#include "libcomm/comm/measure.h"
#include "libcomm/engine/entry.h"
#include "libcomm/engine/pair.h"
#include "libcomm/plan/policy_match.h"
#include "libcomm/tensor/bucket.h"
#include "libcomm/tensor/residual.h"

/* What a rank sends about the policy that it was given. Travels as words. */
typedef struct proposal {
  int32_t status;
  uint32_t zero;
  uint64_t hash; /* of the canonical text */
} proposal;

_Static_assert(sizeof(proposal) % sizeof(float) == 0, "a proposal is whole words");
_Static_assert(LCOMM_POLICY_MAX % sizeof(float) == 0, "a policy is whole words");
_Static_assert(LCOMM_WHY_MAX % sizeof(float) == 0, "a sentence is whole words");

typedef struct changing {
  lcomm_comm *comm;
  lcomm_policy policy;
  char text[LCOMM_POLICY_MAX]; /* canonical */
  char other[LCOMM_POLICY_MAX];
  lcomm_why why;
  proposal all[]; /* one per rank */
} changing;

/* ------------------------------------------------------------- checking */

static lcomm_status reject(changing *it, lcomm_status status, const char *why) {
  return lcomm_why_set(&it->why, status, "%s", why);
}

static lcomm_status check_tensors(changing *it) {
  bool keeps = it->policy.momentum > 0 || it->policy.adam.onebit;
  for (size_t i = 0; keeps && i < it->comm->tensors->count; i++) {
    const lcomm_tensor *tensor = it->comm->tensors->list[i];
    if (tensor->dtype == LCOMM_FLOAT64 && lcomm_plan_op(tensor->op) == LCOMM_SUM) {
      return lcomm_why_set(
          &it->why, LCOMM_ERR_ARGUMENT,
          "the policy's momentum is float32, so tensor %s, a sum of float64, cannot have it; "
          "leave momentum to the optimiser",
          tensor->name);
    }
  }
  return LCOMM_OK;
}

/* What is left of momentum is no gradient, and an optimiser goes by what it has asked first. */
static lcomm_status check_adam(changing *it) {
  const lcomm_adam_policy *now = &it->comm->settings.policy.adam, *next = &it->policy.adam;
  bool same = now->onebit == next->onebit && now->refresh == next->refresh &&
              !(now->beta1 < next->beta1 || now->beta1 > next->beta1);
  if (same || !it->comm->tensors->grouped) {
    return LCOMM_OK;
  }
  return reject(it, LCOMM_ERR_STATE,
                "adam= is another one, and tensors have made a step with the one before; give the "
                "same adam=, or make another communicator");
}

static bool same_servers(const lcomm_servers_policy *now, const lcomm_servers_policy *next) {
  size_t size = now->count * sizeof *now->number;
  return now->count == next->count && now->are_nodes == next->are_nodes &&
         memcmp(now->number, next->number, size) == 0 && memcmp(now->share, next->share, size) == 0;
}

/* The service of a quorum is made with the communicator. */
static lcomm_status check_quorum(changing *it) {
  const lcomm_quorum_policy *now = &it->comm->settings.policy.quorum, *next = &it->policy.quorum;
  bool same = now->ranks == next->ranks && now->percent == next->percent &&
              now->late_ms == next->late_ms && now->stale == next->stale &&
              now->drops == next->drops && same_servers(&now->servers, &next->servers);
  if (same) {
    return LCOMM_OK;
  }
  return reject(
      it, LCOMM_ERR_STATE,
      "quorum=, stale=, late= or servers= is another one than the communicator was made with; give "
      "the same, or make another communicator");
}

/* Can this rank change to the policy now? Decided here, sent to all. */
static lcomm_status check_proposal(changing *it, const char *text) {
  lcomm_comm *comm = it->comm;
  (void)lcomm_operations_finish(comm); /* a failure is found again by what follows */
  (void)lcomm_residuals_join(comm);
  if (!text) {
    return reject(it, LCOMM_ERR_ARGUMENT, "no policy was given; \"\" is the exact one");
  }
  if (atomic_load(&comm->deferred.open)) {
    return reject(it, LCOMM_ERR_STATE, "a step is in flight; change the policy between the steps");
  }
  if (lcomm_comm_is_busy(comm) || !lcomm_run_cache_is_idle(&comm->runs.cache) ||
      !lcomm_residuals_idle(comm)) {
    return reject(
        it, LCOMM_ERR_STATE,
        "an operation is in flight, or its request was not waited for; wait for it first");
  }
  LCOMM_TRY(lcomm_policy_parse(text, &it->policy, &it->why));
  it->policy.undo |= comm->bootstrap.elastic;
  lcomm_policy_format(&it->policy, it->text);
  LCOMM_TRY(check_adam(it));
  LCOMM_TRY(check_quorum(it));
  return check_tensors(it);
}

/* ------------------------------------------------------------- agreeing */

static lcomm_status make_call(lcomm_comm *comm, lcomm_call *call) {
  call->op_kind = LCOMM_OP_KIND_POLICY;
  return lcomm_call_make(comm, call);
}

static lcomm_status receive(lcomm_comm *comm, char *text, size_t size, int from) {
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_BROADCAST, text, text, size / sizeof(float),
                                  LCOMM_FLOAT32, LCOMM_SUM);
  call.request.root = from;
  lcomm_status status = make_call(comm, &call);
  if (status == LCOMM_OK) {
    lcomm_text_sanitize(text, size);
  }
  return status;
}

/* The sentence of the first rank that cannot, on all. */
static lcomm_status report(changing *it, const lcomm_verdict *verdict) {
  char who[96];
  LCOMM_TRY(receive(it->comm, it->why.text, sizeof(it->why.text), verdict->rank));
  return lcomm_refuse(
      it->comm, verdict->status, "lcomm_policy_set: on %s: %s. The policy stays '%s'.",
      lcomm_comm_who(it->comm, verdict->rank, who, sizeof(who)),
      verdict->known ? it->why.text : verdict->text, it->comm->settings.policy_text);
}

static lcomm_status report_difference(changing *it, int other) {
  char who[96], first[96];
  memcpy(it->other, it->text, sizeof(it->other));
  LCOMM_TRY(receive(it->comm, it->text, sizeof(it->text), 0));
  LCOMM_TRY(receive(it->comm, it->other, sizeof(it->other), other));
  return lcomm_refuse(it->comm, LCOMM_ERR_MISMATCH,
                      "lcomm_policy_set: %s gives '%.300s', %s gives '%.300s'; give the same "
                      "policy on all ranks. It stays '%.300s'.",
                      lcomm_comm_who(it->comm, 0, first, sizeof(first)), it->text,
                      lcomm_comm_who(it->comm, other, who, sizeof(who)), it->other,
                      it->comm->settings.policy_text);
}

static lcomm_status agree(changing *it, lcomm_status mine) {
  lcomm_comm *comm = it->comm;
  proposal own = {.status = (int32_t)mine, .hash = XXH3_64bits(it->text, strlen(it->text))};
  lcomm_call call = lcomm_call_of(LCOMM_COLLECTIVE_ALLGATHER, &own, it->all,
                                  sizeof(own) / sizeof(float), LCOMM_FLOAT32, LCOMM_SUM);
  LCOMM_TRY(make_call(comm, &call));
  lcomm_verdict verdict = lcomm_verdict_of(&it->all->status, sizeof *it->all, comm->size);
  if (verdict.status != LCOMM_OK) {
    return report(it, &verdict);
  }
  for (int rank = 1; rank < comm->size; rank++) {
    if (it->all[rank].hash != it->all[0].hash) {
      return report_difference(it, rank);
    }
  }
  return LCOMM_OK;
}

/* ------------------------------------------------------------- changing */

/* What cannot be done here fails the communicator. */
static lcomm_status change(const changing *it) {
  lcomm_comm *comm = it->comm;
  bool grouped = comm->tensors->buckets != NULL;
  lcomm_status status = grouped ? lcomm_buckets_dissolve(comm) : LCOMM_OK;
  lcomm_run_cache_clear(&comm->runs.cache);
  comm->settings.policy = it->policy;
  if (status == LCOMM_OK) {
    status = lcomm_costs_measure(comm);
  }
  memcpy(comm->settings.policy_text, it->text, sizeof(comm->settings.policy_text));
  atomic_store(&comm->identity.named_rules,
               lcomm_match_named(&comm->settings.policy, comm->identity.name));
  snprintf(comm->observers.summary.about.policy, sizeof(comm->observers.summary.about.policy), "%s",
           it->text);
  lcomm_guard_forget(comm);
  if (status == LCOMM_OK && grouped) {
    status = lcomm_buckets_plan(comm);
  }
  LCOMM_TRY(status);
  return lcomm_residuals_follow_policy(comm);
}

static void log_change(const lcomm_comm *comm) {
  char text[LCOMM_POLICY_MAX + 64];
  if (comm->rank == 0) {
    snprintf(text, sizeof(text), "the policy is now '%s'", comm->settings.policy_text);
    lcomm_log_info(text);
  }
}

static lcomm_status set(lcomm_comm *comm, const char *policy) {
  LCOMM_TRY(lcomm_control_receive(comm));
  changing *it = calloc(1, sizeof *it + (size_t)comm->size * sizeof(proposal));
  if (!it) {
    return lcomm_fail(comm, LCOMM_ERR_MEMORY, "lcomm_policy_set: out of memory");
  }
  it->comm = comm;
  lcomm_status status = agree(it, check_proposal(it, policy));
  if (status == LCOMM_OK) {
    status = change(it);
  }
  if (status == LCOMM_OK) {
    log_change(comm);
  }
  free(it);
  return status;
}

lcomm_status lcomm_policy_set(lcomm_comm *comm, const char *policy) {
  LCOMM_TRY(lcomm_enter_given(comm, "lcomm_policy_set"));
  lcomm_status status = set(comm, policy);
  lcomm_exit(comm);
  return status;
}
