/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/nccl/nccl_choice.h"

#include <stdio.h>
#include <stdlib.h>

#include "libcomm/interpose/nccl/nccl_environment.h"

/* ----------------------------------------------------------- the environment */

static void tell_of_control(void) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  if (lcomm_interpose_control_wanted() && !atomic_flag_test_and_set(&said)) {
    lcomm_nccl_log("LCOMM_INTERPOSE_CONTROL is read over NCCL only; where libcomm makes all calls "
                   "the policy stays as it is");
  }
}

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
    tell_of_control();
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

/* What the policy would say, where sums are exact. NULL: no memory. */
static lcomm_preview *preview_of(const struct ncclComm *comm) {
  lcomm_preview *preview = NULL;
  int *members = calloc((size_t)comm->size, sizeof *members);
  for (int rank = 0; members && rank < comm->size; rank++) {
    members[rank] = rank;
  }
  const char *policy = lcomm_setting("LCOMM_POLICY");
  if (!members || lcomm_preview_create(comm->comm, members, comm->size, policy ? policy : "",
                                       &preview) != LCOMM_OK) {
    lcomm_nccl_log("there is no report of a communicator: %s", lcomm_last_error(NULL));
  } else {
    lcomm_preview_name_set(preview, comm->name);
  }
  free(members);
  return preview;
}

static const char *policy_of(const struct ncclComm *comm) {
  return comm->preview ? lcomm_preview_policy(comm->preview) : lcomm_policy_string(comm->comm);
}

static void make_feedback(ncclComm_t comm) {
  lcomm_policy_facts facts = {0};
  if (comm->preview) {
    lcomm_preview_facts(comm->preview, &facts);
  } else {
    (void)lcomm_policy_facts_get(comm->comm, &facts);
  }
  if (!facts.error_feedback) {
    return;
  }
  comm->feedback = lcomm_nccl_feedback_create(comm->comm, facts.step_calls);
  if (!comm->feedback) {
    lcomm_abort(comm->comm, "a rank has no memory for error feedback");
  }
}

void lcomm_nccl_choices_make(ncclComm_t comm, lcomm_nccl_sharing sharing) {
  if (lcomm_nccl_environment_get()->mode == LCOMM_INTERPOSE_REPORT) {
    comm->preview = preview_of(comm);
  }
  if (sharing == LCOMM_NCCL_OWN_PROCESSES) {
    make_feedback(comm);
  }
  if (lcomm_interpose_recording) {
    lcomm_stats_hide(comm->comm);
    lcomm_nccl_table_first(comm->comm, policy_of(comm), NULL);
  }
}

void lcomm_nccl_choices_free(ncclComm_t comm) {
  lcomm_nccl_feedback_destroy(comm->feedback);
  lcomm_preview_destroy(comm->preview);
  comm->feedback = NULL;
  comm->preview = NULL;
}

/* ------------------------------------------------------------------ deciding */

static const char no_residual[] = "a sum with factors, or for one rank, has no error feedback";
static const char shared_process[] =
    "a process has several ranks: error feedback would let one wait for another";
static const char no_pattern[] = "error feedback waits until the sums of a step repeat";
static const char flushing[] = "flushes what error feedback carries";
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
                            : lcomm_policy_query(comm->comm, call->kind, count_of(call), call->type,
                                                 call->op, &it.why);
  return it;
}

/* Of a sum that the policy gives error feedback. */
static decision decide_feedback(const lcomm_nccl_call *call, lcomm_nccl_site *site) {
  struct ncclComm *comm = call->comm;
  if (call->factor.is_used || is_for_one(call)) {
    return (decision){LCOMM_SELECT_EXACT, false, no_residual};
  }
  if (!comm->feedback) {
    return (decision){LCOMM_SELECT_EXACT, false, shared_process};
  }
  site->kind = call->kind;
  if (lcomm_nccl_feedback_next(comm->feedback, call->count, call->op, site) != LCOMM_OK) {
    lcomm_abort(comm->comm, "a rank has no memory for error feedback");
    site->what = LCOMM_INTERPOSE_PLAIN; /* a plain sum tells that */
  }
  if (site->what == LCOMM_INTERPOSE_PLAIN) {
    site->feedback = NULL;
    return (decision){LCOMM_SELECT_EF, true, no_pattern};
  }
  if (site->what == LCOMM_INTERPOSE_FLUSH) {
    return (decision){LCOMM_SELECT_EXACT, false, flushing};
  }
  lcomm_nccl_feedback_watch(comm->feedback, call->send, call->count, comm->rank);
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
    (void)lcomm_call_bytes(comm->comm, call->kind, call->count, call->type, call->op, has_residual,
                           &record->sent_bytes, &record->exact_bytes);
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

void lcomm_nccl_choose(const lcomm_nccl_call *call, lcomm_nccl_site *site) {
  *site = (lcomm_nccl_site){.kind = call->kind};
  if (!lcomm_interpose_recording && !call->comm->feedback) {
    return;
  }
  decision it = query(call);
  if (it.choice == LCOMM_SELECT_EF) {
    it = decide_feedback(call, site);
  }
  if (lcomm_interpose_recording) {
    record(call, &it);
  }
  if (call->comm->preview) { /* all is exact */
    site->feedback = NULL;
  }
}

void lcomm_nccl_count_gathered(const lcomm_nccl_call *call) {
  if (lcomm_interpose_recording) {
    record(call, &(decision){LCOMM_SELECT_NONE, false, combined});
  }
}
