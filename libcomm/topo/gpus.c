/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/gpus.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* More links than any GPU has, and more GPUs than any host. */
enum { NVLINKS_MAX = 64, INDICES_MAX = 1024 };

typedef struct survey {
  const lcomm_nvml *nvml;
  lcomm_gpus *gpus;
  void *device[LCOMM_GPUS_MAX];
} survey;

/* ---------------------------------------------------------------- one GPU */

static lcomm_pci pci_of(const lcomm_nvml_pci *pci) {
  return lcomm_pci_parse(pci->id, strnlen(pci->id, sizeof(pci->id)));
}

static void find_name(const survey *s, void *device, lcomm_gpu *gpu) {
  char text[96] = "";
  if (s->nvml->name && s->nvml->name(device, text, sizeof(text)) == 0) {
    snprintf(gpu->name, sizeof(gpu->name), "%.63s", text);
  }
  for (char *c = gpu->name; *c; c++) {
    *c = *c >= 0x20 && *c < 0x7f ? *c : '?';
  }
}

static void find_fabric(const survey *s, void *device, lcomm_gpu *gpu) {
  lcomm_nvml_fabric fabric = {.version = (unsigned)LCOMM_NVML_FABRIC_VERSION};
  if (!s->nvml->fabric || s->nvml->fabric(device, &fabric) != 0 || fabric.error != 0 ||
      fabric.state != LCOMM_NVML_FABRIC_COMPLETED) {
    return;
  }
  memcpy(gpu->cluster, fabric.cluster, sizeof(gpu->cluster));
  gpu->clique = lcomm_uuid_is_zero(gpu->cluster) ? 0 : fabric.clique;
}

/* A GPU whose PCI id is unknown cannot be recognised by anybody. */
static void add_gpu(survey *s, unsigned index) {
  char uuid[96] = "";
  lcomm_nvml_pci pci = {0};
  void *device = NULL;
  if (s->nvml->by_index(index, &device) != 0 || s->nvml->pci(device, &pci) != 0 ||
      pci_of(&pci) == 0) {
    return;
  }
  lcomm_gpu *gpu = &s->gpus->gpu[s->gpus->count];
  *gpu = (lcomm_gpu){.pci = pci_of(&pci), .index = (int)index};
  find_name(s, device, gpu);
  if (s->nvml->uuid && s->nvml->uuid(device, uuid, sizeof(uuid)) == 0) {
    lcomm_uuid_parse(uuid, strnlen(uuid, sizeof(uuid)), gpu->uuid);
  }
  find_fabric(s, device, gpu);
  s->device[s->gpus->count++] = device;
}

/* ------------------------------------------------------------------ links */

/* Newer drivers answer by a field, older ones by a function of its own. */
static bool is_active(const survey *s, void *device, unsigned link) {
  lcomm_nvml_field field = {.field = LCOMM_NVML_FIELD_NVLINK_STATE, .scope = link};
  int active = 0;
  if (s->nvml->fields && s->nvml->fields(device, 1, &field) == 0 && field.error == 0) {
    return field.value.number == 1;
  }
  return s->nvml->nvlink_state && s->nvml->nvlink_state(device, link, &active) == 0 && active == 1;
}

static bool carries_p2p(const survey *s, void *device, unsigned link) {
  unsigned capable = 0;
  if (!s->nvml->nvlink_capability ||
      s->nvml->nvlink_capability(device, link, LCOMM_NVML_NVLINK_CAP_P2P, &capable) != 0) {
    return true;
  }
  return capable != 0;
}

/* The GPU at the other end, or -1. */
static int remote_gpu(const survey *s, void *device, unsigned link) {
  lcomm_nvml_pci pci = {0};
  if (!s->nvml->nvlink_remote_pci || s->nvml->nvlink_remote_pci(device, link, &pci) != 0) {
    return -1;
  }
  lcomm_pci remote = pci_of(&pci);
  for (int i = 0; remote != 0 && i < s->gpus->count; i++) {
    if (s->gpus->gpu[i].pci == remote) {
      return i;
    }
  }
  return -1;
}

/* What is neither a GPU of this host nor said to be something else is a
 * switch: in virtual machines switches have no readable PCI id. */
