/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/nccl/nccl_choice.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_environment.h"

/* ----------------------------------------------------------- the environment */

bool lcomm_nccl_choices_begin(lcomm_nccl_choice *choice) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  const lcomm_nccl_environment *asked = lcomm_nccl_environment_get();
  if (asked->trouble && asked->is_required) {
    snprintf(choice->reason, sizeof(choice->reason),
             "LCOMM_INTERPOSE=require, and all sums would be exact: %s", asked->trouble);
    choice->calls = lcomm_nccl_refusing;
    return false;
  }
  if (asked->trouble && !atomic_flag_test_and_set(&said)) {
    lcomm_nccl_log("%s. All sums are exact", asked->trouble);
  }
  if (asked->mode != LCOMM_INTERPOSE_OFF) {
    lcomm_nccl_table_begin();
  }
  return true;
}

static bool is_compressing(void) {
  lcomm_interpose_mode mode = lcomm_nccl_environment_get()->mode;
  return mode == LCOMM_INTERPOSE_ON || mode == LCOMM_INTERPOSE_BLOCKING;
}

const char *lcomm_nccl_choices_policy(void) {
  return is_compressing() ? NULL : "";
}

/* ---------------------------------------------------------- of a communicator */

/* What the policy would say, where sums are exact. NULL: no memory, or it is none. */
static lcomm_preview *preview_of(const struct ncclComm *comm, const char *policy) {
  lcomm_preview *preview = NULL;
  int *members = calloc((size_t)comm->size, sizeof *members);
  for (int rank = 0; members && rank < comm->size; rank++) {
    members[rank] = rank;
  }
  const char *text = policy ? policy : lcomm_setting("LCOMM_POLICY");
  if (members && lcomm_preview_create(comm->comm, members, comm->size, text ? text : "",
                                      &preview) == LCOMM_OK) {
    lcomm_preview_name_set(preview, comm->name);
  }
  free(members);
  return preview;
}

static const char *policy_of(const struct ncclComm *comm) {
  return comm->preview ? lcomm_preview_policy(comm->preview) : lcomm_policy_string(comm->now.comm);
}

/* Of what is reported. */
static lcomm_nccl_feedback *feedback_of(const struct ncclComm *comm, const lcomm_preview *preview) {
  lcomm_policy_facts facts = {0};
  lcomm_preview_facts(preview, &facts);
  return facts.error_feedback ? lcomm_nccl_feedback_create(comm->comm, facts.step_calls) : NULL;
}

static void make_now(ncclComm_t comm, lcomm_nccl_sharing sharing) {
  comm->now = (lcomm_nccl_made){.comm = comm->comm};
  if (lcomm_nccl_environment_get()->mode == LCOMM_INTERPOSE_REPORT) {
    comm->preview = preview_of(comm, NULL);
  }
  if (sharing == LCOMM_NCCL_SHARED_PROCESS) {
    return;
  }
  if (comm->preview) {
    comm->now.feedback = feedback_of(comm, comm->preview);
  } else {
    comm->now = lcomm_nccl_made_of(comm->comm);
  }
}

void lcomm_nccl_choices_make(ncclComm_t comm, lcomm_nccl_sharing sharing) {
  lcomm_interpose_mode mode = lcomm_nccl_environment_get()->mode;
  make_now(comm, sharing);
  if (mode == LCOMM_INTERPOSE_REPORT && !comm->preview) {
    lcomm_nccl_log("there is no report of a communicator: %s", lcomm_last_error(NULL));
  }
  bool has_control =
      lcomm_interpose_control_wanted() && mode != LCOMM_INTERPOSE_OFF && comm->size > 1;
  comm->controlled = has_control ? lcomm_nccl_controlled_create(comm, sharing) : NULL;
  if (has_control && !comm->controlled) {
    lcomm_abort(comm->comm, "a rank has no memory to read LCOMM_INTERPOSE_CONTROL");
  }
  if (lcomm_interpose_recording) {
    lcomm_stats_hide(comm->comm);
    lcomm_nccl_table_first(comm->comm, policy_of(comm), NULL);
  }
}

bool lcomm_nccl_choices_report(ncclComm_t comm, const char *policy) {
  lcomm_preview *preview = preview_of(comm, policy);
  if (!preview) {
    return false;
  }
  lcomm_nccl_feedback_destroy(comm->now.feedback);
  lcomm_preview_destroy(comm->preview);
  comm->preview = preview;
  comm->now.feedback = feedback_of(comm, preview);
  return true;
}

void lcomm_nccl_choices_free(ncclComm_t comm) {
  lcomm_nccl_controlled_first(comm->controlled);
  lcomm_nccl_feedback_destroy(comm->now.feedback);
  lcomm_preview_destroy(comm->preview);
  comm->now.feedback = NULL;
  comm->preview = NULL;
}

/* ------------------------------------------------------------------ deciding */

static const char no_residual[] = "a sum with factors, or for one rank, has no error feedback";
static const char shared_process[] =
    "a process has several ranks: error feedback would let one wait for another";
static const char no_pattern[] = "error feedback waits until the sums of a step repeat";
static const char flushing[] = "flushes what error feedback carries";
static const char switched_off[] = "switched off by LCOMM_INTERPOSE_CONTROL";
static const char combined[] = "a type or an operation that the host combines";

