/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The meeting: all ranks are found first, then rank 0 gathers what they were told, judges
 * and tells all. */

#include "libcomm/interpose/mpi/hello.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libcomm/interpose/mpi/presence.h"

/* The lowest rank that differs is named. */
static void judge(const lcomm_interpose_hello *all, int size, lcomm_interpose_verdict *v) {
  lcomm_interpose_verdict_begin(v);
  v->good = 1;
  for (int rank = 1; rank < size && v->good; rank++) {
    v->good = !lcomm_interpose_hello_differs(&all[0], &all[rank], rank, v->sentence);
  }
}

/* Every rank is in this call, so collective calls meet nobody else's. */
static lcomm_interpose_meeting compare(const lcomm_interpose_hello *mine,
                                       lcomm_interpose_hello *all, int rank, int size,
                                       lcomm_interpose_verdict *v) {
  PMPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *mine, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    judge(all, size, v);
  }
  PMPI_Bcast(v, sizeof *v, MPI_BYTE, 0, MPI_COMM_WORLD);
  if (!lcomm_interpose_verdict_take(v)) {
    snprintf(v->sentence, sizeof(v->sentence),
             "rank 0 preloads another version of libcomm-mpi.so; install the same one on all "
             "hosts");
    return LCOMM_INTERPOSE_UNHEARD;
  }
  return v->good ? LCOMM_INTERPOSE_AGREED : LCOMM_INTERPOSE_REFUSED;
}

static lcomm_interpose_meeting meet(const lcomm_interpose_hello *mine, lcomm_interpose_hello *all,
                                    int rank, int size, lcomm_interpose_verdict *v) {
  switch (lcomm_interpose_presence_find(rank, size, v->sentence)) {
  case LCOMM_INTERPOSE_RANK_MISSING:
    return LCOMM_INTERPOSE_REFUSED;
  case LCOMM_INTERPOSE_FIRST_MISSING:
    return LCOMM_INTERPOSE_UNHEARD;
  case LCOMM_INTERPOSE_ALL_PRESENT:
    break;
  }
  lcomm_interpose_meeting meeting = compare(mine, all, rank, size, v);
  lcomm_interpose_presence_end(rank, size);
  return meeting;
}

lcomm_interpose_meeting lcomm_interpose_meet(const lcomm_interpose_hello *mine, char *sentence) {
  int rank = 0, size = 1;
  lcomm_interpose_meeting meeting = LCOMM_INTERPOSE_UNHEARD; /* the others find this rank missing */
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  lcomm_interpose_verdict *v = calloc(1, sizeof *v);
  lcomm_interpose_hello *all = calloc(rank == 0 ? (size_t)size : 1, sizeof *all);
  snprintf(sentence, LCOMM_INTERPOSE_SENTENCE_MAX, "out of memory");
  if (v && all) {
    meeting = meet(mine, all, rank, size, v);
    memcpy(sentence, v->sentence, sizeof(v->sentence));
  }
  free(all);
  free(v);
  return meeting;
}