static void add_link(const survey *s, int index, unsigned link) {
  lcomm_gpu *gpu = &s->gpus->gpu[index];
  void *device = s->device[index];
  int type = LCOMM_NVML_REMOTE_UNKNOWN;
  if (!is_active(s, device, link) || !carries_p2p(s, device, link)) {
    return;
  }
  if (s->nvml->nvlink_remote_type && s->nvml->nvlink_remote_type(device, link, &type) != 0) {
    type = LCOMM_NVML_REMOTE_UNKNOWN;
  }
  int remote = type == LCOMM_NVML_REMOTE_SWITCH ? -1 : remote_gpu(s, device, link);
  if (remote >= 0) {
    gpu->nvlinks[remote] += remote != index;
  } else if (type == LCOMM_NVML_REMOTE_SWITCH || type == LCOMM_NVML_REMOTE_UNKNOWN) {
    gpu->switched++;
  }
}

static bool can_reach(const survey *s, int from, int to) {
  static const int needed[] = {LCOMM_NVML_P2P_READ, LCOMM_NVML_P2P_WRITE};
  for (int i = 0; i < 2; i++) {
    int status = -1;
    if (!s->nvml->p2p || s->nvml->p2p(s->device[from], s->device[to], needed[i], &status) != 0 ||
        status != 0) {
      return false;
    }
  }
  return true;
}

/* ----------------------------------------------------------------- survey */

static void look_at_all(survey *s) {
  unsigned count = 0;
  int error = s->nvml->count(&count);
  if (error != 0) {
    (void)lcomm_why_set(&s->gpus->why, LCOMM_ERR_UNSUPPORTED, "NVML cannot count the GPUs (%.120s)",
                        s->nvml->explain ? s->nvml->explain(error) : "no reason given");
    return;
  }
  for (unsigned i = 0; i < count && i < INDICES_MAX && s->gpus->count < LCOMM_GPUS_MAX; i++) {
    add_gpu(s, i);
  }
  for (int i = 0; i < s->gpus->count; i++) {
    for (unsigned link = 0; link < NVLINKS_MAX; link++) {
      add_link(s, i, link);
    }
    for (int j = 0; j < s->gpus->count; j++) {
      s->gpus->gpu[i].p2p[j] = i != j && can_reach(s, i, j);
    }
  }
  if (s->gpus->count == 0) {
    (void)lcomm_why_set(
        &s->gpus->why, LCOMM_ERR_UNSUPPORTED,
        "the driver shows no GPU to this process; see what the container or job was "
        "given");
  }
}

void lcomm_gpus_survey(const lcomm_nvml *nvml, lcomm_gpus *gpus) {
  survey s = {.nvml = nvml, .gpus = gpus};
  memset(gpus, 0, sizeof *gpus);
  if (!nvml->init || !nvml->count || !nvml->by_index || !nvml->pci) {
    (void)lcomm_why_set(
        &gpus->why, LCOMM_ERR_UNSUPPORTED,
        "NVML lacks the functions that list GPUs; install a newer driver of NVIDIA");
    return;
  }
  int error = nvml->init();
  if (error != 0) {
    (void)lcomm_why_set(&gpus->why, LCOMM_ERR_UNSUPPORTED,
                        "NVML does not start (%.120s); see whether nvidia-smi works here",
                        nvml->explain ? nvml->explain(error) : "no reason given");
    return;
  }
  look_at_all(&s);
  if (nvml->shutdown) {
    nvml->shutdown();
  }
}

static lcomm_gpus here;

static void look_here(void) {
  lcomm_nvml nvml;
  if (lcomm_nvml_open(LCOMM_NVML_LIBRARY, &nvml, &here.why)) {
    lcomm_gpus_survey(&nvml, &here);
  }
}

const lcomm_gpus *lcomm_gpus_here(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look_here);
  return &here;
}

bool lcomm_gpus_nvlink(const lcomm_gpus *gpus, int a, int b) {
  const lcomm_gpu *one = &gpus->gpu[a], *other = &gpus->gpu[b];
  return one->p2p[b] && other->p2p[a] &&
         ((one->nvlinks[b] > 0 && other->nvlinks[a] > 0) ||
          (one->switched > 0 && other->switched > 0));
}
