/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory that is given out to slots and vectors: of the transport whose peers
 * can look into it, else of our own. */

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/transport/links.h"

struct lcomm_links_memory {
  void *memory;
  size_t size;
  lcomm_transport *owner; /* NULL: the heap */
  lcomm_links_memory *next;
};

static void *get_shared(lcomm_links *links, size_t size, lcomm_transport **owner) {
  for (int i = 0; i < links->count; i++) {
    lcomm_transport *transport = links->open[i];
    void *memory =
        transport->table->memory_get ? transport->table->memory_get(transport, size) : NULL;
    if (memory) {
      *owner = transport;
      return memory;
    }
  }
  return NULL;
}

static void *get_plain(size_t size) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (size > SIZE_MAX - page) {
    return NULL;
  }
  size_t whole = (size + page - 1) / page * page;
  void *memory = aligned_alloc(page, whole ? whole : page);
  return memory ? memset(memory, 0, whole ? whole : page) : NULL;
}

void *lcomm_links_memory_get(lcomm_links *links, size_t size) {
  lcomm_links_memory *entry = calloc(1, sizeof *entry);
  if (!entry) {
    return NULL;
  }
  entry->memory = get_shared(links, size, &entry->owner);
  if (!entry->memory) {
    entry->memory = get_plain(size);
  }
  if (!entry->memory) {
    free(entry);
    return NULL;
  }
  entry->size = size;
  entry->next = links->memory;
  links->memory = entry;
  links->memory_size += size;
  return entry->memory;
}

void lcomm_links_memory_free(lcomm_links *links, void *memory) {
  for (lcomm_links_memory **link = &links->memory; memory && *link; link = &(*link)->next) {
    lcomm_links_memory *entry = *link;
    if (entry->memory != memory) {
      continue;
    }
    *link = entry->next;
    links->memory_size -= entry->size;
    if (entry->owner) {
      entry->owner->table->memory_free(entry->owner, memory);
    } else {
      free(memory);
    }
    free(entry);
    return;
  }
}

static lcomm_links_memory *_Atomic left_behind;

void lcomm_links_memory_leave(lcomm_links *links) {
  while (links->memory) {
    lcomm_links_memory *entry = links->memory;
    links->memory = entry->next;
    entry->next = atomic_load(&left_behind);
    while (!atomic_compare_exchange_weak(&left_behind, &entry->next, entry)) {
    }
  }
}
