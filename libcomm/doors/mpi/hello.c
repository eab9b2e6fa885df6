/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* The meeting: every rank says hello to rank 0, which judges and tells all. */

#include "libcomm/doors/mpi/hello.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct verdict {
  char magic[8];
  int32_t good;
  char sentence[LCOMM_DOOR_SENTENCE_MAX];
} verdict;

static const char magic_text[8] = "lc-door";

void lcomm_door_hello_begin(lcomm_door_hello *mine) {
  memset(mine, 0, sizeof(*mine));
  memcpy(mine->magic, magic_text, sizeof(mine->magic));
  mine->version = lcomm_version();
}

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

static const char *name_of(int32_t mode) {
  static const char *const names[] = {[LCOMM_DOOR_SHUT] = "off",
                                      [LCOMM_DOOR_OPEN] = "on",
                                      [LCOMM_DOOR_BLOCKING] = "blocking",
                                      [LCOMM_DOOR_REPORT] = "report"};
  return mode >= 0 && mode <= LCOMM_DOOR_REPORT ? names[mode] : "unknown";
}

/* What the rank says that differs from rank 0; false when nothing does. */
static bool differs(const lcomm_door_hello *first, const lcomm_door_hello *other, int rank,
                    char *sentence) {
  if (memcmp(other->magic, magic_text, sizeof(magic_text)) != 0 ||
      other->version != first->version) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "rank %d preloads another version of libcomm-mpi.so than rank 0; install the same one "
             "on all hosts",
             rank);
  } else if (strncmp(first->policy, other->policy, sizeof(first->policy)) != 0) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "LCOMM_POLICY is \"%.*s\" on rank 0 and \"%.*s\" on rank %d; give all ranks the same "
             "(mpirun -x LCOMM_POLICY)",
             LCOMM_DOOR_POLICY_MAX - 1, first->policy, LCOMM_DOOR_POLICY_MAX - 1, other->policy,
             rank);
  } else if (first->mode != other->mode) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "the door is %s on rank 0 and %s on rank %d; give all ranks the same LCOMM_DOOR "
             "(mpirun -x LCOMM_DOOR)",
             name_of(first->mode), name_of(other->mode), rank);
  } else if (first->controlled != other->controlled) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "LCOMM_DOOR_CONTROL is set on rank %d and not on rank %d; give it to all ranks or to "
             "none",
             first->controlled ? 0 : rank, first->controlled ? rank : 0);
  } else if (first->level != other->level) {
    snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX,
             "MPI gave thread level %d to rank 0 and %d to rank %d; let all ranks ask for the same",
             first->level, other->level, rank);
  } else {
    return false;
  }
  return true;
}

static void judge(const lcomm_door_hello *mine, double end_s, int size, int tag, verdict *v) {
  v->good = 1;
  for (int rank = 1; rank < size; rank++) {
    lcomm_door_hello other;
    memset(&other, 0, sizeof(other));
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Irecv(&other, sizeof(other), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    bool here = wait_until(&request, end_s);
    other.policy[sizeof(other.policy) - 1] = '\0';
    if (!v->good) {
      continue; /* the lowest rank is named; the others are still heard */
    }
    if (!here) {
      v->good = 0;
      snprintf(v->sentence, sizeof(v->sentence),
               "rank %d does not answer; does it run without the preload? Give all ranks the same "
               "environment (mpirun -x LD_PRELOAD)",
               rank);
    } else if (differs(mine, &other, rank, v->sentence)) {
      v->good = 0;
    }
  }
}

static void tell(const verdict *v, int size, int tag, double end_s) {
  for (int rank = 1; rank < size; rank++) {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Isend(v, sizeof(*v), MPI_BYTE, rank, tag, MPI_COMM_WORLD, &request);
    wait_until(&request, end_s);
  }
}

/* ------------------------------------------------------------- the others ask */

static lcomm_door_meeting ask(const lcomm_door_hello *mine, int tag, double end_s, verdict *v) {
  MPI_Request requests[2];
  PMPI_Irecv(v, sizeof(*v), MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[0]);
  PMPI_Isend(mine, sizeof(*mine), MPI_BYTE, 0, tag, MPI_COMM_WORLD, &requests[1]);
  bool heard = wait_until(&requests[0], end_s);
  wait_until(&requests[1], end_s);
  if (!heard || memcmp(v->magic, magic_text, sizeof(magic_text)) != 0) {
    snprintf(v->sentence, sizeof(v->sentence),
             "rank 0 does not answer; does it run without the preload? Give all ranks the same "
             "environment (mpirun -x LD_PRELOAD)");
    return LCOMM_DOOR_UNHEARD;
  }
  v->sentence[sizeof(v->sentence) - 1] = '\0';
  return v->good ? LCOMM_DOOR_AGREED : LCOMM_DOOR_REFUSED;
}

/* Rank 0 waits for the others, then tells them; they wait until it has done both. */
static lcomm_door_meeting meet(const lcomm_door_hello *mine, double wait_s, verdict *v) {
  int rank = 0, size = 1, tag = tag_of_doors();
  double begin_s = PMPI_Wtime();
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  if (rank > 0) {
    return ask(mine, tag, begin_s + 2 * wait_s, v);
  }
  memcpy(v->magic, magic_text, sizeof(v->magic));
  judge(mine, begin_s + wait_s, size, tag, v);
  tell(v, size, tag, begin_s + 1.5 * wait_s);
  return v->good ? LCOMM_DOOR_AGREED : LCOMM_DOOR_REFUSED;
}

lcomm_door_meeting lcomm_door_meet(const lcomm_door_hello *mine, double wait_s, char *sentence) {
  verdict *v = calloc(1, sizeof(*v));
  snprintf(sentence, LCOMM_DOOR_SENTENCE_MAX, "out of memory");
  if (!v) {
    return LCOMM_DOOR_UNHEARD; /* the others hear nothing of this rank, and give up, too */
  }
  lcomm_door_meeting meeting = meet(mine, wait_s, v);
  memcpy(sentence, v->sentence, sizeof(v->sentence));
  free(v);
  return meeting;
}
