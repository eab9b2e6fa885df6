/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The meeting: every rank says hello to rank 0, which judges and tells all. */

#include "libcomm/doors/mpi/hello.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The highest tag: programs hardly use it, and nobody else listens before MPI_Init has returned. */
static int tag_of_doors(void) {
  void *most = NULL;
  int found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  return found ? *(int *)most : 32767;
}

/* Wait for a request, but not for ever; what has not come is given up. */
static bool wait_until(MPI_Request *request, double end_s) {
  const struct timespec nap = {.tv_nsec = 100000};
  int done = 0;
  for (unsigned tries = 0;; tries++) {
    PMPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (done) {
      return true;
    }
    if (PMPI_Wtime() > end_s) {
      break;
    }
    if (tries > 1000) {
      nanosleep(&nap, NULL);
    }
  }
  MPI_Status status;
  PMPI_Cancel(request);
  PMPI_Wait(request, &status);
  PMPI_Test_cancelled(&status, &done);
  return !done;
}

/* -------------------------------------------------------------- rank 0 judges */

static void judge(const lcomm_door_hello *mine, double end_s, int size, int tag,
                  lcomm_door_verdict *v) {
  v->good = 1;
  for (int rank = 1; rank < size; rank++) {
    lcomm_door_hello other;
    memset(&other, 0, sizeof(other));
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Irecv(&other, sizeof(other), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    bool here = wait_until(&request, end_s);
    if (!v->good) {
      continue; /* the lowest rank is named; the others are still heard */
    }
    if (!here) {
      v->good = 0;
      snprintf(v->sentence, sizeof(v->sentence),
               "rank %d does not answer; does it run without the preload? Give all ranks the same "
               "environment (mpirun -x LD_PRELOAD)",
               rank);
    } else if (lcomm_door_hello_differs(mine, &other, rank, v->sentence)) {
      v->good = 0;
    }
  }
}

static void tell(const lcomm_door_verdict *v, int size, int tag, double end_s) {
  for (int rank = 1; rank < size; rank++) {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Isend(v, sizeof(*v), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    wait_until(&request, end_s);
  }
}

/* ------------------------------------------------------------- the others ask */

static lcomm_door_meeting ask(const lcomm_door_hello *mine, int tag, double end_s,
                              lcomm_door_verdict *v) {
  MPI_Request requests[2];
  PMPI_Irecv(v, sizeof(*v), MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[0]);
  PMPI_Isend(mine, sizeof(*mine), MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[1]);
  bool heard = wait_until(&requests[0], end_s);
  wait_until(&requests[1], end_s);
  if (!heard || !lcomm_door_verdict_take(v)) {
    snprintf(v->sentence, sizeof(v->sentence),
             "rank 0 does not answer; does it run without the preload? Give all ranks the same "
             "environment (mpirun -x LD_PRELOAD)");
    return LCOMM_DOOR_UNHEARD;
  }
  return v->good ? LCOMM_DOOR_AGREED : LCOMM_DOOR_REFUSED;
}

/* Rank 0 waits for the others, then tells them; they wait until it has done both. */
static lcomm_door_meeting meet(const lcomm_door_hello *mine, double wait_s, lcomm_door_verdict *v) {
  int rank = 0, size = 1, tag = tag_of_doors();
  double begin_s = PMPI_Wtime();
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0) {
    return ask(mine, tag, begin_s + 2 * wait_s, v);
  }
  lcomm_door_verdict_begin(v);
  judge(mine, begin_s + wait_s, size, tag, v);
  tell(v, size, tag, begin_s + 1.5 * wait_s);
  return v->good ? LCOMM_DOOR_AGREED : LCOMM_DOOR_REFUSED;
}

lcomm_door_meeting lcomm_door_meet(const lcomm_door_hello *mine, double wait_s, char *sentence) {
  lcomm_door_verdict *v = calloc(1, sizeof(*v));
  snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX, "out of memory");
  if (!v) {
    return LCOMM_DOOR_UNHEARD; /* the others hear nothing of this rank, and give up, too */
  }
  lcomm_door_meeting meeting = meet(mine, wait_s, v);
  memcpy(sentence, v->sentence, sizeof(v->sentence));
  free(v);
  return meeting;
}
