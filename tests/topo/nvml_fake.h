/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TESTS_TOPO_NVML_FAKE_H
#define LCOMM_TESTS_TOPO_NVML_FAKE_H

/* An NVML of GPUs that are not there. */

#include <stdio.h>
#include <string.h>

#include "libcomm/topo/gpus.h"

enum { FAKE_GPUS_MAX = 40, FAKE_LINKS_MAX = 20, FAKE_ERROR = 999 };

typedef struct fake_link {
  bool active, not_p2p;
  int type;        /* of the other end */
  const char *pci; /* of the other end, NULL: an error */
} fake_link;

typedef struct fake_gpu {
  const char *pci, *uuid;
  fake_link links[FAKE_LINKS_MAX];
  int p2p_status[2][FAKE_GPUS_MAX]; /* read, write */
  lcomm_nvml_fabric fabric;
} fake_gpu;

static struct {
  int count, init_error, count_error, started;
  bool fields_fail;
  fake_gpu gpu[FAKE_GPUS_MAX];
} fake;

static fake_gpu *fake_of(void *device) {
  return device;
}

static int fake_init(void) {
  fake.started += fake.init_error == 0;
  return fake.init_error;
}

static int fake_shutdown(void) {
  fake.started--;
  return 0;
}

static const char *fake_explain(int error) {
  return error == FAKE_ERROR ? "a fake error" : "another error";
}

static int fake_count(unsigned *count) {
  *count = (unsigned)fake.count;
  return fake.count_error;
}

static int fake_by_index(unsigned index, void **device) {
  *device = &fake.gpu[index];
  return fake.gpu[index].pci ? 0 : FAKE_ERROR;
}

static int fake_name(void *device, char *name, unsigned size) {
  snprintf(name, size, "GPU of %s\x1b", fake_of(device)->pci);
  return 0;
}

static int fake_uuid(void *device, char *uuid, unsigned size) {
  snprintf(uuid, size, "%s", fake_of(device)->uuid ? fake_of(device)->uuid : "GPU-unreadable");
  return 0;
}

static int fake_pci_of(const char *text, lcomm_nvml_pci *pci) {
  memset(pci, 'x', sizeof *pci);
  if (!text) {
    return FAKE_ERROR;
  }
  snprintf(pci->id, sizeof(pci->id), "%s", text);
  return 0;
}

static int fake_pci(void *device, lcomm_nvml_pci *pci) {
  return fake_pci_of(fake_of(device)->pci, pci);
}

static int fake_fields(void *device, int count, lcomm_nvml_field *fields) {
  for (int i = 0; i < count; i++) {
    bool known = fields[i].field == LCOMM_NVML_FIELD_NVLINK_STATE &&
                 fields[i].scope < FAKE_LINKS_MAX && !fake.fields_fail;
    fields[i].error = known ? 0 : FAKE_ERROR;
    fields[i].value.number = known && fake_of(device)->links[fields[i].scope].active;
  }
  return 0;
}

static int fake_nvlink_capability(void *device, unsigned link, int capability, unsigned *value) {
  *value = capability == 0 && link < FAKE_LINKS_MAX && !fake_of(device)->links[link].not_p2p;
  return 0;
}

static int fake_nvlink_state(void *device, unsigned link, int *active) {
  *active = link < FAKE_LINKS_MAX && fake_of(device)->links[link].active;
  return link < FAKE_LINKS_MAX ? 0 : FAKE_ERROR;
}

static int fake_nvlink_remote_pci(void *device, unsigned link, lcomm_nvml_pci *pci) {
  return fake_pci_of(fake_of(device)->links[link].pci, pci);
}

static int fake_nvlink_remote_type(void *device, unsigned link, int *type) {
  *type = fake_of(device)->links[link].type;
  return *type == LCOMM_NVML_REMOTE_UNKNOWN ? FAKE_ERROR : 0;
}

static int fake_p2p(void *from, void *to, int capability, int *status) {
  *status = fake_of(from)->p2p_status[capability][fake_of(to) - fake.gpu];
  return 0;
}

static int fake_fabric(void *device, lcomm_nvml_fabric *fabric) {
  unsigned version = fabric->version;
  *fabric = fake_of(device)->fabric;
  return version == (unsigned)LCOMM_NVML_FABRIC_VERSION ? 0 : FAKE_ERROR;
}

static const lcomm_nvml fake_nvml = {
    .init = fake_init,
    .shutdown = fake_shutdown,
    .explain = fake_explain,
    .count = fake_count,
    .by_index = fake_by_index,
    .name = fake_name,
    .uuid = fake_uuid,
    .pci = fake_pci,
    .fields = fake_fields,
    .nvlink_capability = fake_nvlink_capability,
    .nvlink_state = fake_nvlink_state,
    .nvlink_remote_pci = fake_nvlink_remote_pci,
    .nvlink_remote_type = fake_nvlink_remote_type,
    .p2p = fake_p2p,
    .fabric = fake_fabric,
};

/* GPUs whose p2p is possible, without NVLink. */
static inline void fake_machine(int count) {
  static char pci[FAKE_GPUS_MAX][24], uuid[FAKE_GPUS_MAX][48];
  memset(&fake, 0, sizeof(fake));
  fake.count = count;
  for (int i = 0; i < count; i++) {
    snprintf(pci[i], sizeof(pci[i]), "00000000:%02X:00.0", 0x10 + i);
    snprintf(uuid[i], sizeof(uuid[i]), "GPU-%08x-0000-0000-0000-00000000000a", 1 + i);
    fake.gpu[i].pci = pci[i];
    fake.gpu[i].uuid = uuid[i];
  }
}

/* `links` NVLinks from GPU a to b and back, from number `first` on. */
static inline void fake_join(int a, int b, int first, int links) {
  for (int i = first; i < first + links; i++) {
    fake.gpu[a].links[i] = (fake_link){.active = true, .pci = fake.gpu[b].pci};
    fake.gpu[b].links[i] = (fake_link){.active = true, .pci = fake.gpu[a].pci};
  }
}

/* All GPUs on switches; in virtual machines these have no readable PCI id. */
static inline void fake_switch(int links, int type, const char *pci) {
  for (int i = 0; i < fake.count; i++) {
    for (int j = 0; j < links; j++) {
      fake.gpu[i].links[j] = (fake_link){.active = true, .type = type, .pci = pci};
    }
  }
}

#endif
