/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOPO_SYSFS_H
#define LCOMM_TOPO_SYSFS_H

/* Where devices are plugged in, as Linux tells it. `root` is "/sys", or a
 * folder that looks like it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libcomm/topo/pci.h"

enum { LCOMM_SYSFS_PATH_MAX = 1024, LCOMM_NIC_NAME_MAX = 32, LCOMM_NICS_MAX = 64 };

#define LCOMM_SYSFS_ROOT "/sys"

/* The place of a device in the tree of PCI bridges. */
typedef struct lcomm_pci_place {
  char path[LCOMM_SYSFS_PATH_MAX]; /* from the root complex down; "": unknown */
  int numa_node;                   /* -1: unknown */
} lcomm_pci_place;

void lcomm_sysfs_place(const char *root, lcomm_pci pci, lcomm_pci_place *place);

/* What lies between two devices, from near to far. X(name, text). */
#define LCOMM_PCI_DISTANCE_LIST(X)                                                                 \
  X(LCOMM_PCI_SAME, "same")       /* they are one */                                               \
  X(LCOMM_PCI_SWITCH, "switch")   /* a bridge below the root complex */                            \
  X(LCOMM_PCI_ROOT, "root")       /* one root complex */                                           \
  X(LCOMM_PCI_SOCKET, "socket")   /* two root complexes of one NUMA node */                        \
  X(LCOMM_PCI_SYSTEM, "system")   /* the link between NUMA nodes */                                \
  X(LCOMM_PCI_UNKNOWN, "unknown") /* a place is not known */

typedef enum lcomm_pci_distance {
#define LCOMM_PCI_DISTANCE_ENUM(name, text) name,
  LCOMM_PCI_DISTANCE_LIST(LCOMM_PCI_DISTANCE_ENUM)
#undef LCOMM_PCI_DISTANCE_ENUM
      LCOMM_PCI_DISTANCE_COUNT
} lcomm_pci_distance;

const char *lcomm_pci_distance_name(lcomm_pci_distance distance);
lcomm_pci_distance lcomm_pci_distance_between(const lcomm_pci_place *a, const lcomm_pci_place *b);

/* A network interface, or an InfiniBand device. */
typedef struct lcomm_nic {
  char name[LCOMM_NIC_NAME_MAX]; /* visible ASCII */
  bool infiniband;
  int64_t speed_mbit_s;  /* -1: unknown */
  lcomm_pci pci;         /* 0: none, a virtual one */
  lcomm_pci_place place; /* of the device behind it */
} lcomm_nic;

/* Interfaces with a device behind them or a speed, then InfiniBand devices, each
 * sorted by name. Returns how many. */
int lcomm_sysfs_nics(const char *root, lcomm_nic nics[LCOMM_NICS_MAX]);

/* One network interface; what is not known of it is -1, or 0. */
void lcomm_sysfs_interface(const char *root, const char *name, lcomm_nic *nic);

/* May this thread run on a processor of this NUMA node? */
bool lcomm_sysfs_runs_on(const char *root, int node);

/* NUMA nodes, at least 1. */
int lcomm_sysfs_numa_nodes(const char *root);

#endif
