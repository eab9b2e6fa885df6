/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TRANSPORT_SHM_SHM_HEAP_H
#define LCOMM_TRANSPORT_SHM_SHM_HEAP_H

/* Memory that other processes of this host can view. A process has one such heap for all
 * its communicators, because what a program takes from it may be sent on any of them. It
 * is made when memory is first asked for. Where the system has no file descriptors left it
 * gives private memory. Any thread. A forked child begins with an empty heap: what its
 * parent had stays the parent's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where bytes lie, for those who want to view them. */
typedef struct lcomm_shm_address {
  uint64_t offset;      /* in the region */
  uint64_t region_size; /* bytes */
  uint32_t generation;  /* counts the uses of this region number */
  int32_t file;         /* of the region, in this process */
  uint16_t region;      /* its number */
} lcomm_shm_address;

/* Zeroed, aligned to a page; NULL when there is none. */
void *lcomm_shm_heap_get(size_t size);

/* Give back what lcomm_shm_heap_get() gave; false for anything else, NULL included. */
bool lcomm_shm_heap_free(void *memory);

/* Do all these bytes lie in one region of the heap, and can it be viewed? */
bool lcomm_shm_heap_find(const void *bytes, size_t size, lcomm_shm_address *address);

#endif
