/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: which sums libcomm makes. What decides is equal on all ranks: the
 * communicator, the function, count, type and operation, and how many sums came before. */

#include <string.h>

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/nccl/nccl_over.h"

/* ------------------------------------------------------------------ deciding */

/* Sums and averages of floating-point numbers; all else is NCCL's, whatever match= says. */
static bool translate(lcomm_nccl_sum *it) {
  static const struct {
    ncclDataType_t type;
    lcomm_dtype as;
  } types[] = {{ncclFloat32, LCOMM_FLOAT32},
               {ncclBfloat16, LCOMM_BFLOAT16},
               {ncclFloat16, LCOMM_FLOAT16},
               {ncclFloat64, LCOMM_FLOAT64}};
  it->by = it->op == ncclAvg ? LCOMM_AVG : LCOMM_SUM;
  for (size_t i = 0; i < sizeof(types) / sizeof *types; i++) {
    if (types[i].type == it->type) {
      it->dtype = types[i].as;
      return it->op == ncclSum || it->op == ncclAvg;
    }
  }
  return false;
}

static uint64_t size_of(const lcomm_nccl_sum *it) {
  return it->count * lcomm_dtype_size(it->dtype);
}

static const char flushing[] = "flushes what error feedback carries";
static const char no_pattern[] = "error feedback waits until the sums of a step repeat";

/* Does it flush a residual of a policy that was replaced or switched off? */
static bool flushes(lcomm_nccl_sum *it, lcomm_nccl_feedback *feedback) {
  it->site.kind = it->kind;
  return it->dtype == LCOMM_FLOAT32 &&
         lcomm_nccl_feedback_flushes(feedback, it->count, it->by, &it->site);
}

static bool take_with_feedback(lcomm_nccl_sum *it, lcomm_selection *choice, const char **why) {
  lcomm_nccl_backing *at = it->at;
  it->site.kind = it->kind;
  lcomm_status status = lcomm_nccl_feedback_next(at->now.feedback, it->count, it->by, &it->site);
  if (status != LCOMM_OK) {
    lcomm_abort(at->now.comm, "a rank has no memory for error feedback");
    it->site.feedback = NULL; /* a plain sum tells that */
    return true;
  }
  if (it->site.what == LCOMM_INTERPOSE_FLUSH) {
    *choice = LCOMM_SELECT_EXACT;
    *why = flushing;
  }
  if (it->site.what == LCOMM_INTERPOSE_PLAIN) {
    *why = no_pattern;
    return false;
  }
  if (it->site.what == LCOMM_INTERPOSE_EF) {
    lcomm_nccl_feedback_watch(at->now.feedback, it->send, it->count, at->rank);
  }
  return true;
}

/* The policy's answer about a shape stays the same, and asking it takes longer than a look. */
static lcomm_selection query(const lcomm_nccl_sum *it, const char **why) {
  lcomm_nccl_backing *at = it->at;
  unsigned shape = 1 + (unsigned)it->kind + 8 * (unsigned)it->dtype + 256 * (unsigned)it->by;
  uint64_t hash = (it->count * 31 + shape) * UINT64_C(0x9e3779b97f4a7c15);
  lcomm_nccl_answer *answer = &at->answers[(hash >> 32) % LCOMM_NCCL_ANSWERS];
  if (answer->shape != shape || answer->count != it->count) {
    *answer = (lcomm_nccl_answer){.count = it->count, .shape = shape};
    answer->choice =
        lcomm_policy_query(at->now.comm, it->kind, it->count, it->dtype, it->by, &answer->why);
  }
  *why = answer->why;
  return answer->choice;
}

