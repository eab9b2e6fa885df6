/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory of emulated devices. Device memory is a memory file, so that other
 * processes can open it, between two pages that nobody can touch. */

#include <errno.h>
#include <malloc.h>
#include <sanitizer/asan_interface.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/support/emulated/emulated_internal.h"

enum { ALIGNMENT = 256, RUBBISH = 0xff };

typedef struct piece {
  struct piece *next;
  lcomm_memory_kind kind;
  int device;
  unsigned char *base;
  size_t size;
  unsigned char *pages; /* of device memory: the file's and one more on both sides */
  size_t pages_size;
  int file;
  emulated_handle handle;
  uint64_t number;
  bool can_be_shared, is_opened; /* by ipc_open */
  bool is_registered;            /* by pin: somebody else's */
} piece;

static piece *pieces;
static piece *freed;      /* their pages are kept, so that nothing else gets there */
static size_t freed_size; /* of the notes about them */
static uint64_t number_last;

/* ------------------------------------------------------------------ finding */

/* With the lock. The end of a piece is no part of it. */
static piece *find(const void *pointer) {
  uintptr_t address = (uintptr_t)pointer;
  for (piece *it = pieces; it; it = it->next) {
    uintptr_t base = (uintptr_t)it->base;
    if (address >= base && address - base < it->size) {
      return it;
    }
  }
  return NULL;
}

lcomm_memory_location emulated_place(const void *pointer) {
  lcomm_memory_location place = {LCOMM_MEMORY_HOST, -1};
  emulated_lock();
  const piece *it = find(pointer);
  if (it) {
    place.kind = it->kind;
    place.device = it->kind == LCOMM_MEMORY_PINNED ? -1 : it->device;
  }
  emulated_unlock();
  return place;
}

lcomm_memory_location emulated_locate(const void *pointer) {
  emulated_enter(EMULATED_CALL_LOCATE);
  return emulated_place(pointer);
}

bool emulated_holds(lcomm_memory_kind kind, const void *pointer, size_t size) {
  emulated_lock();
  const piece *it = find(pointer);
  bool holds = it && (kind == LCOMM_MEMORY_KIND_COUNT || it->kind == kind) &&
               size <= it->size - (size_t)((const unsigned char *)pointer - it->base);
  emulated_unlock();
  return holds;
}

/* With the lock: bytes that are in use on a device. */
static uint64_t used(int device) {
  uint64_t sum = 0;
  for (const piece *it = pieces; it; it = it->next) {
    bool is_there = it->kind == LCOMM_MEMORY_DEVICE && it->device == device;
    sum += is_there && !it->is_opened ? it->size : 0;
  }
  return sum;
}

void emulated_memory_info(int device, size_t *unused, size_t *all) {
  *all = (size_t)emulated.setup.memory_size;
  emulated_lock();
  *unused = *all - (size_t)used(device);
  emulated_unlock();
}

/* ------------------------------------------------------------------- making */

static size_t whole_pages(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (size + page - 1) / page * page;
}

/* The file's pages between two that nobody can touch. */
static bool map(piece *it) {
  size_t page = whole_pages(1), inside = whole_pages(it->size);
  it->pages_size = inside + 2 * page;
  void *pages =
      mmap(NULL, it->pages_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) {
    return false;
  }
  it->pages = pages;
  it->base = it->pages + page;
  if (mmap(it->base, inside, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, it->file, 0) ==
      MAP_FAILED) {
    munmap(it->pages, it->pages_size);
    return false;
  }
  ASAN_POISON_MEMORY_REGION(it->base + it->size, inside - it->size);
  return true;
}

static bool make_device_memory(piece *it) {
  if (!emulated_file_create(whole_pages(it->size), &it->handle)) {
    return false;
  }
  it->file = it->handle.file;
  it->handle.device = it->device;
  if (!map(it)) {
    close(it->file);
    return false;
  }
  return true;
}

static bool make_host_memory(piece *it) {
  void *memory = NULL;
  it->file = -1;
  if (posix_memalign(&memory, ALIGNMENT, it->size) != 0) {
    return false;
  }
  it->base = memory;
  return true;
}

