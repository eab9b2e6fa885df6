/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_TOOLS_SCALE_SCALE_HELD_H
#define LCOMM_TOOLS_SCALE_SCALE_HELD_H

/* What a communicator and its process hold. */

#include "libcomm/engine/engine.h"

typedef struct scale_holdings {
  int64_t links;       /* peers to which there is one */
  int64_t maps;        /* of memory that ranks of this machine share */
  int64_t descriptors; /* open files and sockets */
  int64_t threads;
} scale_holdings;

void scale_held(const lcomm_comm *comm, scale_holdings *held);

/* In KiB; of memory that several processes map, each has its part. */
int64_t scale_memory_kib(void);

#endif
