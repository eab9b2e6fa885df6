/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: sums are counted for the table at the end. */

#include "libcomm/interpose/nccl/nccl_environment.h"
#include "libcomm/interpose/nccl/nccl_over.h"

void lcomm_nccl_record(const lcomm_nccl_sum *sum, lcomm_selection choice, bool taken,
                       const char *why) {
  const lcomm_nccl_backing *at = sum->at;
  lcomm_comm *comm = at ? at->now.comm : NULL;
  bool is_allreduce = sum->kind == LCOMM_CALL_ALLREDUCE;
  int ranks = 0;
  if (lcomm_nccl_below()->CommCount(sum->comm, &ranks) != ncclSuccess) {
    return; /* NCCL refuses the call */
  }
  lcomm_interpose_record record =
      lcomm_nccl_record_of(is_allreduce ? "ncclAllReduce" : "ncclReduceScatter", sum->type, sum->op,
                           sum->count, is_allreduce ? 1 : ranks);
  record.comm = at ? at->name : "";
  record.policy = comm ? lcomm_policy_string(comm) : NULL;
  record.ranks = ranks;
  record.nodes = comm ? lcomm_nodes(comm) : 0;
  record.choice = choice;
  record.exact_now = choice == LCOMM_SELECT_EF && !taken;
  record.why = taken && choice != LCOMM_SELECT_EXACT ? "" : why;
  if (taken && !lcomm_interpose_report_lookup(&record)) {
    (void)lcomm_call_bytes(comm, sum->kind, sum->count, sum->dtype, sum->by,
                           choice == LCOMM_SELECT_EF, &record.sent_bytes, &record.exact_bytes);
  }
  lcomm_interpose_report_add(&record);
}
