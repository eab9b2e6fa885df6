/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: the table at the end. */

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/nccl/nccl_over.h"

static const struct {
  const char *name;
  size_t size;
} types[] = {[ncclInt8] = {"int8", 1},          [ncclUint8] = {"uint8", 1},
             [ncclInt32] = {"int32", 4},        [ncclUint32] = {"uint32", 4},
             [ncclInt64] = {"int64", 8},        [ncclUint64] = {"uint64", 8},
             [ncclFloat16] = {"float16", 2},    [ncclFloat32] = {"float32", 4},
             [ncclFloat64] = {"float64", 8},    [ncclBfloat16] = {"bfloat16", 2},
             [ncclFloat8e4m3] = {"fp8e4m3", 1}, [ncclFloat8e5m2] = {"fp8e5m2", 1}};

static const char *const ops[ncclNumOps] = {[ncclSum] = "sum",
                                            [ncclProd] = "prod",
                                            [ncclMax] = "max",
                                            [ncclMin] = "min",
                                            [ncclAvg] = "avg"};

void lcomm_nccl_record(const lcomm_nccl_sum *sum, lcomm_selection choice, bool taken,
                       const char *why) {
  const lcomm_nccl_backing *at = sum->at;
  lcomm_comm *comm = at ? at->now.comm : NULL;
  bool known = (unsigned)sum->type < sizeof(types) / sizeof *types;
  bool is_allreduce = sum->kind == LCOMM_CALL_ALLREDUCE;
  int ranks = 0;
  if (lcomm_nccl_below()->CommCount(sum->comm, &ranks) != ncclSuccess) {
    return; /* NCCL refuses the call */
  }
  lcomm_interpose_record record = {.function = is_allreduce ? "ncclAllReduce" : "ncclReduceScatter",
                                   .type = known ? types[sum->type].name : "unknown",
                                   .op = (unsigned)sum->op < ncclNumOps ? ops[sum->op]
                                                                        : "user-defined",
                                   .comm = at ? at->name : "",
                                   .policy = comm ? lcomm_policy_string(comm) : NULL,
                                   .ranks = ranks,
                                   .nodes = comm ? lcomm_nodes(comm) : 0,
                                   .count = sum->count,
                                   .choice = choice,
                                   .exact_now = choice == LCOMM_SELECT_EF && !taken,
                                   .why = taken && choice != LCOMM_SELECT_EXACT ? "" : why};
  record.size_bytes = known ? sum->count * types[sum->type].size : 0;
  record.size_bytes *= is_allreduce ? 1 : (uint64_t)ranks;
  if (taken && !lcomm_interpose_report_lookup(&record)) {
    (void)lcomm_call_bytes(comm, sum->kind, sum->count, sum->dtype, sum->by,
                           choice == LCOMM_SELECT_EF, &record.sent_bytes, &record.exact_bytes);
  }
  lcomm_interpose_report_add(&record);
}

void lcomm_nccl_report_show(int rank, int ranks, int nodes, const char *policy, bool report_only) {
  lcomm_interpose_report_show((lcomm_interpose_report_about){.report_only = report_only,
                                                             .rank = rank,
                                                             .ranks = ranks,
                                                             .nodes = nodes,
                                                             .policy = policy,
                                                             .library = "libcomm-nccl",
                                                             .other = "NCCL"});
}
