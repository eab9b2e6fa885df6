/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Collective calls with a configuration: as without. Nothing of it says what a call's result is. */

#include "libcomm/interpose/nccl/nccl_comm.h"

#define AS_WITHOUT(X, name, n, more, ...)                                                          \
  static ncclResult_t as_##name LCOMM_NCCL_PARAMETERS(more, __VA_ARGS__,                           \
                                                      LCOMM_NCCL_CONFIG_PARAMETER) {               \
    (void)config;                                                                                  \
    return lcomm_nccl_now()->calls.name LCOMM_NCCL_ARGUMENTS(n, __VA_ARGS__);                      \
  }
LCOMM_NCCL_CONFIGURED(AS_WITHOUT, )

void lcomm_nccl_take_configured(lcomm_nccl_calls *calls) {
#define TAKE(X, name, n, more, ...) calls->name##Config = as_##name;
  LCOMM_NCCL_CONFIGURED(TAKE, )
#undef TAKE
}
