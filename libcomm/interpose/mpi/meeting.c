/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* An allgather as a star, of messages. */

#include "libcomm/interpose/mpi/meeting.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/mpi/making.h"

static struct {
  MPI_Comm comm;
  int last_tag;
  uint64_t tags; /* of each way */
} meeting = {.comm = MPI_COMM_NULL};

/* ---------------------------------------------------------- open and close */

static int find_last_tag(void) {
  int *most = NULL, found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  return found ? *most : 32767;
}

/* Not a duplicate: the program's attributes would be copied. */
bool lcomm_interpose_makings_open(void) {
  MPI_Group everyone = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &everyone);
  int code = PMPI_Comm_create(MPI_COMM_WORLD, everyone, &meeting.comm);
  PMPI_Group_free(&everyone);
  meeting.last_tag = find_last_tag();
  meeting.tags = ((uint64_t)meeting.last_tag + 1) / LCOMM_INTERPOSE_WAYS;
  return code == MPI_SUCCESS && meeting.comm != MPI_COMM_NULL;
}

void lcomm_interpose_makings_close(void) {
  if (meeting.comm != MPI_COMM_NULL) {
    PMPI_Comm_free(&meeting.comm);
  }
}

MPI_Comm lcomm_interpose_meeting_comm(void) {
  return meeting.comm;
}

int lcomm_interpose_tag(lcomm_interpose_way way, uint64_t number) {
  return (int)((uint64_t)way * meeting.tags + number % meeting.tags);
}

int lcomm_interpose_last_tag(void) {
  return meeting.last_tag;
}

/* ----------------------------------------------------------------- waiting */

double lcomm_interpose_patience_s(void) {
  const char *text = lcomm_setting("LCOMM_TIMEOUT_S");
  double value = text ? strtod(text, NULL) : 0;
  return value > 0 ? value : LCOMM_INTERPOSE_PATIENCE_S;
}

static int give_up(int count, MPI_Request requests[]) {
  int first = 0;
  for (int i = count - 1; i >= 0; i--) {
    if (requests[i] != MPI_REQUEST_NULL) {
      first = i;
      PMPI_Cancel(&requests[i]);
      PMPI_Request_free(&requests[i]);
    }
  }
  return first;
}

/* Looks that follow each other at first, then with naps: the others may be long in coming. */
int lcomm_interpose_meeting_wait(int count, MPI_Request requests[]) {
  enum { LOOKS = 500 };
  const struct timespec nap = {.tv_nsec = 50000};
  double end_s = PMPI_Wtime() + lcomm_interpose_patience_s();
  int over = 0;
  for (unsigned looks = 0; !over && PMPI_Wtime() < end_s; looks++) {
    PMPI_Testall(count, requests, &over, MPI_STATUSES_IGNORE);
    if (!over && looks < LOOKS) {
      sched_yield();
    } else if (!over) {
      nanosleep(&nap, NULL);
    }
  }
  return over ? -1 : give_up(count, requests);
}

/* ------------------------------------------------------------------ the star */

static void start_one(const lcomm_interpose_meeting_point *point, int member,
                      lcomm_interpose_way way, void *bytes, size_t size, MPI_Request *request) {
  int peer = point->members[member], tag = lcomm_interpose_tag(way, point->number);
  if ((way == LCOMM_INTERPOSE_TO_FIRST) == (point->rank == 0)) {
    PMPI_Irecv(bytes, (int)size, MPI_BYTE, peer, tag, meeting.comm, request);
  } else {
    PMPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, meeting.comm, request);
  }
}

/* Rank 0: one message with each of the others. */
static bool with_all(lcomm_interpose_meeting_point *point, lcomm_interpose_way way, uint8_t *all,
                     size_t size, MPI_Request *requests) {
  for (int i = 1; i < point->size; i++) {
    if (way == LCOMM_INTERPOSE_TO_FIRST) {
      start_one(point, i, way, all + (size_t)i * size, size, &requests[i - 1]);
    } else {
      start_one(point, i, way, all, size * (size_t)point->size, &requests[i - 1]);
    }
  }
  int late = lcomm_interpose_meeting_wait(point->size - 1, requests);
  point->late = late < 0 ? -1 : point->members[late + 1];
  return late < 0;
}

static bool with_first(lcomm_interpose_meeting_point *point, uint8_t *mine, uint8_t *all,
                       size_t size, MPI_Request *requests) {
  start_one(point, 0, LCOMM_INTERPOSE_TO_FIRST, mine, size, &requests[0]);
  start_one(point, 0, LCOMM_INTERPOSE_FROM_FIRST, all, size * (size_t)point->size, &requests[1]);
  int late = lcomm_interpose_meeting_wait(2, requests);
  point->late = late < 0 ? -1 : point->members[0];
  return late < 0;
}

static bool gather(lcomm_interpose_meeting_point *point, uint8_t *all, size_t size,
                   MPI_Request *requests) {
  if (point->rank > 0) {
    return with_first(point, all + size * (size_t)point->size, all, size, requests);
  }
  return with_all(point, LCOMM_INTERPOSE_TO_FIRST, all, size, requests) &&
         with_all(point, LCOMM_INTERPOSE_FROM_FIRST, all, size, requests);
}

/* On failure MPI may still write into the memory, which is left to it. */
int lcomm_interpose_meeting_gather(void *context, const void *send, void *receive, size_t size) {
  lcomm_interpose_meeting_point *point = context;
  size_t whole = size * (size_t)point->size;
  if (size == 0 || whole / size != (size_t)point->size || whole > INT_MAX) {
    return size != 0;
  }
  uint8_t *all = malloc(whole + size);
  MPI_Request *requests = malloc((size_t)(point->size + 1) * sizeof(MPI_Request));
  if (!all || !requests) {
    free(all);
    free(requests);
    return 1;
  }
  memcpy(all + (point->rank == 0 ? 0 : whole), send, size);
  bool done = gather(point, all, size, requests);
  if (done) {
    memcpy(receive, all, whole);
    free(all);
  }
  free(requests);
  return !done;
}
