/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* What is read of an ncclConfig_t. Programs have it of another version of NCCL: shorter, or longer.
 */

#include <stdio.h>

#include "libcomm/interpose/nccl/nccl_comm.h"

#define HAS(config, field)                                                                         \
  ((config)->size >= offsetof(ncclConfig_t, field) + sizeof((config)->field))

ncclResult_t lcomm_nccl_config_check(const char *function, const ncclConfig_t *config) {
  bool is_one = !config || (HAS(config, version) && config->magic == (unsigned)NCCL_CONFIG_MAGIC);
  return is_one
             ? ncclSuccess
             : lcomm_nccl_fail(ncclInvalidArgument,
                               "%s: the configuration is none; NCCL_CONFIG_INITIALIZER makes one",
                               function);
}

bool lcomm_nccl_config_blocks(const ncclConfig_t *config, bool otherwise) {
  bool says = config && HAS(config, blocking) && (config->blocking == 0 || config->blocking == 1);
  return says ? config->blocking == 1 : otherwise;
}

void lcomm_nccl_config_name(const ncclConfig_t *config, char name[LCOMM_NCCL_NAME_MAX]) {
  bool has_name = config && config->magic == (unsigned)NCCL_CONFIG_MAGIC && HAS(config, commName) &&
                  config->commName;
  snprintf(name, LCOMM_NCCL_NAME_MAX, "%s", has_name ? config->commName : "");
}
