/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */
#ifndef LCOMM_DOORS_MPI_HELLO_H
#define LCOMM_DOORS_MPI_HELLO_H

/* The first words between all ranks: who is there (presence.h), and were all told the
 * same? */

#include "libcomm/doors/mpi/door.h"
#include "libcomm/doors/mpi/greeting.h"

typedef enum lcomm_door_meeting {
  LCOMM_DOOR_AGREED,
  LCOMM_DOOR_REFUSED, /* rank 0 has told all why */
  LCOMM_DOOR_UNHEARD  /* rank 0 does not answer */
} lcomm_door_meeting;

/* Meet all ranks of the world; every rank that takes part calls this in MPI_Init. AGREED
 * on all ranks or on none: all are here and were told the same. Otherwise `sentence`
 * (LCOMM_DOOR_SENTENCE_MAX bytes) says what is wrong. */
lcomm_door_meeting lcomm_door_meet(const lcomm_door_hello *mine, char *sentence);

#endif
