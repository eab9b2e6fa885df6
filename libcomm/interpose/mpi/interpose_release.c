/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_comm.h"

#include <stdlib.h>
#include <time.h>

#include "libcomm/interpose/mpi/interpose_rendezvous.h"

/* Waits for empty messages: the root for one from each other rank, which wait for one from the
 * root. With a channel each rank waits for all others, on the channel, which also completes what
 * was sent there before. */
typedef struct release {
  lcomm_comm *comm;
  bool root; /* this rank is its rank 0 */
  uint64_t number;
  int channel, count;
  int *peers;
  MPI_Request *requests;
  struct release *next;
} release;

static struct {
  pthread_mutex_t lock; /* guards the list */
  pthread_mutex_t freeing;
  release *first;
  atomic_uint count; /* in the list, or taken from it to be looked at */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .freeing = PTHREAD_MUTEX_INITIALIZER};

static void add(release *it) {
  pthread_mutex_lock(&all.lock);
  it->next = all.first;
  all.first = it;
  pthread_mutex_unlock(&all.lock);
}

static void discard(release *it) {
  if (it) {
    free(it->peers);
    free(it->requests);
    free(it);
  }
}

/* -------------------------------------------------------------- messages */

static MPI_Comm comm_of(const release *it) {
  return it->channel ? *lcomm_interpose_channel_comm(it->channel)
                     : lcomm_interpose_rendezvous_comm();
}

static void send_all(const release *it) {
  lcomm_interpose_direction direction =
      it->root ? LCOMM_INTERPOSE_RELEASE_FROM_ROOT : LCOMM_INTERPOSE_RELEASE_TO_ROOT;
  int tag = it->channel ? lcomm_interpose_rendezvous_last_tag()
                        : lcomm_interpose_rendezvous_tag(direction, it->number);
  for (int i = 0; i < it->count; i++) {
    MPI_Request request = MPI_REQUEST_NULL;
    PMPI_Isend(NULL, 0, MPI_BYTE, it->peers[i], tag, comm_of(it), &request);
    PMPI_Request_free(&request); /* the message is empty */
  }
}

static void receive_all(release *it) {
  lcomm_interpose_direction direction =
      it->root ? LCOMM_INTERPOSE_RELEASE_TO_ROOT : LCOMM_INTERPOSE_RELEASE_FROM_ROOT;
  int tag = it->channel ? lcomm_interpose_rendezvous_last_tag()
                        : lcomm_interpose_rendezvous_tag(direction, it->number);
  for (int i = 0; i < it->count; i++) {
    PMPI_Irecv(NULL, 0, MPI_BYTE, it->peers[i], tag, comm_of(it), &it->requests[i]);
  }
}

static bool is_complete(release *it) {
  int complete = 0;
  PMPI_Testall(it->count, it->requests, &complete, MPI_STATUSES_IGNORE);
  return complete != 0;
}

static release *prepare(const lcomm_interpose_comm *at, const lcomm_interpose_backing *backing) {
  release *it = calloc(1, sizeof *it);
  if (!it) {
    return NULL;
  }
  it->comm = backing->comm;
  it->root = at->rank == 0;
  it->number = backing->number;
  it->channel = backing->channel;
  it->count = it->root || it->channel ? at->size - 1 : 1;
  it->peers = malloc((size_t)(it->count + 1) * sizeof *it->peers);
  it->requests = malloc((size_t)(it->count + 1) * sizeof(MPI_Request));
  if (!it->peers || !it->requests) {
    discard(it);
    return NULL;
  }
  for (int i = 0; i < it->count; i++) {
    int other = it->channel ? i + (i >= at->rank) : it->root ? i + 1 : 0;
    it->peers[i] = at->members[other];
  }
  return it;
}

/* Without memory the communicator stays until the process ends, on all ranks. */
void lcomm_interpose_backing_release(const lcomm_interpose_comm *at,
                                     lcomm_interpose_backing *backing) {
  bool stays = !backing->comm || backing->comm == lcomm_interpose_world();
  release *it = stays ? NULL : prepare(at, backing);
  if (!stays) {
    lcomm_retire(backing->comm);
  }
  backing->comm = NULL;
  if (it) {
    atomic_fetch_add(&all.count, 1);
    receive_all(it);
    if (!it->root || it->channel) {
      send_all(it);
    }
    add(it);
  }
}

/* ------------------------------------------------------------------ freeing */

static release *take_all(void) {
  pthread_mutex_lock(&all.lock);
  release *taken = all.first;
  all.first = NULL;
  pthread_mutex_unlock(&all.lock);
  return taken;
}

static void free_one(release *it) {
  if (it->root && !it->channel) {
    send_all(it);
  }
  lcomm_release(it->comm);
  lcomm_interpose_channel_release(it->channel);
  discard(it);
  atomic_fetch_sub(&all.count, 1);
}

static void free_ready(void) {
  release *next = NULL;
  for (release *it = take_all(); it; it = next) {
    next = it->next;
    if (is_complete(it)) {
      free_one(it);
    } else {
      add(it);
    }
  }
}

void lcomm_interpose_release_ready(void) {
  if (atomic_load_explicit(&all.count, memory_order_relaxed) > 0 &&
      pthread_mutex_trylock(&all.freeing) == 0) {
    free_ready();
    pthread_mutex_unlock(&all.freeing);
  }
}

/* ----------------------------------------------------------------- the end */

/* Do not wait for messages that nobody will send any more. */
static void cancel(const release *it) {
  for (int i = 0; i < it->count; i++) {
    if (it->requests[i] != MPI_REQUEST_NULL) {
      PMPI_Cancel(&it->requests[i]);
      PMPI_Request_free(&it->requests[i]);
    }
  }
}

static void free_for_a_while(void) {
  static const double DURATION_S = 2;
  static const struct timespec pause = {0, 100000};
  double end_s = PMPI_Wtime() + DURATION_S;
  for (free_ready(); all.first && PMPI_Wtime() < end_s; free_ready()) {
    nanosleep(&pause, NULL);
  }
}

/* The world's backing has number 0. */
static void release_all_ranks(lcomm_comm *world) {
  int size = lcomm_size(world), rank = lcomm_rank(world);
  int *members = malloc((size_t)size * sizeof *members);
  for (int i = 0; members && i < size; i++) {
    members[i] = i;
  }
  if (members) {
    const lcomm_interpose_comm at = {.rank = rank, .size = size, .members = members};
    lcomm_interpose_backing backing = {.comm = world};
    lcomm_interpose_backing_release(&at, &backing);
  }
  free(members);
}

void lcomm_interpose_release_world(lcomm_comm **world) {
  lcomm_comm *comm = *world;
  pthread_mutex_lock(&all.freeing);
  free_for_a_while();
  *world = NULL;
  if (comm && !all.first) {
    release_all_ranks(comm);
    free_for_a_while();
  }
  for (const release *it = all.first; it; it = it->next) {
    cancel(it);
  }
  pthread_mutex_unlock(&all.freeing);
}
