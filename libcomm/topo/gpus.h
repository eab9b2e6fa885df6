/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_GPUS_H
#define LCOMM_TOPO_GPUS_H

/* The GPUs of this host and the links between them, as NVML sees them: all
 * that this process may look at, whatever CUDA_VISIBLE_DEVICES says. */

#include "libcomm/topo/nvml.h"
#include "libcomm/topo/topo.h"

enum { LCOMM_GPUS_MAX = LCOMM_DEVICE_PEERS_MAX + 1, LCOMM_GPU_NAME_MAX = 64 };

typedef struct lcomm_gpu {
  char name[LCOMM_GPU_NAME_MAX]; /* for people, visible ASCII and blanks */
  lcomm_pci pci;
  uint8_t uuid[LCOMM_UUID_SIZE];    /* all zero: unknown */
  uint8_t cluster[LCOMM_UUID_SIZE]; /* NVLink domain it has joined; all zero: none */
  uint32_t clique;                  /* part of the domain that is connected */
  int index;                        /* as nvidia-smi counts */
  int switched;                     /* active NVLinks that end in a switch */
  int nvlinks[LCOMM_GPUS_MAX];      /* active NVLinks that end in that GPU */
  bool p2p[LCOMM_GPUS_MAX];         /* that GPU's memory can be read and written from this one */
} lcomm_gpu;

typedef struct lcomm_gpus {
  int count;
  lcomm_gpu gpu[LCOMM_GPUS_MAX];
  lcomm_why why; /* a sentence, when there is none */
} lcomm_gpus;

/* Ask a library. What it cannot tell counts as not there. */
void lcomm_gpus_survey(const lcomm_nvml *nvml, lcomm_gpus *gpus);

/* Those of this host, looked at once in the life of the process. Any thread. */
const lcomm_gpus *lcomm_gpus_here(void);

/* Through switches or directly: are two of them connected by NVLink, and may
 * they use it? */
bool lcomm_gpus_nvlink(const lcomm_gpus *gpus, int a, int b);

#endif
