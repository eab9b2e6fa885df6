/* SPDX-License-Identifier: Apache-2.0
 * Copyright the libcomm authors */

#include "libcomm/interpose/mpi/interpose_rendezvous.h"

#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "libcomm/interpose/mpi/interpose_comm.h"

/* ------------------------------------------------------------------ messages */

static struct {
  MPI_Comm comm;
  int last_tag;
  uint64_t tags; /* of each direction */
} messages = {.comm = MPI_COMM_NULL};

static int find_last_tag(void) {
  int *most = NULL, found = 0;
  PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found);
  return found ? *most : 32767;
}

/* Not a duplicate, which would copy the program's attributes. */
bool lcomm_interpose_rendezvous_open(void) {
  MPI_Group everyone = MPI_GROUP_NULL;
  PMPI_Comm_group(MPI_COMM_WORLD, &everyone);
  int code = PMPI_Comm_create(MPI_COMM_WORLD, everyone, &messages.comm);
  PMPI_Group_free(&everyone);
  messages.last_tag = find_last_tag();
  messages.tags = ((uint64_t)messages.last_tag + 1) / LCOMM_INTERPOSE_DIRECTIONS;
  return code == MPI_SUCCESS && messages.comm != MPI_COMM_NULL;
}

void lcomm_interpose_rendezvous_close(void) {
  if (messages.comm != MPI_COMM_NULL) {
    PMPI_Comm_free(&messages.comm);
  }
}

MPI_Comm lcomm_interpose_rendezvous_comm(void) {
  return messages.comm;
}

int lcomm_interpose_rendezvous_tag(lcomm_interpose_direction direction, uint64_t number) {
  return (int)((uint64_t)direction * messages.tags + number % messages.tags);
}

int lcomm_interpose_rendezvous_last_tag(void) {
  return messages.last_tag;
}

/* ----------------------------------------------------------------- waiting */

static int cancel(int count, MPI_Request requests[]) {
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

/* Poll, at first without pauses, then with pauses. */
int lcomm_interpose_rendezvous_wait(int count, MPI_Request requests[]) {
  enum { POLLS = 500 };
  const struct timespec pause = {.tv_nsec = 50000};
  double end_s = PMPI_Wtime() + lcomm_interpose_timeout_s();
  int complete = 0;
  for (unsigned polls = 0; !complete && PMPI_Wtime() < end_s; polls++) {
    PMPI_Testall(count, requests, &complete, MPI_STATUSES_IGNORE);
    if (!complete && polls < POLLS) {
      sched_yield();
    } else if (!complete) {
      nanosleep(&pause, NULL);
    }
  }
  return complete ? -1 : cancel(count, requests);
}

/* ---------------------------------------------------- allgather, as a star */

static void start_one(const lcomm_interpose_rendezvous *point, int member,
                      lcomm_interpose_direction direction, void *bytes, size_t size,
                      MPI_Request *request) {
  int peer = point->members[member], tag = lcomm_interpose_rendezvous_tag(direction, point->number);
  if ((direction == LCOMM_INTERPOSE_INIT_TO_ROOT) == (point->rank == 0)) {
    PMPI_Irecv(bytes, (int)size, MPI_BYTE, peer, tag, messages.comm, request);
  } else {
    PMPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, messages.comm, request);
  }
}

/* The root exchanges a message with each other rank. */
static bool root_with_all(lcomm_interpose_rendezvous *point, lcomm_interpose_direction direction,
                          uint8_t *all, size_t size, MPI_Request *requests) {
  for (int i = 1; i < point->size; i++) {
    if (direction == LCOMM_INTERPOSE_INIT_TO_ROOT) {
      start_one(point, i, direction, all + (size_t)i * size, size, &requests[i - 1]);
    } else {
      start_one(point, i, direction, all, size * (size_t)point->size, &requests[i - 1]);
    }
  }
  int overdue = lcomm_interpose_rendezvous_wait(point->size - 1, requests);
  point->overdue = overdue < 0 ? -1 : point->members[overdue + 1];
  return overdue < 0;
}

static bool other_with_root(lcomm_interpose_rendezvous *point, uint8_t *mine, uint8_t *all,
                            size_t size, MPI_Request *requests) {
  start_one(point, 0, LCOMM_INTERPOSE_INIT_TO_ROOT, mine, size, &requests[0]);
  start_one(point, 0, LCOMM_INTERPOSE_INIT_FROM_ROOT, all, size * (size_t)point->size,
            &requests[1]);
  int overdue = lcomm_interpose_rendezvous_wait(2, requests);
  point->overdue = overdue < 0 ? -1 : point->members[0];
  return overdue < 0;
}

static bool gather(lcomm_interpose_rendezvous *point, uint8_t *all, size_t size,
                   MPI_Request *requests) {
  if (point->rank > 0) {
    return other_with_root(point, all + size * (size_t)point->size, all, size, requests);
  }
  return root_with_all(point, LCOMM_INTERPOSE_INIT_TO_ROOT, all, size, requests) &&
         root_with_all(point, LCOMM_INTERPOSE_INIT_FROM_ROOT, all, size, requests);
}

