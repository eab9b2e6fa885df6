/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory that peers can view. It is cut from regions, each of them a file of
 * its own in which only the pages that were touched exist; so a few file
 * descriptors are enough for any number of pieces, and peers map a region
 * once. What is given back leaves a hole, which reads as zeros. */

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcomm/transport/shm_internal.h"

enum { REGION_SIZE = 64 << 20, HUGE_PAGE = 2 << 20 };

static size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

/* --------------------------------------------------------------- regions */

static bool create_file(lcomm_shm_region *region) {
  region->file = lcomm_shm_file_create("libcomm memory", region->size);
  if (region->file < 0) {
    return false;
  }
  region->base = lcomm_shm_file_map(region->file, region->size, PROT_READ | PROT_WRITE);
  if (!region->base) {
    close(region->file);
    return false;
  }
  /* Only a wish, heard where the system gives huge pages to shared memory. */
  (void)madvise(region->base, region->size, MADV_HUGEPAGE);
  return true;
}

/* A new region under a free number, all of it one free extent. */
static lcomm_shm_region *region_create(lcomm_shm *t, size_t size) {
  int number = 0;
  while (number < t->region_count && t->regions[number].base) {
    number++;
  }
  if (number == LCOMM_SHM_REGIONS) {
    return NULL;
  }
  lcomm_shm_region *region = &t->regions[number];
  lcomm_shm_extent *extent = calloc(1, sizeof(*extent));
  region->size = round_up(size > REGION_SIZE ? size : REGION_SIZE, HUGE_PAGE);
  if (!extent || !create_file(region)) {
    free(extent);
    return NULL;
  }
  extent->size = region->size;
  region->extents = extent;
  region->generation++;
  if (number == t->region_count) {
    t->region_count++;
  }
  return region;
}

/* Memory of which a part is in use stays mapped. */
static void region_destroy(lcomm_shm_region *region) {
  bool used = false;
  while (region->extents) {
    lcomm_shm_extent *next = region->extents->next;
    used |= region->extents->used;
    free(region->extents);
    region->extents = next;
  }
  if (!used) {
    /* Peers that still have it mapped keep an empty hull. */
    (void)fallocate(region->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
                    (off_t)region->size);
    munmap(region->base, region->size);
  }
  close(region->file);
  region->base = NULL;
}

/* --------------------------------------------------------------- extents */

/* Cut `size` bytes from a free extent; NULL when none is long enough. */
static void *region_cut(lcomm_shm_region *region, size_t size) {
  lcomm_shm_extent *extent = region->extents;
  while (extent && (extent->used || extent->size < size)) {
    extent = extent->next;
  }
  if (!extent) {
    return NULL;
  }
  if (extent->size > size) {
    lcomm_shm_extent *rest = calloc(1, sizeof(*rest));
    if (!rest) {
      return NULL;
    }
    rest->offset = extent->offset + size;
    rest->size = extent->size - size;
    rest->next = extent->next;
    extent->next = rest;
    extent->size = size;
  }
  extent->used = true;
  return region->base + extent->offset;
}

/* Join an extent with those behind it that are free. */
static void join(lcomm_shm_extent *extent) {
  while (extent->next && !extent->used && !extent->next->used) {
    lcomm_shm_extent *next = extent->next;
    extent->size += next->size;
    extent->next = next->next;
    free(next);
  }
}

void *lcomm_shm_heap_get(lcomm_shm *t, size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size > LCOMM_SHM_LONGEST) {
    return NULL;
  }
  size_t whole = size > 0 ? round_up(size, page) : page;
  for (int i = 0; i < t->region_count; i++) {
    void *memory = t->regions[i].base ? region_cut(&t->regions[i], whole) : NULL;
    if (memory) {
      return memory;
    }
  }
  lcomm_shm_region *region = region_create(t, whole);
  return region ? region_cut(region, whole) : NULL;
}

int lcomm_shm_heap_find(const lcomm_shm *t, const void *bytes, size_t size) {
  uintptr_t at = (uintptr_t)bytes;
  for (int i = 0; i < t->region_count; i++) {
    uintptr_t base = (uintptr_t)t->regions[i].base;
    if (base && at >= base && at - base < t->regions[i].size &&
        size <= t->regions[i].size - (at - base)) {
      return i;
    }
  }
  return -1;
}

void lcomm_shm_heap_free(lcomm_shm *t, void *memory) {
  int number = memory ? lcomm_shm_heap_find(t, memory, 1) : -1;
  if (number < 0) {
    return;
  }
  lcomm_shm_region *region = &t->regions[number];
  size_t offset = (size_t)((unsigned char *)memory - region->base);
  lcomm_shm_extent *before = NULL, *extent = region->extents;
  while (extent && extent->offset != offset) {
    before = extent;
    extent = extent->next;
  }
  if (!extent || !extent->used) {
    return;
  }
  if (fallocate(region->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                (off_t)extent->size) != 0) {
    memset(memory, 0, extent->size);
  }
  extent->used = false;
  join(extent);
  if (before) {
    join(before);
  }
  /* Regions of the usual size serve again; larger ones were made for one piece. */
  if (region->size > REGION_SIZE && !region->extents->used && !region->extents->next) {
    region_destroy(region);
  }
}

/* Memory that was not given back stays mapped to the end of the process: a
 * failed transfer of another transport may still be at work on it. */
void lcomm_shm_heap_close(lcomm_shm *t) {
  for (int i = 0; i < t->region_count; i++) {
    if (t->regions[i].base) {
      region_destroy(&t->regions[i]);
    }
  }
}
