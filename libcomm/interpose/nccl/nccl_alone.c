/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Alone: libcomm makes NCCL's calls. */

#include <stdio.h>

#include "libcomm/interpose/nccl/nccl_choice.h"

/* The first NCCL that has all functions that libcomm makes: what programs look for behind a later
 * version would be refused. */
enum { VERSION = 22809 };

/* ----------------------------------------------------------------- errors */

ncclResult_t lcomm_nccl_result(lcomm_status status) {
  switch (status) {
  case LCOMM_OK:
    return ncclSuccess;
  case LCOMM_ERR_ARGUMENT:
    return ncclInvalidArgument;
  case LCOMM_ERR_POLICY:
  case LCOMM_ERR_MISMATCH:
  case LCOMM_ERR_UNSUPPORTED:
  case LCOMM_ERR_STATE:
    return ncclInvalidUsage;
  case LCOMM_ERR_TRANSPORT:
  case LCOMM_ERR_TIMEOUT:
  case LCOMM_ERR_WIRE:
  case LCOMM_ERR_REMOTE:
  case LCOMM_ERR_ABORTED:
    return ncclRemoteError;
  case LCOMM_ERR_MEMORY:
  case LCOMM_ERR_SYSTEM:
    return ncclSystemError;
  default:
    return ncclInternalError;
  }
}

ncclResult_t lcomm_nccl_ended(const lcomm_comm *comm, lcomm_status status) {
  ncclResult_t result = lcomm_nccl_result(status);
  return result == ncclSuccess ? result : lcomm_nccl_fail(result, "%s", lcomm_last_error(comm));
}

/* ---------------------------------------------------------------- the table */

static ncclResult_t version(int *receiver) {
  if (!receiver) {
    return lcomm_nccl_fail(ncclInvalidArgument, "ncclGetVersion: version is NULL");
  }
  *receiver = lcomm_nccl_now()->version;
  return ncclSuccess;
}

static void nothing(void) {
}

bool lcomm_nccl_alone(lcomm_nccl_choice *choice) {
  int told = lcomm_nccl_version_to_tell();
  choice->calls = choice->below = lcomm_nccl_refusing;
  choice->version = told > 0 ? told : VERSION;
  choice->is_alone = true;
  choice->calls.GetVersion = version;
  choice->calls.ResetDebugInit = nothing;
  choice->calls.GroupStart = lcomm_nccl_group_start;
  choice->calls.GroupEnd = lcomm_nccl_group_end;
  choice->calls.GroupSimulateEnd = lcomm_nccl_group_simulate_end;
  lcomm_nccl_take_comms(&choice->calls);
  lcomm_nccl_take_parts(&choice->calls);
  lcomm_nccl_take_ends(&choice->calls);
  lcomm_nccl_take_sums(&choice->calls);
  lcomm_nccl_take_moves(&choice->calls);
  lcomm_nccl_take_pairs(&choice->calls);
  lcomm_nccl_take_configured(&choice->calls);
  lcomm_nccl_take_factors(&choice->calls);
  lcomm_nccl_take_memory(&choice->calls);
  snprintf(choice->reason, sizeof(choice->reason),
           "libcomm makes NCCL's calls in this process, and has no such call; an NCCL below "
           "(LCOMM_NCCL_LIBRARY, without LCOMM_NCCL=alone) has");
  return lcomm_nccl_choices_begin(choice);
}