/* On failure the memory is not freed, because MPI may still write into it. */
int lcomm_interpose_rendezvous_allgather(void *context, const void *send, void *receive,
                                         size_t size) {
  lcomm_interpose_rendezvous *point = context;
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

/* ------------------------------------------------------------------ channels */

enum { ROUNDS = 200, SOME = 4 };

static struct {
  pthread_mutex_t lock; /* guards the masks, one bit for each channel */
  bool open;
  uint64_t taken, offered;
  MPI_Comm comms[LCOMM_INTERPOSE_CHANNELS + 1];
} channels = {.lock = PTHREAD_MUTEX_INITIALIZER};

bool lcomm_interpose_channels_open(void) {
  MPI_Group everyone = MPI_GROUP_NULL;
  channels.open = lcomm_travels_over(lcomm_interpose_world(), "mpi") != 0;
  int needed = channels.open; /* where any pair of ranks needs one, all ranks create them */
  PMPI_Allreduce(MPI_IN_PLACE, &needed, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  channels.open = needed != 0;
  PMPI_Comm_group(MPI_COMM_WORLD, &everyone);
  int code = MPI_SUCCESS;
  for (int i = 1; channels.open && code == MPI_SUCCESS && i <= LCOMM_INTERPOSE_CHANNELS; i++) {
    code = PMPI_Comm_create(MPI_COMM_WORLD, everyone, &channels.comms[i]);
  }
  PMPI_Group_free(&everyone);
  return code == MPI_SUCCESS;
}

void lcomm_interpose_channels_close(void) {
  for (int i = 1; channels.open && i <= LCOMM_INTERPOSE_CHANNELS; i++) {
    if (!(channels.taken >> i & 1)) {
      PMPI_Comm_free(&channels.comms[i]);
    }
  }
  channels.open = false;
}

MPI_Comm *lcomm_interpose_channel_comm(int channel) {
  return channel > 0 && channel <= LCOMM_INTERPOSE_CHANNELS ? &channels.comms[channel] : NULL;
}

/* Each rank offers some of the channels that are free for it, and keeps them out of other
 * rendezvous until the answers are there. The offer depends on the number of the rendezvous, so
 * concurrent ones seldom offer the same channels. Without a common channel the ranks try others. */

/* About a quarter of all, chosen by the seed. */
static uint64_t choose_some(uint64_t seed) {
  uint64_t some = 0;
  for (int i = 1; i <= LCOMM_INTERPOSE_CHANNELS; i++) {
    uint64_t mixed = (seed * 64 + (uint64_t)i) * UINT64_C(0x9e3779b97f4a7c15);
    some |= (uint64_t)((mixed >> 40) % SOME == 0) << i;
  }
  return some;
}

static uint64_t offer(uint64_t seed) {
  pthread_mutex_lock(&channels.lock);
  uint64_t mine = choose_some(seed) & ~channels.taken & ~channels.offered;
  channels.offered |= mine;
  pthread_mutex_unlock(&channels.lock);
  return mine;
}

static void commit(uint64_t mine, int channel) {
  pthread_mutex_lock(&channels.lock);
  channels.offered &= ~mine;
  channels.taken |= channel > 0 ? UINT64_C(1) << channel : 0;
  pthread_mutex_unlock(&channels.lock);
}

static int lowest(uint64_t mask) {
  return mask ? __builtin_ctzll(mask) : 0;
}

/* One round. False: a rank is overdue. */
static bool offer_to_all(lcomm_interpose_rendezvous *point, uint64_t seed, uint64_t *all,
                         int *channel) {
  uint64_t mine = offer(seed), common = UINT64_MAX;
  bool complete = lcomm_interpose_rendezvous_allgather(point, &mine, all, sizeof(mine)) == 0;
  for (int i = 0; i < point->size; i++) {
    common &= complete ? all[i] : 0;
  }
  *channel = lowest(common);
  commit(mine, *channel);
  return complete;
}

bool lcomm_interpose_channel_take(lcomm_interpose_rendezvous *point, int *channel) {
  static const struct timespec pause = {0, 1000000};
  *channel = 0;
  if (!channels.open) {
    return true;
  }
  uint64_t *all = calloc((size_t)point->size, sizeof *all);
  bool complete = all != NULL;
  for (uint64_t round = 0; complete && *channel == 0 && round < ROUNDS; round++) {
    if (round > SOME) {
      nanosleep(&pause, NULL);
    }
    complete = offer_to_all(point, point->number * ROUNDS + round, all, channel);
  }
  free(all);
  return *channel > 0;
}

void lcomm_interpose_channel_release(int channel) {
  if (channel <= 0 || channel > LCOMM_INTERPOSE_CHANNELS) {
    return;
  }
  for (int found = 1; found;) {
    MPI_Message message;
    MPI_Status status;
    int size = 0;
    PMPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, channels.comms[channel], &found, &message, &status);
    if (found) {
      PMPI_Get_count(&status, MPI_BYTE, &size);
      void *bytes = malloc((size_t)size + 1);
      PMPI_Mrecv(bytes, bytes ? size : 0, MPI_BYTE, &message, &status);
      free(bytes);
    }
  }
  pthread_mutex_lock(&channels.lock);
  channels.taken &= ~(UINT64_C(1) << channel);
  pthread_mutex_unlock(&channels.lock);
}
