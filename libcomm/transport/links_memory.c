/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Memory that is given out to slots and vectors: of the transport whose peers
 * can look into it, else of our own. */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libcomm/transport/links.h"

struct lcomm_links_memory {
  void *memory;
  size_t size;
  void (*free)(void *memory);
  lcomm_links_memory *next;
};

static void *get_shared(lcomm_links *links, size_t size, void (**give_back)(void *memory)) {
  for (int i = 0; i < links->count; i++) {
    lcomm_transport *transport = links->open[i];
    void *memory =
        transport->table->memory_get ? transport->table->memory_get(transport, size) : NULL;
    if (memory) {
      *give_back = transport->table->memory_free;
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
  entry->free = free;
  entry->memory = get_shared(links, size, &entry->free);
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

/* The first one of the list at this place. */
static void free_first(lcomm_links *links, lcomm_links_memory **place) {
  lcomm_links_memory *entry = *place;
  *place = entry->next;
  links->memory_size -= entry->size;
  entry->free(entry->memory);
  free(entry);
}

void lcomm_links_memory_free(lcomm_links *links, void *memory) {
  lcomm_links_memory **place = &links->memory;
  while (*place && (*place)->memory != memory) {
    place = &(*place)->next;
  }
  if (memory && *place) {
    free_first(links, place);
  }
}

void lcomm_links_memory_free_all(lcomm_links *links) {
  while (links->memory) {
    free_first(links, &links->memory);
  }
}
