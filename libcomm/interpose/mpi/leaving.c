/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

/* Who is through says so; when all have, each frees its own. */

#include "libcomm/interpose/mpi/leaving.h"

#include <stdlib.h>
#include <time.h>

#include "libcomm/interpose/mpi/comms.h"
#include "libcomm/interpose/mpi/making.h"
#include "libcomm/interpose/mpi/slots.h"

/* Waits for messages of nothing: rank 0 for one of each of the others, which wait for one of
 * rank 0, when it has them all. With a slot, all wait for all, on its communicator: what
 * was sent there before has come then. */
typedef struct left {
  lcomm_comm *comm;
  bool first; /* this rank is its rank 0 */
  uint64_t number;
  int slot, count;
  int *peers;
  MPI_Request *requests;
  struct left *next;
} left;

static struct {
  pthread_mutex_t lock; /* guards the list */
  pthread_mutex_t sweeping;
  left *first;
  atomic_uint count;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .sweeping = PTHREAD_MUTEX_INITIALIZER};

static void add(left *it) {
  pthread_mutex_lock(&all.lock);
  it->next = all.first;
  all.first = it;
  atomic_fetch_add(&all.count, 1);
  pthread_mutex_unlock(&all.lock);
}

static void discard(left *it) {
  if (it) {
    free(it->peers);
    free(it->requests);
    free(it);
  }
}

/* -------------------------------------------------------------- messages */

static MPI_Comm comm_of(const left *it) {
  return it->slot ? *lcomm_interpose_slot_comm(it->slot) : lcomm_interpose_meeting_comm();
}

static void tell(const left *it) {
  lcomm_interpose_way way =
      it->first ? LCOMM_INTERPOSE_LEFT_FROM_FIRST : LCOMM_INTERPOSE_LEFT_TO_FIRST;
  int tag = it->slot ? lcomm_interpose_last_tag() : lcomm_interpose_tag(way, it->number);
  for (int i = 0; i < it->count; i++) {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Isend(NULL, 0, MPI_BYTE, it->peers[i], tag, comm_of(it), &request);
    PMPI_Request_free(&request); /* there are no bytes to keep */
  }
}

static void listen(left *it) {
  lcomm_interpose_way way =
      it->first ? LCOMM_INTERPOSE_LEFT_TO_FIRST : LCOMM_INTERPOSE_LEFT_FROM_FIRST;
  int tag = it->slot ? lcomm_interpose_last_tag() : lcomm_interpose_tag(way, it->number);
  for (int i = 0; i < it->count; i++) {
    PMPI_Irecv(NULL, 0, MPI_BYTE, it->peers[i], tag, comm_of(it), &it->requests[i]);
  }
}

static bool have_all_left(left *it) {
  int over = 0;
  PMPI_Testall(it->count, it->requests, &over, MPI_STATUSES_IGNORE);
  return over != 0;
}

static left *begin(const lcomm_interpose_comm *at, const lcomm_interpose_home *home) {
  left *it = calloc(1, sizeof *it);
  if (!it) {
    return NULL;
  }
  it->comm = home->comm;
  it->first = at->rank == 0;
  it->number = home->number;
  it->slot = home->slot;
  it->count = it->first || it->slot ? at->size - 1 : 1;
  it->peers = malloc((size_t)(it->count + 1) * sizeof *it->peers);
  it->requests = malloc((size_t)(it->count + 1) * sizeof(MPI_Request));
  if (!it->peers || !it->requests) {
    discard(it);
    return NULL;
  }
  for (int i = 0; i < it->count; i++) {
    int other = it->slot ? i + (i >= at->rank) : it->first ? i + 1 : 0;
    it->peers[i] = at->members[other];
  }
  return it;
}

/* Without memory it stays to the end of the process, and with it that of the others. */
void lcomm_interpose_leave(const lcomm_interpose_comm *at, lcomm_interpose_home *home) {
  bool stays = !home->comm || home->comm == lcomm_interpose_world();
  left *it = stays ? NULL : begin(at, home);
  if (!stays) {
    lcomm_retire(home->comm);
  }
  home->comm = NULL;
  if (it) {
    listen(it);
    if (!it->first || it->slot) {
      tell(it);
    }
    add(it);
  }
}

/* --------------------------------------------------------------- sweeping */

static left *take_all(void) {
  pthread_mutex_lock(&all.lock);
  left *taken = all.first;
  all.first = NULL;
  pthread_mutex_unlock(&all.lock);
  return taken;
}

static void keep(left *it) {
  pthread_mutex_lock(&all.lock);
  it->next = all.first;
  all.first = it;
  pthread_mutex_unlock(&all.lock);
}

static void free_one(left *it) {
  if (it->first && !it->slot) {
    tell(it);
  }
  lcomm_release(it->comm);
  lcomm_interpose_slot_give_back(it->slot);
  discard(it);
  atomic_fetch_sub(&all.count, 1);
}

static void sweep(void) {
  left *next = NULL;
  for (left *it = take_all(); it; it = next) {
    next = it->next;
    if (have_all_left(it)) {
      free_one(it);
    } else {
      keep(it);
    }
  }
}

void lcomm_interpose_sweep(void) {
  if (atomic_load_explicit(&all.count, memory_order_relaxed) > 0 &&
      pthread_mutex_trylock(&all.sweeping) == 0) {
    sweep();
    pthread_mutex_unlock(&all.sweeping);
  }
}

/* ----------------------------------------------------------------- the end */

/* Messages that nobody will send any more are not waited for. */
static void forget(const left *it) {
  for (int i = 0; i < it->count; i++) {
    if (it->requests[i] != MPI_REQUEST_NULL) {
      PMPI_Cancel(&it->requests[i]);
      PMPI_Request_free(&it->requests[i]);
    }
  }
}

static void sweep_for_a_moment(void) {
  static const double MOMENT_S = 2;
  static const struct timespec nap = {0, 100000};
  double end_s = PMPI_Wtime() + MOMENT_S;
  for (sweep(); all.first && PMPI_Wtime() < end_s; sweep()) {
    nanosleep(&nap, NULL);
  }
}

/* Its number is 0. */
static void leave_all_ranks(lcomm_comm *world) {
  int size = lcomm_size(world), rank = lcomm_rank(world);
  int *members = malloc((size_t)size * sizeof *members);
  for (int i = 0; members && i < size; i++) {
    members[i] = i;
  }
  if (members) {
    const lcomm_interpose_comm at = {.rank = rank, .size = size, .members = members};
    lcomm_interpose_home home = {.comm = world};
    lcomm_interpose_leave(&at, &home);
  }
  free(members);
}

void lcomm_interpose_leave_world(lcomm_comm **world) {
  lcomm_comm *made = *world;
  pthread_mutex_lock(&all.sweeping);
  sweep_for_a_moment();
  *world = NULL;
  if (made && !all.first) {
    leave_all_ranks(made);
    sweep_for_a_moment();
  }
  for (const left *it = all.first; it; it = it->next) {
    forget(it);
  }
  pthread_mutex_unlock(&all.sweeping);
}
