/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_WATCH_H
#define LCOMM_INTERPOSE_MPI_WATCH_H

/* Is a position of the pattern used by several buffers in turn? A guess from the
 * addresses of this rank, for a warning. */

#include <stdbool.h>
#include <stdint.h>

enum { LCOMM_INTERPOSE_TURNS_MAX = 64 };

/* Of one position. Begin with zeros. */
typedef struct lcomm_interpose_watch {
  uint64_t calls;
  uint32_t seen[LCOMM_INTERPOSE_TURNS_MAX];   /* ring of hashes of the last addresses */
  uint8_t repeats[LCOMM_INTERPOSE_TURNS_MAX]; /* [p-1]: calls in a row with the address of p calls
                                                 ago */
} lcomm_interpose_watch;

/* The position's next call; true when the addresses clearly repeat with a period of 2 to
 * LCOMM_INTERPOSE_TURNS_MAX calls. */
bool lcomm_interpose_watch_see(lcomm_interpose_watch *watch, const void *buffer);

#endif
