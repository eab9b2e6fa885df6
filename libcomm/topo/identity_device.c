/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/identity_device.h"

#include <string.h>

#include "libcomm/base/env.h"

static const lcomm_gpu *find_gpu(const lcomm_gpus *gpus, const lcomm_device_identity *device) {
  for (int i = 0; i < gpus->count; i++) {
    if (gpus->gpu[i].pci == device->pci) {
      return &gpus->gpu[i];
    }
  }
  return NULL;
}

static uint32_t at_most(int links) {
  return (uint32_t)(links < LCOMM_NVLINKS_MAX ? links : LCOMM_NVLINKS_MAX);
}

static void add_links(lcomm_device_identity *device, const lcomm_gpus *gpus, const lcomm_gpu *gpu) {
  device->switched = at_most(gpu->switched);
  for (int i = 0; i < gpus->count; i++) {
    if (&gpus->gpu[i] != gpu && (gpu->nvlinks[i] > 0 || gpu->p2p[i])) {
      device->peer[device->peers++] = (lcomm_device_peer){
          .pci = gpus->gpu[i].pci, .nvlinks = at_most(gpu->nvlinks[i]), .p2p = gpu->p2p[i]};
    }
  }
}

void lcomm_identity_take_device(lcomm_identity *identity, const lcomm_device_table *table,
                                const lcomm_gpus *gpus) {
  lcomm_device_identity *device = &identity->device;
  lcomm_device_facts facts = {0};
  int number = -1;
  memset(device, 0, sizeof *device);
  if (table->current(&number) != 0) {
    return;
  }
  number = number == LCOMM_DEVICE_NONE ? 0 : number; /* which CUDA uses then */
  if (table->facts(number, &facts) != 0) {
    return;
  }
  device->pci = lcomm_pci_parse(facts.pci, strnlen(facts.pci, sizeof(facts.pci)));
  if (device->pci == 0) {
    return;
  }
  memcpy(device->uuid, facts.uuid, sizeof(device->uuid));
  device->index = number >= 0 && number <= LCOMM_DEVICE_INDEX_MAX ? number : -1;
  const lcomm_gpu *gpu = find_gpu(gpus, device);
  if (!gpu) {
    return;
  }
  device->index = gpu->index;
  /* A slice of a GPU has a name of its own, and no way to other devices. */
  if (!lcomm_uuid_is_zero(gpu->uuid) && memcmp(gpu->uuid, device->uuid, LCOMM_UUID_SIZE) != 0) {
    return;
  }
  add_links(device, gpus, gpu);
  if (!lcomm_env_get(LCOMM_ENV_HOSTID)) {
    memcpy(device->cluster, gpu->cluster, sizeof(device->cluster));
    device->clique = gpu->clique;
  }
}

void lcomm_identity_device(lcomm_identity *identity) {
  const lcomm_device_table *table = lcomm_device_in_use();
  if (table) {
    lcomm_identity_take_device(identity, table, lcomm_gpus_here());
  }
}
