/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Looking into a peer's memory: its regions are mapped, read-only, when a
 * message first lies in them; its private memory is read by the kernel. */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "libcomm/transport/shm/shm_internal.h"

/* A region of the peer, checked: its size is what was said, and lasts. */
static unsigned char *map_region(const lcomm_shm_peer *peer, const lcomm_shm_long *there) {
  int file = lcomm_shm_file_open(peer->pid, there->file, O_RDONLY, LCOMM_SHM_FILE);
  if (file < 0) {
    return NULL;
  }
  void *base = NULL;
  errno = EPROTO;
  if (lcomm_shm_file_is_fixed(file, there->region_size)) {
    base = lcomm_shm_file_map(file, there->region_size, PROT_READ);
  }
  int error = errno;
  close(file);
  /* The process number may have gone to somebody else meanwhile. */
  if (base && !lcomm_shm_is_alive(peer)) {
    munmap(base, there->region_size);
    base = NULL;
    error = ESRCH;
  }
  errno = error;
  return base;
}

static void drop_mapping(lcomm_shm_mapping *mapping) {
  munmap(mapping->base, mapping->size);
  free(mapping);
}

/* The peer uses this number for another region now. */
static void retire(lcomm_shm *t, lcomm_shm_mapping *mapping) {
  if (mapping->users == 0) {
    drop_mapping(mapping);
    return;
  }
  mapping->stale = true;
  mapping->next = t->memory.stale;
  t->memory.stale = mapping;
}

lcomm_shm_mapping *lcomm_shm_map(lcomm_shm *t, lcomm_shm_peer *peer, const lcomm_shm_long *there) {
  lcomm_shm_mapping **known = &peer->mappings[there->region];
  lcomm_shm_mapping *mapping = *known;
  if (mapping && mapping->generation == there->region_generation &&
      mapping->size == there->region_size) {
    mapping->users++;
    return mapping;
  }
  lcomm_shm_mapping *fresh = calloc(1, sizeof *fresh);
  unsigned char *base = fresh ? map_region(peer, there) : NULL;
  if (!base) {
    free(fresh);
    return NULL;
  }
  if (mapping) {
    retire(t, mapping);
  }
  fresh->base = base;
  fresh->size = there->region_size;
  fresh->generation = there->region_generation;
  fresh->users = 1;
  *known = fresh;
  return fresh;
}

void lcomm_shm_unmap(lcomm_shm *t, lcomm_shm_mapping *mapping) {
  if (--mapping->users > 0 || !mapping->stale) {
    return;
  }
  lcomm_shm_mapping **at = &t->memory.stale;
  while (*at != mapping) {
    at = &(*at)->next;
  }
  *at = mapping->next;
  drop_mapping(mapping);
}

void lcomm_shm_maps_free(lcomm_shm *t, lcomm_shm_peer *peer) {
  for (int i = 0; i < LCOMM_SHM_REGIONS; i++) {
    if (peer->mappings[i]) {
      drop_mapping(peer->mappings[i]);
      peer->mappings[i] = NULL;
    }
  }
  while (t->memory.stale) {
    lcomm_shm_mapping *next = t->memory.stale->next;
    drop_mapping(t->memory.stale);
    t->memory.stale = next;
  }
}

int lcomm_shm_read(const lcomm_shm_peer *peer, uint64_t address, void *bytes, size_t size) {
  unsigned char *to = bytes;
  for (size_t done = 0; done < size;) {
    struct iovec here = {to + done, size - done};
    struct iovec there = {(void *)(uintptr_t)(address + done), size - done};
    ssize_t got = process_vm_readv(peer->pid, &here, 1, &there, 1, 0);
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      return got < 0 ? errno : EFAULT;
    }
    done += (size_t)got;
  }
  return 0;
}