typedef struct decision {
  lcomm_selection choice;
  bool exact_now;
  const char *why;
} decision;

static bool is_for_one(const lcomm_nccl_call *call) {
  return call->kind == LCOMM_CALL_REDUCE_SCATTER && call->root >= 0;
}

/* A sum for one rank has uneven parts, of which the policy looks at the mean. */
static uint64_t count_of(const lcomm_nccl_call *call) {
  uint64_t ranks = (uint64_t)call->comm->size;
  return is_for_one(call) ? call->count / ranks + (call->count % ranks > 0) : call->count;
}

static decision query(const lcomm_nccl_call *call) {
  const struct ncclComm *comm = call->comm;
  decision it = {.why = ""};
  it.choice = comm->preview ? lcomm_preview_query(comm->preview, call->kind, count_of(call),
                                                  call->type, call->op, &it.why)
                            : lcomm_policy_query(comm->now.comm, call->kind, count_of(call),
                                                 call->type, call->op, &it.why);
  return it;
}

/* Of a sum that the policy gives error feedback. */
static decision decide_feedback(const lcomm_nccl_call *call, lcomm_nccl_site *site) {
  struct ncclComm *comm = call->comm;
  if (call->factor.is_used || is_for_one(call)) {
    return (decision){LCOMM_SELECT_EXACT, false, no_residual};
  }
  if (!comm->now.feedback) {
    return (decision){LCOMM_SELECT_EXACT, false, shared_process};
  }
  site->kind = call->kind;
  if (lcomm_nccl_feedback_next(comm->now.feedback, call->count, call->op, site) != LCOMM_OK) {
    lcomm_abort(comm->now.comm, "a rank has no memory for error feedback");
    site->what = LCOMM_INTERPOSE_PLAIN; /* a plain sum tells that */
  }
  if (site->what == LCOMM_INTERPOSE_PLAIN) {
    site->feedback = NULL;
    return (decision){LCOMM_SELECT_EF, true, no_pattern};
  }
  if (site->what == LCOMM_INTERPOSE_FLUSH) {
    return (decision){LCOMM_SELECT_EXACT, false, flushing};
  }
  lcomm_nccl_feedback_watch(comm->now.feedback, call->send, call->count, comm->rank);
  return (decision){LCOMM_SELECT_EF, false, ""};
}

/* ------------------------------------------------------------------ counting */

static void add_bytes(const lcomm_nccl_call *call, const decision *it,
                      lcomm_interpose_record *record) {
  const struct ncclComm *comm = call->comm;
  int has_residual = it->choice == LCOMM_SELECT_EF;
  if (comm->preview) {
    (void)lcomm_preview_bytes(comm->preview, call->kind, call->count, call->type, call->op,
                              has_residual, &record->sent_bytes, &record->exact_bytes);
  } else {
    (void)lcomm_call_bytes(comm->now.comm, call->kind, call->count, call->type, call->op,
                           has_residual, &record->sent_bytes, &record->exact_bytes);
  }
}

static void record(const lcomm_nccl_call *call, const decision *it) {
  const struct ncclComm *comm = call->comm;
  bool is_scattered = call->kind == LCOMM_CALL_REDUCE_SCATTER && call->root < 0;
  bool is_chosen = it->choice != LCOMM_SELECT_NONE && !it->exact_now;
  lcomm_interpose_record record = lcomm_nccl_record_of(call->name, call->given_type, call->given_op,
                                                       call->count, is_scattered ? comm->size : 1);
  record.comm = comm->name;
  record.policy = policy_of(comm);
  record.ranks = comm->size;
  record.nodes = lcomm_nodes(comm->comm);
  record.choice = it->choice;
  record.exact_now = it->exact_now;
  record.why = is_chosen && it->choice != LCOMM_SELECT_EXACT ? "" : it->why;
  record.no_bytes = is_for_one(call);
  if (is_chosen && !record.no_bytes && !lcomm_interpose_report_lookup(&record)) {
    add_bytes(call, it, &record);
  }
  lcomm_interpose_report_add(&record);
}

static decision decide(const lcomm_nccl_call *call, lcomm_nccl_site *site) {
  if (lcomm_nccl_control_flushes(call, site)) {
    return (decision){LCOMM_SELECT_EXACT, false, flushing};
  }
  site->feedback = NULL;
  if (lcomm_nccl_control_is_off(call->comm->controlled)) {
    return (decision){LCOMM_SELECT_NONE, false, switched_off};
  }
  decision it = query(call);
  return it.choice == LCOMM_SELECT_EF ? decide_feedback(call, site) : it;
}

void lcomm_nccl_choose(const lcomm_nccl_call *call, lcomm_nccl_site *site) {
  const struct ncclComm *comm = call->comm;
  *site = (lcomm_nccl_site){.kind = call->kind};
  if (!lcomm_interpose_recording && !comm->now.feedback && !comm->controlled) {
    return;
  }
  decision it = decide(call, site);
  if (lcomm_interpose_recording) {
    record(call, &it);
  }
  if (comm->preview) { /* all is exact */
    site->feedback = NULL;
  }
}

void lcomm_nccl_count_gathered(const lcomm_nccl_call *call) {
  if (lcomm_interpose_recording) {
    record(call, &(decision){LCOMM_SELECT_NONE, false, combined});
  }
}
