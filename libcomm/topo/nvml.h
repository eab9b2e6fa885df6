/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_NVML_H
#define LCOMM_TOPO_NVML_H

/* The part of NVML that tells how GPUs are linked. NVML comes with NVIDIA's
 * driver and its header with the toolkit, so the library is opened at run time
 * and its types are declared here, as its ABI has them. Functions return 0 for
 * success. A function that this driver does not have is NULL. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/base/error.h"

#define LCOMM_NVML_LIBRARY "libnvidia-ml.so.1"

/* nvmlPciInfo_t, as of the functions Get...PciInfo_v3 and ...RemotePciInfo_v2. */
typedef struct lcomm_nvml_pci {
  char short_id[16];
  unsigned domain, bus, device;
  unsigned device_id, subsystem_id;
  char id[32]; /* "00000000:3B:00.0" */
} lcomm_nvml_pci;

/* nvmlFieldValue_t. */
typedef struct lcomm_nvml_field {
  unsigned field, scope;
  long long timestamp, latency_us;
  unsigned type;
  int error;
  union {
    double real;
    unsigned number;
    unsigned long long wide;
  } value;
} lcomm_nvml_field;

/* nvmlGpuFabricInfo_v2_t. */
typedef struct lcomm_nvml_fabric {
  unsigned version;
  unsigned char cluster[16];
  int error;
  unsigned clique;
  unsigned char state;
  unsigned health;
} lcomm_nvml_fabric;

enum {
  LCOMM_NVML_FABRIC_VERSION = (int)(sizeof(lcomm_nvml_fabric) | 2u << 24),
  LCOMM_NVML_FABRIC_COMPLETED = 3,
  LCOMM_NVML_FIELD_NVLINK_STATE = 165,
  LCOMM_NVML_NVLINK_CAP_P2P = 0,
  LCOMM_NVML_REMOTE_GPU = 0, /* nvmlIntNvLinkDeviceType_t */
  LCOMM_NVML_REMOTE_SWITCH = 2,
  LCOMM_NVML_REMOTE_UNKNOWN = 255,
  LCOMM_NVML_P2P_READ = 0, /* nvmlGpuP2PCapsIndex_t */
  LCOMM_NVML_P2P_WRITE = 1
};

_Static_assert(sizeof(lcomm_nvml_pci) == 68, "nvmlPciInfo_t has 68 bytes");
_Static_assert(sizeof(lcomm_nvml_field) == 40, "nvmlFieldValue_t has 40 bytes");
_Static_assert(sizeof(lcomm_nvml_fabric) == 36, "nvmlGpuFabricInfo_v2_t has 36 bytes");

typedef struct lcomm_nvml {
  int (*init)(void);
  int (*shutdown)(void);
  const char *(*explain)(int error);
  int (*count)(unsigned *count);
  int (*by_index)(unsigned index, void **device);
  int (*name)(void *device, char *name, unsigned size);
  int (*uuid)(void *device, char *uuid, unsigned size);
  int (*pci)(void *device, lcomm_nvml_pci *pci);
  int (*fields)(void *device, int count, lcomm_nvml_field *fields);
  int (*nvlink_capability)(void *device, unsigned link, int capability, unsigned *value);
  int (*nvlink_state)(void *device, unsigned link, int *active);
  int (*nvlink_remote_pci)(void *device, unsigned link, lcomm_nvml_pci *pci);
  int (*nvlink_remote_type)(void *device, unsigned link, int *type);
  int (*p2p)(void *from, void *to, int capability, int *status); /* status 0: possible */
  int (*fabric)(void *device, lcomm_nvml_fabric *fabric);
} lcomm_nvml;

/* Open `library` and fill in the table; it stays open. False when there is no
 * such library, and then `why` says so. */
bool lcomm_nvml_open(const char *library, lcomm_nvml *nvml, lcomm_why *why);

#endif
