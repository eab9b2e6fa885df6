/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "tests/interpose/nccl/stand_in_nccl.h"

#include <stdio.h>
#include <string.h>

#include "libcomm/interpose/nccl/nccl_abi.h"
#include "libcomm/interpose/nccl/nccl_functions.h"

#define API __attribute__((visibility("default")))

API stand_in_call stand_in_last;

static void note(const char *name, int count, const void *const *arguments, const size_t *sizes) {
  snprintf(stand_in_last.name, sizeof(stand_in_last.name), "%s", name);
  stand_in_last.count = count;
  for (int i = 0; i < count; i++) {
    stand_in_last.sizes[i] = sizes[i];
    memcpy(stand_in_last.bytes[i], arguments[i], sizes[i]);
  }
  if (strcmp(name, "GetVersion") == 0) {
    **(int *const *)arguments[0] = STAND_IN_VERSION;
  }
}

#define ADDRESS(type, name) &name
#define ADDRESS_NONE NULL
#define SIZE(type, name) sizeof name
#define SIZE_NONE 0

#define OUTCOME_result(name) (ncclResult_t)(stand_in_outcome(name) % 9)
#define OUTCOME_text(name) name
#define OUTCOME_number(name) stand_in_outcome(name)
#define OUTCOME_team(name)                                                                         \
  (ncclTeam_t) { stand_in_outcome(name), 2, 3 }
#define OUTCOME_nothing(name)

#define STAND_IN(name, kind, n, ...)                                                               \
  API LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);                   \
  LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__) {                      \
    note(#name, n, (const void *[]){LCOMM_NCCL_EACH_##n(ADDRESS, __VA_ARGS__)},                    \
         (const size_t[]){LCOMM_NCCL_EACH_##n(SIZE, __VA_ARGS__)});                                \
    return OUTCOME_##kind(#name);                                                                  \
  }
LCOMM_NCCL_LIST(STAND_IN)