static void list(piece *it) {
  emulated_lock();
  it->number = ++number_last;
  it->next = pieces;
  pieces = it;
  emulated_unlock();
}

static bool has_room(lcomm_memory_kind kind, size_t size) {
  uint64_t all = emulated.setup.memory_size;
  emulated_lock();
  uint64_t before = kind == LCOMM_MEMORY_DEVICE ? used(emulated_current()) : 0;
  emulated_unlock();
  return size <= all && before <= all - size;
}

static void *get(lcomm_memory_kind kind, size_t size, bool can_be_shared) {
  piece *it = has_room(kind, size) ? calloc(1, sizeof *it) : NULL;
  if (!it) {
    return NULL;
  }
  it->kind = kind;
  it->size = size;
  it->device = emulated_current();
  it->can_be_shared = can_be_shared;
  if (!(kind == LCOMM_MEMORY_DEVICE ? make_device_memory(it) : make_host_memory(it))) {
    free(it);
    return NULL;
  }
  memset(it->base, RUBBISH, size);
  list(it);
  return it->base;
}

int emulated_memory_get(size_t size, void **memory) {
  emulated_enter(EMULATED_CALL_GET);
  *memory = size ? get(LCOMM_MEMORY_DEVICE, size, true) : NULL;
  return size && !*memory ? EMULATED_OUT_OF_MEMORY : 0;
}

int emulated_pinned_get(size_t size, void **memory) {
  emulated_enter(EMULATED_CALL_PINNED_GET);
  *memory = size ? get(LCOMM_MEMORY_PINNED, size, false) : NULL;
  return size && !*memory ? EMULATED_OUT_OF_MEMORY : 0;
}

void *emulated_pool_get(size_t size) {
  return get(LCOMM_MEMORY_DEVICE, size, false);
}

void *emulated_managed_get(size_t size) {
  emulated_enter(EMULATED_CALL_MANAGED_GET);
  return get(LCOMM_MEMORY_MANAGED, size, false);
}

/* ------------------------------------------------------------------ freeing */

