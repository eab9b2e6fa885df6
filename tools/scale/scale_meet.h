/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SCALE_SCALE_MEET_H
#define LCOMM_TOOLS_SCALE_SCALE_MEET_H

/* Ranks that meet at a TCP store. */

#include <stdint.h>

typedef struct scale_meeting {
  double meet_s, root_processor_s; /* all ranks until the end; the thread of rank 0 */
  uint64_t most_bytes, root_bytes; /* read and written, by the rank with most; by rank 0 */
  uint64_t said_bytes;             /* that each rank gives to all others */
} scale_meeting;

/* `ranks` threads of this process meet, and exchange what ranks of several hosts tell each other
 * while a communicator is made and nothing differs. NULL, or what went wrong. */
const char *scale_meet(int ranks, scale_meeting *found);

#endif
