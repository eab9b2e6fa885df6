/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Copies of private messages in memory that peers can view. They are kept by
 * powers of two and used again, the last one first: its lines are the ones
 * that are still in the caches. */

#include "libcomm/transport/shm_internal.h"

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
  lcomm_shm_buffer *bounce = t->bounces[class];
  if (bounce) {
    t->bounces[class] = bounce->next;
    return bounce;
  }
  size_t whole = (size_t)LCOMM_SHM_BOUNCE_SMALLEST << class;
  if (whole > t->ways.bounce_total || t->bounce_size > t->ways.bounce_total - whole) {
    return NULL;
  }
  bounce = lcomm_shm_head_get(t);
  void *bytes = bounce ? lcomm_shm_heap_get(whole) : NULL;
  if (!bytes) {
    if (bounce) {
      bounce->next = t->free_heads;
      t->free_heads = bounce;
    }
    return NULL;
  }
  bounce->bytes = bytes;
  bounce->size = whole;
  t->bounce_size += whole;
  return bounce;
}

void lcomm_shm_bounce_put(lcomm_shm *t, lcomm_shm_buffer *bounce) {
  int class = class_of(bounce->size);
  bounce->next = t->bounces[class];
  t->bounces[class] = bounce;
}

/* The copies that peers were still to look at go as well. */
static void free_sent(lcomm_shm_peer *peer) {
  for (int slot = 0; slot < LCOMM_SHM_SLOTS; slot++) {
    if (peer->sends[slot] && peer->sends[slot]->bounce) {
      lcomm_shm_heap_free(peer->sends[slot]->bounce->bytes);
    }
  }
}

void lcomm_shm_bounces_free(lcomm_shm *t) {
  for (int i = 0; i < t->reached_count; i++) {
    free_sent(t->reached[i]);
  }
  for (int class = 0; class < LCOMM_SHM_BOUNCE_CLASSES; class ++) {
    for (lcomm_shm_buffer *bounce = t->bounces[class]; bounce; bounce = bounce->next) {
      lcomm_shm_heap_free(bounce->bytes);
    }
  }
}
