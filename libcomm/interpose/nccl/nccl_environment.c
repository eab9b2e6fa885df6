/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/nccl/nccl_environment.h"

#include <pthread.h>
#include <stdio.h>
#include <sys/random.h>
#include <unistd.h>

#include "libcomm/interpose/nccl/nccl_backing.h"

/* ------------------------------------------------------------ what is asked for */

static struct {
  pthread_once_t once;
  lcomm_nccl_environment asked;
  lcomm_interpose_tables tables;
  pid_t process; /* a forked child shows no table */
  uint64_t number;
} environment = {.once = PTHREAD_ONCE_INIT};

static const char unknown_mode[] =
    "LCOMM_INTERPOSE is none of on, require, off, blocking and report";
static const char no_policy[] = "LCOMM_INTERPOSE needs a policy; set LCOMM_POLICY";

static void read_environment(void) {
  lcomm_nccl_environment *asked = &environment.asked;
  asked->has_policy = lcomm_setting("LCOMM_POLICY") != NULL;
  asked->is_required = lcomm_interpose_is_required();
  bool is_known = lcomm_interpose_mode_read(&asked->mode);
  bool needs_policy = asked->mode == LCOMM_INTERPOSE_REPORT || asked->is_required;
  asked->trouble = !is_known ? unknown_mode : needs_policy && !asked->has_policy ? no_policy : NULL;
  if (asked->trouble) {
    asked->mode = LCOMM_INTERPOSE_OFF;
  }
  environment.tables = lcomm_interpose_tables_wanted(asked->mode);
  environment.process = getpid();
  (void)getrandom(&environment.number, sizeof(environment.number), 0);
}

const lcomm_nccl_environment *lcomm_nccl_environment_get(void) {
  pthread_once(&environment.once, read_environment);
  return &environment.asked;
}

uint64_t lcomm_nccl_process_number(void) {
  (void)lcomm_nccl_environment_get();
  return environment.number;
}

/* -------------------------------------------------------------- the table */

/* Of this rank, by the first communicator. */
static struct {
  pthread_mutex_t lock;
  int rank, ranks, nodes; /* ranks 0: there is none yet */
  const char *other;
  char policy[LCOMM_INTERPOSE_POLICY_TEXT_MAX];
} first = {.lock = PTHREAD_MUTEX_INITIALIZER};

void lcomm_nccl_table_begin(void) {
  (void)lcomm_nccl_environment_get();
  lcomm_interpose_recording = environment.tables.recorded;
}

void lcomm_nccl_table_first(const lcomm_comm *comm, const char *policy, const char *other) {
  pthread_mutex_lock(&first.lock);
  if (first.ranks == 0) {
    first.rank = lcomm_rank(comm);
    first.ranks = lcomm_size(comm);
    first.nodes = lcomm_nodes(comm);
    first.other = other;
    snprintf(first.policy, sizeof(first.policy), "%s", policy);
    lcomm_interpose_report_begin(first.policy);
  }
  pthread_mutex_unlock(&first.lock);
}

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

lcomm_interpose_record lcomm_nccl_record_of(const char *function, ncclDataType_t type,
                                            ncclRedOp_t op, uint64_t count, int parts) {
  bool known = (unsigned)type < sizeof(types) / sizeof *types;
  return (lcomm_interpose_record){.function = function,
                                  .type = known ? types[type].name : "unknown",
                                  .op = (unsigned)op < ncclNumOps ? ops[op] : "user-defined",
                                  .comm = "",
                                  .count = count,
                                  .size_bytes =
                                      known ? count * types[type].size * (uint64_t)parts : 0,
                                  .why = ""};
}

/* Communicators that all ranks have given back end now, or not before the process does. */
__attribute__((destructor)) static void end(void) {
  if (first.ranks == 0 || environment.process != getpid()) {
    return;
  }
  (void)lcomm_nccl_threads_wait();
  const lcomm_interpose_tables *tables = &environment.tables;
  if (!lcomm_interpose_recording || !(tables->of_all || (tables->of_rank_0 && first.rank == 0))) {
    return;
  }
  lcomm_interpose_report_show((lcomm_interpose_report_about){
      .report_only = environment.asked.mode == LCOMM_INTERPOSE_REPORT,
      .rank = first.rank,
      .ranks = first.ranks,
      .nodes = first.nodes,
      .policy = first.policy,
      .library = "libcomm-nccl",
      .other = first.other});
}
