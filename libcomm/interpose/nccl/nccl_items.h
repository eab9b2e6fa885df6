/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_NCCL_ITEMS_H
#define LCOMM_INTERPOSE_NCCL_ITEMS_H

/* A list of things of one size, whose memory stays: a group as long as one before needs none. */

#include <stdlib.h>

typedef struct lcomm_nccl_items {
  void *all;
  size_t count, room;
} lcomm_nccl_items;

/* Where the next one goes; NULL: there is no memory. */
static inline void *lcomm_nccl_items_append(lcomm_nccl_items *to, size_t size) {
  if (to->count == to->room) {
    size_t room = to->room ? 2 * to->room : 16;
    void *all = realloc(to->all, room * size);
    if (!all) {
      return NULL;
    }
    to->all = all;
    to->room = room;
  }
  return (char *)to->all + size * to->count++;
}

#endif