/* Nothing else is put where device memory was: whoever still uses it, finds out. */
static void retire(piece *it) {
  if (!it->pages) {
    free(it->is_registered ? NULL : it->base);
    return;
  }
  ASAN_UNPOISON_MEMORY_REGION(it->base, whole_pages(it->size));
  (void)mmap(it->pages, it->pages_size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  close(it->file);
}

/* Is it what this call gives back? */
static bool matches(const piece *it, const void *memory, emulated_call call) {
  bool registered = call == EMULATED_CALL_UNPIN;
  bool pinned = registered || call == EMULATED_CALL_PINNED_FREE;
  return it && it->base == memory && (it->kind == LCOMM_MEMORY_PINNED) == pinned &&
         it->is_opened == (call == EMULATED_CALL_IPC_CLOSE) && it->is_registered == registered;
}

/* With the lock. */
static void move_to_freed(piece *it) {
  piece **at = &pieces;
  while (*at != it) {
    at = &(*at)->next;
  }
  *at = it->next;
  if (!it->pages) {
    free(it);
    return;
  }
  it->next = freed;
  freed = it;
  freed_size += malloc_usable_size(it) + sizeof(size_t); /* with that of the allocator */
}

size_t emulated_notes_size(void) {
  emulated_lock();
  size_t size = freed_size;
  emulated_unlock();
  return size;
}

static int give_back(emulated_call call, void *memory) {
  int error = 0;
  if (!memory) {
    return 0;
  }
  emulated_enter(call);
  emulated_lock();
  piece *it = find(memory);
  if (matches(it, memory, call)) {
    retire(it);
    move_to_freed(it);
  } else {
    error = EMULATED_INVALID_VALUE;
  }
  emulated_unlock();
  return error;
}

int emulated_memory_free(void *memory) {
  return give_back(EMULATED_CALL_FREE, memory);
}

int emulated_pinned_free(void *memory) {
  return give_back(EMULATED_CALL_PINNED_FREE, memory);
}

/* Whole pages that are in none of the pieces yet. */
static bool can_be_pinned(const unsigned char *memory, size_t size) {
  size_t page = whole_pages(1);
  bool can = memory && size > 0 && (uintptr_t)memory % page == 0 && size % page == 0;
  emulated_lock();
  for (size_t at = 0; can && at < size; at += page) {
    can = !find(memory + at);
  }
  emulated_unlock();
  return can;
}

int emulated_pin(void *memory, size_t size) {
  emulated_enter(EMULATED_CALL_PIN);
  if (!can_be_pinned(memory, size)) {
    return EMULATED_INVALID_VALUE;
  }
  piece *it = calloc(1, sizeof *it);
  if (!it) {
    return EMULATED_OUT_OF_MEMORY;
  }
  *it = (piece){.kind = LCOMM_MEMORY_PINNED,
                .device = emulated_current(),
                .base = memory,
                .size = size,
                .file = -1,
                .is_registered = true};
  list(it);
  return 0;
}

int emulated_unpin(void *memory) {
  return give_back(EMULATED_CALL_UNPIN, memory);
}

static void forget(piece *it) {
  if (it->pages) {
    munmap(it->pages, it->pages_size);
  }
  free(it);
}

int emulated_memory_end(void) {
  int left = 0;
  while (pieces) {
    piece *it = pieces;
    pieces = it->next;
    left++;
    retire(it);
    forget(it);
  }
  while (freed) {
    piece *it = freed;
    freed = it->next;
    forget(it);
  }
  freed_size = 0;
  return left;
}

/* ------------------------------------------------------------------ sharing */

int emulated_ipc_get(const void *pointer, lcomm_device_ipc *ipc) {
  int error = EMULATED_NOT_SUPPORTED;
  emulated_enter(EMULATED_CALL_IPC_GET);
  memset(ipc, 0, sizeof *ipc);
  emulated_lock();
  const piece *it = find(pointer);
  if (it && it->can_be_shared && !emulated.setup.without_sharing) {
    memcpy(ipc->handle, &it->handle, sizeof(it->handle));
    ipc->allocation = it->number;
    ipc->base = (uint64_t)(uintptr_t)it->base;
    ipc->offset = (uint64_t)((const unsigned char *)pointer - it->base);
    ipc->size = it->size;
    error = 0;
  }
  emulated_unlock();
  return error;
}

static bool is_open(const emulated_handle *handle) {
  bool found = false;
  emulated_lock();
  for (const piece *it = pieces; it; it = it->next) {
    found = found || (it->is_opened && it->handle.inode == handle->inode);
  }
  emulated_unlock();
  return found;
}

int emulated_ipc_open(const lcomm_device_ipc *ipc, void **allocation) {
  emulated_handle handle;
  int error = 0;
  *allocation = NULL;
  emulated_enter(EMULATED_CALL_IPC_OPEN);
  int file = emulated_file_open(ipc->handle, &handle, &error);
  if (file < 0) {
    return error;
  }
  piece *it = calloc(1, sizeof *it);
  bool fits = ipc->size > 0 && ipc->size <= handle.size && handle.device >= 0 &&
              handle.device < emulated.setup.devices;
  if (!it || !fits || is_open(&handle)) {
    free(it);
    close(file);
    return !it ? EMULATED_OUT_OF_MEMORY : fits ? EMULATED_ALREADY_MAPPED : EMULATED_INVALID_VALUE;
  }
  *it = (piece){.kind = LCOMM_MEMORY_DEVICE,
                .device = handle.device,
                .size = ipc->size,
                .file = file,
                .handle = handle,
                .is_opened = true};
  if (!map(it)) {
    close(file);
    free(it);
    return EMULATED_OUT_OF_MEMORY;
  }
  list(it);
  *allocation = it->base;
  return 0;
}

int emulated_ipc_close(void *allocation) {
  return give_back(EMULATED_CALL_IPC_CLOSE, allocation);
}
