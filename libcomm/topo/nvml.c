/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

typedef struct symbol {
  const char *name;
  size_t place; /* in lcomm_nvml */
} symbol;

static const symbol symbols[] = {
    {"nvmlInit_v2", offsetof(lcomm_nvml, init)},
    {"nvmlShutdown", offsetof(lcomm_nvml, shutdown)},
    {"nvmlErrorString", offsetof(lcomm_nvml, explain)},
    {"nvmlDeviceGetCount_v2", offsetof(lcomm_nvml, count)},
    {"nvmlDeviceGetHandleByIndex_v2", offsetof(lcomm_nvml, by_index)},
    {"nvmlDeviceGetName", offsetof(lcomm_nvml, name)},
    {"nvmlDeviceGetUUID", offsetof(lcomm_nvml, uuid)},
    {"nvmlDeviceGetPciInfo_v3", offsetof(lcomm_nvml, pci)},
    {"nvmlDeviceGetFieldValues", offsetof(lcomm_nvml, fields)},
    {"nvmlDeviceGetNvLinkCapability", offsetof(lcomm_nvml, nvlink_capability)},
    {"nvmlDeviceGetNvLinkState", offsetof(lcomm_nvml, nvlink_state)},
    {"nvmlDeviceGetNvLinkRemotePciInfo_v2", offsetof(lcomm_nvml, nvlink_remote_pci)},
    {"nvmlDeviceGetNvLinkRemoteDeviceType", offsetof(lcomm_nvml, nvlink_remote_type)},
    {"nvmlDeviceGetP2PStatus", offsetof(lcomm_nvml, p2p)},
    {"nvmlDeviceGetGpuFabricInfoV", offsetof(lcomm_nvml, fabric)},
};

bool lcomm_nvml_open(const char *library, lcomm_nvml *nvml, lcomm_why *why) {
  *nvml = (lcomm_nvml){0};
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char *reason = dlerror();
    (void)lcomm_why_set(
        why, LCOMM_ERR_UNSUPPORTED,
        "NVML is not here (%.120s); install NVIDIA's driver, or give the container its "
        "libraries",
        reason ? reason : library);
    return false;
  }
  for (size_t i = 0; i < sizeof(symbols) / sizeof *symbols; i++) {
    void *found = dlsym(handle, symbols[i].name);
    memcpy((char *)nvml + symbols[i].place, &found, sizeof(found));
  }
  return true;
}