/* With the lock. True: libcomm makes it. False: *why says why not. */
static bool is_chosen(lcomm_nccl_sum *it, lcomm_selection *choice, const char **why) {
  lcomm_nccl_backing *at = it->at;
  lcomm_nccl_over_drop_former(at);
  if (flushes(it, at->former.feedback) || (at->control.off && flushes(it, at->now.feedback))) {
    *choice = LCOMM_SELECT_EXACT;
    *why = flushing;
    return true;
  }
  it->site.feedback = NULL;
  if (!at->now.comm || at->control.off) {
    *why = at->now.comm ? "switched off by LCOMM_INTERPOSE_CONTROL" : at->why;
    return false;
  }
  *choice = query(it, why);
  if (*choice == LCOMM_SELECT_EF) {
    return at->now.feedback && take_with_feedback(it, choice, why);
  }
  return *choice != LCOMM_SELECT_NONE;
}

/* A sum that is long enough asks for the control file now and then: at once, or, in a group, when
 * that ends. */
static void count(lcomm_nccl_sum *it) {
  lcomm_nccl_backing *at = it->at;
  lcomm_nccl_backing_enter(at);
  bool counts = at->now.comm && size_of(it) >= at->min_bytes;
  at->control.candidates += counts;
  bool is_due = counts && lcomm_nccl_control_is_due(&at->control);
  lcomm_nccl_backing_leave(at);
  if (is_due && lcomm_nccl_over_in_group()) {
    lcomm_nccl_over_note(at);
  } else if (is_due) {
    lcomm_nccl_over_poll(&at, 1);
  }
}

static bool decide(lcomm_nccl_sum *it, bool known) {
  const char *why = known ? "a communicator of one rank, or that was made in a way that libcomm "
                            "does not know"
                          : "a type or an operation that libcomm leaves to NCCL";
  lcomm_selection choice = LCOMM_SELECT_NONE;
  bool taken = false;
  if (it->at) {
    lcomm_nccl_backing_enter(it->at);
    taken = known && is_chosen(it, &choice, &why);
  }
  if (lcomm_interpose_recording) {
    lcomm_nccl_record(it, choice, taken, why);
  }
  if (it->at) {
    lcomm_nccl_backing_leave(it->at);
  }
  return taken && lcomm_nccl_over_mode() != LCOMM_INTERPOSE_REPORT;
}

/* True: libcomm makes it. */
static bool take(lcomm_nccl_sum *it) {
  bool known = translate(it);
  if (!lcomm_interpose_recording && (!known || size_of(it) < lcomm_nccl_over_min())) {
    return false;
  }
  it->at = lcomm_nccl_backing_find(it->comm);
  if (!it->at && !lcomm_interpose_recording) {
    return false;
  }
  if (it->at && known && lcomm_interpose_control_wanted()) {
    count(it);
  }
  return decide(it, known);
}

/* ----------------------------------------------------------------- the calls */

static ncclResult_t submit(lcomm_nccl_sum *it) {
  if (!take(it)) {
    return lcomm_nccl_sum_forward(it);
  }
  if (lcomm_nccl_over_in_group()) {
    return lcomm_nccl_over_defer_sum(it);
  }
  ncclResult_t result = lcomm_nccl_sum_begin(it);
  if (it->is_left) {
    return lcomm_nccl_sum_forward(it);
  }
  return result == ncclSuccess ? lcomm_nccl_sum_finish(it) : result;
}

static ncclResult_t all_reduce(const void *send, void *receive, size_t count, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  lcomm_nccl_sum it = {LCOMM_CALL_ALLREDUCE, send, receive, count, type, op, comm,
                       .stream = stream};
  return submit(&it);
}

static ncclResult_t reduce_scatter(const void *send, void *receive, size_t count,
                                   ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
                                   cudaStream_t stream) {
  lcomm_nccl_sum it = {LCOMM_CALL_REDUCE_SCATTER, send, receive, count, type, op, comm,
                       .stream = stream};
  return submit(&it);
}

void lcomm_nccl_over_take_sums(lcomm_nccl_calls *calls) {
  calls->AllReduce = all_reduce;
  calls->ReduceScatter = reduce_scatter;
}
