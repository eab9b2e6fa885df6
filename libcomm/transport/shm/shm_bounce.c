/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Copies of private messages in memory that peers can view. They are kept by
 * powers of two and used again, the last one first: its lines are the ones
 * that are still in the caches. Sends of the same bytes to several peers, as of a
 * broadcast, share one: the bytes must stay as they are until all are over. */

#include "libcomm/transport/shm/shm_internal.h"

static int class_of(size_t size) {
  int class = 0;
  while ((size_t)LCOMM_SHM_BOUNCE_SMALLEST << class < size) {
    class ++;
  }
  return class;
}

lcomm_shm_buffer *lcomm_shm_bounce_get(lcomm_shm *t, size_t size) {
  int class = class_of(size);
  if (class >= LCOMM_SHM_BOUNCE_CLASSES) {
    return NULL;
  }
  lcomm_shm_buffer *bounce = t->memory.bounces[class];
  if (bounce) {
    t->memory.bounces[class] = bounce->next;
    bounce->users = 1;
    return bounce;
  }
  size_t whole = (size_t)LCOMM_SHM_BOUNCE_SMALLEST << class;
  if (whole > t->ways.bounce_total || t->memory.bounce_size > t->ways.bounce_total - whole) {
    return NULL;
  }
  bounce = lcomm_shm_head_get(t);
  void *bytes = bounce ? lcomm_shm_heap_get(whole) : NULL;
  if (!bytes) {
    if (bounce) {
      bounce->next = t->memory.free_heads;
      t->memory.free_heads = bounce;
    }
    return NULL;
  }
  bounce->bytes = bytes;
  bounce->size = whole;
  bounce->users = 1;
  t->memory.bounce_size += whole;
  return bounce;
}

lcomm_shm_buffer *lcomm_shm_bounce_find(const lcomm_shm *t, const unsigned char *bytes,
                                        size_t size) {
  for (int i = 0; i < LCOMM_SHM_BOUNCE_RECENT; i++) {
    lcomm_shm_buffer *bounce = t->memory.recent[i];
    if (bounce && bounce->source == bytes && bounce->source_size == size) {
      bounce->users++;
      return bounce;
    }
  }
  return NULL;
}

void lcomm_shm_bounce_offer(lcomm_shm *t, lcomm_shm_buffer *bounce, const unsigned char *bytes,
                            size_t size) {
  bounce->source = bytes;
  bounce->source_size = size;
  t->memory.recent[t->memory.recent_next++ % LCOMM_SHM_BOUNCE_RECENT] = bounce;
}

void lcomm_shm_bounce_put(lcomm_shm *t, lcomm_shm_buffer *bounce) {
  if (--bounce->users > 0) {
    return;
  }
  for (int i = 0; i < LCOMM_SHM_BOUNCE_RECENT; i++) {
    t->memory.recent[i] = t->memory.recent[i] == bounce ? NULL : t->memory.recent[i];
  }
  int class = class_of(bounce->size);
  bounce->source = NULL;
  bounce->next = t->memory.bounces[class];
  t->memory.bounces[class] = bounce;
}

/* The copies that peers were still to look at go as well. */
static void free_sent(lcomm_shm_peer *peer) {
  for (int slot = 0; slot < LCOMM_SHM_SLOTS; slot++) {
    lcomm_shm_buffer *bounce = peer->sends.records[slot] ? peer->sends.records[slot]->bounce : NULL;
    if (bounce && --bounce->users == 0) {
      lcomm_shm_heap_free(bounce->bytes);
    }
  }
}

void lcomm_shm_bounces_free(lcomm_shm *t) {
  for (int i = 0; i < t->reached_count; i++) {
    free_sent(t->reached[i]);
  }
  for (int class = 0; class < LCOMM_SHM_BOUNCE_CLASSES; class ++) {
    for (lcomm_shm_buffer *bounce = t->memory.bounces[class]; bounce; bounce = bounce->next) {
      lcomm_shm_heap_free(bounce->bytes);
    }
  }
}
