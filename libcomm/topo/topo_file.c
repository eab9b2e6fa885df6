/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/topo/topo_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* ------------------------------------------------------------------ files */

static lcomm_status unreadable(lcomm_why *error, const char *path, const char *why) {
  return lcomm_why_set(error, LCOMM_ERR_SYSTEM, "the topology file %.200s cannot be read: %.120s",
                       path, why);
}

/* NULL with a sentence. A pipe would block, and a device may never end. */
static char *read_text(int handle, const char *path, lcomm_status *status, lcomm_why *error) {
  struct stat found;
  if (fstat(handle, &found) != 0 || !S_ISREG(found.st_mode)) {
    *status = unreadable(error, path, "it is no ordinary file");
    return NULL;
  }
  if (found.st_size > LCOMM_TOPO_FILE_MAX) {
    *status = unreadable(error, path, "it has more than 4 MiB, no topology is so long");
    return NULL;
  }
  size_t size = (size_t)found.st_size, used = 0;
  char *text = malloc(size + 1);
  if (!text) {
    *status = unreadable(error, path, "out of memory");
    return NULL;
  }
  for (ssize_t more = 1; used < size && more > 0; used += more > 0 ? (size_t)more : 0) {
    more = read(handle, text + used, size - used);
  }
  text[used] = '\0';
  if (strlen(text) == size) {
    return text;
  }
  *status =
      unreadable(error, path, used < size ? strerror(EIO) : "it has zero bytes, so it is no text");
  free(text);
  return NULL;
}

lcomm_status lcomm_topo_file_load(const char *path, lcomm_topo *topo, lcomm_why *error) {
  lcomm_status status = LCOMM_OK;
  *topo = (lcomm_topo){0};
  int handle = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (handle < 0) {
    return unreadable(error, path, strerror(errno));
  }
  char *text = read_text(handle, path, &status, error);
  close(handle);
  if (text) {
    status = lcomm_topo_load(text, topo, error);
    free(text);
  }
  return status;
}

uint64_t lcomm_topo_hash(const lcomm_topo *topo) {
  if (topo->size == 0) {
    return 0;
  }
  size_t length = lcomm_topo_print(topo, NULL, 0);
  char *text = malloc(length + 1);
  if (!text) {
    return 0;
  }
  lcomm_topo_print(topo, text, length + 1);
  uint64_t hash = XXH3_64bits(text, length);
  free(text);
  return hash;
}

/* ----------------------------------------------------------------- taking */

static lcomm_pci pci_of(const lcomm_topo *topo, int rank) {
  return topo->device[rank] < 0 ? 0 : topo->device_list[topo->device[rank]].pci;
}

/* Devices are numbered by their lowest rank, so equal devices have equal numbers. */
static bool describes(const lcomm_topo *file, const lcomm_topo *topo) {
  if (file->size != topo->size || file->nodes != topo->nodes || file->devices != topo->devices) {
    return false;
  }
  for (int rank = 0; rank < topo->size; rank++) {
    if (file->node[rank] != topo->node[rank] || file->device[rank] != topo->device[rank] ||
        pci_of(file, rank) != pci_of(topo, rank)) {
      return false;
    }
  }
  return true;
}

static bool take_pairs(lcomm_topo *topo, const lcomm_topo *file) {
  if (file->pairs == 0 || topo->pairs > 0 || !describes(file, topo)) {
    return false;
  }
  size_t size = (size_t)file->pairs * sizeof *file->pair_list;
  lcomm_topo_pair *pairs = malloc(size);
  if (!pairs) {
    return false;
  }
  free(topo->pair_list);
  memcpy(pairs, file->pair_list, size);
  topo->pair_list = pairs;
  topo->pairs = file->pairs;
  return true;
}

lcomm_topo_taken lcomm_topo_take(lcomm_topo *topo, const lcomm_topo *file) {
  lcomm_topo_taken taken = LCOMM_TOPO_TAKEN_NOTHING;
  for (int link = 0; link < LCOMM_LINK_COUNT; link++) {
    if (file->size > 0 && !file->cost[link].assumed) {
      topo->cost[link] = file->cost[link];
      taken = LCOMM_TOPO_TAKEN_COSTS;
    }
  }
  return file->size > 0 && take_pairs(topo, file) ? LCOMM_TOPO_TAKEN_LINKS : taken;
}
