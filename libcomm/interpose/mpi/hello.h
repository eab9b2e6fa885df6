/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_INTERPOSE_MPI_HELLO_H
#define LCOMM_INTERPOSE_MPI_HELLO_H

/* The first words between all ranks: who is there (presence.h), and were all told the
 * same? */

#include "libcomm/interpose/mpi/greeting.h"
#include "libcomm/interpose/mpi/interpose.h"

typedef enum lcomm_interpose_meeting {
  LCOMM_INTERPOSE_AGREED,
  LCOMM_INTERPOSE_REFUSED, /* rank 0 has told all why */
  LCOMM_INTERPOSE_UNHEARD  /* rank 0 does not answer */
} lcomm_interpose_meeting;

/* Meet all ranks of the world; every rank that takes part calls this in MPI_Init. AGREED
 * on all ranks or on none: all are here and were told the same. Otherwise `sentence`
 * (LCOMM_INTERPOSE_SENTENCE_MAX bytes) says what is wrong. */
lcomm_interpose_meeting lcomm_interpose_meet(const lcomm_interpose_hello *mine, char *sentence);

#endif
