/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Over NCCL: what the environment asks for. */

#include <stdio.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_environment.h"
#include "libcomm/interpose/nccl/nccl_over.h"

static atomic_uint_fast64_t min_bytes = UINT64_MAX;

lcomm_interpose_mode lcomm_nccl_over_mode(void) {
  const lcomm_nccl_environment *asked = lcomm_nccl_environment_get();
  return asked->has_policy ? asked->mode : LCOMM_INTERPOSE_OFF;
}

uint64_t lcomm_nccl_over_min(void) {
  return atomic_load_explicit(&min_bytes, memory_order_relaxed);
}

void lcomm_nccl_over_backing(const lcomm_comm *comm) {
  lcomm_policy_facts facts = {0};
  (void)lcomm_policy_facts_get(comm, &facts);
  lcomm_nccl_table_first(comm, lcomm_policy_string(comm), "NCCL");
  uint64_t least = lcomm_nccl_over_min();
  uint64_t mine = lcomm_interpose_control_wanted() ? 0 : facts.min_bytes;
  while (mine < least && !atomic_compare_exchange_weak(&min_bytes, &least, mine)) {
  }
}

/* Several threads may decide at a time. */
bool lcomm_nccl_over_policy(lcomm_nccl_choice *choice) {
  static atomic_flag said = ATOMIC_FLAG_INIT;
  const lcomm_nccl_environment *asked = lcomm_nccl_environment_get();
  if (asked->trouble && asked->is_required) {
    snprintf(choice->reason, sizeof(choice->reason),
             "LCOMM_INTERPOSE=require, and NCCL would make all sums, uncompressed: %s",
             asked->trouble);
    choice->calls = lcomm_nccl_refusing;
    return false;
  }
  if (asked->trouble && !atomic_flag_test_and_set(&said)) {
    lcomm_nccl_log("%s. NCCL makes all calls", asked->trouble);
  }
  if (lcomm_nccl_over_mode() != LCOMM_INTERPOSE_OFF) {
    lcomm_nccl_table_begin();
    lcomm_nccl_over_take_comms(&choice->calls);
    lcomm_nccl_over_take_parts(&choice->calls);
    lcomm_nccl_over_take_sums(&choice->calls);
    lcomm_nccl_over_take_groups(&choice->calls);
  }
  return true;
}
