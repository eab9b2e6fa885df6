/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* NCCL's names, each twice as in NCCL: pncclX, and ncclX, which is weak, so that a profiler may
 * define it and call pncclX. */

#include "libcomm/interpose/nccl/nccl_calls.h"

#define API __attribute__((visibility("default")))

#define EXPORT(name, kind, n, ...)                                                                 \
  API LCOMM_NCCL_RETURNS(kind) pnccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__);                  \
  API LCOMM_NCCL_RETURNS(kind) nccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__)                    \
      __attribute__((weak, alias("pnccl" #name)));                                                 \
  LCOMM_NCCL_RETURNS(kind) pnccl##name LCOMM_NCCL_PARAMETERS(n, __VA_ARGS__) {                     \
    return lcomm_nccl_now()->calls.name LCOMM_NCCL_ARGUMENTS(n, __VA_ARGS__);                      \
  }
LCOMM_NCCL_LIST(EXPORT)

/* An export of NCCL's that no header has. NCCL calls it through the loader, which may find it here
 * first. */
API void ncclResetDebugInitInternal(void);
void ncclResetDebugInitInternal(void) {
  void (*below)(void) = lcomm_nccl_now()->reset_debug_below;
  if (below) {
    below();
  }
}
