/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The meeting: all ranks are found first, then rank 0 gathers what they were told, judges
 * and tells all. */

#include "libcomm/doors/mpi/hello.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/doors/mpi/presence.h"

/* The lowest rank that differs is named. */
static void judge(const lcomm_door_hello *all, int size, lcomm_door_verdict *v) {
  lcomm_door_verdict_begin(v);
  v->good = 1;
  for (int rank = 1; rank < size && v->good; rank++) {
    v->good = !lcomm_door_hello_differs(&all[0], &all[rank], rank, v->sentence);
  }
}

/* Every rank is in this call, so collective calls meet nobody else's. */
static lcomm_door_meeting compare(const lcomm_door_hello *mine, lcomm_door_hello *all, int rank,
                                  int size, lcomm_door_verdict *v) {
  PMPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    judge(all, size, v);
  }
  PMPI_Bcast(v, sizeof *v, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (!lcomm_door_verdict_take(v)) {
    snprintf(v->sentence, sizeof(v->sentence),
             "rank 0 preloads another version of libcomm-mpi.so; install the same one on all "
             "hosts");
    return LCOMM_DOOR_UNHEARD;
  }
  return v->good ? LCOMM_DOOR_AGREED : LCOMM_DOOR_REFUSED;
}

static lcomm_door_meeting meet(const lcomm_door_hello *mine, lcomm_door_hello *all, int rank,
                               int size, lcomm_door_verdict *v) {
  switch (lcomm_door_presence_find(rank, size, v->sentence)) {
  case LCOMM_DOOR_RANK_MISSING:
    return LCOMM_DOOR_REFUSED;
  case LCOMM_DOOR_FIRST_MISSING:
    return LCOMM_DOOR_UNHEARD;
  case LCOMM_DOOR_ALL_PRESENT:
    break;
  }
  lcomm_door_meeting meeting = compare(mine, all, rank, size, v);
  lcomm_door_presence_end(rank, size);
  return meeting;
}

lcomm_door_meeting lcomm_door_meet(const lcomm_door_hello *mine, char *sentence) {
  int rank = 0, size = 1;
  lcomm_door_meeting meeting = LCOMM_DOOR_UNHEARD; /* the others find this rank missing */
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  lcomm_door_verdict *v = calloc(1, sizeof *v);
  lcomm_door_hello *all = calloc(rank == 0 ? (size_t)size : 1, sizeof *all);
  snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX, "out of memory");
  if (v && all) {
    meeting = meet(mine, all, rank, size, v);
    memcpy(sentence, v->sentence, sizeof(v->sentence));
  }
  free(all);
  free(v);
  return meeting;
}
