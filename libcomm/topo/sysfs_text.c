/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/sysfs_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int64_t lcomm_sysfs_number(const char *line) {
  char *end = NULL;
  long long number = strtoll(line, &end, 10);
  return end != line && number >= 0 && number <= INT64_C(1) << 40 ? number : -1;
}

int64_t lcomm_sysfs_rate(const char *line) {
  char *end = NULL;
  long gbit_s = strtol(line, &end, 10);
  bool fits = end != line && gbit_s >= 0 && gbit_s < 1000000;
  bool has_tenths = fits && end[0] == '.' && end[1] >= '0' && end[1] <= '9';
  int tenths = has_tenths ? end[1] - '0' : 0;
  end += has_tenths ? 2 : 0;
  return fits && strncmp(end, " Gb/sec", 7) == 0 ? gbit_s * 1000 + tenths * 100 : -1;
}

/* Begin of the part that starts with a root complex. */
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

lcomm_pci lcomm_sysfs_path(const char *path, char place[LCOMM_SYSFS_PATH_MAX]) {
  const char *root = root_complex(path);
  place[0] = '\0';
  if (!root || strlen(root) >= LCOMM_SYSFS_PATH_MAX) {
    return 0;
  }
  snprintf(place, LCOMM_SYSFS_PATH_MAX, "%s", root);
  return last_pci(root);
}

void lcomm_sysfs_name(const char *text, char name[LCOMM_NIC_NAME_MAX]) {
  snprintf(name, LCOMM_NIC_NAME_MAX, "%s", text);
  for (char *c = name; *c; c++) {
    *c = *c > 0x20 && *c < 0x7f ? *c : '?';
  }
}
