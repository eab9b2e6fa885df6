/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The heap is cut from regions, each of them a file of its own in which only the
 * pages that were touched exist; so a few file descriptors are enough for any
 * number of pieces, and peers map a region once. What is given back leaves a
 * hole, which reads as zeros. */

#include "libcomm/transport/shm/shm_heap.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "libcomm/transport/shm/shm_internal.h"

enum { REGION_SIZE = 64 << 20, HUGE_PAGE = 2 << 20 };

/* A part of a region, in the order of addresses. */
typedef struct extent {
  struct extent *next;
  size_t offset, size;
  bool used;
} extent;

typedef struct region {
  unsigned char *base; /* NULL: this number is free */
  size_t size;
  int file; /* -1: private memory, which nobody views */
  uint32_t generation;
  extent *extents;
} region;

/* `lock` guards the rest. */
static struct {
  pthread_mutex_t lock;
  region regions[LCOMM_SHM_REGIONS];
  int region_count; /* numbers used so far */
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t round_up(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

/* ----------------------------------------------------------------- forking */

/* The regions are the parent's. Nothing of them is unmapped: the program may look at them. */
static void forget_all(void) {
  static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
  heap.lock = fresh; /* another thread of the parent may have held it */
  for (int i = 0; i < heap.region_count; i++) {
    heap.regions[i].base = NULL;
    while (heap.regions[i].extents) {
      extent *next = heap.regions[i].extents->next;
      free(heap.regions[i].extents);
      heap.regions[i].extents = next;
    }
  }
}

static void forget_when_forked(void) {
  (void)pthread_atfork(NULL, NULL, forget_all);
}

/* --------------------------------------------------------------- regions */

static bool create_file(region *it) {
  it->file = lcomm_shm_file_create("libcomm memory", it->size);
  if (it->file < 0) {
    return false;
  }
  it->base = lcomm_shm_file_map(it->file, it->size, PROT_READ | PROT_WRITE);
  if (it->base) {
    return true;
  }
  close(it->file);
  it->file = -1;
  return false;
}

/* Where the system has no file for it, any memory will do: it is read or copied then. */
static bool create_private(region *it) {
  void *base = mmap(NULL, it->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  it->base = base == MAP_FAILED ? NULL : base;
  return it->base != NULL;
}

/* A new region under a free number, all of it one free extent. */
static region *region_create(size_t size) {
  int number = 0;
  while (number < heap.region_count && heap.regions[number].base) {
    number++;
  }
  if (number == LCOMM_SHM_REGIONS) {
    return NULL;
  }
  region *made = &heap.regions[number];
  extent *all = calloc(1, sizeof *all);
  made->size = round_up(size > REGION_SIZE ? size : REGION_SIZE, HUGE_PAGE);
  if (!all || (!create_file(made) && !create_private(made))) {
    free(all);
    return NULL;
  }
  /* A hint, followed where the system gives huge pages. */
  (void)madvise(made->base, made->size, MADV_HUGEPAGE);
  all->size = made->size;
  made->extents = all;
  made->generation++;
  heap.region_count += number == heap.region_count;
  return made;
}

/* Nothing of it is in use. Peers that still have it mapped keep the addresses only. */
static void region_destroy(region *it) {
  munmap(it->base, it->size);
  lcomm_shm_file_close(it->file);
  free(it->extents);
  it->base = NULL;
  it->extents = NULL;
}

/* --------------------------------------------------------------- extents */

/* Cut `size` bytes from a free extent; NULL when none is long enough. */
static void *region_cut(region *from, size_t size) {
  extent *it = from->extents;
  while (it && (it->used || it->size < size)) {
    it = it->next;
  }
  if (!it) {
    return NULL;
  }
  if (it->size > size) {
    extent *rest = calloc(1, sizeof *rest);
    if (!rest) {
      return NULL;
    }
    *rest = (extent){.next = it->next, .offset = it->offset + size, .size = it->size - size};
    it->next = rest;
    it->size = size;
  }
  it->used = true;
  return from->base + it->offset;
}

/* Join an extent with those behind it that are free. */
static void join(extent *it) {
  while (it->next && !it->used && !it->next->used) {
    extent *next = it->next;
    it->size += next->size;
    it->next = next->next;
    free(next);
  }
}

static void *get(size_t size) {
  for (int i = 0; i < heap.region_count; i++) {
    void *memory = heap.regions[i].base ? region_cut(&heap.regions[i], size) : NULL;
    if (memory) {
      return memory;
    }
  }
  region *made = region_create(size);
  return made ? region_cut(made, size) : NULL;
}

void *lcomm_shm_heap_get(size_t size) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size > LCOMM_SHM_LONGEST) {
    return NULL;
  }
  pthread_once(&once, forget_when_forked);
  pthread_mutex_lock(&heap.lock);
  void *memory = get(size > 0 ? round_up(size, page) : page);
  pthread_mutex_unlock(&heap.lock);
  return memory;
}

/* ------------------------------------------------------- finding and freeing */

/* The region in which all these bytes lie, or NULL. */
static region *find(const void *bytes, size_t size) {
  uintptr_t at = (uintptr_t)bytes;
  for (int i = 0; i < heap.region_count; i++) {
    region *it = &heap.regions[i];
    uintptr_t base = (uintptr_t)it->base;
    if (base && at >= base && at - base < it->size && size <= it->size - (at - base)) {
      return it;
    }
  }
  return NULL;
}

bool lcomm_shm_heap_find(const void *bytes, size_t size, lcomm_shm_address *address) {
  pthread_mutex_lock(&heap.lock);
  const region *it = find(bytes, size);
  bool seen = it && it->file >= 0;
  if (seen) {
    *address = (lcomm_shm_address){.offset = (uint64_t)((const unsigned char *)bytes - it->base),
                                   .region_size = it->size,
                                   .generation = it->generation,
                                   .file = it->file,
                                   .region = (uint16_t)(it - heap.regions)};
  }
  pthread_mutex_unlock(&heap.lock);
  return seen;
}

static void make_hole(const region *in, const extent *it) {
  unsigned char *bytes = in->base + it->offset;
  int left = in->file >= 0 ? fallocate(in->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                       (off_t)it->offset, (off_t)it->size)
                           : madvise(bytes, it->size, MADV_DONTNEED);
  if (left != 0) {
    memset(bytes, 0, it->size);
  }
}

static bool release(void *memory) {
  region *from = memory ? find(memory, 1) : NULL;
  size_t offset = from ? (size_t)((unsigned char *)memory - from->base) : 0;
  extent *before = NULL, *it = from ? from->extents : NULL;
  while (it && it->offset != offset) {
    before = it;
    it = it->next;
  }
  if (!it || !it->used) {
    return false;
  }
  make_hole(from, it);
  it->used = false;
  join(it);
  if (before) {
    join(before);
  }
  if (!from->extents->used && !from->extents->next) {
    region_destroy(from);
  }
  return true;
}

bool lcomm_shm_heap_free(void *memory) {
  pthread_mutex_lock(&heap.lock);
  bool freed = release(memory);
  pthread_mutex_unlock(&heap.lock);
  return freed;
}
