/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/sysfs_text.h"

#include <dirent.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ------------------------------------------------------------------ files */

/* The first line of a file, "" if there is none. */
static void read_line(const char *path, char *line, size_t size) {
  FILE *file = fopen(path, "re");
  line[0] = '\0';
  if (!file) {
    return;
  }
  if (!fgets(line, (int)size, file)) {
    line[0] = '\0';
  }
  fclose(file);
  line[strcspn(line, "\n")] = '\0';
}

static int64_t read_number(const char *path) {
  char line[64];
  read_line(path, line, sizeof(line));
  return lcomm_sysfs_number(line);
}

static int read_numa_node(const char *folder) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof(path), "%s/numa_node", folder);
  int64_t node = read_number(path);
  return node <= INT_MAX ? (int)node : -1;
}

/* ------------------------------------------------------------------ places */

/* The place of what a link in sysfs points to, and its PCI id. */
static lcomm_pci resolve(const char *link, lcomm_pci_place *place) {
  char real[PATH_MAX];
  *place = (lcomm_pci_place){.numa_node = -1};
  if (!realpath(link, real)) {
    return 0;
  }
  place->numa_node = read_numa_node(real);
  return lcomm_sysfs_path(real, place->path);
}

void lcomm_sysfs_place(const char *root, lcomm_pci pci, lcomm_pci_place *place) {
  char link[PATH_MAX], text[LCOMM_PCI_TEXT_MAX];
  snprintf(link, sizeof(link), "%s/bus/pci/devices/%s", root, lcomm_pci_format(pci, text));
  resolve(link, place);
}

const char *lcomm_pci_distance_name(lcomm_pci_distance distance) {
  static const char *const names[LCOMM_PCI_DISTANCE_COUNT] = {
#define LCOMM_PCI_DISTANCE_TEXT(name, text) [name] = text,
      LCOMM_PCI_DISTANCE_LIST(LCOMM_PCI_DISTANCE_TEXT)
#undef LCOMM_PCI_DISTANCE_TEXT
  };
  return (unsigned)distance < LCOMM_PCI_DISTANCE_COUNT ? names[distance] : names[LCOMM_PCI_UNKNOWN];
}

/* How many folders two paths have in common from their beginning. */
static int common_parts(const char *a, const char *b) {
  int parts = 0;
  for (size_t i = 0;; i++) {
    bool ends = a[i] == '\0' || a[i] == '/', other_ends = b[i] == '\0' || b[i] == '/';
    if (ends && other_ends) {
      parts++;
    }
    if (a[i] != b[i] || a[i] == '\0') {
      return parts;
    }
  }
}

lcomm_pci_distance lcomm_pci_distance_between(const lcomm_pci_place *a, const lcomm_pci_place *b) {
  if (a->path[0] == '\0' || b->path[0] == '\0') {
    return LCOMM_PCI_UNKNOWN;
  }
  if (strcmp(a->path, b->path) == 0) {
    return LCOMM_PCI_SAME;
  }
  int parts = common_parts(a->path, b->path);
  if (parts > 0) {
    return parts > 1 ? LCOMM_PCI_SWITCH : LCOMM_PCI_ROOT;
  }
  if (a->numa_node < 0 || b->numa_node < 0) {
    return LCOMM_PCI_UNKNOWN;
  }
  return a->numa_node == b->numa_node ? LCOMM_PCI_SOCKET : LCOMM_PCI_SYSTEM;
}

/* ------------------------------------------------------------------- NICs */

static int is_visible(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b) {
  return strcmp((*a)->d_name, (*b)->d_name);
}

/* Of the first port. */
static int64_t infiniband_speed(const char *folder) {
  char path[PATH_MAX + 32], line[64];
  snprintf(path, sizeof(path), "%s/ports/1/rate", folder);
  read_line(path, line, sizeof(line));
  return lcomm_sysfs_rate(line);
}

static bool look_at_nic(const char *folder, const char *name, bool infiniband, lcomm_nic *nic) {
  char path[PATH_MAX + 32];
  *nic = (lcomm_nic){.infiniband = infiniband};
  lcomm_sysfs_name(name, nic->name);
  snprintf(path, sizeof(path), "%s/device", folder);
  nic->pci = resolve(path, &nic->place);
  bool has_device = access(path, F_OK) == 0;
  snprintf(path, sizeof(path), "%s/speed", folder);
  nic->speed_mbit_s = infiniband ? infiniband_speed(folder) : read_number(path);
  return has_device || nic->speed_mbit_s > 0;
}

static int add_nics(const char *root, const char *class, bool infiniband, int count,
                    lcomm_nic *nics) {
  char folder[PATH_MAX - 512], path[PATH_MAX];
  struct dirent **entries = NULL;
  snprintf(folder, sizeof(folder), "%s/class/%s", root, class);
  int found = scandir(folder, &entries, is_visible, by_name);
  for (int i = 0; i < found; i++) {
    snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
    if (count < LCOMM_NICS_MAX && look_at_nic(path, entries[i]->d_name, infiniband, &nics[count])) {
      count++;
    }
    free(entries[i]);
  }
  free(entries);
  return count;
}

int lcomm_sysfs_nics(const char *root, lcomm_nic nics[LCOMM_NICS_MAX]) {
  int count = add_nics(root, "net", false, 0, nics);
  return add_nics(root, "infiniband", true, count, nics);
}

void lcomm_sysfs_interface(const char *root, const char *name, lcomm_nic *nic) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof(folder), "%.512s/class/net/%.64s", root, name);
  (void)look_at_nic(folder, name, false, nic);
}

bool lcomm_sysfs_runs_on(const char *root, int node) {
  char path[PATH_MAX];
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) {
    return false;
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    snprintf(path, sizeof(path), "%.512s/devices/system/cpu/cpu%d/node%d", root, cpu, node);
    if (CPU_ISSET(cpu, &allowed) && access(path, F_OK) == 0) {
      return true;
    }
  }
  return false;
}

static int is_numa_node(const struct dirent *entry) {
  return strncmp(entry->d_name, "node", 4) == 0 && entry->d_name[4] >= '0' &&
         entry->d_name[4] <= '9';
}

int lcomm_sysfs_numa_nodes(const char *root) {
  char folder[PATH_MAX];
  struct dirent **entries = NULL;
  snprintf(folder, sizeof(folder), "%s/devices/system/node", root);
  int count = scandir(folder, &entries, is_numa_node, by_name);
  for (int i = 0; i < count; i++) {
    free(entries[i]);
  }
  free(entries);
  return count > 0 ? count : 1;
}
