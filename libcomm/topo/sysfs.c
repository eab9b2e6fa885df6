/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/sysfs.h"

#include <dirent.h>
#include <limits.h>
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

/* A number in -1 .. 2^40, -1 for anything else. */
static int64_t read_number(const char *path) {
  char line[64], *end = NULL;
  read_line(path, line, sizeof(line));
  long long number = strtoll(line, &end, 10);
  return end != line && number >= 0 && number <= INT64_C(1) << 40 ? number : -1;
}

static int read_numa_node(const char *folder) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof(path), "%s/numa_node", folder);
  int64_t node = read_number(path);
  return node <= INT_MAX ? (int)node : -1;
}

/* ------------------------------------------------------------------ places */

/* Begin of the part that starts with a root complex, "pci0000:16". */
static const char *root_complex(const char *path) {
  const char *found = path;
  while ((found = strstr(found, "/pci")) != NULL) {
    if (strchr("0123456789abcdef", found[4]) && found[4] && strchr(found, ':')) {
      return found + 1;
    }
    found++;
  }
  return NULL;
}

/* The last PCI id in a path: a virtio device, for one, hangs below its own. */
static lcomm_pci last_pci(const char *path) {
  lcomm_pci pci = 0;
  for (const char *part = path; *part;) {
    size_t length = strcspn(part, "/");
    lcomm_pci found = lcomm_pci_parse(part, length);
    pci = found != 0 ? found : pci;
    part += length + (part[length] == '/');
  }
  return pci;
}

/* The place of what a link in sysfs points to, and its PCI id. */
static lcomm_pci resolve(const char *link, lcomm_pci_place *place) {
  char real[PATH_MAX];
  *place = (lcomm_pci_place){.numa_node = -1};
  if (!realpath(link, real)) {
    return 0;
  }
  place->numa_node = read_numa_node(real);
  const char *path = root_complex(real);
  if (!path || strlen(path) >= sizeof(place->path)) {
    return 0;
  }
  snprintf(place->path, sizeof(place->path), "%s", path);
  return last_pci(path);
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

static void copy_name(lcomm_nic *nic, const char *name) {
  snprintf(nic->name, sizeof(nic->name), "%.31s", name);
  for (char *c = nic->name; *c; c++) {
    *c = *c > 0x20 && *c < 0x7f ? *c : '?';
  }
}

/* "100 Gb/sec (4X EDR)" or "2.5 Gb/sec (1X SDR)" of the first port. */
static int64_t infiniband_speed(const char *folder) {
  char path[PATH_MAX + 32], line[64], *end = NULL;
  snprintf(path, sizeof(path), "%s/ports/1/rate", folder);
  read_line(path, line, sizeof(line));
  long gbit_s = strtol(line, &end, 10);
  bool fits = end != line && gbit_s >= 0 && gbit_s < 1000000;
  int tenths = fits && end[0] == '.' && end[1] >= '0' && end[1] <= '9' ? end[1] - '0' : 0;
  end += fits && end[0] == '.' ? 2 : 0;
  return fits && strncmp(end, " Gb/sec", 7) == 0 ? gbit_s * 1000 + tenths * 100 : -1;
}

static bool look_at_nic(const char *folder, const char *name, bool infiniband, lcomm_nic *nic) {
  char path[PATH_MAX + 32];
  *nic = (lcomm_nic){.infiniband = infiniband};
  copy_name(nic, name);
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
