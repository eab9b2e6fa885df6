/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What the environment asks for, and what is shown at the end. */

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/interpose/interpose_report.h"
#include "libcomm/interpose/nccl/nccl_over.h"

/* `first` guards rank, ranks, nodes and policy; the rest is set once, before the first call. */
static struct {
  pthread_once_t once;
  const char *trouble; /* what is wrong with the environment; NULL: nothing */
  lcomm_interpose_mode mode;
  lcomm_interpose_tables tables;
  pid_t process; /* a forked child shows no table */
  atomic_uint_fast64_t min_bytes;
  pthread_mutex_t first;
  int rank, ranks, nodes; /* ranks 0: there is no backing yet */
  char policy[512];
} over = {.once = PTHREAD_ONCE_INIT, .min_bytes = UINT64_MAX, .first = PTHREAD_MUTEX_INITIALIZER};

lcomm_interpose_mode lcomm_nccl_over_mode(void) {
  return over.mode;
}

uint64_t lcomm_nccl_over_min(void) {
  return atomic_load_explicit(&over.min_bytes, memory_order_relaxed);
}

static void keep_first(const lcomm_comm *comm) {
  pthread_mutex_lock(&over.first);
  if (over.ranks == 0) {
    over.rank = lcomm_rank(comm);
    over.ranks = lcomm_size(comm);
    over.nodes = lcomm_nodes(comm);
    snprintf(over.policy, sizeof(over.policy), "%s", lcomm_policy_string(comm));
    lcomm_interpose_report_begin(over.policy);
  }
  pthread_mutex_unlock(&over.first);
}

void lcomm_nccl_over_backing(const lcomm_comm *comm) {
  lcomm_policy_facts facts = {0};
  (void)lcomm_policy_facts_get(comm, &facts);
  keep_first(comm);
  uint64_t least = lcomm_nccl_over_min();
  uint64_t mine = lcomm_interpose_control_wanted() ? 0 : facts.min_bytes;
  while (mine < least && !atomic_compare_exchange_weak(&over.min_bytes, &least, mine)) {
  }
}

/* ----------------------------------------------------------------- the start */

static const char unknown_mode[] =
    "LCOMM_INTERPOSE is none of on, require, off, blocking and report";
static const char no_policy[] = "LCOMM_INTERPOSE needs a policy; set LCOMM_POLICY";

/* What is wrong with the environment; NULL: nothing. */
static const char *check_environment(lcomm_interpose_mode *mode) {
  bool has_policy = lcomm_setting("LCOMM_POLICY") != NULL;
  if (!lcomm_interpose_mode_read(mode)) {
    return unknown_mode;
  }
  bool needs_policy = *mode == LCOMM_INTERPOSE_REPORT || lcomm_interpose_is_required();
  return needs_policy && !has_policy ? no_policy : NULL;
}

static void read_environment(void) {
  lcomm_interpose_mode mode = LCOMM_INTERPOSE_OFF;
  over.trouble = check_environment(&mode);
  if (over.trouble && !lcomm_interpose_is_required()) {
    lcomm_nccl_log("%s. NCCL makes all calls", over.trouble);
  }
  if (over.trouble || !lcomm_setting("LCOMM_POLICY")) {
    return;
  }
  over.mode = mode;
  over.tables = lcomm_interpose_tables_wanted(mode);
  over.process = getpid();
  lcomm_interpose_recording = mode != LCOMM_INTERPOSE_OFF && over.tables.recorded;
}

/* Several threads may decide at a time. */
bool lcomm_nccl_over_policy(lcomm_nccl_choice *choice) {
  pthread_once(&over.once, read_environment);
  if (over.trouble && lcomm_interpose_is_required()) {
    snprintf(choice->reason, sizeof(choice->reason),
             "LCOMM_INTERPOSE=require, and NCCL would make all sums, uncompressed: %s",
             over.trouble);
    choice->calls = lcomm_nccl_refusing;
    return false;
  }
  if (over.mode != LCOMM_INTERPOSE_OFF) {
    lcomm_nccl_over_take_comms(&choice->calls);
    lcomm_nccl_over_take_parts(&choice->calls);
    lcomm_nccl_over_take_sums(&choice->calls);
    lcomm_nccl_over_take_groups(&choice->calls);
  }
  return true;
}

/* ------------------------------------------------------------------- the end */

/* Communicators that all ranks have given back end now, or not before the process does. */
__attribute__((destructor)) static void end(void) {
  if (over.mode == LCOMM_INTERPOSE_OFF || over.process != getpid()) {
    return;
  }
  (void)lcomm_nccl_threads_wait();
  bool shows = over.tables.of_all || (over.tables.of_rank_0 && over.rank == 0);
  if (shows && over.ranks > 0) {
    lcomm_nccl_report_show(over.rank, over.ranks, over.nodes, over.policy,
                           over.mode == LCOMM_INTERPOSE_REPORT);
  }
}
