/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Records of messages in flight, buffers, and the lists they are in. Nothing
 * is given back to the system before the end, so that there is no allocation
 * once as many messages were in flight as ever will be. */

#include <stdlib.h>
#include <string.h>

#include "libcomm/transport/shm/shm_internal.h"

enum { SLAB_RECORDS = 64, SLAB_HEADS = 64, SLAB_SHORTS = 16 };

struct lcomm_shm_slab {
  alignas(LCOMM_SHM_LINE) struct lcomm_shm_slab *next;
};

/* Memory up to the end; NULL when there is none. */
static void *slab_get(lcomm_shm *t, size_t size) {
  size_t whole =
      (sizeof(struct lcomm_shm_slab) + size + LCOMM_SHM_LINE - 1) & ~(size_t)(LCOMM_SHM_LINE - 1);
  struct lcomm_shm_slab *slab = aligned_alloc(LCOMM_SHM_LINE, whole);
  if (!slab) {
    return NULL;
  }
  slab->next = t->memory.slabs;
  t->memory.slabs = slab;
  return slab + 1;
}

/* --------------------------------------------------------------- records */

lcomm_shm_record *lcomm_shm_record_get(lcomm_shm *t, lcomm_shm_peer *peer, lcomm_shm_kind kind) {
  if (!t->memory.free_records) {
    lcomm_shm_record *more = slab_get(t, SLAB_RECORDS * sizeof *more);
    for (int i = 0; more && i < SLAB_RECORDS; i++) {
      more[i].next = t->memory.free_records;
      t->memory.free_records = &more[i];
    }
  }
  lcomm_shm_record *record = t->memory.free_records;
  if (!record) {
    return NULL;
  }
  t->memory.free_records = record->next;
  memset(record, 0, offsetof(lcomm_shm_record, there));
  record->peer = peer;
  record->kind = kind;
  return record;
}

/* Where a buffer of messages goes when it is no longer used. */
static void buffer_put(lcomm_shm *t, lcomm_shm_buffer *buffer) {
  lcomm_shm_buffer **pool =
      buffer->size == LCOMM_SHM_INLINE ? &t->memory.free_shorts : &t->memory.free_gathers;
  buffer->next = *pool;
  *pool = buffer;
}

void lcomm_shm_record_put(lcomm_shm *t, lcomm_shm_record *record) {
  if (record->own) {
    buffer_put(t, record->own);
  }
  record->next = t->memory.free_records;
  t->memory.free_records = record;
}

/* --------------------------------------------------------------- buffers */

lcomm_shm_buffer *lcomm_shm_head_get(lcomm_shm *t) {
  if (!t->memory.free_heads) {
    lcomm_shm_buffer *more = slab_get(t, SLAB_HEADS * sizeof *more);
    for (int i = 0; more && i < SLAB_HEADS; i++) {
      more[i].next = t->memory.free_heads;
      t->memory.free_heads = &more[i];
    }
  }
  lcomm_shm_buffer *head = t->memory.free_heads;
  if (head) {
    t->memory.free_heads = head->next;
    memset(head, 0, sizeof *head);
  }
  return head;
}

lcomm_shm_buffer *lcomm_shm_short_get(lcomm_shm *t) {
  if (!t->memory.free_shorts) {
    unsigned char *bytes = slab_get(t, SLAB_SHORTS * (size_t)LCOMM_SHM_INLINE);
    for (int i = 0; bytes && i < SLAB_SHORTS; i++) {
      lcomm_shm_buffer *buffer = lcomm_shm_head_get(t);
      if (!buffer) {
        break;
      }
      buffer->size = LCOMM_SHM_INLINE;
      buffer->bytes = bytes + (size_t)i * LCOMM_SHM_INLINE;
      buffer_put(t, buffer);
    }
  }
  lcomm_shm_buffer *buffer = t->memory.free_shorts;
  if (buffer) {
    t->memory.free_shorts = buffer->next;
  }
  return buffer;
}

/* The smallest free buffer that is long enough, unlinked. */
static lcomm_shm_buffer *best_gather(lcomm_shm *t, size_t size) {
  lcomm_shm_buffer **best = NULL;
  for (lcomm_shm_buffer **at = &t->memory.free_gathers; *at; at = &(*at)->next) {
    if ((*at)->size >= size && (!best || (*at)->size < (*best)->size)) {
      best = at;
    }
  }
  lcomm_shm_buffer *buffer = best ? *best : NULL;
  if (buffer) {
    *best = buffer->next;
  }
  return buffer;
}

/* One more, still without bytes. */
static lcomm_shm_buffer *gather_head(lcomm_shm *t) {
  lcomm_shm_buffer *head = lcomm_shm_head_get(t);
  if (head) {
    head->older = t->memory.gathers;
    t->memory.gathers = head;
  }
  return head;
}

lcomm_shm_buffer *lcomm_shm_gather_get(lcomm_shm *t, size_t size) {
  lcomm_shm_buffer *buffer = best_gather(t, size);
  if (buffer) {
    return buffer;
  }
  /* One that is too short makes way, so that growing messages do not leave a
   * trail of memory. */
  buffer = t->memory.free_gathers ? t->memory.free_gathers : gather_head(t);
  if (!buffer) {
    return NULL;
  }
  t->memory.free_gathers = buffer->next;
  free(buffer->bytes);
  buffer->size = (size + LCOMM_SHM_LINE - 1) & ~(size_t)(LCOMM_SHM_LINE - 1);
  buffer->bytes = aligned_alloc(LCOMM_SHM_LINE, buffer->size);
  if (!buffer->bytes) {
    buffer->size = 0;
    buffer->next = t->memory.free_gathers;
    t->memory.free_gathers = buffer;
    return NULL;
  }
  return buffer;
}

void lcomm_shm_records_free(lcomm_shm *t) {
  for (lcomm_shm_buffer *buffer = t->memory.gathers; buffer; buffer = buffer->older) {
    free(buffer->bytes);
  }
  while (t->memory.slabs) {
    struct lcomm_shm_slab *next = t->memory.slabs->next;
    free(t->memory.slabs);
    t->memory.slabs = next;
  }
}

/* ----------------------------------------------------------------- lists */

void lcomm_shm_list_add(lcomm_shm_list *list, lcomm_shm_record *record) {
  record->next = NULL;
  record->previous = list->last;
  if (list->last) {
    list->last->next = record;
  } else {
    list->first = record;
  }
  list->last = record;
}

void lcomm_shm_list_remove(lcomm_shm_list *list, lcomm_shm_record *record) {
  if (record->previous) {
    record->previous->next = record->next;
  } else {
    list->first = record->next;
  }
  if (record->next) {
    record->next->previous = record->previous;
  } else {
    list->last = record->previous;
  }
}

lcomm_shm_record *lcomm_shm_list_find(lcomm_shm_list *buckets, uint32_t tag) {
  lcomm_shm_record *record = lcomm_shm_bucket(buckets, tag)->first;
  while (record && record->tag != tag) {
    record = record->next;
  }
  return record;
}
